//! The telemetry events of a change in a slot.

use crate::growth::{SeedStage, SlotId};
use crate::seed::{Change, Effect, MIN_CONTRIBUTION, SeedRecord};
use crate::telemetry::{
    AlphaRampStarted, EnvContext, Event, Num, Payload, SeedCommitted, SeedGateEvaluated, SeedGerminated, SeedPruned,
    SeedStageChanged, Severity,
};

/// One operation or tick of a slot, as seen from outside.
pub struct SlotChange<'a> {
    /// Env and step.
    pub context: EnvContext,
    /// The slot.
    pub slot: SlotId,
    /// The seed before the change, `None` if the slot was empty.
    pub before: Option<&'a SeedRecord>,
    /// The seed after it.
    pub after: Option<&'a SeedRecord>,
    /// The controller's command of this step is behind it.
    pub is_ordered: bool,
    /// The change itself.
    pub change: &'a Change,
    /// Key of a new seed's random stream.
    pub stream_key: u64,
}

impl SlotChange<'_> {
    /// The events of the change, in the order in which it happened.
    pub fn events(&self) -> Vec<Event> {
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
    pub fn stage_entered(&self) -> Option<SeedStage> {
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

/// Whether a seed is worth its place: it contributes what strict gates ask for.
pub fn is_contributing(seed: &SeedRecord) -> bool {
    seed.contribution.value.is_some_and(|points| points >= MIN_CONTRIBUTION)
}
