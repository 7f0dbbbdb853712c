//! The command `eval` as a user meets it, and what it rests on: controllers that play the same episodes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use simic_engine::internals::checkpoint::{BestCheckpoint, CheckpointName, Checkpoints, FrozenPolicy, Progress};
use simic_engine::internals::compare::{Candidate, Episodes, PlayedEpisodes, play_until};
use simic_engine::internals::controller::{ActiveController, SavedFolder};
use simic_engine::internals::env::LoadedData;
use simic_engine::internals::growth::SlotId;
use simic_engine::internals::kernels::kernel_levels;
use simic_engine::internals::policy::DecideMode;
use simic_engine::internals::run::StopSignal;
use simic_engine::internals::scenario::{ScheduleConfig, resolved_ron};
use simic_engine::prelude::*;

use crate::program::{call, command, ended, refused, repository, succeeds, text, tiny};
use crate::report::section_table;
use crate::support::engine;

const RUN: &str = "rounds: 2, n_envs: 2, max_steps: 8";

/// What a line begins with that continues the blueprints of a slot.
const SLOT_CONTINUED: &str = "        ";

fn eval(run: &Path, arguments: &[&str]) -> Output {
    ended(call(&["eval", "--threads", "2"]).arg(run).args(arguments))
}

fn play(experiment: Experiment, candidate: &Candidate, episodes: &Episodes) -> PlayedEpisodes {
    let stop = StopSignal::default();
    play_until(experiment, &Extension::default(), candidate, episodes, &stop, |_| ()).expect("they are played")
}

fn experiment() -> Experiment {
    engine(&tiny(RUN)).world().resource::<Experiment>().clone()
}

/// The run directory of a run of two rounds, with the policy that they trained.
fn trained_run(root: &Path) {
    let mut engine = engine(&tiny(RUN));
    engine.run().expect("the run plays");
    let data_hash = engine.world().resource::<LoadedData>().set.hash().to_owned();
    let mut controller = engine.world_mut().resource_mut::<ActiveController>();
    let progress = Progress {
        format: Progress::FORMAT,
        engine: "test".into(),
        scenario_hash: String::new(),
        data_hash,
        weights_hash: None,
        rounds: 2,
        next_round: 2,
        step: 0,
        next_seq: 0,
        recorded: None,
        n_envs: 2,
        slots: Vec::new(),
        controller: "actor_critic".into(),
        changes: Vec::new(),
        history: Vec::new(),
        best: None,
    };
    let save = |folder: &Path| Ok(controller.0.get().save(&folder.join("policy"))?);
    Checkpoints::of(root).put(&progress, save).expect("the policy is saved");
    let resolved = resolved_ron(&experiment().scenario).expect("the scenario can be written");
    fs::write(root.join("resolved.ron"), resolved).expect("written");
    fs::write(root.join("manifest.json"), r#"{"run_id": "tiny"}"#).expect("written");
}

/// The text without what was measured or decided, and without gaps and rules, which depend on its width.
fn shape(text: &str) -> String {
    let masked = |line: &str| {
        let is_difference = line.contains(" - ");
        if let Some(slot) = line
            .split_whitespace()
            .next()
            .filter(|word| word.parse::<SlotId>().is_ok())
        {
            return format!("{slot} #");
        }
        let words = line.split_whitespace().map(|word| {
            let is_number = word
                .trim_start_matches(['+', '-'])
                .starts_with(|c: char| c.is_ascii_digit());
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
fn a_policy_is_compared_with_the_baselines_on_the_same_episodes() {
    let root = tempfile::tempdir().expect("a folder");
    trained_run(root.path());

    let first = succeeds(&eval(root.path(), &["--episodes", "6"]));

    insta::assert_snapshot!(shape(&first));
    let is_narrow = |line: &str| line.chars().count() <= 80 || line.starts_with("policy ");
    assert!(first.lines().all(is_narrow), "{first}");
    assert_eq!(
        first,
        succeeds(&eval(root.path(), &["--episodes", "6", "--quiet"])),
        "the same again"
    );
}

#[test]
fn programs_read_every_episode() {
    let root = tempfile::tempdir().expect("a folder");
    trained_run(root.path());

    let arguments = [
        "--episodes",
        "2",
        "--seed",
        "7,8",
        "--sample",
        "--against",
        "wait",
        "--json",
        "--report",
    ];
    let place = root.path().join("eval.html");
    let arguments = [&arguments[..], &[place.to_str().expect("text")]].concat();
    let read: Value = serde_json::from_str(&succeeds(&eval(root.path(), &arguments))).expect("JSON");
    let page = fs::read_to_string(&place).expect("the page is there");
    for (player, row) in section_table(&page, "players").iter().enumerate() {
        let mean = &read["players"][player]["accuracy"]["mean"]["value"];
        assert_eq!(row[1], format!("{:.2}", mean.as_f64().expect("a number")), "as in JSON");
    }
    let difference = &read["differences"][0]["accuracy"]["difference"]["mean"]["value"];
    let difference = format!("{:+.2}", difference.as_f64().expect("a number"));
    assert_eq!(
        section_table(&page, "differences")[0][..2],
        ["policy (sampled) - wait".to_owned(), difference]
    );

    let names: Vec<&str> = read["players"]
        .as_array()
        .expect("players")
        .iter()
        .filter_map(|player| player["name"].as_str())
        .collect();
    assert_eq!(names, ["policy (sampled)", "wait"]);
    let episode = |player: usize, key: &str| -> Vec<u64> {
        let episodes = read["players"][player]["episodes"].as_array().expect("episodes");
        episodes.iter().filter_map(|episode| episode[key].as_u64()).collect()
    };
    for player in [0, 1] {
        assert_eq!(episode(player, "seed"), [7, 7, 8, 8]);
        assert_eq!(
            episode(player, "round"),
            [2, 2, 2, 2],
            "rounds that the policy was not trained in"
        );
        assert_eq!(episode(player, "env"), [0, 1, 0, 1]);
    }
    let waited = &read["players"][1]["decisions"];
    assert_eq!(
        (waited["germinated"].as_f64(), waited["without_commit"].as_f64()),
        (Some(0.0), Some(1.0))
    );
    assert!(waited["first_germination"].is_null());
    let counted = &read["players"][0]["episodes"][0]["decisions"];
    assert!(
        counted["committed"].is_u64() && counted["blueprints"].is_object(),
        "{counted}"
    );
    let commits = read["commits"].as_array().expect("the learned policies");
    assert_eq!(commits.len(), 1);
    assert_eq!(commits[0]["name"], "policy (sampled)");
    for slot in commits[0]["slots"].as_array().expect("slots") {
        let blueprints = slot["blueprints"].as_object().expect("blueprints").values();
        let committed: u64 = blueprints.filter_map(Value::as_u64).sum();
        assert_eq!(
            slot["nothing"].as_u64().map(|nothing| nothing + committed),
            Some(4),
            "{slot}"
        );
    }
    let accuracy = &read["differences"][0]["accuracy"];
    let pairs: u64 = ["wins", "ties", "losses"]
        .iter()
        .filter_map(|key| accuracy[key].as_u64())
        .sum();
    assert_eq!(pairs, 4);
    assert!(accuracy["difference"]["mean"]["interval"].is_null(), "four are too few");
}

/// A schedule of the policy's own decisions on other hosts, by the controller that plays schedules.
#[test]
fn what_looking_is_worth_stands_beside_every_learned_policy() {
    let root = tempfile::tempdir().expect("a folder");
    trained_run(root.path());

    let arguments = ["--episodes", "4", "--seed", "42,43", "--greedy", "--against", "blind"];
    let json = succeeds(&eval(root.path(), &[&arguments[..], &["--json"]].concat()));
    let read: Value = serde_json::from_str(&json).expect("JSON");

    let blind = &read["blind"];
    assert_eq!(
        (blind["seed"].as_u64(), blind["hosts"].as_u64()),
        (Some(44), Some(2)),
        "hosts of its own"
    );
    let schedule: ScheduleConfig = serde_json::from_value(blind["schedule"].clone()).expect("a schedule");
    assert!(schedule.wait_on_illegal && !schedule.entries.is_empty(), "{schedule:?}");
    let difference = &read["differences"][0];
    assert_eq!(
        (difference["policy"].as_str(), difference["baseline"].as_str()),
        (Some("policy (greedy)"), Some("blind"))
    );
    assert!(
        difference["accuracy"]["difference"]["mean"]["interval"]["low"].is_number(),
        "{difference}"
    );
    assert!(
        difference["accuracy_minus_price"]["difference"]["mean"]["value"].is_number(),
        "{difference}"
    );
    let mut experiment = experiment();
    experiment.scenario.policy.schedule = schedule;
    let candidate = Candidate {
        controller: "schedule".into(),
        policy: None,
        mode: DecideMode::Sample,
        seeds: None,
    };
    let episodes = Episodes {
        seed: 43,
        rounds: 2..4,
        envs: 2,
    };
    let played = play(experiment, &candidate, &episodes);
    let told = read["players"][1]["episodes"].as_array().expect("episodes");
    let told: Vec<Option<f64>> = told[4..].iter().map(|episode| episode["accuracy"].as_f64()).collect();
    let accuracies: Vec<Option<f64>> = played.outcomes.iter().map(|outcome| outcome.accuracy).collect();
    assert_eq!(told, accuracies);

    let text = succeeds(&eval(root.path(), &arguments)).replace('\n', " ");
    assert!(
        text.contains("policy (greedy) - blind") && text.contains("2 other hosts (seed 44)"),
        "{text}"
    );
    assert!(text.contains("J: accuracy - 1.0 (params - 1)"), "{text}");
}

/// The kernels that `proof/policy/evaluation.json` was written with; others round otherwise.
const EVALUATED_ON: &str = "avx512";

/// The policy of a training of the proof, played where it was played before; `proof/policy/README.md` says what is what.
#[test]
fn the_committed_policy_plays_to_the_committed_numbers() {
    let folder = repository().join("proof/policy");
    let committed = fs::read(folder.join("evaluation.json")).expect("it is there");
    let committed: Value = serde_json::from_slice(&committed).expect("JSON");
    let scenario = folder.join("scenario.ron");
    let scenario = scenario.to_str().expect("a path in UTF-8");

    let arguments = [
        "--scenario",
        scenario,
        "--seed",
        "921",
        "--episodes",
        "2",
        "--greedy",
        "--against",
        "none",
        "--json",
    ];
    let read: Value = serde_json::from_str(&succeeds(&eval(&folder, &arguments))).expect("JSON");

    let [before, now] = [&committed, &read].map(|read| &read["players"][0]);
    assert_eq!(
        (before["name"].as_str(), now["name"].as_str()),
        (Some("policy (greedy)"), Some("policy (greedy)"))
    );
    let mut levels = kernel_levels().into_iter();
    let is_alike = levels
        .find(|level| level.is_available)
        .is_some_and(|level| level.name == EVALUATED_ON);
    for episode in [0, 1] {
        let [before, now] = [before, now].map(|player| &player["episodes"][episode]);
        for key in ["seed", "round", "env"] {
            assert_eq!(now[key], before[key], "{key} of episode {episode}");
        }
        for key in ["accuracy", "test_accuracy", "param_ratio", "decisions"] {
            if is_alike {
                assert_eq!(now[key], before[key], "{key} of episode {episode}");
            }
        }
        let [before, now] = [before, now].map(|episode| episode["accuracy"].as_f64().expect("percent"));
        assert!(
            (now - before).abs() < 10.0,
            "{now} in place of {before}, episode {episode}"
        );
    }
}

#[test]
fn waiting_is_the_host_alone() {
    let builder = Engine::builder().threads(2).set("policy.controller", "wait");
    let mut engine = builder.from_ron(&tiny(RUN)).expect("the scenario is sound");
    engine.run().expect("the run plays");
    let world = engine.world_mut();
    let mut alone: Vec<_> = world
        .query::<(&EnvId, &ValMetrics)>()
        .iter(world)
        .map(|(id, metrics)| (id.index, Some(metrics.accuracy_percent)))
        .collect();
    alone.sort_unstable_by_key(|(index, _)| *index);
    let candidate = Candidate {
        controller: "wait".into(),
        policy: None,
        mode: DecideMode::Sample,
        seeds: None,
    };

    let last_round = Episodes {
        seed: experiment().scenario.run.seed,
        rounds: 1..2,
        envs: 2,
    };
    let outcomes = play(experiment(), &candidate, &last_round);

    let outcomes = outcomes.outcomes;
    let shown: Vec<_> = outcomes.iter().map(|outcome| (outcome.env, outcome.accuracy)).collect();
    assert_eq!(shown, alone);
    assert!(
        outcomes
            .iter()
            .all(|outcome| outcome.param_ratio == 1.0 && outcome.rent == Some(0.0))
    );
}

#[test]
fn playing_a_policy_does_not_change_it() {
    let root = tempfile::tempdir().expect("a folder");
    trained_run(root.path());
    let policy = root.path().join("checkpoints/round-000002/policy");
    let candidate = Candidate {
        controller: "actor_critic".into(),
        policy: Some(SavedFolder::read(&policy).expect("the policy is read")),
        mode: DecideMode::Sample,
        seeds: None,
    };
    let episodes = |rounds| Episodes {
        seed: 42,
        rounds,
        envs: 2,
    };

    let both = play(experiment(), &candidate, &episodes(5..7));
    let second = play(experiment(), &candidate, &episodes(6..7));

    assert_eq!(
        both.outcomes[2..],
        second.outcomes,
        "what is played before leaves no trace"
    );
}

/// As the run that trains it does with the checkpoints that it has no use for any more.
#[test]
fn a_policy_is_played_as_it_was_found_though_its_checkpoint_goes() {
    let root = tempfile::tempdir().expect("a folder");
    trained_run(root.path());
    let found = FrozenPolicy::find(root.path(), CheckpointName::Last).expect("there is a policy");
    let candidate = Candidate {
        controller: "actor_critic".into(),
        policy: found.saved,
        mode: DecideMode::Greedy,
        seeds: None,
    };
    let episodes = Episodes {
        seed: 42,
        rounds: 5..6,
        envs: 1,
    };
    let before = play(experiment(), &candidate, &episodes);

    fs::remove_dir_all(root.path().join("checkpoints")).expect("the checkpoints are removed");

    let after = play(experiment(), &candidate, &episodes);
    assert_eq!(after.outcomes, before.outcomes);
}

#[test]
fn a_policy_that_was_trained_on_other_data_is_played_with_a_note() {
    let root = tempfile::tempdir().expect("a folder");
    trained_run(root.path());
    let arguments = ["--episodes", "1", "--greedy", "--against", "wait"];
    assert!(!succeeds(&eval(root.path(), &arguments)).contains("note:"));

    let shelf = Checkpoints::of(root.path());
    let (folder, mut progress) = shelf.find(CheckpointName::Last).expect("there is a checkpoint");
    let found = FrozenPolicy::find(root.path(), CheckpointName::Last).expect("it is found");
    let policy = found.saved.expect("there is a policy");
    progress.data_hash = "0123".into();
    let save = |fresh: &Path| {
        fs::create_dir(fresh.join("policy"))?;
        for name in ["policy.ron", "policy.safetensors"] {
            fs::write(fresh.join("policy").join(name), policy.file(name)?)?;
        }
        Ok(())
    };
    shelf.put(&progress, save).expect("the checkpoint is replaced");
    assert!(folder.is_dir());

    let text = succeeds(&eval(root.path(), &arguments));
    assert!(
        text.contains("note: the policy was trained on other data: the hash of its data set was 0123, here it is ")
    );
    let json = succeeds(&eval(root.path(), &[&arguments[..], &["--json"]].concat()));
    let read: Value = serde_json::from_str(&json).expect("JSON");
    assert!(read["notes"][0].as_str().expect("a note").contains("0123"));
}

#[test]
fn what_cannot_be_played_is_refused() {
    let root = tempfile::tempdir().expect("a folder");
    assert!(refused(&eval(&root.path().join("gone"), &[])).starts_with("error: there is no run "));
    assert!(refused(&eval(root.path(), &[])).contains("is neither a run directory"));

    trained_run(root.path());
    let unknown = refused(&eval(root.path(), &["--against", "wait,oracle"]));
    assert!(
        unknown.contains("there is no opponent `oracle`; valid: none, actor_critic"),
        "{unknown}"
    );
    let alone = refused(&eval(&root.path().join("checkpoints/round-000002/policy"), &[]));
    assert!(alone.contains("say by --scenario FILE what it decides in"), "{alone}");
    let misfit = refused(&eval(
        root.path(),
        &["--episodes", "1", "--set", "lifecycle.slots=[r0c1]"],
    ));
    assert!(
        misfit.contains("slots: saved") && misfit.contains("action space: saved"),
        "{misfit}"
    );
}

#[test]
fn a_policy_on_its_own_is_played_in_a_scenario_that_is_given() {
    let root = tempfile::tempdir().expect("a folder");
    trained_run(root.path());
    let scenario = root.path().join("mine.ron");
    fs::write(&scenario, tiny(RUN)).expect("written");
    let policy = root.path().join("checkpoints/round-000002/policy");
    let arguments = ["--episodes", "1", "--greedy", "--against", "wait", "--scenario"];

    let scenario = scenario.to_string_lossy();
    let text = succeeds(&eval(&policy, &[&arguments[..], &[&scenario]].concat()));

    assert!(text.contains("policy (greedy) - wait"), "{text}");
    assert!(!text.contains("policy (sampled)"), "{text}");
}

#[test]
fn how_much_there_is_to_play_is_said_first_and_then_who_has_played() {
    let root = tempfile::tempdir().expect("a folder");
    trained_run(root.path());
    let status = r#"{"state": "completed", "pid": 1, "heartbeat": "2026-01-01T00:00:00.000Z", "episodes": 4,
        "env_steps_per_s": 16.0}"#;
    fs::write(root.path().join("status.json"), status).expect("written");

    let output = eval(root.path(), &["--greedy", "--against", "wait", "--seed", "1,2"]);

    let told: Vec<String> = text(&output.stderr).lines().map(String::from).collect();
    assert_eq!(
        told[..2],
        [
            "2 players x 2 seeds x 4 episodes x 8 steps: 128 env-steps",
            "about 8s at the run's own 16.0 env-steps/s"
        ],
        "two episodes for each of two envs"
    );
    let names: Vec<&str> = told[2..].iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(
        names,
        [
            "1/4 policy (greedy), seed 1",
            "2/4 wait, seed 1",
            "3/4 policy (greedy), seed 2",
            "4/4 wait, seed 2"
        ]
    );
    assert!(
        told[2].contains(": accuracy ") && told[2].ends_with(" left"),
        "{told:#?}"
    );
}

#[test]
fn a_run_to_evaluate_is_looked_for_in_the_folder_that_is_given() {
    let root = tempfile::tempdir().expect("a folder");
    let run = root.path().join("20260101-100000-tiny-ab12");
    fs::create_dir(&run).expect("a folder");
    trained_run(&run);
    fs::write(root.path().join("latest"), "20260101-100000-tiny-ab12").expect("written");
    let out = root.path().to_string_lossy();
    let arguments = ["--episodes", "1", "--greedy", "--against", "wait", "--out", &out];

    for name in ["latest", "20260101"] {
        let text = succeeds(&eval(Path::new(name), &arguments));
        assert!(text.contains("policy (greedy) - wait"), "{text}");
    }
}

#[cfg(unix)]
#[test]
fn an_evaluation_that_is_stopped_prints_the_results_so_far() {
    use std::io::{BufRead, BufReader};

    let root = tempfile::tempdir().expect("a folder");
    trained_run(root.path());
    let mut child = command(&["eval", "--threads", "2"])
        .arg(root.path())
        .args(["--greedy", "--against", "wait", "--episodes", "6", "--seed"])
        .arg((1..2000).map(|seed| seed.to_string()).collect::<Vec<_>>().join(","))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the engine starts");
    let told = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    // The rest is read as well, or the engine would wait for its reader.
    let reader = std::thread::spawn({
        let id = child.id().to_string();
        move || {
            for line in told.map_while(Result::ok) {
                if line.starts_with("3/") {
                    let killed = Command::new("kill").args(["-s", "INT", &id]).status();
                    assert!(killed.expect("kill is there").success());
                }
            }
        }
    });

    let ended = child.wait_with_output().expect("the evaluation ends");

    reader.join().expect("everything was read");
    assert_eq!(ended.status.code(), Some(130));
    let text = text(&ended.stdout);
    assert!(
        text.contains("note: incomplete: stopped after 2 of 2 players and "),
        "{text}"
    );
    assert!(text.contains(" of 1999 seeds\n"), "{text}");
    assert!(text.contains("policy (greedy) - wait"), "{text}");
}

#[test]
fn any_checkpoint_of_the_shelf_may_be_played() {
    let root = tempfile::tempdir().expect("a folder");
    trained_run(root.path());
    let shelf = Checkpoints::of(root.path());
    let (folder, mut progress) = shelf.find(CheckpointName::Last).expect("there is a checkpoint");
    let policy = SavedFolder::read(&folder.join("policy")).expect("the policy is read");
    let save = |fresh: &Path| {
        fs::create_dir(fresh.join("policy"))?;
        for name in ["policy.ron", "policy.safetensors"] {
            fs::write(fresh.join("policy").join(name), policy.file(name)?)?;
        }
        Ok(())
    };
    progress.next_round = 5;
    progress.best = Some(BestCheckpoint {
        next_round: 2,
        accuracy: 50.0,
    });
    shelf.put(&progress, save).expect("there is a second checkpoint");
    let arguments = |from: &'static str| ["--from", from, "--episodes", "1", "--greedy", "--against", "wait"];

    for (from, rounds) in [("last", 5), ("best", 2), ("2", 2)] {
        let text = succeeds(&eval(root.path(), &arguments(from)));
        assert!(
            text.contains(&format!("\ncheckpoint {from}: after {rounds} rounds\n")),
            "{text}"
        );
        assert!(
            text.contains(",\nfrom round 6 on,"),
            "behind all that any policy was trained in: {text}"
        );
    }
    let json = succeeds(&eval(root.path(), &[&arguments("best")[..], &["--json"]].concat()));
    let read: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&read["checkpoint"]["from"], &read["checkpoint"]["rounds"]),
        (&"best".into(), &2.into())
    );
    let missing = refused(&eval(root.path(), &arguments("3")));
    assert!(
        missing.contains("holds no checkpoint after 3 rounds; there are those after 2, 5"),
        "{missing}"
    );
    let alone = refused(&eval(&folder.join("policy"), &arguments("best")));
    assert!(alone.contains("there is no checkpoint `best` beside it"), "{alone}");
}

#[test]
fn published_schedules_are_baselines_as_any_other_controller() {
    let root = tempfile::tempdir().expect("a folder");
    trained_run(root.path());
    let arguments = [
        "--episodes",
        "2",
        "--greedy",
        "--against",
        "periodic,fragrow",
        "--json",
        "--set",
    ];

    let json = succeeds(&eval(
        root.path(),
        &[&arguments[..], &["policy.periodic.period=2"]].concat(),
    ));

    let read: Value = serde_json::from_str(&json).expect("JSON");
    for player in [1, 2] {
        let episodes = read["players"][player]["episodes"].as_array().expect("episodes");
        assert!(
            episodes
                .iter()
                .all(|episode| episode["param_ratio"].as_f64() > Some(1.0)),
            "they grow: {episodes:#?}"
        );
    }
}
