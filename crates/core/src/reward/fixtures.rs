//! Steps for tests of rewards.

use std::sync::Arc;

use super::*;
use crate::growth::{LifecycleOp, SeedStage};
use crate::scenario::{LossReward, RewardConfig};

/// A seed of slot 0 that is 15 steps old, germinated at 50 % accuracy, not measured.
pub fn seed(stage: SeedStage, steps_in_stage: u32) -> SeedView {
    SeedView {
        seed_id: "e0.r0c0.0".into(),
        stage,
        steps_in_stage,
        age: 15,
        alpha: 0.0,
        params: 10_000,
        accuracy_at_germination: 50.0,
        contribution: None,
        interaction_sum: 0.0,
        is_withering: false,
    }
}

impl SeedView {
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    pub fn params(self, params: u64) -> Self {
        Self { params, ..self }
    }

    pub fn age(self, age: u32) -> Self {
        Self { age, ..self }
    }

    /// Measured in this step, percentage points.
    pub fn worth(mut self, points: f64) -> Self {
        self.contribution = Some(points);
        self
    }

    pub fn withering(mut self) -> Self {
        self.is_withering = true;
        self
    }

    pub fn interacting(mut self, interaction_sum: f64) -> Self {
        self.interaction_sum = interaction_sum;
        self
    }

    /// A new seed in slot `index`.
    fn in_slot(mut self, index: usize) -> Self {
        self.seed_id = format!("e0.r0c{index}.0");
        self
    }
}

/// Builds the inputs of one step: by default `WAIT` at 53 % accuracy on a host of 100 000 parameters, nothing grown.
pub struct Step(RewardInputs);

impl Step {
    pub fn new(step: u32) -> Self {
        Self(RewardInputs {
            step,
            max_steps: 150,
            gamma: GAMMA,
            accuracy: 53.0,
            loss: 1.5,
            host_params: 100_000,
            ..RewardInputs::default()
        })
    }

    pub fn build(self) -> RewardInputs {
        self.0
    }

    pub fn host(mut self, params: u64) -> Self {
        self.0.host_params = params;
        self
    }

    /// The next slot, before and after.
    pub fn slot(mut self, before: impl Into<Option<SeedView>>, after: impl Into<Option<SeedView>>) -> Self {
        let index = self.0.slots.len();
        self.0.slots.push(SlotStep {
            before: before.into().map(|seed| seed.in_slot(index)),
            after: after.into().map(|seed| seed.in_slot(index)),
        });
        self
    }

    pub fn before(self, seeds: impl IntoIterator<Item = SeedView>) -> Self {
        seeds.into_iter().fold(self, |step, seed| step.slot(seed, None))
    }

    pub fn after(self, seeds: impl IntoIterator<Item = SeedView>) -> Self {
        seeds.into_iter().fold(self, |step, seed| step.slot(None, seed))
    }

    pub fn act(mut self, op: LifecycleOp, slot: usize) -> Self {
        (self.0.op, self.0.slot) = (op, Some(slot));
        self
    }

    pub fn delta(mut self, delta_cf: f64) -> Self {
        self.0.delta_cf = Some(delta_cf);
        self
    }

    pub fn accuracy(mut self, percent: f64) -> Self {
        self.0.accuracy = percent;
        self
    }

    pub fn loss(mut self, loss: f64) -> Self {
        self.0.loss = loss;
        self
    }

    /// Accuracy with committed seeds alone.
    pub fn committed(mut self, percent: f64) -> Self {
        self.0.committed_accuracy = Some(percent);
        self
    }

    /// Accuracy with committed and growing seeds.
    pub fn kept(mut self, percent: f64) -> Self {
        self.0.kept_accuracy = Some(percent);
        self
    }

    /// The joint gain of the committed seeds, points.
    pub fn committed_gain(mut self, points: f64) -> Self {
        self.0.committed_gain = Some(points);
        self
    }

    pub fn interaction(mut self, slots: (usize, usize), points: f64) -> Self {
        self.0.interactions.push(SlotInteraction { slots, points });
        self
    }

    pub fn auto_pruned(mut self, seeds: u32) -> Self {
        self.0.auto_pruned = seeds;
        self
    }

    /// The last step, with all seeds committed unless it was said what they reach alone.
    pub fn last(mut self, status: EpisodeStatus) -> Self {
        (self.0.is_final, self.0.status) = (true, status);
        self.0.committed_accuracy.get_or_insert(self.0.accuracy);
        self.0.committed_loss.get_or_insert(self.0.loss);
        self
    }
}

pub const GAMMA: f64 = 0.995;

#[track_caller]
pub fn assert_close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-9, "{actual} is not {expected}");
}

/// The terms that are not zero must be exactly these.
#[track_caller]
pub fn assert_terms(breakdown: &RewardBreakdown, expected: &[(Term, f64)]) {
    let found: Vec<_> = breakdown.iter().collect();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for &(term, amount) in expected {
        let paid = breakdown.get(term);
        assert!((paid - amount).abs() < 1e-9, "{} is {paid}, not {amount}", term.name());
    }
}

/// Rewards that a step can be paid by.
pub trait AsMode {
    fn mode(&self) -> Arc<dyn RewardMode>;
}

impl AsMode for RewardConfig {
    fn mode(&self) -> Arc<dyn RewardMode> {
        RewardModes::default().of(self).unwrap()
    }
}

impl AsMode for Arc<dyn RewardMode> {
    fn mode(&self) -> Arc<dyn RewardMode> {
        self.clone()
    }
}

pub fn compute(
    reward: &impl AsMode,
    inputs: &RewardInputs,
    state: &mut RewardState,
) -> Result<RewardBreakdown, RewardError> {
    reward.mode().compute(inputs, state)
}

pub fn pay(reward: &impl AsMode, inputs: &RewardInputs, state: &mut RewardState) -> RewardBreakdown {
    compute(reward, inputs, state).unwrap()
}

/// The reward of a step without a past.
pub fn first(reward: &impl AsMode, step: Step) -> RewardBreakdown {
    pay(reward, &step.build(), &mut RewardState::default())
}

pub fn held(n: u32, points: f64) -> SeedView {
    seed(SeedStage::Holding, n).alpha(1.0).worth(points)
}

pub fn committed_seed() -> SeedView {
    seed(SeedStage::Committed, 1).alpha(1.0)
}

pub fn loss() -> RewardConfig {
    RewardConfig::Loss(LossReward::default())
}
