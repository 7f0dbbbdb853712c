//! A custom seed module: one learned factor a channel, in the file that `simic-engine new` writes. Before the run starts the
//! engine tries it against the contract of seed modules; a scenario germinates it by its name.
//!
//! Run it with `cargo run --release --example custom_seed_module`.

use simic_engine::prelude::*;

#[path = "../assets/crate/seed.rs"]
mod seed;

const SCENARIO: &str = r#"(
    task: preset("digits_impaired", (batches_per_step: count(4))),
    run: (rounds: 1, n_envs: 1, max_steps: 20),
    lifecycle: (auto_forward: true),
    policy: (controller: "schedule", schedule: (entries: [(step: 1, command: germinate(
        slot: "r0c0", blueprint: "channel_scale", style: "linear_add", tempo: "fast", target: "full"))])),
)"#;

fn register(app: &mut App) {
    let mut blueprints = app.world_mut().resource_mut::<BlueprintRegistry>();
    blueprints.register(Arc::new(seed::ChannelScale));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut engine = Engine::builder().with(register).from_ron(SCENARIO)?;
    while engine.step()? {
        let mut envs = engine.world_mut().query::<(&ValMetrics, &SeedSlots)>();
        for (metrics, slots) in envs.iter(engine.world()) {
            let stages: Vec<_> = slots.records().flatten().map(|seed| seed.stage.to_string()).collect();
            println!("{:5.1} %  {}", metrics.accuracy_percent, stages.join(", "));
        }
    }
    Ok(())
}
