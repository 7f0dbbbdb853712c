//! One step of an env: the decision, what the policy saw, the result, and the record that is kept of it.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::controller::{HEADS, Head, HeadIndices, MaskSet, RecurrentState, available, relevant};
use crate::growth::LifecycleOp;

/// One env's decision.
#[derive(Clone, Copy, Debug)]
pub struct DecidedStep<'a> {
    /// Its row.
    pub env: usize,
    /// Of the run: one episode of each env.
    pub round: u32,
    /// Of the episode, from 1.
    pub step: u32,
    /// What was chosen, by head.
    pub indices: HeadIndices,
    /// Under the behaviour policy, by head; 0 where the head is irrelevant.
    pub log_probs: [f32; HEADS],
    /// Raw: in units of scaled reward.
    pub value: f32,
    /// What could have been chosen.
    pub masks: &'a MaskSet,
}

/// What the policy saw when it decided; row `i` belongs to the `i`-th step of the same call.
#[derive(Debug)]
pub struct StepTensors<'a> {
    /// `f32 [n, D]`, normalised.
    pub observations: &'a Tensor,
    /// `f32 [n, D]`.
    pub raw_observations: &'a Tensor,
    /// `i64 [n, S]`.
    pub blueprints: &'a Tensor,
    /// State that entered the decision: `[layers, n, width]` each.
    pub state: &'a RecurrentState,
}

/// The result of a decision.
#[derive(Clone, Copy, Debug)]
pub struct StepOutcome {
    /// Its row.
    pub env: usize,
    /// Raw.
    pub reward: f32,
    /// What was executed: `Wait` where the decision could not be.
    pub effective_op: LifecycleOp,
}

/// Host-side fields of one step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StepRecord {
    pub round: u32,
    /// Of the episode.
    pub step: u32,
    pub indices: HeadIndices,
    pub effective_op: LifecycleOp,
    pub log_probs: [f32; HEADS],
    /// Raw.
    pub value: f32,
    pub reward_raw: f32,
    /// Exactly one action was possible.
    pub forced: bool,
    /// The reward is a penalty that statistics neither see nor scale.
    pub fixed_reward: bool,
    /// Some op that was allowed uses the head.
    pub available: [bool; HEADS],
    /// The head matters to the decision and had at least two members to choose from.
    pub choosable: [bool; HEADS],
}

impl StepRecord {
    pub fn new(decided: &DecidedStep) -> Self {
        let masks = decided.masks;
        let forced_heads = masks.forced_heads(&decided.indices);
        let op = LifecycleOp::from_code(decided.indices[Head::Op as usize].into()).unwrap_or(LifecycleOp::Wait);
        Self {
            round: decided.round,
            step: decided.step,
            indices: decided.indices,
            effective_op: op,
            log_probs: decided.log_probs,
            value: decided.value,
            reward_raw: 0.0,
            forced: masks.is_forced(),
            fixed_reward: false,
            available: Head::ALL.map(|head| available(masks.ops(), head)),
            choosable: Head::ALL.map(|head| relevant(op, head) && !forced_heads[head as usize]),
        }
    }

    /// Replaces the reward by one that is not the task's.
    pub fn fix_reward(&mut self, reward: f32) {
        self.reward_raw = reward;
        self.fixed_reward = true;
    }

    /// The head matters to what was executed.
    pub fn is_causal(&self, head: Head) -> bool {
        relevant(self.effective_op, head)
    }

    /// Sampled by the policy among alternatives: the actor learns from it.
    pub fn is_free(&self) -> bool {
        !self.forced
    }
}
