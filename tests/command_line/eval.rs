//! The command `eval` as a user meets it, and what it rests on: controllers that play the same episodes.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::LazyLock;

use serde_json::Value;
use simic_engine::internals::checkpoint::{BestCheckpoint, CheckpointName, FrozenPolicy};
use simic_engine::internals::compare::{Candidate, EpisodeOutcome, Episodes, play_until};
use simic_engine::internals::controller::SavedFolder;
use simic_engine::internals::growth::SlotId;
use simic_engine::internals::kernels::kernel_levels;
use simic_engine::internals::policy::DecideMode;
use simic_engine::internals::run::StopSignal;
use simic_engine::internals::scenario::ScheduleConfig;
use simic_engine::prelude::*;

use crate::program::{
    assert_has, call, copy_of, each, ended, engine_at, json, played, put_again, read, refused, repository, succeeds,
    text, tiny, write,
};
use crate::report::section_table;
use crate::support::engine;

const RUN: &str = "rounds: 2, n_envs: 2, max_steps: 8";

/// Indent of a line that continues the blueprints of a slot.
const SLOT_CONTINUED: &str = "        ";

/// A run of two rounds, with the policy that they trained.
fn trained() -> (tempfile::TempDir, PathBuf) {
    static TRAINED: LazyLock<Vec<u8>> = LazyLock::new(|| {
        played(|folder| {
            write(&folder.join("tiny.ron"), tiny(RUN));
            succeeds(&engine_at(folder, "run tiny.ron --id tiny --progress none --threads 2"));
        })
    });
    let folder = copy_of(&TRAINED);
    let run = folder.path().join("runs/tiny");
    (folder, run)
}

/// Evaluates a policy, with further words before its place.
pub fn eval(policy: &Path, more: &str) -> Output {
    ended(call(&format!("eval --threads 2 {more}")).arg(policy))
}

/// The document that it prints.
fn document(policy: &Path, more: &str) -> Value {
    json(&succeeds(&eval(policy, &format!("{more} --json"))))
}

fn candidate(controller: &str, policy: Option<SavedFolder>, mode: DecideMode) -> Candidate {
    Candidate {
        controller: controller.into(),
        policy,
        mode,
        seeds: None,
    }
}

/// The ends of rounds of two envs under seed 42.
fn play(experiment: Experiment, candidate: &Candidate, rounds: Range<u32>) -> Vec<EpisodeOutcome> {
    let episodes = Episodes {
        seed: 42,
        rounds,
        envs: 2,
    };
    let (extension, stop) = (Extension::default(), StopSignal::default());
    let played = play_until(experiment, &extension, candidate, &episodes, &stop, |_| ());
    played.expect("they are played").outcomes
}

fn experiment() -> Experiment {
    engine(&tiny(RUN)).world().resource::<Experiment>().clone()
}

/// The text without what was measured or decided, and without gaps and rules, which depend on its width.
fn shape(text: &str) -> String {
    let masked = |line: &str| {
        let is_difference = line.contains(" - ");
        let first = line.split_whitespace().next().unwrap_or_default();
        if first.parse::<SlotId>().is_ok() {
            return format!("{first} #");
        }
        let words = line.split_whitespace().map(|word| {
            let digits = word.trim_start_matches(['+', '-']);
            let is_number = digits.starts_with(|c: char| c.is_ascii_digit());
            match word {
                _ if word.starts_with('─') => "──",
                // No step, where it did not come to that.
                "—" => "#",
                _ if is_number && (word.contains('.') || is_difference) => "#",
                _ => word,
            }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let is_kept = |line: &&str| !line.starts_with("policy /") && !line.starts_with(SLOT_CONTINUED);
    let lines = text.lines().filter(is_kept);
    lines.map(masked).collect::<Vec<_>>().join("\n")
}

#[test]
#[ignore = "long tier"]
fn a_policy_is_compared_with_the_baselines_on_the_same_episodes() {
    let (_folder, run) = trained();

    let first = succeeds(&eval(&run, "--episodes 6"));

    insta::assert_snapshot!(shape(&first));
    let is_narrow = |line: &str| line.chars().count() <= 80 || line.starts_with("policy ");
    assert!(first.lines().all(is_narrow), "{first}");
    let again = succeeds(&eval(&run, "--episodes 6 --quiet"));
    assert_eq!(first, again, "the same again");
}

#[test]
fn programs_read_every_episode() {
    let (folder, run) = trained();
    let page = folder.path().join("eval.html");

    let asked = "--episodes 2 --seed 7,8 --sample --against wait --report";
    let document = document(&run, &format!("{asked} '{}'", page.display()));

    let page = read(&page);
    let (players, difference) = (&document["players"], &document["differences"][0]["accuracy"]);
    for (row, player) in section_table(&page, "players").iter().zip(each(players, "accuracy")) {
        let mean = player["mean"]["value"].as_f64().expect("a number");
        assert_eq!(row[1], format!("{mean:.2}"), "as in JSON");
    }
    let mean = difference["difference"]["mean"]["value"].as_f64().expect("a number");
    let shown = ["policy (sampled) - wait".to_owned(), format!("{mean:+.2}")];
    assert_eq!(section_table(&page, "differences")[0][..2], shown);

    assert_eq!(each(players, "name"), ["policy (sampled)", "wait"]);
    for episodes in each(players, "episodes") {
        assert_eq!(each(episodes, "seed"), [7, 7, 8, 8]);
        assert_eq!(each(episodes, "round"), [2; 4], "the policy was not trained in it");
        assert_eq!(each(episodes, "env"), [0, 1, 0, 1]);
    }
    let waited = &players[1]["decisions"];
    assert_eq!([&waited["germinated"], &waited["without_commit"]], [0.0, 1.0]);
    assert!(waited["first_germination"].is_null());
    let counted = &players[0]["episodes"][0]["decisions"];
    let has_counts = counted["committed"].is_u64() && counted["blueprints"].is_object();
    assert!(has_counts, "{counted}");
    assert_eq!(each(&document["commits"], "name"), ["policy (sampled)"]);
    for slot in document["commits"][0]["slots"].as_array().expect("slots") {
        let blueprints = slot["blueprints"].as_object().expect("blueprints").values();
        let episodes = blueprints.chain([&slot["nothing"]]).filter_map(Value::as_u64);
        assert_eq!(episodes.sum::<u64>(), 4, "{slot}");
    }
    let pairs = ["wins", "ties", "losses"].map(|key| difference[key].as_u64().expect("a count"));
    assert_eq!(pairs.iter().sum::<u64>(), 4);
    let interval = &difference["difference"]["mean"]["interval"];
    assert!(interval.is_null(), "four are too few");
}

/// A schedule of the policy's own decisions on other hosts, by the controller that plays schedules.
#[test]
#[ignore = "long tier"]
fn the_worth_of_looking_stands_next_to_every_learned_policy() {
    let (_folder, run) = trained();

    let asked = "--episodes 4 --seed 41,42 --greedy --against blind";
    let document = document(&run, asked);

    let blind = &document["blind"];
    assert_eq!([&blind["seed"], &blind["hosts"]], [43, 2], "hosts of its own");
    let schedule: ScheduleConfig = serde_json::from_value(blind["schedule"].clone()).expect("a schedule");
    assert!(schedule.wait_on_illegal && !schedule.entries.is_empty(), "{schedule:?}");
    let difference = &document["differences"][0];
    let names = [&difference["policy"], &difference["baseline"]];
    assert_eq!(names, ["policy (greedy)", "blind"]);
    let [accuracy, net] = ["accuracy", "accuracy_minus_price"].map(|of| &difference[of]["difference"]["mean"]);
    let is_measured = accuracy["interval"]["low"].is_number() && net["value"].is_number();
    assert!(is_measured, "{difference}");
    let mut experiment = experiment();
    experiment.scenario.policy.schedule = schedule;
    let scheduled = candidate("schedule", None, DecideMode::Sample);
    let outcomes = play(experiment, &scheduled, 2..4);
    let accuracies: Vec<Option<f64>> = outcomes.iter().map(|outcome| outcome.accuracy).collect();
    let episodes = each(&document["players"][1]["episodes"], "accuracy");
    let second: Vec<Option<f64>> = episodes[4..].iter().map(|accuracy| accuracy.as_f64()).collect();
    assert_eq!(second, accuracies);

    let text = succeeds(&eval(&run, asked)).replace('\n', " ");
    let blind = ["policy (greedy) - blind", "2 other hosts (seed 43)"];
    assert_has(&text, &blind);
    assert_has(&text, &["J: accuracy - 1.0 (params - 1)"]);
}

/// The kernels that `proof/policy/evaluation.json` was written with; others round otherwise.
const EVALUATED_ON: &str = "avx512";

/// The policy of a training of the proof, on its own, played where it was played before; `proof/policy/README.md` says what
/// is what.
#[test]
#[ignore = "long tier"]
fn the_committed_policy_plays_to_the_committed_numbers() {
    let folder = repository().join("proof/policy");
    let committed = json(&read(&folder.join("evaluation.json")));

    let asked = "--scenario proof/policy/scenario.ron --seed 921 --episodes 2 --greedy --against none";
    let document = document(&folder, asked);

    let [before, now] = [&committed, &document].map(|document| &document["players"][0]);
    assert_eq!([&before["name"], &now["name"]], ["policy (greedy)"; 2]);
    let level = kernel_levels().into_iter().find(|level| level.is_available);
    let is_alike = level.is_some_and(|level| level.name == EVALUATED_ON);
    let place = ["seed", "round", "env"];
    let measured = ["accuracy", "test_accuracy", "param_ratio", "decisions"];
    for episode in [0, 1] {
        let [before, now] = [before, now].map(|player| &player["episodes"][episode]);
        for key in place.iter().chain(measured.iter().filter(|_| is_alike)) {
            assert_eq!(now[key], before[key], "{key} of episode {episode}");
        }
        let [before, now] = [before, now].map(|episode| episode["accuracy"].as_f64().expect("percent"));
        let distance = (now - before).abs();
        assert!(distance < 10.0, "{now} in place of {before}, episode {episode}");
    }
}

#[test]
fn waiting_is_the_host_alone() {
    let builder = Engine::builder().threads(2).set("policy.controller", "wait");
    let mut engine = builder.from_ron(&tiny(RUN)).expect("the scenario is sound");
    engine.run().expect("the run plays");
    let world = engine.world_mut();
    let mut envs = world.query::<(&EnvId, &ValMetrics)>();
    let accuracy = |(id, metrics): (&EnvId, &ValMetrics)| (id.index, Some(metrics.accuracy_percent));
    let mut alone: Vec<_> = envs.iter(world).map(accuracy).collect();
    alone.sort_unstable_by_key(|(index, _)| *index);

    let last_round = play(experiment(), &candidate("wait", None, DecideMode::Sample), 1..2);

    let shown = last_round.iter().map(|outcome| (outcome.env, outcome.accuracy));
    assert_eq!(shown.collect::<Vec<_>>(), alone);
    for outcome in last_round {
        assert_eq!((outcome.param_ratio, outcome.rent), (1.0, Some(0.0)));
    }
}

#[test]
fn playing_a_policy_does_not_change_it() {
    let (_folder, run) = trained();
    let saved = SavedFolder::read(&run.join("checkpoints/round-000002/policy")).expect("the policy is read");
    let candidate = candidate("actor_critic", Some(saved), DecideMode::Sample);

    let both = play(experiment(), &candidate, 5..7);
    let second = play(experiment(), &candidate, 6..7);

    assert_eq!(both[2..], second, "what is played before leaves no trace");
}

/// As the run that trains it does with the checkpoints that it has no use for any more.
#[test]
#[ignore = "long tier"]
fn a_policy_is_played_as_it_was_found_though_its_checkpoint_goes() {
    let (_folder, run) = trained();
    let found = FrozenPolicy::find(&run, CheckpointName::Last).expect("there is a policy");
    let candidate = candidate("actor_critic", found.saved, DecideMode::Greedy);
    let before = play(experiment(), &candidate, 5..6);

    fs::remove_dir_all(run.join("checkpoints")).expect("the checkpoints are removed");

    assert_eq!(play(experiment(), &candidate, 5..6), before);
}

#[test]
#[ignore = "long tier"]
fn a_policy_that_was_trained_on_other_data_is_played_with_a_note() {
    let (_folder, run) = trained();
    let asked = "--episodes 1 --greedy --against wait";
    let note = "the policy was trained on other data: the hash of its data set was 0123, here it is ";
    assert!(!succeeds(&eval(&run, asked)).contains("note:"));

    put_again(&run, |progress| progress.data_hash = "0123".into());

    assert_has(&succeeds(&eval(&run, asked)), &[&format!("note: {note}")]);
    assert_has(&document(&run, asked)["notes"][0].to_string(), &[note]);
}

#[test]
fn what_cannot_be_played_is_refused() {
    let (folder, run) = trained();
    assert!(refused(&eval(&folder.path().join("gone"), "")).starts_with("error: there is no run "));
    let alone = run.join("checkpoints/round-000002/policy");

    let opponent = "there is no opponent `oracle`; valid: none, actor_critic";
    let misfit = ["slots: saved", "action space: saved"];
    let cases: [(&Path, &str, &[&str]); 5] = [
        (folder.path(), "", &["is neither a run directory"]),
        (&run, "--against wait,oracle", &[opponent, "from_scratch"]),
        (&run, "--against widened,widened", &["--against names `widened` twice"]),
        (&run, "--episodes 1 --set lifecycle.slots=[r0c1]", &misfit),
        (&alone, "", &["name the scenario that it decides in by --scenario FILE"]),
    ];
    for (policy, asked, parts) in cases {
        assert_has(&refused(&eval(policy, asked)), parts);
    }
}

#[test]
#[ignore = "long tier"]
fn how_much_there_is_to_play_is_said_first_and_then_who_has_played() {
    let (_folder, run) = trained();
    let said = text(&eval(&run, "--greedy --against wait --seed 1,2").stderr);

    // Two episodes for each of two envs.
    let work = "2 players x 2 seeds x 4 episodes x 8 steps: 128 env-steps\n";
    let played = said.strip_prefix(work).unwrap_or_else(|| panic!("{said}"));
    let names: Vec<&str> = played.lines().filter_map(|line| line.split(':').next()).collect();
    let expected = [
        "1/4 policy (greedy), seed 1",
        "2/4 wait, seed 1",
        "3/4 policy (greedy), seed 2",
        "4/4 wait, seed 2",
    ];
    assert_eq!(names, expected);
    let first = played.lines().next().unwrap_or_default();
    assert!(first.contains(": accuracy ") && first.ends_with(" left"), "{said}");
}

#[cfg(unix)]
#[test]
#[ignore = "long tier"]
fn an_evaluation_that_is_stopped_prints_the_results_so_far() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let (_folder, run) = trained();
    let seeds = (1..2000).map(|seed| seed.to_string()).collect::<Vec<_>>().join(",");
    let line = format!("eval --threads 2 --greedy --against wait --episodes 6 --seed {seeds}");
    let mut command = crate::program::command(&line);
    let piped = command.arg(run).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the engine starts");
    let progress = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    // The rest is read as well, or the engine would wait for its reader.
    let id = child.id().to_string();
    let reader = std::thread::spawn(move || {
        let lines = progress.map_while(Result::ok).filter(|line| line.starts_with("3/"));
        for _ in lines {
            let killed = Command::new("kill").args(["-s", "INT", &id]).status();
            assert!(killed.expect("kill is there").success());
        }
    });

    let ended = child.wait_with_output().expect("the evaluation ends");

    reader.join().expect("everything was read");
    assert_eq!(ended.status.code(), Some(130));
    let shown = [
        "note: incomplete: stopped after 2 of 2 players and ",
        " of 1999 seeds\n",
        "policy (greedy) - wait",
    ];
    assert_has(&text(&ended.stdout), &shown);
}

#[test]
#[ignore = "long tier"]
fn any_checkpoint_of_the_shelf_may_be_played() {
    let (_folder, run) = trained();
    put_again(&run, |progress| {
        progress.next_round = 5;
        progress.best = Some(BestCheckpoint {
            next_round: 2,
            accuracy: 50.0,
        });
    });
    let asked = |from: &str| format!("--from {from} --episodes 1 --greedy --against wait");

    for (from, rounds) in [("last", 5), ("best", 2), ("2", 2)] {
        let text = succeeds(&eval(&run, &asked(from)));
        let checkpoint = format!("\ncheckpoint {from}: after {rounds} rounds\n");
        // After all that any policy was trained in.
        assert_has(&text, &[&checkpoint, ",\nfrom round 6 on,"]);
    }
    let checkpoint = &document(&run, &asked("best"))["checkpoint"];
    assert_eq!(checkpoint["from"], "best");
    assert_eq!(checkpoint["rounds"], 2);
    let missing = refused(&eval(&run, &asked("3")));
    let listed = "holds no checkpoint after 3 rounds; it holds those after ";
    assert_has(&missing, &[listed, "2, 5"]);
    let alone = refused(&eval(&run.join("checkpoints/round-000005/policy"), &asked("best")));
    assert_has(&alone, &["there is no checkpoint `best` to choose"]);
}

#[test]
fn published_schedules_are_baselines_as_any_other_controller() {
    let (_folder, run) = trained();

    let asked = "--episodes 2 --greedy --against periodic,fragrow --set policy.periodic.period=2";
    let document = document(&run, asked);

    for player in [1, 2] {
        let ratios = each(&document["players"][player]["episodes"], "param_ratio");
        let grow = ratios.iter().all(|ratio| ratio.as_f64() > Some(1.0));
        assert!(grow, "{ratios:?}");
    }
}
