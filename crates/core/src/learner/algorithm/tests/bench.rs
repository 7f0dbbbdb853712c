//! Rows of decisions as a test wants them.

use tch::{Kind, Tensor};

use super::tasks::{BLUEPRINTS, CueTask, Task};
use crate::actions::{HEADS, HeadIndices};
use crate::growth::LifecycleOp;
use crate::learner::algorithm::advantages::LEAST_DEVIATION;
use crate::learner::algorithm::finalize::{PreparedRollout, Unusable, finalize};
use crate::learner::algorithm::*;
use crate::nn::Linear;
use crate::policy::RecurrentState;
use crate::policy::fixtures;
use crate::scenario::LearnerConfig;
use crate::telemetry::Num;
use crate::torch::fixtures::test_device;

pub const PRUNE: [u8; HEADS] = [0, 0, 2, 1, 2, 0, 0, LifecycleOp::Prune.code() as u8];

/// Rows of steps with one decision each, in units of raw reward.
pub struct Bench {
    pub buffer: RolloutBuffer,
    pub task: CueTask,
    pub config: LearnerConfig,
    pub rewards: RewardNormalizer,
    pub values: ValueNormalizer,
}

impl Bench {
    /// Few steps: neither rewards nor values are normalised.
    pub fn new(envs: usize, steps: usize) -> Self {
        let config = LearnerConfig {
            min_actor_steps: 1,
            ..LearnerConfig::default()
        };
        Self::with(envs, steps, config)
    }

    pub fn with(envs: usize, steps: usize, config: LearnerConfig) -> Self {
        let shape = BufferShape {
            envs,
            steps,
            observation: 2,
            slots: 1,
            blueprints: BLUEPRINTS,
            state: vec![[1, 1]],
            chunk_length: config.chunk_length.map_or(steps, |length| length as usize),
        };
        Self {
            buffer: RolloutBuffer::new(shape, test_device()).expect("memory"),
            task: CueTask::new(envs),
            rewards: RewardNormalizer::default(),
            values: ValueNormalizer::default(),
            config,
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
        let full = |shape: &[i64]| Tensor::full(shape, at as f64, (Kind::Float, test_device()));
        let observation = &full(&[1, 2]);
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
            state: &RecurrentState(vec![full(&[1, 1, 1])]),
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
        let (rewards, values) = (&mut self.rewards, &mut self.values);
        finalize(&mut self.buffer, rewards, values, &head, &self.config)
    }

    pub fn rollout(&mut self) -> PreparedRollout {
        self.finalize().expect("finished").expect("usable")
    }

    /// The same with advantages as they were before they were standardised.
    pub fn plain_rollout(&mut self) -> PreparedRollout {
        let mut rollout = self.rollout();
        let known = [rollout.data.adv_pre_mean, rollout.data.adv_pre_std];
        let [mean, deviation] = known.map(|known| known.map_or(0.0, |Num(known)| known));
        let plain = &rollout.batch.advantages * deviation.max(LEAST_DEVIATION) + mean;
        rollout.batch.advantages = plain * &rollout.batch.valid;
        rollout
    }
}

#[track_caller]
pub fn assert_close(tensor: &Tensor, expected: &[f64]) {
    fixtures::assert_close(&fixtures::values(tensor), expected, 1e-5);
}

pub const TRUNCATED: SegmentEnd = SegmentEnd::Truncated { bootstrap: 0.0 };
