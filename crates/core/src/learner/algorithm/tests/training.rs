//! The loop around a learner: act, store, learn.

use tch::{Kind, Tensor};

use super::policy::{Chosen, Core, SmallPolicy};
use super::tasks::{BLUEPRINTS, Task};
use crate::actions::{MaskSet, command_of};
use crate::learner::algorithm::*;
use crate::nn::Implementation;
use crate::policy::Evaluation;
use crate::random::{Domain, RunRng};
use crate::scenario::{EpisodeEnd, LearnerConfig};
use crate::telemetry::LearnerUpdate;
use crate::torch::HostSyncCounter;
use crate::torch::fixtures::{on_device, test_device};

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
        entropy_coef: 0.05,
        ..LearnerConfig::default()
    }
}

impl<T: Task> Training<T> {
    pub fn new(task: T, core: Core, config: LearnerConfig, updates: u64, seed: u64) -> Self {
        let policy = SmallPolicy::new::<T>(core, seed);
        let shape = BufferShape {
            envs: task.envs(),
            steps: config.episodes_per_update as usize * T::STEPS,
            observation: T::OBSERVATION,
            slots: T::SLOTS,
            blueprints: BLUEPRINTS,
        };
        let horizon = Horizon {
            total_updates: updates,
            envs: task.envs(),
        };
        let learner = Learner::new(config, horizon, seed, &policy, Implementation::Fused).expect("a sound policy");
        Self {
            buffer: RolloutBuffer::new(shape, test_device()).expect("memory"),
            task,
            policy,
            learner,
            seed,
            round: 0,
        }
    }

    /// The same with a learner whose updates are recorded, or not.
    pub fn with_cuda_graphs(self, are_recorded: bool) -> Self {
        Self {
            learner: self.learner.with_cuda_graphs(are_recorded),
            ..self
        }
    }

    /// Plays one rollout of whole episodes and returns the quality of the choices, from 0 to 1.
    pub fn play(&mut self) -> f64 {
        let mut scores = Vec::new();
        for episode in 0..self.learner.config().episodes_per_update {
            let mut rng = RunRng::new(self.seed, Domain::HostInit, &[self.round, episode.into()]);
            self.task.begin_episode(&mut rng);
            self.play_episode(episode, &mut scores);
        }
        scores.iter().sum::<f64>() / scores.len().max(1) as f64
    }

    fn play_episode(&mut self, episode: u32, scores: &mut Vec<f64>) {
        let mut state = self.policy.zero_state(self.task.envs());
        for step in 0..T::STEPS {
            let observations = self.observations(step);
            let place = [0, self.round, episode.into(), step as u64];
            let mut rng = RunRng::new(self.seed, Domain::DecisionSampling, &place);
            let masks: Vec<&MaskSet> = (0..self.task.envs()).map(|env| self.task.masks(env, step)).collect();
            let (chosen, next) = self.policy.act(&observations, &masks, &state, &mut rng);
            self.store((episode, step), &chosen, &observations, scores);
            state = next;
        }
        let units = self.learner.value_units();
        let bootstraps = self.policy.values(&self.observations(T::STEPS), &state, units);
        let episode_end = self.learner.config().episode_end;
        let ends = bootstraps.into_iter().map(|bootstrap| match episode_end {
            EpisodeEnd::Terminal => SegmentEnd::Terminal,
            EpisodeEnd::Truncated => SegmentEnd::Truncated { bootstrap },
        });
        let ends: Vec<_> = ends.enumerate().collect();
        self.buffer.end_segments(&ends).expect("every segment is open");
    }

    fn store(&mut self, (round, step): (u32, usize), chosen: &[Chosen], observations: &Tensor, scores: &mut Vec<f64>) {
        let units = self.learner.value_units();
        let rows = chosen.iter().enumerate();
        let decided = rows.map(|(env, &(indices, log_probs, value))| DecidedStep {
            env,
            round,
            step: step as u32 + 1,
            indices,
            log_probs,
            value: units.raw(value.into()) as f32,
            masks: self.task.masks(env, step),
        });
        let tensors = StepTensors {
            observations,
            raw_observations: observations,
            blueprints: &Tensor::full([chosen.len() as i64, T::SLOTS as i64], -1, (Kind::Int64, test_device())),
        };
        let decided: Vec<_> = decided.collect();
        self.buffer.begin_steps(&decided, &tensors).expect("sound decisions");
        let outcomes = chosen.iter().enumerate().map(|(env, (indices, ..))| {
            let (reward, score) = self.task.play(env, step, indices);
            scores.extend(score);
            StepOutcome {
                env,
                reward,
                effective_op: command_of(indices).expect("a command").op(),
            }
        });
        let outcomes: Vec<_> = outcomes.collect();
        self.buffer.complete_steps(&outcomes).expect("pending steps");
    }

    /// Learns from what was played.
    pub fn learn(&mut self) -> LearnerUpdate {
        self.policy.evaluations.set(0);
        let reads = HostSyncCounter::default();
        let (buffer, policy) = (&mut self.buffer, &mut self.policy);
        let update = self.learner.learn(buffer, policy, self.round, &reads);
        assert!(reads.count() <= 1, "one read an update");
        self.buffer.clear().expect("no step is pending");
        self.round += 1;
        update.expect("the rollout is finished")
    }

    /// Plays a rollout and learns from it with a fault: `spoil` sees every evaluation, with its number.
    pub fn learn_with(&mut self, spoil: fn(usize, &mut Evaluation)) -> LearnerUpdate {
        self.play();
        self.policy.spoil = spoil;
        let update = self.learn();
        self.policy.spoil = |_, _| ();
        update
    }

    fn observations(&self, step: usize) -> Tensor {
        let rows = (0..self.task.envs()).flat_map(|env| self.task.observation(env, step));
        on_device(Tensor::from_slice(&rows.collect::<Vec<_>>())).reshape([-1, T::OBSERVATION as i64])
    }
}

/// Gradients become NaN, outputs and loss do not: the root of 0 has an infinite slope.
pub fn spoil_gradient(evaluation: &mut Evaluation) {
    let nothing = (&evaluation.value - evaluation.value.detach()).sqrt() * 0.0;
    evaluation.value = &evaluation.value + nothing;
}

/// Trains until the mean score of the last 20 rollouts is at least `aim`, for `updates` at most; returns that mean.
pub fn score_reached<T: Task>(task: T, core: Core, updates: u64, aim: f64) -> f64 {
    let mut training = Training::new(task, core, small_config(), updates, 1);
    let mut scores: Vec<f64> = Vec::new();
    let mean = |scores: &[f64]| scores.iter().rev().take(20).sum::<f64>() / 20.0;
    while scores.len() < updates as usize && mean(&scores) < aim {
        scores.push(training.play());
        training.learn();
    }
    mean(&scores)
}
