//! The loop around a learner: act, store, learn.

use crate::extend::{
    BufferShape, DecidedStep, EpisodeEnd, Horizon, HostSyncCounter, Implementation, Learner, LearnerConfig,
    LearnerUpdate, RolloutBuffer, SegmentEnd, StepOutcome, StepTensors, ValueNorm,
};
use crate::prelude::{Domain, MaskSet, RunRng, command_of};
use tch::{Device, Tensor};

use super::policy::{Chosen, Core, Sizes, SmallPolicy};
use super::tasks::{BLUEPRINTS, Task};

/// A task, a policy and all that is needed to improve it.
pub struct Training<T> {
    pub task: T,
    pub policy: SmallPolicy,
    pub buffer: RolloutBuffer,
    pub learner: Learner,
    seed: u64,
    pub round: u64,
}

/// Settings under which the tasks are learnt: the engine's defaults, but a larger learning rate for small networks and so fewer passes
/// over a rollout, and more exploration.
pub fn small_config() -> LearnerConfig {
    LearnerConfig {
        lr: 3e-3,
        epochs: 4,
        target_kl: Some(0.02),
        value_coef: 0.5,
        value_norm: ValueNorm { momentum: 0.95 },
        entropy_coef: 0.05,
        ..LearnerConfig::default()
    }
}

impl<T: Task> Training<T> {
    pub fn new(task: T, core: Core, config: LearnerConfig, updates: u64, seed: u64) -> Self {
        let sizes = Sizes {
            observation: task.observation_len(),
            hidden: 32,
            slots: task.slots(),
            blueprints: BLUEPRINTS,
            heads: task.heads(),
        };
        let policy = SmallPolicy::new(core, sizes, seed);
        let steps = config.episodes_per_update as usize * task.steps();
        let shape = BufferShape {
            envs: task.envs(),
            steps,
            observation: sizes.observation,
            slots: sizes.slots,
            blueprints: sizes.blueprints,
            state: policy.state_shape(),
            chunk_length: config.chunk_length.map_or(task.steps(), |length| length as usize),
        };
        let horizon = Horizon {
            total_updates: updates,
            envs: task.envs(),
        };
        let learner = Learner::new(config, horizon, seed, &policy, Implementation::Fused).expect("a sound policy");
        Self {
            buffer: RolloutBuffer::new(shape, Device::Cpu).expect("memory"),
            task,
            policy,
            learner,
            seed,
            round: 0,
        }
    }

    /// Plays one rollout of whole episodes; returns how well the choices were made, from 0 to 1.
    pub fn play(&mut self) -> f64 {
        let mut scores = Vec::new();
        let episodes = self.learner.config().episodes_per_update;
        for episode in 0..u64::from(episodes) {
            let mut rng = RunRng::new(self.seed, Domain::HostInit, &[self.round, episode]);
            self.task.begin_episode(&mut rng);
            self.play_episode(episode, &mut scores);
        }
        scores.iter().sum::<f64>() / scores.len().max(1) as f64
    }

    fn play_episode(&mut self, episode: u64, scores: &mut Vec<f64>) {
        let (envs, steps) = (self.task.envs(), self.task.steps());
        let mut state = self.policy.zero_state(envs);
        for step in 0..steps {
            let observations = self.observations(step);
            let mut rng = RunRng::new(
                self.seed,
                Domain::DecisionSampling,
                &[0, self.round, episode, step as u64],
            );
            let masks = self.mask_rows(step);
            let (chosen, next) = self.policy.act(&observations, &masks, &state, &mut rng);
            let at = (episode as u32, step);
            self.store(at, &chosen, &observations, &state, scores);
            state = next;
        }
        let is_terminal = self.learner.config().episode_end == EpisodeEnd::Terminal;
        let units = self.learner.value_units();
        let bootstraps = self.policy.values(&self.observations(steps), &state, units);
        let ends: Vec<_> = bootstraps
            .into_iter()
            .map(|bootstrap| match is_terminal {
                true => SegmentEnd::Terminal,
                false => SegmentEnd::Truncated { bootstrap },
            })
            .enumerate()
            .collect();
        self.buffer.end_segments(&ends).expect("every segment is open");
    }

    fn store(
        &mut self,
        (round, step): (u32, usize),
        chosen: &Chosen,
        observations: &Tensor,
        state: &crate::prelude::RecurrentState,
        scores: &mut Vec<f64>,
    ) {
        let units = self.learner.value_units();
        let decided: Vec<DecidedStep> = (0..self.task.envs())
            .map(|env| DecidedStep {
                env,
                round,
                step: step as u32 + 1,
                indices: chosen.indices[env],
                log_probs: chosen.log_probs[env],
                value: units.raw(chosen.value_normalised[env].into()) as f32,
                masks: self.task.masks(env, step),
            })
            .collect();
        let blueprints = Tensor::full(
            [self.task.envs() as i64, self.task.slots() as i64],
            -1,
            (tch::Kind::Int64, Device::Cpu),
        );
        let tensors = StepTensors {
            observations,
            raw_observations: observations,
            blueprints: &blueprints,
            state,
        };
        self.buffer.begin_steps(&decided, &tensors).expect("sound decisions");
        let outcomes: Vec<StepOutcome> = (0..self.task.envs())
            .map(|env| {
                let indices = &chosen.indices[env];
                let (reward, score) = self.task.play(env, step, indices);
                scores.extend(score);
                let op = command_of(indices).expect("a command").op();
                StepOutcome {
                    env,
                    reward,
                    effective_op: op,
                }
            })
            .collect();
        self.buffer.complete_steps(&outcomes).expect("pending steps");
    }

    /// Learns from what was played.
    pub fn learn(&mut self) -> LearnerUpdate {
        let reads = HostSyncCounter::default();
        let record = self
            .learner
            .learn(&mut self.buffer, &mut self.policy, self.round, &reads);
        self.buffer.clear().expect("no step is pending");
        self.round += 1;
        record.expect("the rollout is finished")
    }

    fn observations(&self, step: usize) -> Tensor {
        let rows: Vec<f32> = (0..self.task.envs())
            .flat_map(|env| self.task.observation(env, step))
            .collect();
        Tensor::from_slice(&rows).reshape([self.task.envs() as i64, self.task.observation_len() as i64])
    }

    fn mask_rows(&self, step: usize) -> Tensor {
        let width = MaskSet::row_width(self.task.slots(), BLUEPRINTS);
        let mut rows = vec![false; width * self.task.envs()];
        for (env, row) in rows.chunks_mut(width).enumerate() {
            self.task.masks(env, step).write_row(BLUEPRINTS, row);
        }
        Tensor::from_slice(&rows).reshape([-1, width as i64])
    }
}

/// Trains for `updates`; returns the mean score of the last 20 rollouts.
pub fn final_score<T: Task>(task: T, core: Core, config: LearnerConfig, updates: u64, seed: u64) -> f64 {
    let mut training = Training::new(task, core, config, updates, seed);
    let scores: Vec<f64> = (0..updates)
        .map(|_| {
            let score = training.play();
            training.learn();
            score
        })
        .collect();
    let last = &scores[scores.len().saturating_sub(20)..];
    last.iter().sum::<f64>() / last.len() as f64
}
