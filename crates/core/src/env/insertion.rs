//! The effect of a growth event: the network before and after, and a new seed's gradient in proportion to the host's.

use serde::{Deserialize, Serialize};

use crate::growth::{SeedStage, SlotId};
use crate::scenario::SeedInit;
use crate::seed::SeedRecord;
use crate::telemetry::{BirthRatios, EnvContext, Event, GrowthEffect, Num, ValidatedAt};

/// Steps after the first gradient in which the gradient is looked at for the last time.
const LAST_LOOK: u32 = 5;

/// A growth event of an episode that is not written yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Insertion {
    slot: SlotId,
    told: GrowthEffect,
}

impl Insertion {
    /// A seed in `slot` that has just entered a stage, in a step whose validation was `before`, of the network without it.
    /// `None` for stages that are no growth event, and where there was no validation to compare with.
    pub fn of(seed: &SeedRecord, slot: SlotId, init: SeedInit, before: Option<ValidatedAt>) -> Option<Self> {
        let is_birth = seed.stage == SeedStage::Germinated;
        if !is_birth && seed.stage != SeedStage::Committed {
            return None;
        }
        Some(Self {
            slot,
            told: GrowthEffect {
                seed: seed.identity.seed_id.clone(),
                blueprint: seed.identity.blueprint.clone(),
                init,
                entered: seed.stage,
                before: before?,
                after: None,
                contribution: seed.contribution.value.filter(|_| !is_birth).map(Num),
                gradient_ratio: is_birth.then(BirthRatios::default),
            },
        })
    }

    /// Takes what a later step has measured: its validation, and the ratio of its gradients if there was one.
    pub fn measure(&mut self, val: ValidatedAt, ratio: Option<f64>) {
        let step = val.step;
        if step <= self.told.before.step {
            return;
        }
        self.told.after.get_or_insert(val);
        let (Some(ratios), Some(ratio)) = (&mut self.told.gradient_ratio, ratio) else {
            return;
        };
        let first = *ratios.step.get_or_insert(step);
        match step.saturating_sub(first) {
            0 => ratios.at_birth = Some(Num::short(ratio)),
            1 => ratios.after_1 = Some(Num::short(ratio)),
            LAST_LOOK => ratios.after_5 = Some(Num::short(ratio)),
            _ => {}
        }
    }

    /// Nothing more of it will be measured after `step`; `seed` is what its slot holds.
    pub fn is_complete(&self, step: u32, seed: Option<&SeedRecord>) -> bool {
        let is_there = seed.is_some_and(|seed| seed.stage.is_occupied() && seed.identity.seed_id == self.told.seed);
        let is_measured = match &self.told.gradient_ratio {
            Some(ratios) => ratios.step.is_some_and(|first| step >= first + LAST_LOOK),
            None => true,
        };
        !is_there || is_measured && self.told.after.is_some()
    }

    /// Where it grew.
    pub fn slot(&self) -> SlotId {
        self.slot
    }

    /// As it is now.
    pub fn event(&self, context: EnvContext) -> Event {
        Event {
            slot: Some(self.slot),
            ..Event::env(context, self.told.clone())
        }
    }
}

#[cfg(test)]
mod tests;
