//! Custom state that outlasts the process inside a round: a component of every env, which checkpoints inside a round keep
//! and a resumed run takes back.
//!
//! Run it with `cargo run --release --example kept_state`.

use serde::{Deserialize, Serialize};
use simic_engine::prelude::*;

/// Steps in a row without a new best accuracy.
#[derive(Component, Clone, Debug, Default, Serialize, Deserialize)]
struct Standstill {
    steps: u32,
    best_percent: f64,
}

fn measure(mut envs: Query<(&ValMetrics, &mut Standstill)>) {
    for (metrics, mut standstill) in &mut envs {
        let is_best = metrics.accuracy_percent > standstill.best_percent;
        standstill.steps = if is_best { 0 } else { standstill.steps + 1 };
        standstill.best_percent = standstill.best_percent.max(metrics.accuracy_percent);
    }
}

/// An episode begins without a memory of the last one.
fn forget(mut envs: Query<&mut Standstill>) {
    envs.iter_mut()
        .for_each(|mut standstill| *standstill = Standstill::default());
}

fn register(app: &mut App) {
    app.add_systems(RoundStart, forget);
    app.add_systems(Assess, measure.in_set(EngineSet::Observe));
    app.keep_in_rounds::<Standstill>("standstill");
}

const SCENARIO: &str = r#"(
    task: preset("digits_impaired", (batches_per_step: count(2))),
    run: (rounds: 1, n_envs: 2, max_steps: 12),
    policy: (controller: "wait"),
)"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut engine = Engine::builder().with(register).from_ron(SCENARIO)?;
    for _ in 0..8 {
        engine.step()?;
    }
    // The engine does this when a checkpoint inside the round is due, and writes files as well.
    let world = engine.world_mut();
    world.insert_resource(UnfinishedRound::default());
    world.run_schedule(SaveRound);
    let round = world.remove_resource::<UnfinishedRound>();
    let round = round.ok_or("the round was not kept")?;
    let mut envs = world.query::<(&EnvId, &Standstill)>();
    for (env, live) in envs.iter(world) {
        let kept: Standstill = round.get(&format!("env{}.standstill", env.index))?;
        println!("env {}: kept {} steps, live {}", env.index, kept.steps, live.steps);
    }
    Ok(())
}
