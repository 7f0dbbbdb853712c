//! How an env grows: carries out, counts and records plans of any initiator; and ticks every slot.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_ecs::system::SystemParam;

use super::events::{SlotChange, is_contributing};
use super::slots::{SeedBuilder, carry_out};
use super::*;
use crate::growth::SeedStage;
use crate::health::{Failure, InEnv};
use crate::seed::{BlueprintError, BlueprintRegistry, Effect, Limits, Rules, SeedIdentity, SeedPlan, tick};
use crate::telemetry::TelemetryOutbox;

/// Everything of an env that growth changes.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct GrowingEnv {
    /// Its identity.
    pub id: &'static EnvId,
    /// Where new seeds are allocated.
    pub backend: &'static EnvBackend,
    /// The queue that tensor work goes to.
    pub stream: &'static mut EnvStream,
    /// Records and modules.
    pub slots: &'static mut SeedSlots,
    /// Optimizers of the seeds.
    pub optimizers: &'static mut SeedOptimizers,
    /// Tallies of the episode.
    pub stats: &'static mut EpisodeStats,
}

/// Everything outside an env that growth depends on.
#[derive(SystemParam)]
pub struct GrowthContext<'w> {
    /// Position of the run.
    pub clock: Res<'w, RunClock>,
    /// The scenario, resolved.
    pub experiment: Res<'w, Experiment>,
    /// Blueprints of the seeds that can grow.
    pub blueprints: Res<'w, BlueprintRegistry>,
    tested: Res<'w, SelfTest>,
    outbox: ResMut<'w, TelemetryOutbox>,
}

impl GrowthContext<'_> {
    /// The rules of this step's operations and ticks.
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
    pub fn identity(&self, order: SeedOrder, env: &GrowingEnvItem) -> Result<SeedIdentity, BlueprintError> {
        let recipe = self.blueprints.get(order.blueprint)?;
        let slot = &env.slots.0[order.slot];
        let episode = self.experiment.episode(self.clock.round(), env.id.index);
        Ok(SeedIdentity {
            seed_id: format!("e{episode}.{}.{}", slot.spec.slot, slot.germinations),
            germination: env.stats.growth.germinated,
            slot: slot.spec.slot,
            blueprint: recipe.id().into(),
            blueprint_index: order.blueprint,
            style: order.style,
            tempo: order.tempo,
            target: order.target,
            seed_params: recipe.param_count(slot.spec.channels),
        })
    }

    /// Makes the seeds of an env.
    pub(super) fn builder(&self, id: &EnvId, backend: Backend) -> SeedBuilder<'_> {
        SeedBuilder {
            blueprints: &self.blueprints,
            optimizer: self.experiment.task.seed_opt,
            implementation: self.tested.implementation(backend),
            backend,
            run_seed: self.experiment.scenario.run.seed,
            round: self.clock.round(),
            env: id.index,
        }
    }

    /// Carries out a plan for slot `index` of `env`, inside the env's stream; counts the change and records its events.
    /// `by_order`: the controller's command of this step is behind it.
    ///
    /// # Errors
    /// As [`carry_out`]; nothing has changed then.
    pub fn apply(
        &mut self,
        plan: SeedPlan,
        index: usize,
        env: &mut GrowingEnvItem,
        by_order: bool,
    ) -> Result<(), Failure> {
        let experiment = &*self.experiment;
        let builder = self.builder(env.id, env.backend.0);
        let slot = &mut env.slots.0[index];
        let before = slot.record.clone();
        let guard = env.stream.0.get().enter()?;
        let change = carry_out(plan, slot, &mut env.optimizers.0[index], &builder)?;
        drop(guard);

        let context = experiment.context(env.id, &self.clock);
        let change = SlotChange {
            context,
            slot: slot.spec.slot,
            before: before.as_ref(),
            after: slot.record.as_ref(),
            is_ordered: by_order,
            change: &change,
            stream_key: builder.stream_key(env.stats.growth.germinated),
        };
        self.outbox.extend(change.events());
        count(&mut env.stats, &change);
        Ok(())
    }
}

fn count(stats: &mut EpisodeStats, change: &SlotChange) {
    stats.decisions.take(change);
    let (Some(stage), Some(seed)) = (change.stage_entered(), change.after) else {
        return;
    };
    if change.change.effects.contains(&Effect::InsertSeed) {
        stats.growth.germinated += 1;
    }
    match stage {
        SeedStage::Pruned => stats.growth.pruned += 1,
        SeedStage::Committed => {
            stats.growth.committed += 1;
            stats.contributing += u32::from(is_contributing(seed));
        }
        _ => {}
    }
}

/// The tick of every slot, once per step, after the command.
pub fn advance_lifecycle(mut envs: Query<(GrowingEnv, &StepStatus)>, mut growth: GrowthContext) -> Result<(), Failure> {
    let limits = growth.experiment.limits();
    for mut env in participating(envs.iter_mut().sort_unstable::<&EnvId>()) {
        let id = env.id.index;
        for index in 0..env.slots.0.len() {
            let plan = tick(env.slots.0[index].record.as_ref(), &growth.rules(&limits));
            growth.apply(plan, index, &mut env, false).in_env(id)?;
        }
    }
    Ok(())
}
