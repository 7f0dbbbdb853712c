//! A custom metric: a number of every round, which is recorded with it, drawn in reports and shown in the summary.
//! It is a function of the world, measured when the episodes of the round are over.
//!
//! Run it with `cargo run --release --example custom_metric`.

use simic_engine::prelude::*;

/// Slots that hold a seed, %.
fn occupied(world: &mut World) -> f64 {
    let mut envs = world.query::<&SeedSlots>();
    let slots: Vec<_> = envs.iter(world).flat_map(|slots| slots.records()).collect();
    100.0 * slots.iter().flatten().count() as f64 / slots.len() as f64
}

fn register(app: &mut App) {
    let mut metrics = app.world_mut().resource_mut::<Metrics>();
    let summary = "slots that hold a seed at the end of a round, %";
    metrics.register("occupied", summary, Arc::new(occupied));
}

const SCENARIO: &str = r#"(
    name: "custom-metric",
    task: preset("digits_impaired", (batches_per_step: count(4))),
    run: (rounds: 2, n_envs: 4, max_steps: 3),
    policy: (controller: "random"),
)"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runs = tempfile::tempdir()?;
    let engine = Engine::builder().with(register).recorded(runs.path());
    let report = engine.from_ron(SCENARIO)?.run()?;
    let results = report.record.and_then(|record| record.results);
    for round in results.ok_or("nothing was recorded")?.rounds {
        let occupied = round.data.metrics.get("occupied").ok_or("it was not measured")?.0;
        println!("round {}: {occupied:.0} % of the slots hold a seed", round.round + 1);
    }
    Ok(())
}
