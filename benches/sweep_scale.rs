//! Cost of a large sweep apart from its trainings: planning it, a worker's look for a free trial, collecting it.
//!
//! Plans trials of a tiny scenario that differ in their seeds, then fills the sweep's folder with leases and results as
//! workers would, without playing anything. `--trials N` plans N trials instead of 10,000. Without `--bench`, which
//! `cargo bench` adds, a few trials show that it works.

use std::error::Error;
use std::time::{Duration, Instant};

use simic_engine::internals::engine::built_in_names;
use simic_engine::internals::report::write_sweep;
use simic_engine::internals::sweep::{
    Collected, Lease, Leases, Place, Plan, SweepFolder, SweepState, Trial, TrialResult, TrialState, plan,
};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const TRIALS: u32 = 10_000;
const SCENARIO: &str = r#"(
    task: preset("digits_minimal", (batches_per_step: count(1))),
    run: (rounds: 2, n_envs: 1, max_steps: 2),
    policy: (controller: "wait"),
)"#;
/// The result that `sweep work` has written for a trial of the scenario above.
const RESULT: &str = r#"{
    "end": "done", "timed_out": false, "attempts": 1, "wall_s": 0.8, "engine": "0.1.0",
    "training": {
        "run_id": "02c99115edc84ef8", "scenario": "tiny", "task": "digits_minimal", "controller": "wait", "seed": 42,
        "rounds": 2, "is_complete": true, "is_evaluated": false,
        "episodes": [EPISODE, EPISODE],
        "curve": [POINT, POINT]
    }
}"#;
/// The episode of every round.
const EPISODE: &str = r#"{
    "seed": 42, "round": 1, "env": 0, "accuracy": 10.140845070422536, "committed_accuracy": 10.140845070422536,
    "test_accuracy": 10.227272727272727, "rent": 0.0, "reward": 0.5070422535211269, "param_ratio": 1.0, "rollbacks": 0
}"#;
const POINT: &str = r#"{
    "round": 1, "env_steps": 4, "seconds": 0.13701772, "accuracy": 10.140845070422536,
    "accuracy_minus_rent": 10.140845070422536, "param_ratio": 1.0
}"#;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let trials = match arguments.iter().position(|argument| argument == "--trials") {
        Some(at) => arguments.get(at + 1).ok_or("--trials needs a number")?.parse::<u32>()?,
        None if arguments.iter().any(|argument| argument == "--bench") => TRIALS,
        None => 20,
    };
    let root = tempfile::tempdir()?;
    let file = root.path().join("scale.ron");
    std::fs::write(root.path().join("tiny.ron"), SCENARIO)?;
    std::fs::write(&file, format!("(scenario: \"tiny.ron\", replicates: {trials})"))?;
    println!("{trials} trials\n{:<58}  {:>10}  {:>12}", "", "s", "ms a trial");
    let watch = Stopwatch { trials };

    let catalog = built_in_names();
    let planned = watch.time("planning and checking all trials", || plan(&file, &[], &catalog))?;
    let folder = SweepFolder::of(&planned.plan.name, Some(root.path()));
    watch.time("writing the plan", || folder.begin(&planned, false))?;
    let open = || SweepFolder::open(folder.path(), None);
    let (folder, plan) = watch.time("opening the folder, as each worker does once", open)?;

    let look = || free_trial(&folder, &plan);
    watch.time("a look: all are free", look)?.ok_or("all trials are free")?;
    let leases = take_all(&folder, &plan)?;
    assert!(watch.time("a look: all are being played", look)?.is_none());
    let end = || end_all(&folder, leases);
    watch.time("ending all except the last: result, lease released", end)?;
    let free = watch.time("a look: all except the last have ended", look)?;
    free.ok_or("the last trial is free")?;

    let collected = watch.time("collecting: reading all results", || Collected::read(&folder, &plan))?;
    watch.time("collecting: writing the tables", || write_sweep(&collected, &folder))?;
    Ok(())
}

/// Prints the cost of each thing, in all and a trial.
struct Stopwatch {
    trials: u32,
}

impl Stopwatch {
    fn time<T>(&self, what: &str, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let outcome = work();
        let seconds = began.elapsed().as_secs_f64();
        let ms = 1e3 * seconds / f64::from(self.trials);
        println!("{what:<58}  {seconds:>10.3}  {ms:>12.4}");
        outcome
    }
}

/// A worker's search for a free trial.
fn free_trial(folder: &SweepFolder, plan: &Plan) -> Outcome<Option<usize>> {
    let state = SweepState::read(folder, plan, Leases::read(folder, plan.lease(), folder.now()?)?)?;
    for (index, trial) in plan.trials.iter().enumerate() {
        if let TrialState::Waiting(_) = state.of(trial)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn take_all<'a>(folder: &'a SweepFolder, plan: &'a Plan) -> Outcome<Vec<(&'a Trial, Lease<'a>)>> {
    let leases = Leases::read(folder, Duration::from_secs(3600), folder.now()?)?;
    let taken = plan.trials.iter().map(|trial| {
        let lease = leases.take(&trial.id)?.ok_or("no other worker runs")?;
        Ok((trial, lease))
    });
    taken.collect()
}

fn end_all(folder: &SweepFolder, leases: Vec<(&Trial, Lease)>) -> Outcome<()> {
    let result = RESULT.replace("EPISODE", EPISODE).replace("POINT", POINT);
    let result: TrialResult = serde_json::from_str(&result)?;
    let count = leases.len();
    for (index, (trial, lease)) in leases.into_iter().enumerate() {
        if index + 1 < count {
            result.write(folder, &trial.id)?;
        }
        lease.release()?;
    }
    Ok(())
}
