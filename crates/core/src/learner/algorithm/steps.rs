//! Steps - the decision of an env, what the policy saw, the result, and the record that is kept of it -, segments - unbroken
//! stretches of one env's row inside one episode -, rows of both, and what can go wrong between a decision and an update.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::actions::{HEADS, Head, HeadIndices, MaskSet, PolicyError, available, relevant};
use crate::growth::LifecycleOp;
use crate::torch::TorchError;

/// One env's decision.
#[derive(Clone, Copy, Debug)]
pub struct DecidedStep<'a> {
    /// Its row.
    pub env: usize,
    /// The run's round: one episode of each env.
    pub round: u32,
    /// The episode's step, from 1.
    pub step: u32,
    /// Chosen members, by head.
    pub indices: HeadIndices,
    /// Under the behaviour policy, by head. 0 if the head is irrelevant.
    pub log_probs: [f32; HEADS],
    /// Raw: in units of scaled reward.
    pub value: f32,
    /// Members that could have been chosen.
    pub masks: &'a MaskSet,
}

/// The policy's input when it decided. Row `i` belongs to the `i`-th step of the same call.
#[derive(Debug)]
pub struct StepTensors<'a> {
    /// `[n, D]`, f32, on the buffer's device, normalised.
    pub observations: &'a Tensor,
    /// `[n, D]`, f32, on the buffer's device, as measured.
    pub raw_observations: &'a Tensor,
    /// Blueprint of each slot, -1 where it is empty: `[n, S]`, i64, on the buffer's device.
    pub blueprints: &'a Tensor,
}

/// The result of a decision.
#[derive(Clone, Copy, Debug)]
pub struct StepOutcome {
    /// Its row.
    pub env: usize,
    /// Raw.
    pub reward: f32,
    /// The executed operation: `Wait` where the decision could not be executed.
    pub effective_op: LifecycleOp,
}

/// Host-side fields of one step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StepRecord {
    pub round: u32,
    /// The episode's step.
    pub step: u32,
    pub indices: HeadIndices,
    pub effective_op: LifecycleOp,
    /// Log-probabilities under the policy before the update.
    pub log_probs: [f32; HEADS],
    /// Those under the policy that acted, which differs if steps are learnt from again, or are recorded.
    #[serde(skip)]
    pub behaviour: [f32; HEADS],
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
            behaviour: decided.log_probs,
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

    /// Log-ratio of the step's probability under the policy before the update to that under the acting one, in nats,
    /// within ±30. 0 if there was no choice.
    pub fn log_ratio(&self) -> f64 {
        let difference = |head: Head| match self.is_free() && self.is_causal(head) {
            true => f64::from(self.log_probs[head as usize]) - f64::from(self.behaviour[head as usize]),
            false => 0.0,
        };
        Head::ALL.map(difference).iter().sum::<f64>().clamp(-30.0, 30.0)
    }

    /// Sampled by the policy among alternatives: the actor learns from it.
    pub fn is_free(&self) -> bool {
        !self.forced
    }
}

/// The end of a segment, by what comes after its last step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum SegmentEnd {
    /// Nothing: the env was rolled back, or the episode is over for good.
    Terminal,
    /// The episode was stopped.
    Truncated {
        /// Raw value of the state after the last step.
        bootstrap: f32,
    },
}

impl SegmentEnd {
    /// Raw value of the state that follows.
    pub const fn bootstrap(self) -> f32 {
        match self {
            Self::Terminal => 0.0,
            Self::Truncated { bootstrap } => bootstrap,
        }
    }

    /// The same end with values in units that are `factor` times as many.
    pub(super) fn rescale(&mut self, factor: f64) {
        if let Self::Truncated { bootstrap } = self {
            *bootstrap = (f64::from(*bootstrap) * factor) as f32;
        }
    }
}

/// Steps `start..end` of one env's row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RowSegment {
    pub env: usize,
    pub start: usize,
    pub end: usize,
    /// `None` while it is being filled.
    pub closed: Option<SegmentEnd>,
    /// False: it contributes to nothing.
    pub valid: bool,
}

impl RowSegment {
    pub fn steps(&self) -> Range<usize> {
        self.start..self.end
    }

    pub fn len(&self) -> usize {
        self.end - self.start
    }

    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// It has steps, and its end is not known yet.
    pub fn is_open(&self) -> bool {
        self.closed.is_none() && !self.is_empty()
    }
}

/// Per-step data of an env.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Row {
    pub steps: Vec<StepRecord>,
    /// The newest step is waiting for its outcome.
    pub is_pending: bool,
    pub segments: Vec<RowSegment>,
}

impl Row {
    /// The newest segment, if steps can still be added to it.
    pub fn open_segment(&mut self) -> Option<&mut RowSegment> {
        self.segments.last_mut().filter(|segment| segment.closed.is_none())
    }

    /// The newest step, if any, has its outcome.
    pub fn check_outcome(&self, env: usize) -> Result<(), BufferError> {
        if self.is_pending {
            let step = self.steps.len() - 1;
            return Err(BufferError::PendingStep { env, step });
        }
        Ok(())
    }

    /// Takes back a step whose action never ran, and the segment that it opened.
    pub fn discard_pending(&mut self) {
        if !std::mem::take(&mut self.is_pending) {
            return;
        }
        self.steps.pop();
        let len = self.steps.len();
        if let Some(open) = self.open_segment() {
            open.end = len;
            if open.is_empty() {
                self.segments.pop();
            }
        }
    }
}

/// A mistake in the use of the buffer, or data that must not enter it: what a custom loop around a learner has to correct.
/// Steps are columns of the env's row.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum BufferError {
    /// A row is full. Learn from it and clear it, or make it with more steps.
    #[error("env {env}: its row of {capacity} steps is full")]
    RowFull { env: usize, capacity: usize },
    /// The last step has no outcome yet. Complete it before the next begins and before the buffer is used.
    #[error("env {env}, step {step}: the last step has no outcome yet")]
    PendingStep { env: usize, step: usize },
    /// No step is waiting for an outcome. Begin a step before it is completed.
    #[error("env {env}: an outcome was reported, but no step is waiting for one")]
    NoPendingStep { env: usize },
    /// The buffer doesn't have that row.
    #[error("env {env} is unknown; the buffer has {envs} rows")]
    UnknownEnv { env: usize, envs: usize },
    /// A number is NaN or infinite.
    #[error("env {env}, step {step}: {field} is not finite")]
    NonFinite {
        env: usize,
        step: usize,
        field: &'static str,
    },
    /// No open segment can be closed.
    #[error("env {env}: no segment is open")]
    SegmentClosed { env: usize },
    /// A head has nothing to choose from.
    #[error("env {env}, step {step}: the masks allow no {head}")]
    EmptyMask { env: usize, step: usize, head: Head },
    /// A head chose what its mask excludes.
    #[error("env {env}, step {step}: the {head} chosen is not allowed by its own mask")]
    IllegalAction { env: usize, step: usize, head: Head },
    /// A field does not fit the buffer's shape.
    #[error("{field}: expected {expected}, found {found}")]
    ShapeMismatch {
        field: &'static str,
        expected: String,
        found: String,
    },
    /// A segment has steps and no end: end all segments before the learner learns.
    #[error("env {env}: the segment from step {start} on has not ended")]
    OpenSegment { env: usize, start: usize },
    /// A device error.
    #[error(transparent)]
    Torch(#[from] TorchError),
}

/// # Errors
/// `NonFinite` for a step's `field` unless it is.
pub(super) fn require_finite(is_finite: bool, env: usize, step: usize, field: &'static str) -> Result<(), BufferError> {
    if is_finite {
        Ok(())
    } else {
        Err(BufferError::NonFinite { env, step, field })
    }
}

/// The reason why a learner can't continue. An update reports faults that affect only itself.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LearnerError {
    /// A mistake in the use of the buffer.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// The policy refused its own rollout: the masks or states in the buffer are not those that it acted on.
    #[error("the policy could not evaluate its own rollout: {0}")]
    Policy(#[from] PolicyError),
    /// Every problem of the parameters: each must be listed once and require a gradient.
    #[error("the policy cannot be trained: {}", .0.join("; "))]
    Parameters(Vec<String>),
    /// Every difference from what was saved, by name. Nothing has changed.
    #[error("the saved learner does not fit this run: {}", .0.join("; "))]
    Incompatible(Vec<String>),
    /// A device error.
    #[error(transparent)]
    Torch(#[from] TorchError),
}
