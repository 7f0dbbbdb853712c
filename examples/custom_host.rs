//! A custom host: a stem, a layer of learned factors, which is new, and a residual block. A scenario names it, seeds grow in
//! its slots.
//!
//! Run it with `cargo run --release --example custom_host`.

use simic_engine::extend::{Conv, Features, HostError, Layer, LayerDesign, ResidualBlock};
use simic_engine::prelude::*;

/// A learned factor a channel.
struct Scale;

struct ScaleLayer(Tensor);

impl LayerDesign for Scale {
    fn output(&self, input: Features) -> Features {
        input
    }

    fn parameters(&self, input: Features) -> u64 {
        input.channels as u64
    }

    fn macs(&self, input: Features) -> u64 {
        (input.channels * input.positions()) as u64
    }

    fn build(&self, input: Features, name: &str, params: &mut ParamSet) -> Result<Box<dyn Layer>, HostError> {
        let factors = params.add(format!("{name}.factors"), &[input.channels, 1, 1], Init::Constant(1.0))?;
        Ok(Box::new(ScaleLayer(factors)))
    }
}

impl Layer for ScaleLayer {
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor, HostError> {
        Ok(x.f_mul(&self.0)?)
    }
}

fn scaled(classes: i64) -> HostPlan {
    HostPlan::new(1, 8)
        .layer("stem", Conv::new(8, 3))
        .layer("scale", Scale)
        .slot(0, 0)
        .layer("block", ResidualBlock::new(16, 2))
        .slot(0, 1)
        .head(classes)
}

fn register(app: &mut App) {
    let mut hosts = app.world_mut().resource_mut::<HostRegistry>();
    let summary = "a stem with learned factors, one residual block";
    hosts.register("scaled", summary, Arc::new(scaled));
}

const SCENARIO: &str = r#"(
    task: preset("digits_baseline", (batches_per_step: count(4), host: named("scaled"))),
    run: (rounds: 1, n_envs: 1, max_steps: 20),
    lifecycle: (slots: ["r0c0", "r0c1"], auto_forward: true),
    policy: (controller: "schedule", schedule: (entries: [(step: 1, command: germinate(
        slot: "r0c1", blueprint: "conv_small", style: "linear_add", tempo: "fast", target: "full"))])),
)"#;

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
