//! A custom seed module: one learned factor a channel. Before the run starts the engine tries it against the contract of seed
//! modules; a scenario germinates it by its name.
//!
//! Run it with `cargo run --release --example custom_seed_module`.

use simic_engine::prelude::*;

struct ChannelScale;

struct ChannelScaleModule {
    weight: Tensor,
    params: ParamSet,
}

impl Blueprint for ChannelScale {
    fn id(&self) -> &'static str {
        "channel_scale"
    }

    fn summary(&self) -> &'static str {
        "one learned factor a channel"
    }

    fn param_count(&self, dim: i64) -> u64 {
        dim as u64
    }

    fn build(&self, dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError> {
        let mut params = ParamSet::new(backend);
        // A fresh seed must not change its host: the factors start at 0.
        let weight = params.add("weight", &[dim, 1, 1], Init::Constant(0.0))?;
        params.initialise(rng)?;
        Ok(Box::new(ChannelScaleModule { weight, params }))
    }
}

impl SeedModule for ChannelScaleModule {
    fn delta(&self, x: &Tensor, _: Mode) -> Result<Option<Tensor>, TchError> {
        Ok(Some(x.f_mul(&self.weight)?))
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }

    fn macs(&self, positions: u64) -> u64 {
        self.params.count() * positions
    }
}

const SCENARIO: &str = r#"(
    task: preset("digits_impaired", (batches_per_step: count(4))),
    run: (rounds: 1, n_envs: 1, max_steps: 20),
    lifecycle: (auto_forward: true),
    policy: (controller: "schedule", schedule: (entries: [(step: 1, command: germinate(
        slot: "r0c0", blueprint: "channel_scale", style: "linear_add", tempo: "fast", target: "full"))])),
)"#;

fn register(app: &mut App) {
    let mut blueprints = app.world_mut().resource_mut::<BlueprintRegistry>();
    blueprints.register(Arc::new(ChannelScale));
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
