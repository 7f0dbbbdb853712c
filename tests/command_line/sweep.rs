//! Sweeps as a user meets them: planned, played, collected, extended, and refused.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Output;
use std::time::SystemTime;

use insta::assert_snapshot;

use crate::program::{
    assert_has, command, each, ended, ends_with, engine_at, folder, json, names, read, refused, repository, succeeds,
    write,
};
use crate::report::played_pair;

/// Short trials.
const SCENARIO: &str = r#"(
    name: "short",
    task: preset("digits_minimal", (batches_per_step: count(1))),
    run: (rounds: 3, n_envs: 1, max_steps: 4, seed: 7),
)"#;

/// Two controllers, three trainings of each.
const SWEEP: &str = r#"(
    name: "pair",
    scenario: "short.ron",
    axes: [(path: "policy.controller", values: list(["actor_critic", "heuristic"]))],
    replicates: 3,
    budget: (parallel: 2, threads: 1, lease_s: 5),
)"#;

struct Place(tempfile::TempDir);

impl Place {
    fn with(sweep: &str) -> Self {
        let place = Self(folder());
        place.write("short.ron", SCENARIO);
        place.write("sweep.ron", sweep);
        place
    }

    fn write(&self, name: &str, text: &str) {
        write(&self.0.path().join(name), text);
    }

    fn run(&self, line: &str) -> Output {
        engine_at(self.0.path(), line)
    }

    fn succeeds(&self, line: &str) -> String {
        self.relative(&succeeds(&self.run(line)))
    }

    fn refused(&self, line: &str) -> String {
        self.relative(&refused(&self.run(line)))
    }

    /// The text with files by their places in the folder.
    fn relative(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.0.path().display()), "")
    }

    fn sweep(&self, name: &str) -> PathBuf {
        self.0.path().join("runs/sweeps").join(name)
    }

    /// Asserts the number of trials in each state.
    fn assert_counts<const N: usize>(&self, name: &str, expected: [(&str, u64); N]) {
        let status = json(&self.succeeds(&format!("sweep status {name} --json")));
        let counts: BTreeMap<String, u64> = serde_json::from_value(status["counts"].clone()).unwrap();
        let expected = expected.map(|(state, count)| (state.to_owned(), count));
        assert_eq!(counts, BTreeMap::from(expected));
    }

    fn log(&self, sweep: &str, trial: &str) -> String {
        read(&self.sweep(sweep).join("logs").join(format!("{trial}.log")))
    }
}

/// Ids are hashes of resolved scenarios: a field that is added to scenarios changes them all.
fn without_ids(text: &str) -> String {
    let is_id = |word: &str| word.len() == 16 && word.chars().all(|digit| digit.is_ascii_hexdigit());
    let words = text
        .split(' ')
        .map(|word| if is_id(word) { "(an id)         " } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn all_shipped_sweeps_are_valid() {
    let sweeps = repository().join("scenarios/sweeps");
    let place = Place::with(SWEEP);

    for name in names(&sweeps) {
        place.succeeds(&format!("sweep '{}' --dry-run", sweeps.join(name).display()));
    }
}

#[test]
fn a_sweep_is_planned_played_and_collected() {
    let place = Place::with(SWEEP);

    assert_snapshot!(without_ids(&place.succeeds("sweep sweep.ron --dry-run")));
    let table = place.succeeds("sweep sweep.ron");

    place.assert_counts("pair", [("done", 6)]);
    assert_eq!(table.matches(" done ").count(), 6, "{table}");
    let [trials, curves] = ["trials.csv", "curves.csv"].map(|name| read(&place.sweep("pair").join(name)));
    assert_eq!([&trials, &curves].map(|table| table.lines().count()), [7, 1 + 6 * 3]);
    let id = trials.lines().nth(1).unwrap().split(',').next().unwrap();
    let resumed = place.succeeds(&format!("resume runs/sweeps/pair/trials/{id}"));
    assert_has(&resumed, &["nothing is left to do"]);
    let whole = place.refused("resume runs/sweeps/pair");
    assert_has(
        &whole,
        &["pair is a sweep: simic-engine sweep work ", "pair plays what is left"],
    );
    // Nothing is played twice.
    let log = place.log("pair", id);
    place.succeeds("sweep sweep.ron");
    assert_eq!(log, place.log("pair", id));
}

#[test]
fn a_sweep_file_that_has_changed_is_refused_with_the_difference_and_extended_on_request() {
    let place = Place::with(SWEEP);
    place.succeeds("sweep sweep.ron --plan-only");
    place.write("sweep.ron", &SWEEP.replace("\"heuristic\"", "\"wait\""));

    let other = place.refused("sweep sweep.ron --plan-only");
    let not_even_extended = place.refused("sweep sweep.ron --plan-only --extend");

    for changed in ["- policy.controller=heuristic seed", "+ policy.controller=wait seed"] {
        assert_eq!(other.matches(changed).count(), 3, "{other}");
    }
    assert_has(&not_even_extended, &["it removes no trial"]);
    place.assert_counts("pair", [("waiting", 6)]);

    let more = SWEEP.replace("\"heuristic\"", "\"heuristic\", \"wait\"");
    place.write("sweep.ron", &more.replace("parallel: 2", "parallel: 1"));
    assert_has(&place.refused("sweep sweep.ron --plan-only"), &["--extend"]);
    place.succeeds("sweep sweep.ron --plan-only --extend");
    place.assert_counts("pair", [("waiting", 9)]);
}

#[test]
fn everything_that_is_wrong_with_a_sweep_is_said_before_anything_runs() {
    let place = Place::with(SWEEP);
    let refused = |sweep: &str| {
        place.write("sweep.ron", sweep);
        place.refused("sweep sweep.ron")
    };
    let misspelt = r#"(
    scenario: "short.ron",
    set: [(path: "run.seed", value: 3)],
    axes: [
        (path: "learner.lr", values: uniform(low: 0.1, high: 0.2)),
        (path: "run.rounds", values: list([])),
    ],
    replicate: 3,
)"#;
    let impossible = r#"(
    scenario: "short.ron",
    axes: [
        (path: "policy.controller", values: list(["heuristic", "heuristik"])),
        (path: "run.n_env", values: list([1, 0])),
    ],
)"#;
    let known = impossible.replace("run.n_env", "run.n_envs");

    assert_snapshot!("misspelt", refused(misspelt));
    assert_snapshot!("impossible", refused(impossible));
    assert_snapshot!("out_of_range", refused(&known.replace("heuristik", "wait")));
    let equal = r#"(scenario: "short.ron", axes: [(path: "run.rounds", values: list([2, 2]))])"#;
    let large = r#"(scenario: "short.ron", set: [(path: "run.n_envs", value: 4096), (path: "run.max_steps", value: 4000000000),
        (path: "policy.controller", value: "actor_critic")])"#;
    for (sweep, expected) in [
        (r#"(scenario: "missing.ron")"#, "missing.ron"),
        (equal, "is the same training as"),
        (large, "of memory"),
    ] {
        assert_has(&refused(sweep), &[expected]);
    }
    assert!(!place.0.path().join("runs").exists());
}

#[test]
#[ignore = "long tier"]
fn a_trial_that_fails_keeps_its_reason_and_its_log_and_the_others_continue() {
    let sweep = r#"(
        name: "faulty",
        scenario: "short.ron",
        set: [(path: "policy.controller", value: "wait")],
        points: [
            (name: "broken", set: [(path: "faults", value: [(env: 0, round: 1, step: 2, fault: env_error)])]),
            (name: "short", set: [(path: "run.rounds", value: 2)]),
        ],
        budget: (retries: 1),
    )"#;
    let place = Place::with(sweep);

    let said = ends_with(3, &place.run("sweep sweep.ron"));

    assert_has(&said, &["simic-engine sweep retry "]);
    place.assert_counts("faulty", [("done", 1), ("failed", 1)]);
    let trials = read(&place.sweep("faulty").join("trials.csv"));
    let failed = trials.lines().find(|line| line.contains(",failed,")).unwrap();
    assert_has(failed, &["env 0"]);
    let log = place.log("faulty", failed.split(',').next().unwrap());
    assert_eq!(log.matches("$ simic-engine ").count(), 2, "tried twice:\n{log}");

    let retried = place.succeeds("sweep retry faulty");
    assert!(retried.starts_with("to be tried again: 1;"), "{retried}");
    place.assert_counts("faulty", [("done", 1), ("waiting", 1)]);
    ends_with(3, &place.run("sweep work faulty"));
    place.assert_counts("faulty", [("done", 1), ("failed", 1)]);
}

#[test]
#[ignore = "long tier"]
fn a_trial_that_takes_too_long_is_ended_and_marked() {
    let place = Place::with(
        r#"(
            name: "slow",
            scenario: "short.ron",
            set: [(path: "policy.controller", value: "wait"), (path: "run.rounds", value: 100000)],
            budget: (time_limit_s: 3),
        )"#,
    );

    ends_with(3, &place.run("sweep sweep.ron"));

    let collected = json(&read(&place.sweep("slow").join("sweep.json")));
    let result = &collected["trials"][0]["result"];
    assert_eq!(result["timed_out"], true);
    assert_eq!(result["reason"], "it took more than budget.time_limit_s, 3 s");
}

#[test]
#[ignore = "long tier"]
fn only_the_better_half_continues_after_a_rung() {
    let place = Place::with(
        r#"(
            name: "halved",
            scenario: "short.ron",
            axes: [(path: "policy.controller", values: list(["wait", "heuristic", "random"]))],
            set: [(path: "run.rounds", value: 4)],
            replicates: 2,
            early_stop: (first_rounds: 1, factor: 2),
            budget: (parallel: 2),
        )"#,
    );

    place.succeeds("sweep sweep.ron");

    place.assert_counts("halved", [("done", 2), ("given_up", 4)]);
    let trials = read(&place.sweep("halved").join("trials.csv"));
    let mut lines = trials.lines().map(|line| line.split(','));
    let column = lines.next().unwrap().position(|name| name == "rounds").unwrap();
    let mut rounds: Vec<&str> = lines.map(|mut cells| cells.nth(column).unwrap()).collect();
    rounds.sort_unstable();
    assert_eq!(rounds, ["1", "1", "2", "2", "4", "4"]);
}

/// As in a folder that can only be read.
#[cfg(unix)]
#[test]
fn a_look_at_a_sweep_writes_nothing_into_its_folder_not_even_for_a_moment() {
    let place = Place::with(SWEEP);
    place.succeeds("sweep sweep.ron --plan-only");
    let sweep = place.sweep("pair");
    let folders = ["", "leases", "results", "trials", "logs"].map(|name| sweep.join(name));
    for folder in &folders {
        let opened = std::fs::File::open(folder).expect("a folder");
        opened.set_modified(SystemTime::UNIX_EPOCH).expect("it is ours");
    }

    place.assert_counts("pair", [("waiting", 6)]);
    place.succeeds("check pair");

    for folder in &folders {
        // A file that comes and goes would change it as well.
        let modified = folder.metadata().and_then(|metadata| metadata.modified());
        assert_eq!(
            modified.expect("it is there"),
            SystemTime::UNIX_EPOCH,
            "{}",
            folder.display()
        );
    }
}

#[test]
fn a_sweep_that_is_not_there_is_named_with_the_places_that_were_looked_in() {
    let error = Place::with(SWEEP).refused("sweep status nope");

    assert_has(&error, &["there is no sweep nope", "runs/sweeps/nope"]);
}

#[test]
#[ignore = "long tier"]
fn methods_of_a_sweep_are_compared_over_their_trainings() {
    let place = Place(played_pair());

    let table = place.succeeds("compare pair --metric param_ratio");
    let document = json(&place.succeeds("compare pair --json --csv tables"));

    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert_eq!(each(&document["methods"], "method"), ["actor_critic", "heuristic"]);
    assert_eq!(each(&document["methods"], "trainings"), [3, 3]);
    let difference = &document["differences"][0];
    assert_eq!(difference["verdict"], "insufficient_data");
    assert_eq!(difference["design"], "paired");
    for name in ["tables/scores.csv", "tables/differences.csv"] {
        assert!(place.0.path().join(name).is_file(), "{name}");
    }
    let unknown = place.refused("compare pair --by run.nothing");
    assert_has(&unknown, &["has no such field"]);
}

#[cfg(unix)]
#[test]
fn an_engine_for_many_machines_that_ends_early_is_a_failure_and_leaves_a_sweep_that_can_be_continued() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::with(SWEEP);
    let programs = place.0.path().join("bin");
    for name in ["python3", "sbatch"] {
        place.write(&format!("bin/{name}"), "#!/bin/sh\nexit 1\n");
        std::fs::set_permissions(programs.join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }

    for cluster in ["ray", "slurm"] {
        let mut sweep = command(&format!("sweep sweep.ron --on {cluster}"));
        sweep.current_dir(place.0.path()).env("PATH", &programs);

        let said = ends_with(3, &ended(&mut sweep));

        assert_has(&said, &["error: ", "exit status: 1"]);
    }
    let status = place.succeeds("sweep status pair");
    assert!(status.starts_with("pair: 6 waiting"), "{status}");
}
