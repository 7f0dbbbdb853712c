//! The command line of simic-engine with its own seed module and system. `scenario.ron` uses the module.

use std::process::ExitCode;

use simic_engine::cli;
use simic_engine::prelude::*;

mod seed;

/// Prints the seeds in each step that has some.
#[derive(Clone)]
struct GrowthPlugin;

impl Plugin for GrowthPlugin {
    fn build(&self, app: &mut App) {
        let mut inventory = app.world_mut().get_resource_or_init::<Inventory>();
        inventory.add("GrowthPlugin", env!("CARGO_PKG_VERSION"), "prints what grows");
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

/// Adds this crate's parts to the engine. It is called for the names and for each run, so it only adds.
pub fn extend(app: &mut App) {
    let mut blueprints = app.world_mut().resource_mut::<BlueprintRegistry>();
    blueprints.register(Arc::new(seed::ChannelScale));
    app.add_plugins(GrowthPlugin);
}

fn main() -> ExitCode {
    cli::main(Extension::new(extend))
}
