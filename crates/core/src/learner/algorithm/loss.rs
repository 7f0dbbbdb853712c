//! The terms of the objective, each a function of plain tensors, and their weights in the course of learning.
//!
//! Every mean is a sum over the whole `[B, T]` shape divided by the count of what the mask selects, at least 1. Masks
//! select and never multiply: what they exclude may be anything, NaN included, and has gradient 0.

use tch::{Kind, Tensor};

use super::optimizer::Gradients;
use super::sequences::SequenceBatch;
use crate::policy::Evaluation;
use crate::scenario::{LEAST_ENTROPY_COEF, LearnerConfig};
use crate::torch::NoGrad;

/// Bounds of log-ratios, so that their exponential is finite.
const HEAD_LOG_RATIO: f64 = 20.0;
const JOINT_LOG_RATIO: f64 = 30.0;

/// `values` where the mask holds, else 0.
pub(super) fn selected(values: &Tensor, mask: &Tensor) -> Tensor {
    values.masked_fill(&mask.logical_not(), 0.0)
}

/// Number of steps that a `[B, T]` mask selects, f32, at least 1.
pub(super) fn count(mask: &Tensor) -> Tensor {
    mask.sum(Kind::Float).clamp_min(1.0)
}

/// The same for `[B, T, K]`, one number per head, without a minimum.
pub(super) fn count_by_head(mask: &Tensor) -> Tensor {
    mask.sum_dim_intlist([0i64, 1].as_slice(), false, Kind::Float)
}

pub(super) fn mean(values: &Tensor, mask: &Tensor) -> Tensor {
    selected(values, mask).sum(Kind::Float) / count(mask)
}

fn sum_by_head(values: &Tensor, mask: &Tensor) -> Tensor {
    selected(values, mask).sum_dim_intlist([0i64, 1].as_slice(), false, Kind::Float)
}

/// Mean by head, or 0 if the mask is empty.
pub(super) fn mean_by_head(values: &Tensor, mask: &Tensor) -> Tensor {
    sum_by_head(values, mask) / count_by_head(mask).clamp_min(1.0)
}

/// Probability ratios between the current policy and the one that acted.
#[derive(Debug)]
pub(super) struct Ratios {
    /// `[B, T, K]`, 1 on heads that the actor does not learn from.
    pub heads: Tensor,
    /// `[B, T]`.
    pub joint_log: Tensor,
    pub joint: Tensor,
}

impl Ratios {
    /// `causal` is `[B, T, K]`: the heads that the actor learns from.
    pub fn new(log_probs: &Tensor, old_log_probs: &Tensor, causal: &Tensor) -> Self {
        let head_logs = selected(&(log_probs - old_log_probs), causal).clamp(-HEAD_LOG_RATIO, HEAD_LOG_RATIO);
        let joint_log = head_logs
            .sum_dim_intlist([-1i64].as_slice(), false, Kind::Float)
            .clamp(-JOINT_LOG_RATIO, JOINT_LOG_RATIO);
        Self {
            heads: head_logs.exp(),
            joint: joint_log.exp(),
            joint_log,
        }
    }

    /// Mean joint divergence from the policy that acted, over the steps that the actor learns from.
    pub fn joint_kl(&self, actor: &Tensor) -> Tensor {
        let _no_grad = NoGrad::new();
        mean(&kl_terms(&self.joint.detach(), &self.joint_log.detach()), actor)
    }
}

/// Differences of stored and recomputed log-probabilities.
pub(super) fn drift(log_probs: &Tensor, old_log_probs: &Tensor) -> Tensor {
    let _no_grad = NoGrad::new();
    (log_probs - old_log_probs).abs()
}

/// `L = L_policy + c_V·L_value + c_E·L_entropy + P_floor + c_T·L_teacher`, and its terms; f32 scalars.
#[derive(Debug)]
pub(super) struct Losses {
    pub total: Tensor,
    pub policy: Tensor,
    pub value: Tensor,
    pub entropy: Tensor,
    pub floor_penalty: Tensor,
    /// `None` without a teacher.
    pub teacher: Option<Tensor>,
}

/// `min(r·A, clip(r, 1±ε)·A)`.
fn surrogate(ratio: &Tensor, advantages: &Tensor, clip: f64) -> Tensor {
    let unclipped = ratio * advantages;
    unclipped.minimum(&(ratio.clamp(1.0 - clip, 1.0 + clip) * advantages))
}

/// Divisors of each head's sums: the steps in which the head mattered, but at least `min_fraction` of the
/// actor's steps, so that a rare head's single sample cannot outweigh the batch.
pub(super) fn head_denominators(causal: &Tensor, actor: &Tensor, min_fraction: f64) -> Tensor {
    let least = (actor.sum(Kind::Float) * min_fraction).clamp_min(1.0);
    count_by_head(causal).maximum(&least)
}

/// Clipped surrogate of every head; one loss per head, `[K]`.
pub(super) fn per_head_policy_loss(
    ratios: &Ratios,
    advantages: &Tensor,
    causal: &Tensor,
    denominators: &Tensor,
    clip: f64,
) -> Tensor {
    let surrogate = surrogate(&ratios.heads, &advantages.unsqueeze(-1), clip);
    -(sum_by_head(&surrogate, causal) / denominators)
}

/// Weighted log-likelihood of every head's choices with the sign of a loss; one loss per head, `[K]`.
pub(super) fn cloning_loss(log_probs: &Tensor, weights: &Tensor, causal: &Tensor, denominators: &Tensor) -> Tensor {
    -(sum_by_head(&(log_probs * weights.unsqueeze(-1)), causal) / denominators)
}

/// Schulman's unbiased, non-negative estimate `(r − 1) − ln r` of KL(old ‖ new).
pub(super) fn kl_terms(ratio: &Tensor, log: &Tensor) -> Tensor {
    (ratio - 1.0) - log
}

/// Mean over the actor's steps of the joint divergence KL(policy ‖ teacher), by what the policy chose; f32 scalar.
pub(super) fn divergence_from(teacher: &Tensor, log_probs: &Tensor, causal: &Tensor, actor: &Tensor) -> Tensor {
    let ratios = Ratios::new(teacher, log_probs, causal);
    mean(&kl_terms(&ratios.joint, &ratios.joint_log), actor)
}

/// `½·Σ w·q / max(Σw, 1)` with `q` the squared error.
pub(super) fn value_loss(values: &Tensor, targets: &Tensor, weights: &Tensor, valid: &Tensor) -> Tensor {
    let errors = (values - targets).square();
    let total = selected(weights, valid).sum(Kind::Float).clamp_min(1.0);
    selected(&(errors * weights), valid).sum(Kind::Float) / total * 0.5
}

/// Normalised entropy by head, over the heads' own denominators.
pub(super) fn head_entropies(entropy: &Tensor, causal: &Tensor, denominators: &Tensor) -> Tensor {
    sum_by_head(entropy, causal) / denominators
}

/// `Σ ρ_k·max(0, f_k − Ē_k)²`, over the heads that were available at all.
pub(super) fn entropy_floor_penalty(entropy: &Tensor, available: &Tensor, floors: &Tensor, coefs: &Tensor) -> Tensor {
    let mean = mean_by_head(entropy, available);
    let shortfall = (floors - mean).clamp_min(0.0).square() * coefs;
    selected(&shortfall, &count_by_head(available).gt(0.0)).sum(Kind::Float)
}

/// Counts of a minibatch's values that are not finite: f32 tensors, 0 where all is well.
#[derive(Debug)]
pub(super) struct Gates {
    /// `[K]`, gate G1: log-probabilities that matter.
    pub log_probs: Tensor,
    /// G1.
    pub value: Tensor,
    /// G2.
    pub loss: Tensor,
    /// G3.
    pub gradient: Tensor,
}

impl Gates {
    pub fn check(evaluation: &Evaluation, minibatch: &SequenceBatch, losses: &Losses, gradients: &Gradients) -> Self {
        let log_probs = selected(&evaluation.log_probs.detach(), &minibatch.causal);
        Self {
            log_probs: count_by_head(&log_probs.isfinite().logical_not()),
            value: is_not_finite(&selected(&evaluation.value.detach(), &minibatch.valid)),
            loss: is_not_finite(&losses.total),
            gradient: gradients.bad.shallow_clone(),
        }
    }

    /// f32 scalar, 1 if any gate is closed.
    pub fn any(&self) -> Tensor {
        let log_probs = self.log_probs.gt(0.0).any().to_kind(Kind::Float);
        let gates = [&self.value, &self.loss, &self.gradient];
        gates.into_iter().fold(log_probs, |any, gate| any.maximum(gate))
    }
}

/// f32 scalar, 1 if any element is NaN or infinite.
pub(super) fn is_not_finite(values: &Tensor) -> Tensor {
    values.detach().isfinite().logical_not().any().to_kind(Kind::Float)
}

/// Weight of the divergence from a teacher at the first update.
const TEACHER_COEF: f64 = 1.0;
/// Updates over which that weight falls to 0.
const TAUGHT_UPDATES: u64 = 20;
/// Updates at the beginning in which the critic of a taught policy learns alone.
const CRITIC_UPDATES: u64 = 2;
/// Factor of the policy's probability floors after the last update: it tries less once it knows more.
const LAST_FLOOR: f64 = 0.2;

/// The length of the run's learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// All updates of the run.
    pub total_updates: u64,
    /// Envs whose episodes an update learns from.
    pub envs: usize,
}

impl Horizon {
    /// Updates that learn from the first `episodes` episodes of all envs.
    pub(crate) fn updates_of(self, episodes: u32, config: &LearnerConfig) -> u64 {
        let per_update = self.envs as u64 * u64::from(config.episodes_per_update);
        u64::from(episodes).div_ceil(per_update.max(1))
    }
}

/// Values in force during an update.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LearnerSchedules {
    /// Learning rate.
    pub lr: f64,
    /// Weight of the entropy bonus.
    pub entropy_coef: f64,
    /// Factor of the entropy floors' penalty.
    pub entropy_floor: f64,
    /// Factor of the probability floors in the rollout that follows.
    pub probability_floor: f64,
    /// Weight of the divergence from a teacher, where there is one.
    pub teacher_coef: f64,
    /// True if only the critic learns when there is a teacher.
    pub is_critic_alone: bool,
}

impl LearnerSchedules {
    /// For the update after `updates` successful ones.
    pub fn at(updates: u64, config: &LearnerConfig, horizon: Horizon) -> Self {
        let progress = ramp(updates, horizon.total_updates);
        Self {
            lr: config.lr * (config.lr_end_factor + (1.0 - config.lr_end_factor) * (1.0 - progress)),
            entropy_coef: entropy_coef(updates, config, horizon),
            entropy_floor: entropy_floor(progress),
            probability_floor: 1.0 + progress * (LAST_FLOOR - 1.0),
            teacher_coef: TEACHER_COEF * (1.0 - ramp(updates, TAUGHT_UPDATES)),
            is_critic_alone: updates < CRITIC_UPDATES,
        }
    }
}

/// From 0 to 1 over `span` updates, at least 1.
fn ramp(updates: u64, span: u64) -> f64 {
    (updates as f64 / span.max(1) as f64).min(1.0)
}

fn entropy_coef(updates: u64, config: &LearnerConfig, horizon: Horizon) -> f64 {
    let (start, end) = (config.entropy_coef, config.last_entropy_coef());
    let done = match config.entropy_anneal_episodes {
        0 => 0.0,
        episodes => ramp(updates, horizon.updates_of(episodes, config)),
    };
    (start + done * (end - start)).max(LEAST_ENTROPY_COEF)
}

/// Strong while the policy is young, weaker in the last quarter.
fn entropy_floor(progress: f64) -> f64 {
    if progress < 0.25 {
        1.5
    } else if progress < 0.75 {
        1.0
    } else {
        1.0 - 0.5 * (progress - 0.75) / 0.25
    }
}

#[cfg(test)]
mod tests;
