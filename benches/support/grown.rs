//! Envs with live seeds, without the steps that it takes to get there.

use bevy_ecs::prelude::*;
use simic_engine::internals::clock::RunClock;
use simic_engine::internals::env::{GrowingEnv, GrowthContext};
use simic_engine::internals::growth::{AlphaCurve, AlphaTarget, GerminationStyle, SeedStage, Tempo};
use simic_engine::internals::seed::{
    Change, Effect, GateNetwork, Germination, Plan, RampShape, Rules, SeedIdentity, germinate,
};
use simic_engine::prelude::*;

/// The engine at the beginning of its first episode, with `seeds` of `blueprint` held at full amplitude in each env.
pub fn begun(mut engine: Engine, blueprint: &'static str, seeds: usize) -> Engine {
    let world = engine.world_mut();
    world.run_schedule(Startup);
    world.resource_mut::<RunClock>().next_round();
    world.run_schedule(RoundStart);
    world
        .run_system_cached_with(grow, (blueprint, seeds))
        .expect("growth is a system");
    engine
}

/// Germinates the first `seeds` slots of every env and holds them, past the stages in between.
fn grow(In((blueprint, seeds)): In<(&'static str, usize)>, mut envs: Query<GrowingEnv>, mut growth: GrowthContext) {
    let limits = growth.experiment.limits();
    let index = growth
        .blueprints
        .names()
        .position(|name| name == blueprint)
        .expect("the blueprint exists");
    for mut env in &mut envs {
        for slot in 0..seeds {
            let spec = env.slots.0[slot].spec;
            let identity = SeedIdentity {
                seed_id: format!("e0.{}.0", spec.slot),
                germination: slot as u32,
                slot: spec.slot,
                blueprint: blueprint.into(),
                blueprint_index: index,
                style: GerminationStyle::SigmoidAdd,
                tempo: Tempo::Standard,
                target: AlphaTarget::Full,
                seed_params: growth
                    .blueprints
                    .get(index)
                    .expect("it exists")
                    .param_count(spec.channels),
            };
            let gate_params = GateNetwork::param_count(spec.channels);
            let rules: Rules = growth.rules(&limits);
            let plan = germinate(
                Germination {
                    identity,
                    gate_params,
                    accuracy: 0.0,
                },
                &rules,
            )
            .expect("slots are empty");
            growth.apply(plan, slot, &mut env, false).expect("a seed can be built");
            let mut held = env.slots.0[slot].record.clone();
            if let Some(seed) = &mut held {
                seed.previous_stage = SeedStage::Blending;
                seed.stage = SeedStage::Holding;
                seed.alpha
                    .retarget(1.0, 0, RampShape::new(AlphaCurve::Linear, 1.0))
                    .expect("alpha holds");
            }
            let change = Change {
                effects: [Effect::CreateOptimizer].into_iter().collect(),
                ..Change::default()
            };
            growth
                .apply(Plan { next: held, change }, slot, &mut env, false)
                .expect("an optimizer can be built");
        }
    }
}
