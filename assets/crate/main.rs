//! The command line of simic-engine with a seed module and a system of its own, which `scenario.ron` uses.

use std::process::ExitCode;

use simic_engine::cli;
use simic_engine::prelude::*;

/// A kind of seed: one learned factor a channel.
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

/// Tells what grows, in each step in which something does.
#[derive(Clone)]
struct GrowthPlugin;

impl Plugin for GrowthPlugin {
    fn build(&self, app: &mut App) {
        let mut inventory = app.world_mut().get_resource_or_init::<Inventory>();
        inventory.add("GrowthPlugin", env!("CARGO_PKG_VERSION"), "tells what grows");
        // After the engine has measured the step and before the controller decides.
        app.add_systems(Assess, print_growth.in_set(EngineSet::Observe).after(Work::ReportSlots));
    }
}

fn print_growth(envs: Query<(&EnvId, &ValMetrics, &SeedSlots)>, clock: Res<RunClock>) {
    for (env, metrics, slots) in &envs {
        for seed in slots.records().flatten() {
            println!(
                "step {:2}, env {}: {} is {}, {:.1} %",
                clock.step(),
                env.index,
                seed.identity.blueprint,
                seed.stage,
                metrics.accuracy_percent
            );
        }
    }
}

/// What this crate adds to the engine. It is built for the names and for each run, so it only adds.
pub fn extend(app: &mut App) {
    let mut blueprints = app.world_mut().resource_mut::<BlueprintRegistry>();
    blueprints.register(Arc::new(ChannelScale));
    app.add_plugins(GrowthPlugin);
}

fn main() -> ExitCode {
    cli::main(Extension::new(extend))
}
