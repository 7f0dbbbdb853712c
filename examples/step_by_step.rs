//! An engine driven from a program: fields set by path, played step by step, looked into between steps, stopped after enough
//! steps, and its record read as values.
//!
//! Run it with `cargo run --release --example step_by_step`.

use simic_engine::extend::StopRequest;
use simic_engine::prelude::*;

const SCENARIO: &str = r#"(
    name: "step-by-step",
    task: preset("digits_baseline", (batches_per_step: count(4))),
    policy: (controller: "random"),
)"#;

/// The best accuracy of all envs now, %.
fn best(engine: &mut Engine) -> f64 {
    let mut envs = engine.world_mut().query::<&ValMetrics>();
    let accuracies = envs.iter(engine.world()).map(|metrics| metrics.accuracy_percent);
    accuracies.fold(0.0, f64::max)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runs = tempfile::tempdir()?;
    let mut engine = Engine::builder()
        .set("run.rounds", 3)
        .set("run.n_envs", 2)
        .set("run.max_steps", 10)
        .recorded(runs.path())
        .from_ron(SCENARIO)?;
    let report = loop {
        if !engine.step()? {
            break engine.run()?;
        }
        let clock = engine.world().resource::<RunClock>();
        let (round, step) = (clock.round() + 1, clock.step());
        println!("round {round}, step {step:2}: {:.1} %", best(&mut engine));
        if (round, step) == (2, 10) {
            engine.world().resource::<StopSignal>().request(StopRequest::Interrupt);
        }
    };
    let record = report.record.ok_or("nothing was recorded")?;
    let results = record.results.as_ref().ok_or("the record has not begun")?;
    for round in &results.rounds {
        println!("round {}: mean {:.1} %", round.round + 1, round.data.accuracy_mean.0);
    }
    let finished = record.finished().ok_or("the run has not ended")?;
    let (rounds, episodes) = (finished.rounds_done, finished.episodes_done);
    let stopped_by = report.stopped_by;
    println!("{rounds} rounds, {episodes} episodes; stopped by {stopped_by:?}");
    Ok(())
}
