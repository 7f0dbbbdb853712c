//! A controller's decisions in an episode: the seeds that it planted and their fate, counted change by change. Reported where
//! controllers are measured; nothing else reads it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::events::SlotChange;
use crate::growth::{Initiator, SeedStage, SlotId};
use crate::seed::Effect;

/// Counts and steps of the decisions about seeds. Seeds that an episode begins with are left out.
/// Steps count from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decisions {
    /// Seeds planted.
    pub germinated: u32,
    /// Seeds committed.
    pub committed: u32,
    /// Seeds removed because the controller ordered it, at once or at the end of a ramp.
    pub pruned: u32,
    /// Seeds removed by anything else: the holding timeout, numbers that were not finite, a rollback.
    pub lost: u32,
    /// Step of the first germination; `None` without any.
    pub first_germination: Option<u32>,
    /// Step of the first commit; `None` without any.
    pub first_commit: Option<u32>,
    /// Step of the last commit.
    pub last_commit: Option<u32>,
    /// Blueprint ids of the committed seeds.
    pub blueprints: BTreeMap<SlotId, String>,
}

impl Decisions {
    /// Takes a change of a slot.
    pub(super) fn take(&mut self, change: &SlotChange) {
        let step = change.context.step;
        let is_ordered = change.is_ordered;
        if is_ordered && change.change.effects.contains(&Effect::InsertSeed) {
            self.germinated += 1;
            self.first_germination.get_or_insert(step);
        }
        match change.change.pruned.map(|order| order.initiator) {
            Some(Initiator::Policy) => self.pruned += 1,
            Some(Initiator::Governor | Initiator::Auto) => self.lost += 1,
            None => {}
        }
        let committed = change.stage_entered() == Some(SeedStage::Committed);
        if let Some(seed) = change.after.filter(|_| is_ordered && committed) {
            self.committed += 1;
            self.first_commit.get_or_insert(step);
            self.last_commit = Some(step);
            self.blueprints.insert(change.slot, seed.identity.blueprint.clone());
        }
    }
}
