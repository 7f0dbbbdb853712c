//! A system of one's own: tells, every tenth step, which env leads and what grows in it. And a metric: a number of every round,
//! which is recorded, drawn by TensorBoard and shown in the summary.
//!
//! Run it with `cargo run --release --example custom_system`.

use simic_engine::prelude::*;

/// Everything that an extension is: a plugin that puts systems into the engine's sets.
#[derive(Clone)]
struct LeaderPlugin;

impl Plugin for LeaderPlugin {
    fn build(&self, app: &mut App) {
        // After the engine has measured the step and before the controller decides.
        app.add_systems(Assess, tell_leader.in_set(EngineSet::Observe).after(Work::ReportSlots));
        let mut metrics = app.world_mut().resource_mut::<Metrics>();
        metrics.register(
            "occupied",
            "slots that hold a seed at the end of a round, %",
            Arc::new(occupied),
        );
    }
}

fn occupied(world: &mut World) -> f64 {
    let mut envs = world.query::<&SeedSlots>();
    let slots: Vec<bool> = envs
        .iter(world)
        .flat_map(|slots| slots.records().map(|seed| seed.is_some()))
        .collect();
    100.0 * slots.iter().filter(|is_occupied| **is_occupied).count() as f64 / slots.len() as f64
}

fn tell_leader(envs: Query<(&EnvId, &ValMetrics, &SeedSlots)>, clock: Res<RunClock>) {
    if !clock.step().is_multiple_of(10) {
        return;
    }
    let best = envs
        .iter()
        .max_by(|a, b| a.1.accuracy_percent.total_cmp(&b.1.accuracy_percent));
    if let Some((env, metrics, slots)) = best {
        let seeds: Vec<String> = slots
            .records()
            .flatten()
            .map(|seed| format!("{} {} in {}", seed.stage, seed.identity.blueprint, seed.identity.slot))
            .collect();
        println!(
            "step {:3}: env {} leads with {:.1} % - {}",
            clock.step(),
            env.index,
            metrics.accuracy_percent,
            if seeds.is_empty() {
                "nothing grows".into()
            } else {
                seeds.join(", ")
            }
        );
    }
}

const SCENARIO: &str = r#"(
    name: "custom-system",
    task: preset("digits_impaired"),
    run: (rounds: 1, n_envs: 4, max_steps: 40),
)"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    Engine::builder().with(LeaderPlugin).from_ron(SCENARIO)?.run()?;
    Ok(())
}
