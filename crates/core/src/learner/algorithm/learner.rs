//! The learner of a policy: its optimizer, normalisers and counters, what happens to them between two rollouts, and what a
//! checkpoint keeps of them; no generator state, since every draw is derived from seed and round.
//!
//! The order of the steps of `finalize` matters: every statistic moves exactly once a rollout, and nothing is measured in a unit
//! that changes later.

use std::time::Instant;

use tch::Tensor;

use super::advantages::{CLIP, Counters, LearnerState, Unusable, ValueUnits, Worth, appraise};
use super::buffer::RolloutBuffer;
use super::loss::{Horizon, LearnerSchedules};
use super::measurements::{announce_drift, judge, outside_minibatches, report};
use super::optimizer::{PolicyOptimizer, SCALER};
use super::sequences::{SequenceBatch, longest, sequences};
use super::steps::{LearnerError, StepRecord};
use super::update::{RecordedSteps, Update, by_head};
use crate::actions::{HEADS, Head};
use crate::env::FallbackGuard;
use crate::nn::{Implementation, Linear};
use crate::policy::TrainablePolicy;
use crate::random::{Domain, RunRng};
use crate::scenario::{Algorithm, LearnerConfig};
use crate::telemetry::{FinitenessGate, LearnerUpdate, Num, OffPolicy, RolloutData, UpdateSkip};
use crate::torch::{HostSyncCounter, TorchError, copy_into, mixed_name, read_f64};

/// Failed updates in a row after which the run stops.
const MOST_FAILURES: u32 = 3;

/// Proximal policy optimization of a policy. All state of it is in here, in place.
#[derive(Debug)]
pub struct Learner {
    pub(super) config: LearnerConfig,
    horizon: Horizon,
    seed: u64,
    pub(super) optimizer: PolicyOptimizer,
    pub(super) state: LearnerState,
    recorded: Option<RecordedSteps>,
    guard: FallbackGuard,
}

impl Learner {
    /// A learner that has learnt nothing, for `policy` alone. `seed` is the run's.
    ///
    /// # Errors
    /// Parameters that are not listed exactly once or cannot be trained, all named, or too little memory.
    pub fn new(
        config: LearnerConfig,
        horizon: Horizon,
        seed: u64,
        policy: &dyn TrainablePolicy,
        implementation: Implementation,
    ) -> Result<Self, LearnerError> {
        Ok(Self {
            optimizer: PolicyOptimizer::new(policy, &config, implementation)?,
            state: LearnerState::default(),
            config,
            horizon,
            seed,
            recorded: None,
            guard: FallbackGuard::default(),
        })
    }

    /// Records an update's steps as CUDA graphs, from the second minibatch on. If that is impossible, they are played as usual.
    pub fn with_cuda_graphs(self, are_recorded: bool) -> Self {
        let recorded = are_recorded.then(RecordedSteps::default);
        Self { recorded, ..self }
    }

    /// The settings that it learns with.
    pub fn config(&self) -> &LearnerConfig {
        &self.config
    }

    /// Updates so far.
    pub fn counters(&self) -> &Counters {
        &self.state.counters
    }

    /// In which units the policy's value head speaks until the next update.
    pub fn value_units(&self) -> ValueUnits {
        self.state.values.units()
    }

    /// Values of the schedules for the next update.
    pub fn schedules(&self) -> LearnerSchedules {
        LearnerSchedules::at(self.state.counters.updates, &self.config, self.horizon)
    }

    /// A governor's penalty as [`RolloutBuffer::rollback`] takes it.
    pub fn clamp_penalty(&self, raw: f64) -> f32 {
        raw.clamp(-CLIP, CLIP) as f32
    }

    /// Too many updates failed in a row: the run should save its last good state and stop.
    pub fn has_diverged(&self) -> bool {
        self.state.counters.consecutive_failures >= MOST_FAILURES
    }

    /// The parameters before the newest update, by name, for a policy whose outputs turn out not to be finite when it
    /// acts: any shape, f32, on the policy's device. The same tensors for the whole run.
    pub fn last_good_params(&self) -> Vec<(String, Tensor)> {
        self.optimizer.last_good_params()
    }

    /// Learns from a finished rollout: normalise, estimate advantages, optimise, judge. Every segment must be closed.
    /// The caller then commits its observation normaliser and clears the buffer, whether or not an update was performed.
    ///
    /// An update that fails leaves the policy as it was and is reported as such; [`has_diverged`](Self::has_diverged)
    /// says when there were too many.
    ///
    /// # Errors
    /// An unfinished rollout, a policy that refuses its own rollout, a device error.
    pub fn learn(
        &mut self,
        buffer: &mut RolloutBuffer,
        policy: &mut dyn TrainablePolicy,
        round: u64,
        reads: &HostSyncCounter,
    ) -> Result<LearnerUpdate, LearnerError> {
        let schedules = self.schedules();
        let started = Instant::now();
        let head = policy.value_output();
        let rollout = finalize(buffer, &mut self.state, &head, &self.config)?;
        let mut update = LearnerUpdate {
            lr: schedules.lr,
            entropy_coef: schedules.entropy_coef,
            amp_dtype: mixed_name(policy.precision()).unwrap_or("f32").into(),
            ..LearnerUpdate::default()
        };
        match rollout {
            Ok(mut rollout) => {
                if schedules.teacher_coef > 0.0 {
                    let raw = || rollout.batch.raw_observations(buffer);
                    rollout.batch.teacher = policy.teacher_log_probs(&raw, &rollout.batch.input())?;
                }
                self.optimise(rollout, schedules, policy, round, reads, &mut update)?;
            }
            Err(Unusable::Empty) => update.skip_reason = UpdateSkip::Empty,
            Err(Unusable::NonFinite(source)) => {
                self.state.counters.consecutive_failures += 1;
                update.skip_reason = UpdateSkip::Nonfinite;
                update.nonfinite_sources = vec![outside_minibatches(FinitenessGate::G0, source)];
            }
        }
        update.updates = self.state.counters.updates;
        update.consecutive_failures = self.state.counters.consecutive_failures;
        update.update_ms = Num(started.elapsed().as_secs_f64() * 1e3);
        Ok(update)
    }

    /// Optimises the policy on a rollout and decides whether that counts as an update.
    fn optimise(
        &mut self,
        rollout: PreparedRollout,
        schedules: LearnerSchedules,
        policy: &mut dyn TrainablePolicy,
        round: u64,
        reads: &HostSyncCounter,
        update: &mut LearnerUpdate,
    ) -> Result<(), LearnerError> {
        let mut rng = RunRng::new(self.seed, Domain::LearnerShuffle, &[0, round]);
        let measured = Update {
            config: &self.config,
            schedules,
            batch: &rollout.batch,
            by_head: by_head(rollout.batch.device())?,
            reads,
            guard: &self.guard,
        }
        .run(policy, &mut self.optimizer, &mut self.recorded, &mut rng)?;

        announce_drift(&measured, policy.precision());
        judge(update, &measured);
        if measured.are_parameters_spoilt() {
            self.optimizer.restore()?;
        }
        match update.skip_reason {
            UpdateSkip::None => {
                self.state.counters.updates += 1;
                self.state.counters.consecutive_failures = 0;
            }
            UpdateSkip::Kl | UpdateSkip::Empty | UpdateSkip::Overflow => {}
            UpdateSkip::Nonfinite | UpdateSkip::Mismatch => self.state.counters.consecutive_failures += 1,
        }
        policy.set_floor_scale(self.schedules().probability_floor);

        update.data = Some(rollout.data);
        update.kernel_fallbacks = measured.fallbacks.kernel;
        report(update, &measured, &rollout.learnable);
        if matches!(self.config.algorithm, Algorithm::Clone(_)) {
            // Nothing holds what is cloned to the policy before.
            let measured = &mut update.measured;
            (measured.clip_fraction, measured.ratio_max, measured.ratio_min) = (None, None, None);
        }
        Ok(())
    }

    /// The plain part of the state.
    pub fn state(&self) -> LearnerState {
        self.state.clone()
    }

    /// The optimizer's moments by name: `exp_avg.<parameter>`, `exp_avg_sq.<parameter>`, `step.<parameter>`; in float16
    /// `loss_scaler.scale` and `loss_scaler.finite_steps` as well. Moments have the shape of their parameter, all others are
    /// scalars `[]`; on the policy's device. The tensors are the live ones.
    pub fn state_tensors(&self) -> Vec<(String, Tensor)> {
        let moments = self.optimizer.named_state().into_iter();
        moments.chain(self.optimizer.named_scale()).collect()
    }

    /// Continues from a saved state, in place. `tensors`: those of [`state_tensors`](Self::state_tensors), by name, in the same
    /// shapes; any shape is checked first. The policy's parameters are the caller's to restore, before this: both
    /// together are the last state known to be good.
    ///
    /// # Errors
    /// `Incompatible` with every difference and everything that is not finite, in which case nothing has changed; a
    /// device error.
    pub fn restore(&mut self, state: &LearnerState, tensors: &[(String, Tensor)]) -> Result<(), LearnerError> {
        // Precision may change at a resume: a scale that was not saved starts at its default, one that is not needed is ignored.
        let is_scaled = |tensors: &[(String, Tensor)]| tensors.iter().any(|(name, _)| name.starts_with(SCALER));
        let keeps_scale = is_scaled(&self.state_tensors()) && is_scaled(tensors);
        let kept = |tensors: &[(String, Tensor)]| -> Vec<(String, Tensor)> {
            let kept = tensors
                .iter()
                .filter(|(name, _)| keeps_scale || !name.starts_with(SCALER));
            kept.map(|(name, tensor)| (name.clone(), tensor.shallow_clone()))
                .collect()
        };
        let (live, tensors) = (kept(&self.state_tensors()), &kept(tensors)[..]);
        let differences = [
            differences_of_tensors(tensors, &live),
            nonfinite_numbers(state),
            impossible_tensors(tensors)?,
        ]
        .concat();
        if !differences.is_empty() {
            return Err(LearnerError::Incompatible(differences));
        }
        for (name, tensor) in &live {
            if let Some((_, saved)) = tensors.iter().find(|(saved, _)| saved == name) {
                copy_into(tensor, saved, false)?;
            }
        }
        self.state = state.clone();
        self.optimizer.remember()?;
        Ok(())
    }
}

/// Fewest steps with a choice from which the policy is trained. The critic always is.
const LEAST_ACTOR_STEPS: u64 = 8;

/// A rollout that is ready to be learnt from.
#[derive(Debug)]
pub(super) struct PreparedRollout {
    pub batch: SequenceBatch,
    pub data: RolloutData,
    /// By head: whether it had something to learn.
    pub learnable: [bool; HEADS],
}

/// Normalises rewards, estimates advantages, moves the critic's units, and gathers sequences.
pub(super) fn finalize(
    buffer: &mut RolloutBuffer,
    state: &mut LearnerState,
    head: &Linear,
    config: &LearnerConfig,
) -> Result<Result<PreparedRollout, Unusable>, LearnerError> {
    // 1. Every segment has its end.
    buffer.check_finished()?;

    // 2. to 7. The worth of its steps.
    let Worth { targets, mut data } = match appraise(buffer, state, head, config)? {
        Ok(worth) => worth,
        Err(unusable) => return Ok(Err(unusable)),
    };
    let has_others = config.is_offline() || config.kept_rollouts().is_some();
    if has_others && config.algorithm.needs_behaviour() {
        data.off_policy = Some(off_policy(buffer));
    }

    // 8. Sequences. With too few steps that the actor learns from only the critic learns.
    let actor_learns = data.steps_actor >= LEAST_ACTOR_STEPS;
    let segments = sequences(buffer);
    let batch = SequenceBatch::gather(buffer, &targets, &segments, longest(&segments), actor_learns, config)?;
    Ok(Ok(PreparedRollout {
        batch,
        data,
        learnable: learnable(buffer),
    }))
}

/// The distance of the steps that the actor learns from to the policy before the update.
fn off_policy(buffer: &RolloutBuffer) -> OffPolicy {
    let free = buffer.valid_records().filter(|record| record.is_free());
    let ratios = free.map(|record| record.log_ratio().exp());
    let (count, sum, squares) = ratios.fold((0.0, 0.0, 0.0), |(count, sum, squares), ratio| {
        (count + 1.0, sum + ratio, squares + ratio * ratio)
    });
    OffPolicy {
        behaviour_ratio_mean: Num(sum / count),
        effective_share: Num(sum * sum / (count * squares)),
        stale_segments: buffer.segments().filter(|segment| !segment.valid).count() as u64,
    }
}

/// By head: whether it mattered in a step that the actor learns from, and had a choice.
fn learnable(buffer: &RolloutBuffer) -> [bool; HEADS] {
    Head::ALL.map(|head| {
        let is_learnt = |record: &StepRecord| record.is_causal(head) && record.choosable[head as usize];
        buffer
            .valid_records()
            .any(|record| record.is_free() && is_learnt(record))
    })
}

/// Names of second moments begin with it.
const SQUARES: &str = "exp_avg_sq.";

/// One line for everything in the plain state that is not finite.
fn nonfinite_numbers(saved: &LearnerState) -> Vec<String> {
    let finite = |is_finite: bool, what: &str| (!is_finite).then(|| format!("{what} are not finite"));
    [
        finite(saved.rewards.moments.is_finite(), "the statistics of rewards"),
        finite(saved.values.moments.is_finite(), "the statistics of returns"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// One line for every tensor with a value that no optimizer can reach: not finite, or a negative second moment.
///
/// # Errors
/// A device error.
fn impossible_tensors(saved: &[(String, Tensor)]) -> Result<Vec<String>, TorchError> {
    let mut impossible = Vec::new();
    for (name, tensor) in saved {
        let values = read_f64(tensor, &HostSyncCounter::default())?;
        let is_negative = name.starts_with(SQUARES) && values.iter().any(|&value| value < 0.0);
        if !values.iter().all(|value| value.is_finite()) {
            impossible.push(format!("`{name}` holds values that are not finite"));
        } else if is_negative {
            impossible.push(format!("`{name}` holds squares below 0"));
        }
    }
    Ok(impossible)
}

/// One line for every tensor that is missing, unknown, or of another shape or kind.
fn differences_of_tensors(saved: &[(String, Tensor)], live: &[(String, Tensor)]) -> Vec<String> {
    let mut differences = Vec::new();
    for (name, tensor) in live {
        match saved.iter().find(|(saved, _)| saved == name) {
            None => differences.push(format!("`{name}` is missing")),
            Some((_, saved)) if saved.size() != tensor.size() => {
                let (old, new) = (saved.size(), tensor.size());
                differences.push(format!("`{name}` has the shape {old:?}, expected {new:?}"));
            }
            Some((_, saved)) if saved.kind() != tensor.kind() => {
                let (old, new) = (saved.kind(), tensor.kind());
                differences.push(format!("`{name}` is {old:?}, expected {new:?}"));
            }
            Some(_) => {}
        }
    }
    let unknown = saved
        .iter()
        .filter(|(name, _)| live.iter().all(|(live, _)| live != name));
    differences.extend(unknown.map(|(name, _)| format!("`{name}` isn't a tensor of this learner")));
    differences
}
