//! The learner of one policy group: its optimizer, normalisers and counters, and what happens to them between two
//! rollouts (spec 04 §2, §7, §10).

use std::time::Instant;

use tch::{Device, Kind, Tensor};

use super::buffer::RolloutBuffer;
use super::diagnostics::quantile;
use super::error::LearnerError;
use super::finalize::{Rollout, Unusable, finalize};
use super::guards::{self, Verdict};
use super::metrics::{Gate, NonfiniteSkip, OptimizationMetrics, SkipReason, UpdateRecord};
use super::optimizer::PolicyOptimizer;
use super::reward_norm::RewardNormalizer;
use super::schedules::{Horizon, Schedules};
use super::state::Counters;
use super::update::{Measured, Update};
use super::value_norm::{ValueNormalizer, ValueUnits};
use crate::controller::TrainablePolicy;
use crate::random::{Domain, RunRng};
use crate::scenario::{AmpMode, LearnerConfig};
use crate::torch::{HostSyncCounter, Implementation};

/// What names the learner's random streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnerStream {
    /// Of the run.
    pub seed: u64,
    pub group: u64,
}

/// Proximal policy optimization for one policy group. All state of it is in here, in place.
#[derive(Debug)]
pub struct Learner {
    config: LearnerConfig,
    horizon: Horizon,
    stream: LearnerStream,
    precision: Option<Kind>,
    pub(super) optimizer: PolicyOptimizer,
    pub(super) rewards: RewardNormalizer,
    pub(super) values: ValueNormalizer,
    pub(super) counters: Counters,
}

impl Learner {
    /// A learner that has learnt nothing, for `policy` alone.
    ///
    /// # Errors
    /// Parameters that are not listed exactly once or cannot be trained, all named; out of memory.
    pub fn new(
        config: LearnerConfig,
        horizon: Horizon,
        stream: LearnerStream,
        policy: &dyn TrainablePolicy,
        implementation: Implementation,
    ) -> Result<Self, LearnerError> {
        let params = policy.params();
        let device = params.first().map_or(Device::Cpu, |param| param.tensor.device());
        Ok(Self {
            optimizer: PolicyOptimizer::new(policy, &config, implementation)?,
            rewards: RewardNormalizer::new(config.reward_norm.mode, horizon.envs),
            values: ValueNormalizer::new(config.value_norm.mode, config.norm_min_count),
            counters: Counters::default(),
            precision: learner_precision(config.amp, device),
            config,
            horizon,
            stream,
        })
    }

    pub fn config(&self) -> &LearnerConfig {
        &self.config
    }

    /// Between updates: rates, coefficients, epochs and limits may change, shapes and the modes of normalisers may not.
    pub fn config_mut(&mut self) -> &mut LearnerConfig {
        &mut self.config
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// In which units the policy's value head speaks until the next update.
    pub fn value_units(&self) -> ValueUnits {
        self.values.units()
    }

    /// What autocast must compute in wherever this policy acts or is evaluated; `None`: f32.
    pub fn precision(&self) -> Option<Kind> {
        self.precision
    }

    /// Values of the schedules for the next update.
    pub fn schedules(&self) -> Schedules {
        Schedules::at(self.counters.updates, &self.config, self.horizon)
    }

    /// A governor's penalty as [`RolloutBuffer::rollback`] takes it.
    pub fn clamp_penalty(&self, raw: f64) -> f32 {
        raw.clamp(-self.config.reward_norm.clip, self.config.reward_norm.clip) as f32
    }

    /// Too many updates failed in a row: the run should save its last good state and stop.
    pub fn has_diverged(&self) -> bool {
        self.counters.consecutive_failures >= self.config.max_consecutive_failures
    }

    /// The parameters before the newest update, by name, for a policy whose outputs turn out not to be finite when it
    /// acts. The same tensors for the whole run.
    pub fn last_good_params(&self) -> Vec<(String, Tensor)> {
        self.optimizer.last_good_params()
    }

    /// Forgets the moments: the next step is a first step.
    ///
    /// # Errors
    /// A device error.
    pub fn reset_optimizer(&mut self) -> Result<(), LearnerError> {
        Ok(self.optimizer.zero_state()?)
    }

    /// Learns from a finished rollout: normalise, estimate advantages, optimise, judge. Every segment must be closed.
    /// The caller then commits its observation normaliser and clears the buffer, whatever came of the update.
    ///
    /// An update that fails leaves the policy as it was and is reported in the record; [`has_diverged`](Self::has_diverged)
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
    ) -> Result<UpdateRecord, LearnerError> {
        let started = Instant::now();
        let schedules = self.schedules();
        let head = policy.value_output();
        let rollout = finalize(buffer, &mut self.rewards, &mut self.values, &head, &self.config)?;
        let finalize_ms = started.elapsed().as_secs_f64() * 1e3;
        let mut record = self.empty_record(schedules, finalize_ms);

        let rollout = match rollout {
            Ok(rollout) => rollout,
            Err(reason) => {
                self.refuse(reason, &mut record);
                return Ok(record);
            }
        };
        let started = Instant::now();
        let raw_observations = buffer.valid_raw_observations()?;
        let rollout_states = buffer.final_state_numbers()?;
        let update = Update {
            config: &self.config,
            schedules,
            precision: self.precision,
            batch: &rollout.batch,
            raw_observations: &raw_observations,
            rollout_states: &rollout_states,
            reads,
        };
        let mut rng = RunRng::new(self.stream.seed, Domain::LearnerShuffle, &[self.stream.group, round]);
        let measured = update.run(policy, &mut self.optimizer, &mut rng)?;
        record.update_ms = started.elapsed().as_secs_f64() * 1e3;

        self.judge(&rollout, &measured, &mut record)?;
        record.rollout = Some(rollout.diagnostics);
        policy.set_floor_scale(self.schedules().probability_floor);
        Ok(record)
    }

    fn empty_record(&self, schedules: Schedules, finalize_ms: f64) -> UpdateRecord {
        UpdateRecord {
            update_performed: false,
            skip_reason: None,
            updates: self.counters.updates,
            policy_version: self.counters.policy_version,
            steps_taken: 0,
            early_stop_epoch: None,
            nonfinite_skips: 0,
            nonfinite_sources: Vec::new(),
            consecutive_failures: self.counters.consecutive_failures,
            actor_skipped: false,
            schedules,
            rollout: None,
            optimization: OptimizationMetrics::default(),
            obs_norm_drift: None,
            finalize_ms,
            update_ms: 0.0,
            learner_step_us_p50: None,
            amp_dtype: match self.precision {
                None => "float32",
                Some(Kind::BFloat16) => "bfloat16",
                Some(_) => "float16",
            }
            .into(),
        }
    }

    /// A rollout that cannot be learnt from.
    fn refuse(&mut self, reason: Unusable, record: &mut UpdateRecord) {
        match reason {
            Unusable::Empty => record.skip_reason = Some(SkipReason::Empty),
            Unusable::NonFinite(source) => {
                self.counters.consecutive_failures += 1;
                record.skip_reason = Some(SkipReason::Nonfinite);
                record.consecutive_failures = self.counters.consecutive_failures;
                record.nonfinite_sources.push(NonfiniteSkip {
                    place: None,
                    gate: Gate::G0,
                    sources: vec![source.into()],
                });
            }
        }
    }

    /// What the measurements mean for counters, schedules and, where parameters were spoilt, the policy itself.
    fn judge(&mut self, rollout: &Rollout, measured: &Measured, record: &mut UpdateRecord) -> Result<(), LearnerError> {
        let findings = guards::findings(measured);
        guards::announce_drift(measured, self.precision);
        match findings.verdict {
            Verdict::Performed => {
                self.counters.updates += 1;
                self.counters.policy_version += 1;
                self.counters.consecutive_failures = 0;
            }
            Verdict::Skipped(SkipReason::Kl | SkipReason::Empty) => {}
            Verdict::Skipped(SkipReason::Nonfinite | SkipReason::Mismatch) => self.counters.consecutive_failures += 1,
            Verdict::Spoilt => {
                self.optimizer.restore()?;
                self.counters.consecutive_failures += 1;
            }
        }
        record.update_performed = findings.verdict == Verdict::Performed;
        record.skip_reason = findings.verdict.reason();
        record.updates = self.counters.updates;
        record.policy_version = self.counters.policy_version;
        record.steps_taken = findings.steps_taken;
        record.early_stop_epoch = findings.early_stop_epoch;
        record.nonfinite_skips = findings.nonfinite_skips;
        record.nonfinite_sources = findings.sources;
        record.consecutive_failures = self.counters.consecutive_failures;
        record.actor_skipped = rollout.actor_skipped;
        record.optimization = OptimizationMetrics::reduce(measured, self.config.max_grad_norm);
        record.learner_step_us_p50 = (!measured.step_us.is_empty()).then(|| quantile(&measured.step_us, 0.5));
        Ok(())
    }
}

/// In what acting and learning are computed (spec 04 §9). On a CPU every request resolves to f32, said once, so that a
/// scenario stays portable.
fn learner_precision(amp: AmpMode, device: Device) -> Option<Kind> {
    match amp {
        AmpMode::Off => None,
        AmpMode::Auto | AmpMode::Bf16 if device.is_cuda() => Some(Kind::BFloat16),
        AmpMode::Auto | AmpMode::Bf16 => {
            tracing::warn!("learner.amp applies to CUDA devices; the policy is trained in float32");
            None
        }
    }
}
