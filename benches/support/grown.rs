//! Envs with live seeds, without the steps that it takes to get there.

use bevy_ecs::prelude::*;
use simic_engine::internals::clock::RunClock;
use simic_engine::internals::env::{GrowingEnv, GrowthContext, SeedOrder};
use simic_engine::internals::growth::{AlphaCurve, AlphaTarget, GerminationStyle, SeedStage, Tempo};
use simic_engine::internals::seed::{Change, Effect, RampShape, SeedPlan, germinate};
use simic_engine::prelude::*;

/// The engine at the beginning of its first episode, with `seeds` of `blueprint` held at full amplitude in each env.
pub fn begun(mut engine: Engine, blueprint: &'static str, seeds: usize) -> Engine {
    let world = engine.world_mut();
    world.run_schedule(Startup);
    world.resource_mut::<RunClock>().next_round();
    world.run_schedule(RoundStart);
    let grown = world.run_system_cached_with(grow, (blueprint, seeds));
    grown.expect("growth is a system");
    engine
}

/// Germinates the first `seeds` slots of every env and holds them, past the stages in between.
fn grow(In((name, seeds)): In<(&'static str, usize)>, mut envs: Query<GrowingEnv>, mut growth: GrowthContext) {
    let limits = growth.experiment.limits();
    for mut env in &mut envs {
        for slot in 0..seeds {
            let blueprint = growth.blueprints.names().position(|known| known == name);
            let order = SeedOrder {
                slot,
                blueprint: blueprint.expect("the blueprint exists"),
                style: GerminationStyle::SigmoidAdd,
                tempo: Tempo::Standard,
                target: AlphaTarget::Full,
            };
            let germination = growth.germination(order, &env, 0.0).expect("the blueprint exists");
            let plan = germinate(germination, &growth.rules(&limits)).expect("slots are empty");
            growth.apply(plan, slot, &mut env, false).expect("a seed can be built");
            let mut held = env.slots.0[slot].record.clone();
            if let Some(seed) = &mut held {
                seed.stage = SeedStage::Holding;
                let shape = RampShape::new(AlphaCurve::Linear, 1.0);
                seed.alpha.retarget(1.0, 0, shape).expect("alpha holds");
            }
            let change = Change {
                effects: [Effect::CreateOptimizer].into_iter().collect(),
                ..Change::default()
            };
            let plan = SeedPlan { next: held, change };
            let applied = growth.apply(plan, slot, &mut env, false);
            applied.expect("an optimizer can be built");
        }
    }
}
