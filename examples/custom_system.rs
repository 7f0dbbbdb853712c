//! A custom system: prints, every tenth step, which env leads and which seeds grow in it. A plugin puts it into one of the
//! engine's sets, next to the engine's own systems.
//!
//! Run it with `cargo run --release --example custom_system`.

use simic_engine::prelude::*;

/// Everything that an extension is: a plugin that puts systems into the engine's sets.
#[derive(Clone)]
struct LeaderPlugin;

impl Plugin for LeaderPlugin {
    fn build(&self, app: &mut App) {
        // After the engine has measured the step and before the controller decides.
        app.add_systems(Assess, print_leader.in_set(EngineSet::Observe).after(Work::ReportSlots));
    }
}

fn print_leader(envs: Query<(&EnvId, &ValMetrics, &SeedSlots)>, clock: Res<RunClock>) {
    if !clock.step().is_multiple_of(10) {
        return;
    }
    let best = envs
        .iter()
        .max_by(|(_, a, _), (_, b, _)| a.accuracy_percent.total_cmp(&b.accuracy_percent));
    if let Some((env, metrics, slots)) = best {
        let seeds = slots.records().flatten();
        let seeds = seeds.map(|seed| format!("{} {} in {}", seed.stage, seed.identity.blueprint, seed.identity.slot));
        let seeds = match seeds.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "nothing grows".into(),
            seeds => seeds,
        };
        let (step, env, accuracy) = (clock.step(), env.index, metrics.accuracy_percent);
        println!("step {step:3}: env {env} leads with {accuracy:.1} % - {seeds}");
    }
}

const SCENARIO: &str = r#"(
    name: "custom-system",
    task: preset("digits_impaired", (batches_per_step: count(4))),
    run: (rounds: 1, n_envs: 4, max_steps: 40),
    policy: (controller: "random"),
)"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    Engine::builder().with(LeaderPlugin).from_ron(SCENARIO)?.run()?;
    Ok(())
}
