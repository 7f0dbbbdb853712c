//! Rows of decisions as a test wants them.

use tch::{Kind, Tensor};

use super::tasks::{BLUEPRINTS, CueTask, Task};
use crate::actions::{HEADS, HeadIndices};
use crate::growth::LifecycleOp;
use crate::learner::algorithm::advantages::{Unusable, step_targets, subtract_mean_of_others};
use crate::learner::algorithm::learner::{PreparedRollout, finalize};
use crate::learner::algorithm::sequences::{SequenceBatch, longest, sequences};
use crate::learner::algorithm::*;
use crate::nn::Linear;
use crate::policy::fixtures;
use crate::scenario::{AdvantageBaseline, LearnerConfig};
use crate::torch::fixtures::test_device;

pub const PRUNE: [u8; HEADS] = [0, 0, 2, 1, 2, 0, 0, LifecycleOp::Prune.code() as u8];

/// Rows of steps with one decision each, in units of raw reward.
pub struct Bench {
    pub buffer: RolloutBuffer,
    pub task: CueTask,
    pub config: LearnerConfig,
    pub state: LearnerState,
}

impl Bench {
    /// Few steps: neither rewards nor values are normalised.
    pub fn new(envs: usize, steps: usize) -> Self {
        let shape = BufferShape {
            envs,
            steps,
            observation: 2,
            slots: 1,
            blueprints: BLUEPRINTS,
        };
        Self {
            buffer: RolloutBuffer::new(shape, test_device()).expect("memory"),
            task: CueTask::new(envs),
            state: LearnerState::default(),
            config: LearnerConfig::default(),
        }
    }

    pub fn try_begin(
        &mut self,
        env: usize,
        value: f32,
        indices: HeadIndices,
        is_free: bool,
    ) -> Result<(), BufferError> {
        let at = self.buffer.len(env);
        let observation = &Tensor::full([1, 2], at as f64, (Kind::Float, test_device()));
        let decided = DecidedStep {
            env,
            round: 0,
            step: at as u32 + 1,
            indices,
            log_probs: [0.0; HEADS],
            value,
            // Step 5 of a cue task leaves a choice, step 0 does not.
            masks: self.task.masks(0, if is_free { 5 } else { 0 }),
        };
        let tensors = StepTensors {
            observations: observation,
            raw_observations: observation,
            blueprints: &Tensor::full([1, 1], -1, (Kind::Int64, test_device())),
        };
        self.buffer.begin_steps(&[decided], &tensors)
    }

    pub fn begin(&mut self, env: usize, value: f32) {
        self.try_begin(env, value, PRUNE, true).expect("a sound decision");
    }

    pub fn step(&mut self, env: usize, reward: f32, value: f32) {
        self.begin(env, value);
        self.complete(env, reward).expect("pending");
    }

    pub fn forced_step(&mut self, env: usize, reward: f32, value: f32) {
        let wait = [0, 0, 2, 1, 2, 0, 0, 0];
        self.try_begin(env, value, wait, false).expect("a sound decision");
        self.complete(env, reward).expect("pending");
    }

    pub fn complete(&mut self, env: usize, reward: f32) -> Result<(), BufferError> {
        self.buffer.complete_steps(&[StepOutcome {
            env,
            reward,
            effective_op: LifecycleOp::Prune,
        }])
    }

    pub fn segment(&mut self, env: usize, steps: &[(f32, f32)], end: SegmentEnd) {
        for &(reward, value) in steps {
            self.step(env, reward, value);
        }
        self.end(env, end);
    }

    pub fn end(&mut self, env: usize, end: SegmentEnd) {
        self.buffer.end_segments(&[(env, end)]).expect("an open segment");
    }

    pub fn finalize(&mut self) -> Result<Result<PreparedRollout, Unusable>, LearnerError> {
        let head = Linear {
            weight: Tensor::ones([1, 2], (Kind::Float, test_device())),
            bias: Some(Tensor::zeros([1], (Kind::Float, test_device()))),
        };
        finalize(&mut self.buffer, &mut self.state, &head, &self.config)
    }

    pub fn rollout(&mut self) -> PreparedRollout {
        self.finalize().expect("finished").expect("usable")
    }

    /// The same with advantages from before they were standardised.
    pub fn plain_rollout(&mut self) -> PreparedRollout {
        let mut rollout = self.rollout();
        let (buffer, config) = (&self.buffer, &self.config);
        let mut targets = step_targets(buffer, self.state.rewards.scale(), config);
        if config.advantage_baseline == AdvantageBaseline::LeaveOneOut {
            let free = |&(env, step): &(usize, usize)| buffer.rows[env].steps[step].is_free();
            let free: Vec<_> = buffer.valid_steps().filter(free).collect();
            subtract_mean_of_others(buffer, &mut targets, &free);
        }
        let segments = sequences(buffer);
        let plain = SequenceBatch::gather(buffer, &targets, &segments, longest(&segments), true, config);
        rollout.batch.advantages = plain.expect("memory").advantages;
        rollout
    }
}

#[track_caller]
pub fn assert_close(tensor: &Tensor, expected: &[f64]) {
    fixtures::assert_close(&fixtures::values(tensor), expected, 1e-5);
}

pub const TRUNCATED: SegmentEnd = SegmentEnd::Truncated { bootstrap: 0.0 };
