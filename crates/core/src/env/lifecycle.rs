//! Growth of an env: plans commands, carries out, counts and records plans of any initiator, and ticks every slot.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_ecs::system::SystemParam;

use super::slots::{SeedBuilder, carry_out};
use super::*;
use crate::growth::{FailureReason, Initiator, LifecycleCommand, SeedStage, SlotId};
use crate::health::{Failure, InEnv};
use crate::seed::{
    BlueprintError, BlueprintRegistry, Change, Effect, GateNetwork, Germination, Limits, MIN_CONTRIBUTION, Rules,
    SeedIdentity, SeedPlan, SeedRecord, plan_command, tick,
};
use crate::telemetry::{
    AlphaRampStarted, EnvContext, Event, Num, Payload, SeedCommitted, SeedGateEvaluated, SeedGerminated, SeedPruned,
    SeedStageChanged, Severity, TelemetryOutbox,
};
use crate::torch::TorchError;

/// Everything of an env that growth changes.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct GrowingEnv {
    /// Its identity.
    pub id: &'static EnvId,
    /// The device that new seeds are allocated on.
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

    /// Creates the plan's seed for `env`. Its parameter counts come from the blueprint, so nothing is built for a refusal.
    /// `accuracy`: that of the env now, percent.
    ///
    /// # Errors
    /// If there is no such blueprint.
    pub fn germination(
        &self,
        order: SeedOrder,
        env: &GrowingEnvItem,
        accuracy: f64,
    ) -> Result<Germination, BlueprintError> {
        let recipe = self.blueprints.get(order.blueprint)?;
        let slot = &env.slots.0[order.slot];
        let episode = self.experiment.episode(self.clock.round(), env.id.index);
        Ok(Germination {
            identity: SeedIdentity {
                seed_id: format!("e{episode}.{}.{}", slot.spec.slot, slot.germinations),
                germination: env.stats.growth.germinated,
                slot: slot.spec.slot,
                blueprint: recipe.id().into(),
                blueprint_index: order.blueprint,
                style: order.style,
                tempo: order.tempo,
                target: order.target,
                seed_params: recipe.param_count(slot.spec.channels),
            },
            gate_params: GateNetwork::param_count(slot.spec.channels),
            accuracy,
        })
    }

    /// Plans a command and applies the plan. Returns the reason if it is refused. Growth that exceeds the device's memory
    /// is also refused. `accuracy` is that of the env now, percent.
    ///
    /// # Errors
    /// As [`Self::apply`], for any other reason.
    pub fn obey(
        &mut self,
        command: &LifecycleCommand,
        env: &mut GrowingEnvItem,
        accuracy: f64,
    ) -> Result<Option<FailureReason>, Failure> {
        let Some(index) = command.slot() else {
            return Ok(None);
        };
        let limits = self.experiment.limits();
        let (slot, rules) = (&env.slots.0[index], self.rules(&limits));
        let gate_params = GateNetwork::param_count(slot.spec.channels);
        let germination = |order| {
            let germination = self.germination(order, env, accuracy);
            germination.map_err(|_| FailureReason::BlueprintUnavailable)
        };
        match plan_command(command, slot.record.as_ref(), gate_params, germination, &rules) {
            Ok(plan) => match self.apply(plan, index, env, true) {
                Ok(()) => Ok(None),
                Err(failure) if is_out_of_memory(&failure) => Ok(Some(FailureReason::OutOfMemory)),
                Err(failure) => Err(failure),
            },
            Err(refusal) => Ok(Some(refusal)),
        }
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

    /// Carries out a plan for slot `index` of `env`, inside the env's stream. Counts the change and records its events.
    /// `by_order` is true if the plan follows from the controller's command of this step.
    ///
    /// # Errors
    /// The errors of [`carry_out`]. Nothing has changed then.
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

fn is_out_of_memory(failure: &Failure) -> bool {
    match (failure.cause::<TorchError>(), failure.cause::<BlueprintError>()) {
        (Some(error), _) => matches!(error, TorchError::OutOfMemory(_)),
        (_, Some(BlueprintError::Torch(error))) => {
            matches!(TorchError::classify(error.to_string()), TorchError::OutOfMemory(_))
        }
        _ => false,
    }
}

/// One operation or tick of a slot, as seen from outside.
struct SlotChange<'a> {
    /// Env and step.
    context: EnvContext,
    /// The slot.
    slot: SlotId,
    /// The seed before the change, `None` if the slot was empty.
    before: Option<&'a SeedRecord>,
    /// The seed after it.
    after: Option<&'a SeedRecord>,
    /// True if the change follows from the controller's command of this step.
    is_ordered: bool,
    /// The change itself.
    change: &'a Change,
    /// Key of a new seed's random stream.
    stream_key: u64,
}

impl SlotChange<'_> {
    /// The events of the change, in the order in which it happened.
    fn events(&self) -> Vec<Event> {
        let Some(seed) = self.after.or(self.before) else {
            return Vec::new();
        };
        let event = |payload: Payload| Event::seed(self.context, self.slot, &seed.identity.seed_id, payload);
        let is_new = self.change.effects.contains(&Effect::InsertSeed);
        let is_committed = self.stage_entered() == Some(SeedStage::Committed);
        let parts = [
            is_new.then(|| event(self.germinated(seed).into())),
            self.change.gate.as_ref().map(|gate| {
                let event = event(SeedGateEvaluated::from(&gate.result).into());
                if gate.flipped {
                    event.severity(Severity::Info)
                } else {
                    event
                }
            }),
            self.stage_changed().map(|changed| event(changed.into())),
            self.alpha_ramp_started().map(|started| event(started.into())),
            is_committed.then(|| event(self.committed(seed).into())),
            self.pruned(seed).map(|pruned| event(pruned.into())),
        ];
        parts.into_iter().flatten().collect()
    }

    /// The stage that the change led to.
    fn stage_entered(&self) -> Option<SeedStage> {
        self.change.transition.map(|transition| transition.to)
    }

    fn germinated(&self, seed: &SeedRecord) -> SeedGerminated {
        let identity = &seed.identity;
        SeedGerminated {
            blueprint: seed.identity.blueprint.clone(),
            params: identity.seed_params,
            style: identity.style,
            tempo_steps: identity.tempo.ticks(),
            alpha_target: Num(identity.target.value()),
            accuracy: Num(seed.accuracy.initial),
            rng_seed: self.stream_key.to_string(),
        }
    }

    fn alpha_ramp_started(&self) -> Option<AlphaRampStarted> {
        let ramp = self.change.retarget?;
        Some(AlphaRampStarted {
            from: Num(ramp.from),
            to: Num(ramp.to),
            steps: ramp.speed.ticks(),
        })
    }

    fn stage_changed(&self) -> Option<SeedStageChanged> {
        let transition = self.change.transition?;
        Some(SeedStageChanged {
            from: transition.from,
            to: transition.to,
            alpha: Num(transition.alpha),
        })
    }

    fn committed(&self, seed: &SeedRecord) -> SeedCommitted {
        SeedCommitted {
            blueprint: seed.identity.blueprint.clone(),
            params_added: seed.params(),
            total_improvement: Num(seed.total_improvement()),
            blending_delta: seed.blending_delta().map(Num),
            contribution: seed.contribution.value.map(Num),
        }
    }

    fn pruned(&self, seed: &SeedRecord) -> Option<SeedPruned> {
        let order = self.change.pruned?;
        Some(SeedPruned {
            reason: order.reason,
            initiator: order.initiator,
            stage: self.before.map_or(SeedStage::Unknown, |seed| seed.stage),
            age_steps: seed.age_steps,
            total_improvement: Num(seed.total_improvement()),
            blending_delta: seed.blending_delta().map(Num),
        })
    }
}

fn count(stats: &mut EpisodeStats, change: &SlotChange) {
    count_decision(&mut stats.decisions, change);
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

fn count_decision(decisions: &mut Decisions, change: &SlotChange) {
    let step = change.context.step;
    let is_ordered = change.is_ordered;
    if is_ordered && change.change.effects.contains(&Effect::InsertSeed) {
        decisions.germinated += 1;
        decisions.first_germination.get_or_insert(step);
    }
    match change.change.pruned.map(|order| order.initiator) {
        Some(Initiator::Policy) => decisions.pruned += 1,
        Some(Initiator::Governor | Initiator::Auto) => decisions.lost += 1,
        None => {}
    }
    let committed = change.stage_entered() == Some(SeedStage::Committed);
    if let Some(seed) = change.after.filter(|_| is_ordered && committed) {
        decisions.committed += 1;
        decisions.first_commit.get_or_insert(step);
        decisions.last_commit = Some(step);
        let blueprint = seed.identity.blueprint.clone();
        decisions.blueprints.insert(change.slot, blueprint);
    }
}

/// Returns whether a seed is worth its place, that is, contributes as much as strict gates require.
fn is_contributing(seed: &SeedRecord) -> bool {
    seed.contribution.value.is_some_and(|points| points >= MIN_CONTRIBUTION)
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
