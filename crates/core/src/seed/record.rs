//! A slot's record of its seed: plain data without tensors, from germination until the slot is free again.
//!
//! A change of it is data too: an operation reads the old record and returns a [`SeedPlan`] of the new record, the tensors to
//! change and the events to write. Nothing has happened until the owner of the module and the optimizer has carried out the effects
//! and stored the new record; a refused operation therefore cannot have changed anything.
//!
//! Measurements flow in once per step (accuracy, contributions, interactions, gradients), the stage machine
//! (`lifecycle`) writes the stage, and everyone else reads a [`SeedReport`].

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::{AlphaController, GradientSums};
use crate::growth::{
    AlphaAlgorithm, AlphaSpeed, AlphaTarget, GateLevel, GateResult, GerminationStyle, Initiator, PruneReason,
    SeedStage, SlotId, Tempo,
};
use crate::scenario::LifecycleConfig;

/// Weight of the old value in the smoothed change of a contribution.
const VELOCITY_DECAY: f64 = 0.7;
/// Upper clamp of the ratio of a seed's gradient to its host's.
const RATIO_MAX: f64 = 10.0;

/// Properties that are fixed when a seed germinates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedIdentity {
    /// `e{episode}.{slot}.{n}`.
    pub seed_id: String,
    /// Germinations of the env in this episode before this one: names the seed's random stream.
    pub germination: u32,
    /// The slot in which it grows.
    pub slot: SlotId,
    /// Id of the blueprint.
    pub blueprint: String,
    /// Index of the blueprint in the registry.
    pub blueprint_index: usize,
    /// Curve and operator of the first blend.
    pub style: GerminationStyle,
    /// Length of the first blend.
    pub tempo: Tempo,
    /// Amplitude of the first blend.
    pub target: AlphaTarget,
    /// Trainable elements of the module, without a gate.
    pub seed_params: u64,
}

/// Validation accuracy of the env in percent, as seen over a seed's life.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccuracyTrack {
    /// Accuracy at germination.
    pub initial: f64,
    /// Accuracy in the last step.
    pub current: f64,
    /// Accuracy when the current stage was entered.
    pub at_stage_start: f64,
    /// Accuracy when blending was first entered.
    pub at_blending_start: Option<f64>,
}

/// The seed's contribution by ablation, in percentage points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContributionTrack {
    /// Accuracy with the seed minus accuracy without it.
    pub value: Option<f64>,
    /// Steps since the measurement, 0 in its own step.
    pub age: Option<u32>,
    /// Smoothed change per step.
    pub velocity: f64,
}

/// The last gradient measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GradientTrack {
    /// Infinite where it has no number.
    pub norm: Option<f64>,
    /// Moving average of the ratio to the host's gradient.
    pub ratio: Option<f64>,
    /// 1 is perfect, 0 useless.
    pub health: Option<f64>,
    /// Health at the previous decision.
    pub previous_health: Option<f64>,
    /// True if the gradient of a tensor vanished.
    pub has_vanishing: Option<bool>,
    /// True if the gradient of a tensor exploded or was not finite.
    pub has_exploding: Option<bool>,
    /// Sampled batches in a row whose gradient was not finite.
    pub nonfinite_streak: u32,
    /// Updates that the last step suppressed because the gradient was not finite; `None` if it trained nothing.
    pub skipped_updates: Option<u32>,
}

/// The reason for which a seed is removed, and the side that orders it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PruneOrder {
    /// The reason of the prune.
    pub reason: PruneReason,
    /// The side that orders it.
    pub initiator: Initiator,
}

/// The last automatic attempt at a gate, kept so that only news is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateMemory {
    /// The gate.
    pub level: GateLevel,
    /// Bit i: check i failed.
    pub failed_checks: u8,
}

/// The full plain-data state of a non-empty slot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedRecord {
    /// The parts that are fixed at germination.
    pub identity: SeedIdentity,
    /// Blend operator; starts as the style's, `SetAlphaTarget` may switch it.
    pub algorithm: AlphaAlgorithm,
    /// Trainable elements of the gate, 0 without one.
    pub gate_params: u64,

    /// The current stage.
    pub stage: SeedStage,
    /// The step in which the current stage was entered.
    pub stage_entered_step: u32,
    /// Steps recorded since germination.
    pub age_steps: u32,
    /// Steps recorded in this stage; ticks spent in it while cooling down.
    pub steps_in_stage: u32,
    /// Ticks of embargo left.
    pub cooldown_left: u32,
    /// Stages entered and when, oldest first.
    pub history: VecDeque<(SeedStage, u32)>,
    /// The last failed attempt at a gate in this stage.
    pub last_gate: Option<GateMemory>,

    /// The amplitude.
    pub alpha: AlphaController,
    /// The order that a ramp down to 0 carries out.
    pub pending_prune: Option<PruneOrder>,
    /// The reason of the seed's prune; present while the slot cools down.
    pub prune_reason: Option<PruneReason>,
    /// Something other than the controller pruned the seed, and no reward has been charged for it yet.
    pub auto_pruned: bool,

    /// The reward's account of the seed: its observation must know.
    pub account: f64,
    /// Accuracy of the env over the life of the seed.
    pub accuracy: AccuracyTrack,
    /// The seed's contribution.
    pub contribution: ContributionTrack,
    /// Sum of the pairwise interactions with the other players, percentage points; 0 at the start of each validation.
    pub interaction_sum: f64,
    /// Gradients of the seed.
    pub gradient: GradientTrack,
}

impl SeedRecord {
    /// Counts a finished step of an occupied slot. `val_accuracy` in percent; one that is not finite isn't a
    /// measurement. Cooling slots keep their metrics as at the prune.
    pub fn record_step(&mut self, val_accuracy: f64) {
        if !self.stage.is_occupied() {
            return;
        }
        self.age_steps += 1;
        self.steps_in_stage += 1;
        if val_accuracy.is_finite() {
            self.accuracy.current = val_accuracy;
        }
    }

    /// Takes this step's ablation result: `points` of accuracy. Velocity is the moving average of the change per step.
    /// A number that is not finite measures nothing.
    pub fn measure_contribution(&mut self, points: f64) {
        if !points.is_finite() {
            return;
        }
        let track = &mut self.contribution;
        if let (Some(before), Some(age)) = (track.value, track.age) {
            let change_per_step = (points - before) / f64::from(age.max(1));
            track.velocity = VELOCITY_DECAY * track.velocity + (1.0 - VELOCITY_DECAY) * change_per_step;
        }
        track.value = Some(points);
        track.age = Some(0);
    }

    /// Notes whether the gradient of one sampled batch was finite, in the order of the batches.
    pub fn note_sampled_batch(&mut self, gradient_is_finite: bool) {
        self.gradient.nonfinite_streak = if gradient_is_finite {
            0
        } else {
            self.gradient.nonfinite_streak + 1
        };
    }

    /// Takes the sums of the step's last sampled batch, of the seed (with its gate) and of its host.
    pub fn measure_gradients(&mut self, seed: &GradientSums, host: &GradientSums, config: &LifecycleConfig) {
        let measured = seed.tensors > 0;
        let track = &mut self.gradient;
        track.norm = seed.norm();
        track.health = seed.health();
        track.has_vanishing = measured.then_some(seed.vanishing > 0);
        track.has_exploding = seed.norm().map(|norm| seed.exploding > 0 || norm.is_infinite());
        track.ratio = match (track.ratio, seed.ratio_to(host, RATIO_MAX)) {
            (Some(old), Some(new)) => Some(config.ratio_ema * old + (1.0 - config.ratio_ema) * new),
            (_, Some(first)) => Some(first),
            (old, None) if measured => old,
            (_, None) => None,
        };
    }

    /// Closes a step for the observation: measurements grow older, health becomes the previous health. For every slot
    /// that was occupied when the step was reported.
    pub fn age_measurements(&mut self) {
        if self.gradient.health.is_some() {
            self.gradient.previous_health = self.gradient.health;
        }
        self.contribution.age = self.contribution.age.map(|age| age + 1);
    }

    /// Reads and clears the mark of an automatic prune, so that it is charged once.
    pub fn take_auto_pruned(&mut self) -> bool {
        std::mem::take(&mut self.auto_pruned)
    }

    /// The last gradient that was measured did not explode, and the newest is finite. Never measured is not healthy.
    pub fn healthy(&self) -> bool {
        self.gradient.has_exploding == Some(false) && self.gradient.nonfinite_streak == 0
    }

    /// The network's output depends on the seed. Until it blends it sees the host's features and the host does not see
    /// it: neither its value nor its gradient, nor in a norm or an optimizer that they share.
    pub fn bears_on_network(&self) -> bool {
        self.stage.is_occupied() && self.alpha.alpha() > 0.0
    }

    /// Ramping down to be pruned.
    pub fn is_fading(&self) -> bool {
        self.pending_prune.is_some()
    }

    /// Trainable elements of seed and gate.
    pub fn params(&self) -> u64 {
        self.identity.seed_params + self.gate_params
    }

    /// Percentage points since germination.
    pub fn total_improvement(&self) -> f64 {
        self.accuracy.current - self.accuracy.initial
    }

    /// Percentage points since the current stage was entered.
    pub fn improvement_since_stage_start(&self) -> f64 {
        self.accuracy.current - self.accuracy.at_stage_start
    }

    /// The change since blending began, with the host's own gain in that time: for display, never for a decision.
    pub fn blending_delta(&self) -> Option<f64> {
        self.accuracy
            .at_blending_start
            .map(|start| self.accuracy.current - start)
    }
}

/// The record as it will be (`None` = slot empty), and what changes with it.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedPlan {
    /// The record to store.
    pub next: Option<SeedRecord>,
    /// The operation's changes.
    pub change: Change,
}

impl SeedPlan {
    /// Stores the new record, once the effects have been carried out.
    pub fn commit(self, slot: &mut Option<SeedRecord>) -> Change {
        *slot = self.next;
        self.change
    }
}

/// Everything that one operation or tick changes in a slot; each part becomes one telemetry event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// A change of stage.
    pub transition: Option<Transition>,
    /// An ordered ramp.
    pub retarget: Option<Retarget>,
    /// A gate result worth telling.
    pub gate: Option<GateReport>,
    /// The order of a prune, set with the transition to Pruned.
    pub pruned: Option<PruneOrder>,
    /// Effects on module, gate and optimizer, in the order in which to carry them out.
    pub effects: SmallVec<[Effect; 2]>,
}

/// A change of stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition {
    /// The stage left.
    pub from: SeedStage,
    /// The stage entered.
    pub to: SeedStage,
    /// Alpha before the change.
    pub alpha: f64,
}

/// An ordered ramp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retarget {
    /// Alpha when the ramp was ordered.
    pub from: f64,
    /// Alpha at its end.
    pub to: f64,
    /// Length of the ramp.
    pub speed: AlphaSpeed,
}

/// A gate's result, and whether it differs from the last attempt's in this stage.
#[derive(Clone, Debug, PartialEq)]
pub struct GateReport {
    /// The result.
    pub result: GateResult,
    /// True if the last attempt had failed.
    pub flipped: bool,
}

/// A change of tensors, to be carried out by their owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Put the module, built beforehand, into the slot.
    InsertSeed,
    /// Create the gate; its parameters join the seed's optimizer, if there is one, with empty state.
    AddGate,
    /// Drop the gate and its entries in the optimizer; the seed's momentum stays.
    RemoveGate,
    /// Create the optimizer of the seed's parameters.
    CreateOptimizer,
    /// Zero the optimizer's state.
    ResetMomentum,
    /// A committed seed that continues to train does so without weight decay.
    StopWeightDecay,
    /// Drop module, gate and optimizer, before any event is written.
    DropSeed,
}

#[cfg(test)]
mod tests;
