//! A custom sink: it gets every event of a recorded run while the run is played, on a thread of its own, and follows the
//! seeds. What it does cannot disturb the training.
//!
//! Run it with `cargo run --release --example custom_sink`.

use simic_engine::extend::{Event, Payload, Sink, SinkError, Sinks};
use simic_engine::prelude::*;

#[derive(Default)]
struct SeedLog {
    seeds: usize,
}

impl Sink for SeedLog {
    fn name(&self) -> &str {
        "seed_log"
    }

    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), SinkError> {
        for event in events {
            let seed = event.seed_id.as_deref().unwrap_or_default();
            match &event.payload {
                Payload::SeedGerminated(germinated) => {
                    self.seeds += 1;
                    println!("{seed}: {} germinated", germinated.blueprint);
                }
                Payload::SeedStageChanged(changed) => println!("{seed}: {} to {}", changed.from, changed.to),
                Payload::RunFinished(finished) => {
                    println!("seeds: {}, episodes: {}", self.seeds, finished.episodes_done);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn register(app: &mut App) {
    let mut sinks = app.world_mut().get_resource_or_init::<Sinks>();
    sinks.add(SeedLog::default());
}

const SCENARIO: &str = r#"(
    name: "custom-sink",
    task: preset("digits_impaired", (batches_per_step: count(4))),
    run: (rounds: 1, n_envs: 1, max_steps: 12),
    policy: (controller: "schedule", schedule: (entries: [(step: 1, command: germinate(
        slot: "r0c0", blueprint: "conv_light", style: "linear_add", tempo: "fast", target: "full"))])),
)"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runs = tempfile::tempdir()?;
    let engine = Engine::builder().with(register).recorded(runs.path());
    engine.from_ron(SCENARIO)?.run()?;
    Ok(())
}
