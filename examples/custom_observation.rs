//! A custom feature of observations: the gap between training and validation accuracy. Every controller that asks for
//! observations sees it, the learned one among them; here a controller that only looks.
//!
//! Run it with `cargo run --release --example custom_observation`.

use simic_engine::extend::{Extract, ObservationFeature, ObservationFeatures, Treatment};
use simic_engine::prelude::*;

/// Waits, and prints the newest element of its observation.
struct Looks;

impl Controller for Looks {
    fn name(&self) -> &str {
        "looks"
    }

    fn needs_observation(&self) -> bool {
        true
    }

    fn decide(&mut self, view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        for env in view.envs {
            if let Some(observation) = env.observation {
                // Elements of the env come first, those of plugins after the engine's 23. Those of each slot follow.
                let (gap, elements) = (observation.raw[23], observation.raw.len());
                println!("step {}: element 23 of {elements} is {gap:+.3}", view.step);
            }
        }
        let wait = |masks| Decision::new(LifecycleCommand::Wait, masks, "looks on");
        Ok(masks.iter().map(wait).collect())
    }
}

fn register(app: &mut App) {
    let mut features = app.world_mut().get_resource_or_init::<ObservationFeatures>();
    features.register(ObservationFeature {
        name: "accuracy_gap".into(),
        extract: Extract::env(|env| Some((env.signals.train_accuracy - env.signals.val_accuracy) / 100.0)),
        range: -1.0..=1.0,
        treatment: Treatment::Normalised,
    });
    let mut controllers = app.world_mut().resource_mut::<ControllerRegistry>();
    controllers.register("looks", "waits and looks", Arc::new(|_| Ok(Box::new(Looks))));
}

const SCENARIO: &str = r#"(
    task: preset("digits_baseline", (batches_per_step: count(4))),
    run: (rounds: 1, n_envs: 1, max_steps: 6),
    policy: (controller: "looks"),
)"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    Engine::builder().with(register).from_ron(SCENARIO)?.run()?;
    Ok(())
}
