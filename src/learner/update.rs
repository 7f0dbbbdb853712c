//! Proximal policy optimization over one rollout (Schulman et al. 2017; spec 04 §7.2).
//!
//! Nothing in the loop waits for the device: the divergence stop, the consistency check and the finiteness guards are
//! flags on the device that suppress the optimizer's step, and everything measured is read once at the end. On a CPU,
//! where reading waits for nothing, the loop leaves early when a flag says that no further step will be taken.

use std::ops::Range;
use std::time::Instant;

use tch::{Kind, Tensor};

use super::advantages::Spread;
use super::error::LearnerError;
use super::loss::*;
use super::optimizer::PolicyOptimizer;
use super::readings::{DeviceReading, PerHead, Reading, Scalar, read_all};
use super::recurrent::{STATE_NUMBERS, row_numbers, state_numbers};
use super::schedules::Schedules;
use super::sequences::SequenceBatch;
use crate::controller::{Evaluation, TrainablePolicy};
use crate::random::Draw;
use crate::scenario::{AdvantageNorm, LearnerConfig, RatioMode};
use crate::torch::{Autocast, HostSyncCounter, NoGrad, TorchError, catch, read_f32};

/// An update stops where the divergence exceeds the target by this factor.
const KL_TOLERANCE: f64 = 1.5;
/// Mean difference of stored and recomputed log-probabilities beyond which rollout and update do not belong together.
pub(super) const MAX_DRIFT: f64 = 0.05;

/// All that was measured in an update.
#[derive(Debug)]
pub(super) struct Measured {
    /// By minibatch, in order: `(epoch, minibatch)` and its numbers.
    pub minibatches: Vec<((u32, u32), Reading)>,
    /// By minibatch: microseconds from its evaluation to its optimizer step, as the host sees them. A CUDA device may
    /// still be at work when a step ends: nothing waits for it.
    pub step_us: Vec<f64>,
    /// By state tensor of the last minibatch's final states.
    pub states: Vec<[f64; STATE_NUMBERS]>,
    /// By state tensor of the states with which the rollout's segments ended.
    pub rollout_states: Vec<[f64; STATE_NUMBERS]>,
    /// Squared norms of the parameters and of their change.
    pub parameter_squares: f64,
    pub change_squares: f64,
    /// Of normalised observations: shares beyond 3, 0.9 clip and clip.
    pub observation_shares: [f64; 3],
    /// Of raw observations: elements that are NaN and that are infinite.
    pub observation_faults: [f64; 2],
}

/// Sticky flags of an update, f32 scalars on the device.
struct Flags {
    kl_stop: Tensor,
    mismatch: Tensor,
}

/// One pass of the algorithm over a rollout.
pub(super) struct Update<'a> {
    pub config: &'a LearnerConfig,
    pub schedules: Schedules,
    /// What autocast computes in; `None`: f32 throughout.
    pub precision: Option<Kind>,
    pub batch: &'a SequenceBatch,
    /// `f32 [steps, D]`: of the rollout's valid steps.
    pub raw_observations: &'a Tensor,
    /// Numbers of the states with which the rollout's segments ended, by state tensor.
    pub rollout_states: &'a [Tensor],
    pub reads: &'a HostSyncCounter,
}

impl Update<'_> {
    /// Optimises `policy` in place. The caller judges what was measured.
    pub fn run(
        &self,
        policy: &dyn TrainablePolicy,
        optimizer: &mut PolicyOptimizer,
        rng: &mut impl Draw,
    ) -> Result<Measured, LearnerError> {
        optimizer.remember()?;
        optimizer.set_lr(self.schedules.lr);
        let device = self.batch.device();
        let zero = || catch(|| Tensor::zeros([0i64; 0], (Kind::Float, device)));
        let mut flags = Flags {
            kl_stop: zero()?,
            mismatch: zero()?,
        };
        let mut order: Vec<i64> = (0..self.batch.len() as i64).collect();
        let mut readings = Vec::new();
        let mut places = Vec::new();
        let mut step_us = Vec::new();
        let mut states = Vec::new();

        'epochs: for epoch in 0..self.config.epochs {
            // Whole sequences are shuffled, never single steps: the recurrent core replays each from its start.
            rng.shuffle(&mut order);
            for (index, part) in split(order.len(), self.config.num_minibatches as usize).enumerate() {
                let started = Instant::now();
                let minibatch = catch(|| self.batch.select(&order[part]))?;
                let is_first = readings.is_empty();
                let (reading, state) = self.step(&minibatch, policy, optimizer, &mut flags, is_first)?;
                step_us.push(started.elapsed().as_secs_f64() * 1e6);
                readings.push(reading);
                places.push((epoch, index as u32));
                states = state;
                if !device.is_cuda() && self.is_over(&flags)? {
                    break 'epochs;
                }
            }
        }

        let mut rest = vec![
            optimizer.change()?,
            self.observation_shares()?,
            self.observation_faults()?,
        ];
        let state_tensors = states.len();
        rest.extend(states);
        rest.extend(self.rollout_states.iter().map(Tensor::shallow_clone));
        let (numbers, rest) = read_all(&readings, &rest, self.reads)?;
        let (states, rollout_states) = rest[7..].as_chunks::<STATE_NUMBERS>().0.split_at(state_tensors);
        Ok(Measured {
            minibatches: places.into_iter().zip(numbers).collect(),
            step_us,
            states: states.to_vec(),
            rollout_states: rollout_states.to_vec(),
            parameter_squares: rest[0],
            change_squares: rest[1],
            observation_shares: [rest[2], rest[3], rest[4]],
            observation_faults: [rest[5], rest[6]],
        })
    }

    /// One minibatch: evaluate, measure, guard, descend.
    fn step(
        &self,
        minibatch: &SequenceBatch,
        policy: &dyn TrainablePolicy,
        optimizer: &mut PolicyOptimizer,
        flags: &mut Flags,
        is_first: bool,
    ) -> Result<(Tensor, Vec<Tensor>), LearnerError> {
        let mut reading = DeviceReading::new(minibatch.device());

        // 1. Evaluate the stored actions under the current weights.
        let evaluation = self.evaluate(policy, minibatch)?;
        let (total, bad_forward) = catch(|| {
            // 2. Gate G1: log-probabilities that matter, values and predictions are finite.
            let bad_forward = forward_gate(&evaluation, minibatch, &mut reading);

            // 3. Probability ratios, divergence, clipping.
            let ratios = Ratios::new(&evaluation.log_probs, &minibatch.old_log_probs, &minibatch.causal);
            let kl = measure_trust_region(&ratios, minibatch, self.schedules.clip_ratio, &mut reading);

            // 4. Before any parameter has moved, evaluation must repeat what the policy said when it acted.
            if is_first {
                let drift = measure_drift(&evaluation.log_probs, minibatch, &mut reading);
                flags.mismatch = drift.gt(MAX_DRIFT).to_kind(Kind::Float);
            }
            // 5. Divergence stop: from here on no step is taken.
            if let Some(target) = self.config.target_kl {
                flags.kl_stop = flags
                    .kl_stop
                    .maximum(&kl.gt(KL_TOLERANCE * target).to_kind(Kind::Float));
            }
            reading.set(Scalar::Mismatch, &flags.mismatch);
            reading.set(Scalar::KlStop, &flags.kl_stop);

            // 6. The objective, and gate G2.
            let total = self.objective(&evaluation, &ratios, minibatch, &mut reading);
            let bad_loss = is_not_finite(&total);
            reading.set(Scalar::BadLoss, &bad_loss);
            (total, bad_forward.maximum(&bad_loss))
        })?;

        // 7. Gradients.
        optimizer.zero_grad()?;
        catch(|| total.backward())?;

        // 8. and 9. Norms before clipping, gate G3, clipping.
        let bad_gradient = optimizer.clip(self.config.max_grad_norm, &mut reading)?;
        let (suppressed, states) = catch(|| {
            reading.set(Scalar::BadGradient, &bad_gradient);
            let suppressed = bad_gradient
                .maximum(&bad_forward)
                .maximum(&flags.kl_stop)
                .maximum(&flags.mismatch);
            reading.set(Scalar::Suppressed, &suppressed);
            let states = row_numbers(&evaluation.final_state);
            (suppressed, states.iter().map(state_numbers).collect())
        })?;
        optimizer.step(&suppressed)?;

        // 10. Measurements stay on the device.
        Ok((catch(|| reading.pack())?, states))
    }

    fn evaluate(&self, policy: &dyn TrainablePolicy, minibatch: &SequenceBatch) -> Result<Evaluation, LearnerError> {
        let _autocast = match self.precision {
            Some(kind) => Some(Autocast::new(minibatch.device(), kind)?),
            None => None,
        };
        Ok(catch(|| policy.evaluate(&minibatch.input()))??)
    }

    /// `L = L_π + c_V·L_V + c_E·L_E + P + c_C·L_C` (spec 04 §7.4).
    fn objective(
        &self,
        evaluation: &Evaluation,
        ratios: &Ratios,
        minibatch: &SequenceBatch,
        reading: &mut DeviceReading,
    ) -> Tensor {
        let (config, schedules) = (self.config, &self.schedules);
        let SequenceBatch {
            actor,
            causal,
            available,
            valid,
            ..
        } = minibatch;
        let denominators = head_denominators(causal, actor, config.head_min_fraction);

        // Clipped surrogate, per head or of the joint ratio.
        let advantages = self.advantages(minibatch);
        let policy = match config.ratio_mode {
            RatioMode::PerHead => {
                per_head_policy_loss(ratios, &advantages, causal, &denominators, schedules.clip_ratio).sum(Kind::Float)
            }
            RatioMode::Joint => joint_policy_loss(ratios, &advantages, actor, schedules.clip_ratio),
        };

        // Value loss, in normalised units.
        let value = value_loss(
            &evaluation.value,
            &minibatch.targets,
            &minibatch.old_values,
            &minibatch.value_weights,
            valid,
            config.clip_value.then_some(config.value_clip),
        );

        // Entropy bonus of the branches chosen, and penalty of heads that collapse.
        let by_head = |values: [f64; 8]| {
            let values = values.map(|value| value as f32);
            Tensor::from_slice(&values).to_device(minibatch.device())
        };
        let entropies = head_entropies(&evaluation.entropy_causal, causal, &denominators);
        let entropy = -(entropies * by_head(config.entropy_head_mult.values())).sum(Kind::Float);
        let floor_penalty = entropy_floor_penalty(
            &evaluation.entropy_available,
            available,
            &by_head(config.entropy_floor.values()),
            &by_head(config.entropy_floor_coef.values()),
        ) * schedules.entropy_floor;

        let mut total = &policy + &value * schedules.value_coef + &entropy * schedules.entropy_coef + &floor_penalty;

        // Contribution auxiliary.
        if let Some(predicted) = &evaluation.contributions {
            let (targets, mask) = (&minibatch.contributions, &minibatch.contribution_mask);
            let contribution = contribution_loss(predicted, targets, mask);
            measure_contributions(predicted, targets, mask, reading);
            reading.set(Scalar::LossContribution, &contribution);
            total += contribution * schedules.aux_coef;
        }

        reading.set(Scalar::LossPolicy, &policy);
        reading.set(Scalar::LossValue, &value);
        reading.set(Scalar::LossEntropy, &entropy);
        reading.set(Scalar::EntropyFloorPenalty, &floor_penalty);
        reading.set(Scalar::LossTotal, &total);
        measure_entropy_and_values(evaluation, minibatch, reading);
        total
    }

    /// As they are, or standardised within the minibatch.
    fn advantages(&self, minibatch: &SequenceBatch) -> Tensor {
        if self.config.adv_norm != AdvantageNorm::Minibatch {
            return minibatch.advantages.shallow_clone();
        }
        let (advantages, actor) = (&minibatch.advantages, &minibatch.actor);
        let centre = mean(advantages, actor);
        let deviation = mean(&(advantages - &centre).square(), actor).sqrt();
        let divisor = deviation.clamp_min(self.config.adv_std_floor) + Spread::EPSILON;
        selected(&((advantages - centre) / divisor), actor)
    }

    fn is_over(&self, flags: &Flags) -> Result<bool, TorchError> {
        let both = catch(|| flags.kl_stop.maximum(&flags.mismatch))?;
        Ok(read_f32(&both, &HostSyncCounter::default())?[0] > 0.0)
    }

    /// Elements of the raw observations that are NaN, and that are infinite.
    fn observation_faults(&self) -> Result<Tensor, TorchError> {
        catch(|| {
            let count = |is: Tensor| is.sum(Kind::Double);
            let raw = self.raw_observations;
            Tensor::stack(&[count(raw.isnan()), count(raw.isinf())], 0)
        })
    }

    /// Shares of the normalised observations' elements beyond 3, 0.9 clip and clip.
    fn observation_shares(&self) -> Result<Tensor, TorchError> {
        let clip = self.config.obs_norm.clip;
        catch(|| {
            let _no_grad = NoGrad::new();
            let size = self.batch.observations.abs();
            let valid = self.batch.valid.unsqueeze(-1).expand_as(&size);
            let share = |limit: f64, inclusive: bool| {
                let beyond = if inclusive { size.ge(limit) } else { size.gt(limit) };
                mean(&beyond.to_kind(Kind::Float), &valid)
            };
            Tensor::stack(&[share(3.0, false), share(0.9 * clip, true), share(clip, true)], 0)
        })
    }
}

/// `parts` ranges over `0..count` whose sizes differ by at most 1; fewer if there are not enough.
fn split(count: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = parts.clamp(1, count.max(1));
    (0..parts).map(move |part| part * count / parts..(part + 1) * count / parts)
}

/// f32 scalar, 1 if any element is NaN or infinite.
fn is_not_finite(values: &Tensor) -> Tensor {
    values.detach().isfinite().logical_not().any().to_kind(Kind::Float)
}

/// f32 scalar, 1 if something that the losses read is not finite.
fn forward_gate(evaluation: &Evaluation, minibatch: &SequenceBatch, reading: &mut DeviceReading) -> Tensor {
    let log_probs = selected(&evaluation.log_probs.detach(), &minibatch.causal);
    let bad_heads = count_by_head(&log_probs.isfinite().logical_not());
    reading.set_heads(PerHead::BadLogProb, &bad_heads);
    let bad_value = is_not_finite(&selected(&evaluation.value.detach(), &minibatch.valid));
    reading.set(Scalar::BadValue, &bad_value);
    let mut bad = bad_heads.gt(0.0).any().to_kind(Kind::Float).maximum(&bad_value);
    if let Some(predicted) = &evaluation.contributions {
        let bad_contribution = is_not_finite(&selected(&predicted.detach(), &minibatch.contribution_mask));
        reading.set(Scalar::BadContribution, &bad_contribution);
        bad = bad.maximum(&bad_contribution);
    }
    bad
}

/// Returns the joint divergence from the policy that acted.
fn measure_trust_region(ratios: &Ratios, minibatch: &SequenceBatch, clip: f64, reading: &mut DeviceReading) -> Tensor {
    let _no_grad = NoGrad::new();
    let SequenceBatch { actor, causal, .. } = minibatch;
    let (joint, heads) = (ratios.joint.detach(), ratios.heads.detach());
    let share = |condition: Tensor| mean(&condition.to_kind(Kind::Float), actor);
    let kl = mean(&kl_terms(&joint, &ratios.joint_log.detach()), actor);
    reading.set(Scalar::Kl, &kl);
    reading.set(Scalar::ClipPositive, &share(joint.gt(1.0 + clip)));
    reading.set(Scalar::ClipNegative, &share(joint.lt(1.0 - clip)));
    reading.set(Scalar::RatioMean, &mean(&joint, actor));
    reading.set(Scalar::RatioSquare, &mean(&joint.square(), actor));
    // Excluded steps have ratio 1 by construction: they widen neither end.
    reading.set(Scalar::RatioMax, &joint.max());
    reading.set(Scalar::RatioMin, &joint.min());
    let head_kl = kl_terms(&heads, &ratios.head_logs.detach());
    let clipped = (&heads - 1.0).abs().gt(clip).to_kind(Kind::Float);
    reading.set_heads(PerHead::Kl, &mean_by_head(&head_kl, causal));
    reading.set_heads(PerHead::Clipped, &mean_by_head(&clipped, causal));
    reading.set_heads(PerHead::RatioMax, &heads.amax([0i64, 1].as_slice(), false));
    reading.set_heads(PerHead::Causal, &count_by_head(causal));
    reading.set_heads(PerHead::Available, &count_by_head(&minibatch.available));
    kl
}

/// Returns the mean difference of stored and recomputed log-probabilities (spec 04 §7.6).
fn measure_drift(log_probs: &Tensor, minibatch: &SequenceBatch, reading: &mut DeviceReading) -> Tensor {
    let _no_grad = NoGrad::new();
    let differences = (log_probs - &minibatch.old_log_probs).abs();
    let drift = mean(&differences, &minibatch.causal);
    reading.set(Scalar::DriftMean, &drift);
    reading.set(Scalar::DriftMax, &selected(&differences, &minibatch.causal).max());
    drift
}

fn measure_entropy_and_values(evaluation: &Evaluation, minibatch: &SequenceBatch, reading: &mut DeviceReading) {
    let _no_grad = NoGrad::new();
    let SequenceBatch {
        causal,
        available,
        valid,
        ..
    } = minibatch;
    let causal_entropy = mean_by_head(&evaluation.entropy_causal.detach(), causal);
    reading.set_heads(PerHead::Entropy, &causal_entropy);
    let open_entropy = mean_by_head(&evaluation.entropy_available.detach(), available);
    reading.set_heads(PerHead::EntropyAvailable, &open_entropy);
    let log_probs = evaluation.log_probs.detach();
    let excluded = causal.logical_not();
    reading.set(
        Scalar::LogProbMin,
        &log_probs.masked_fill(&excluded, f64::INFINITY).min(),
    );
    reading.set(
        Scalar::LogProbMax,
        &log_probs.masked_fill(&excluded, f64::NEG_INFINITY).max(),
    );
    let values = evaluation.value.detach();
    let padding = valid.logical_not();
    reading.set(Scalar::ValueMean, &mean(&values, valid));
    reading.set(Scalar::ValueSquare, &mean(&values.square(), valid));
    reading.set(Scalar::ValueMin, &values.masked_fill(&padding, f64::INFINITY).min());
    reading.set(Scalar::ValueMax, &values.masked_fill(&padding, f64::NEG_INFINITY).max());
}

fn measure_contributions(predicted: &Tensor, targets: &Tensor, mask: &Tensor, reading: &mut DeviceReading) {
    let _no_grad = NoGrad::new();
    let predicted = predicted.detach();
    let sum = |values: &Tensor| selected(values, mask).sum(Kind::Double);
    reading.set(Scalar::ContributionCount, &mask.sum(Kind::Float));
    reading.set(Scalar::PredictionSum, &sum(&predicted));
    reading.set(Scalar::PredictionSquares, &sum(&predicted.square()));
    reading.set(Scalar::TargetSum, &sum(targets));
    reading.set(Scalar::TargetSquares, &sum(&targets.square()));
    reading.set(Scalar::ProductSum, &sum(&(&predicted * targets)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minibatches_differ_by_at_most_one_sequence_and_cover_all() {
        let sizes = |count, parts| split(count, parts).map(|part| part.len()).collect::<Vec<_>>();
        assert_eq!(sizes(10, 3), [3, 3, 4]);
        assert_eq!(sizes(2, 4), [1, 1]);
        assert_eq!(sizes(5, 1), [5]);
    }
}
