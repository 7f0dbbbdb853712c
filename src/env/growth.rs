//! How an env grows: plans are carried out, counted and told, whoever made them; and the mechanical tick of every slot.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_ecs::system::SystemParam;

use super::events::{SlotChange, is_contributing};
use super::slots::{Nursery, carry_out};
use super::*;
use crate::growth::{AlphaTarget, GerminationStyle, SeedStage, Tempo};
use crate::health::{Failure, InEnv};
use crate::seed::{BlueprintError, BlueprintRegistry, Effect, Limits, Plan, Rules, SeedIdentity, tick};
use crate::telemetry::TelemetryOutbox;

/// Everything of an env that growth changes.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct GrowingEnv {
    pub id: &'static EnvId,
    pub device: &'static EnvDevice,
    pub stream: &'static mut EnvStream,
    pub slots: &'static mut SeedSlots,
    pub optimizers: &'static mut SeedOptimizers,
    pub stats: &'static mut EpisodeStats,
    pub host_params: &'static HostParams,
}

/// What is put where, and how it is to blend in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sowing {
    /// Index in policy order.
    pub slot: usize,
    /// Index in the registry.
    pub blueprint: usize,
    pub style: GerminationStyle,
    pub tempo: Tempo,
    pub target: AlphaTarget,
}

/// Everything outside an env that growth depends on.
#[derive(SystemParam)]
pub struct Garden<'w> {
    pub clock: Res<'w, RunClock>,
    pub experiment: Res<'w, Experiment>,
    pub blueprints: Res<'w, BlueprintRegistry>,
    backend: Res<'w, Backend>,
    outbox: ResMut<'w, TelemetryOutbox>,
}

impl Garden<'_> {
    /// What operations and ticks of this step are judged by.
    pub fn rules<'a>(&'a self, limits: &'a Limits) -> Rules<'a> {
        Rules {
            config: &self.experiment.scenario.lifecycle,
            limits,
            step: self.clock.step(),
        }
    }

    /// Who a new seed in `env` is. Its parameter count comes from the blueprint, so nothing is built for a refusal.
    ///
    /// # Errors
    /// There is no such blueprint.
    pub fn identity(&self, sowing: Sowing, env: &GrowingEnvItem) -> Result<SeedIdentity, BlueprintError> {
        let recipe = self.blueprints.get(sowing.blueprint)?;
        let slot = &env.slots.0[sowing.slot];
        let episode = self.experiment.episode(self.clock.round(), env.id.index);
        Ok(SeedIdentity {
            seed_id: format!("e{episode}.{}.{}", slot.spec.slot, slot.germinations),
            germination: env.stats.growth.germinated,
            slot: slot.spec.slot,
            blueprint: recipe.id().into(),
            blueprint_index: sowing.blueprint,
            style: sowing.style,
            tempo: sowing.tempo,
            target: sowing.target,
            seed_params: recipe.param_count(slot.spec.channels),
            host_params: env.host_params.0,
        })
    }

    /// Carries out a plan for slot `index` of `env`, inside the env's stream, and tells and counts what it changed.
    /// `by_order`: the controller's command of this step is behind it.
    ///
    /// # Errors
    /// As [`carry_out`]; nothing has changed then.
    pub fn apply(&mut self, plan: Plan, index: usize, env: &mut GrowingEnvItem, by_order: bool) -> Result<(), Failure> {
        let experiment = &*self.experiment;
        let nursery = Nursery {
            blueprints: &self.blueprints,
            optimizer: experiment.task.seed_opt,
            implementation: self.backend.optimizer,
            device: env.device.0,
            run_seed: experiment.scenario.run.seed,
            round: self.clock.round(),
            env: env.id.index_in_group,
        };
        let slot = &mut env.slots.0[index];
        let before = slot.record.clone();
        let guard = env.stream.0.get().enter()?;
        let change = carry_out(plan, slot, &mut env.optimizers.0[index], &nursery)?;
        drop(guard);

        let context = experiment.context(env.id, &self.clock);
        let min_contribution = experiment.scenario.lifecycle.gates.min_contribution;
        let change = SlotChange {
            context,
            slot: slot.spec.slot,
            before: before.as_ref(),
            after: slot.record.as_ref(),
            change: &change,
            action: by_order.then(|| context.action_id()),
            min_contribution,
            stream_key: nursery.stream_key(env.stats.growth.germinated),
        };
        self.outbox.extend(change.events());
        count(&mut env.stats, &change, min_contribution);
        Ok(())
    }
}

fn count(stats: &mut EpisodeStats, change: &SlotChange, min_contribution: f64) {
    let (Some(stage), Some(seed)) = (change.stage_entered(), change.after) else {
        return;
    };
    let blueprint = stats.blueprints.entry(seed.identity.blueprint.clone()).or_default();
    if change.change.effects.contains(&Effect::InsertSeed) {
        stats.growth.germinated += 1;
        blueprint.germinated += 1;
    }
    match stage {
        SeedStage::Pruned => {
            stats.growth.pruned += 1;
            blueprint.pruned += 1;
        }
        SeedStage::Fossilized => {
            stats.growth.fossilized += 1;
            blueprint.fossilized += 1;
            stats.contributing += u32::from(is_contributing(seed, min_contribution));
        }
        _ => {}
    }
}

/// The envs that take part in the step.
pub fn participating<'a, T>(envs: impl Iterator<Item = (T, &'a StepStatus)>) -> impl Iterator<Item = T> {
    envs.filter_map(|(env, status)| status.participates().then_some(env))
}

/// The tick of every slot, once per step, after the command (spec 06 X3).
pub fn advance_lifecycle(mut envs: Query<(GrowingEnv, &StepStatus)>, mut garden: Garden) -> Result<(), Failure> {
    let limits = garden.experiment.limits();
    let mut envs: Vec<_> = participating(envs.iter_mut()).collect();
    envs.sort_unstable_by_key(|env| env.id.index);
    for env in &mut envs {
        for index in 0..env.slots.0.len() {
            let plan = tick(env.slots.0[index].record.as_ref(), &garden.rules(&limits));
            let id = env.id.index;
            garden.apply(plan, index, env, false).in_env(id)?;
        }
    }
    Ok(())
}
