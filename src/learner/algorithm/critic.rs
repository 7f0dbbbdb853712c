//! Passes of the critic alone, after the policy has been updated: value loss over the newest rollouts, with targets that the
//! critic estimates afresh before the first of them. The divergence that stops the policy does not stop them.
//!
//! A critic that may take more steps than the policy, and from older data, is the point of phasic policy gradients (Cobbe et
//! al. 2021); that the policy's stop leaves the critic alone is how Spinning Up's PPO has it.

use tch::{Kind, Tensor};

use super::error::LearnerError;
use super::gae::gae;
use super::loss::value_loss;
use super::optimizer::PolicyOptimizer;
use super::rehearsal::{ChunkEnd, CriticRollout};
use super::reward_norm::scaled_reward;
use super::sequences::split;
use super::value_norm::ValueUnits;
use crate::controller::TrainablePolicy;
use crate::random::Draw;
use crate::scenario::LearnerConfig;
use crate::torch::{HostSyncCounter, NoGrad, catch, read_f32};

/// What the passes learn from and in which units.
pub(super) struct CriticPasses<'a> {
    pub config: &'a LearnerConfig,
    /// Oldest first.
    pub rollouts: Vec<&'a CriticRollout>,
    pub units: ValueUnits,
    /// What rewards are divided by.
    pub reward_scale: f64,
    pub lr: f64,
    pub reads: &'a HostSyncCounter,
}

/// What came of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CriticMeasurements {
    /// Optimizer steps.
    pub steps: u32,
    /// Mean value loss of the first pass and of the last, as they began.
    pub losses: [f64; 2],
}

impl CriticPasses<'_> {
    /// Takes the critic's steps, none where `blocked` (f32 scalar) is 1.
    ///
    /// # Errors
    /// A device error.
    pub fn run(
        &self,
        policy: &dyn TrainablePolicy,
        optimizer: &mut PolicyOptimizer,
        blocked: &Tensor,
        rng: &mut impl Draw,
    ) -> Result<CriticMeasurements, LearnerError> {
        let mut targets = Vec::new();
        for rollout in &self.rollouts {
            targets.push(self.targets(rollout, policy)?);
        }
        optimizer.set_critic_lr(self.lr);
        let mut orders: Vec<Vec<i64>> = self.rollouts.iter().map(|r| (0..r.len() as i64).collect()).collect();
        let (mut losses, mut suppressed) = (Vec::new(), Vec::new());
        for _ in 0..self.config.critic.epochs {
            for ((rollout, targets), order) in self.rollouts.iter().zip(&targets).zip(&mut orders) {
                rng.shuffle(order);
                for part in split(order.len(), self.config.num_minibatches as usize) {
                    let rows = &order[part];
                    let (loss, bad) = self.step(rollout, targets, rows, policy, optimizer, blocked)?;
                    losses.push(loss);
                    suppressed.push(bad);
                }
            }
        }
        let numbers = catch(|| Tensor::stack(&[Tensor::stack(&losses, 0), Tensor::stack(&suppressed, 0)], 0))?;
        let numbers = read_f32(&numbers, self.reads)?;
        let (losses, suppressed) = numbers.split_at(losses.len());
        let a_pass = losses.len() / (self.config.critic.epochs as usize).max(1);
        let mean = |losses: &[f32]| losses.iter().map(|&loss| f64::from(loss)).sum::<f64>() / a_pass.max(1) as f64;
        Ok(CriticMeasurements {
            steps: suppressed.iter().filter(|&&bad| bad == 0.0).count() as u32,
            losses: [mean(&losses[..a_pass]), mean(&losses[losses.len() - a_pass..])],
        })
    }

    /// `f32 [B, T]` in normalised units: returns of generalised advantage estimation under the present critic, rewards and
    /// values in their present units; 0 where there is no step.
    pub(super) fn targets(
        &self,
        rollout: &CriticRollout,
        policy: &dyn TrainablePolicy,
    ) -> Result<Tensor, LearnerError> {
        let values = {
            let _no_grad = NoGrad::new();
            catch(|| policy.evaluate_values(&rollout.input()))??
        };
        let values = read_f32(&values, self.reads)?;
        let steps = rollout.steps();
        let value = |row: usize, step: usize| self.units.raw(values[row * steps + step].into());
        let mut targets = vec![0.0f32; rollout.len() * steps];
        let mut first = 0;
        for last in 0..rollout.len() {
            let after = match rollout.ends[last] {
                ChunkEnd::GoesOn => continue,
                ChunkEnd::Terminal => 0.0,
                ChunkEnd::Observed => value(last, rollout.real_steps(last)),
                ChunkEnd::Estimated(value) => f64::from(value) * rollout.reward_scale / self.reward_scale,
            };
            let places: Vec<(usize, usize)> = (first..=last)
                .flat_map(|row| (0..rollout.real_steps(row)).map(move |step| (row, step)))
                .collect();
            let rewards: Vec<f64> = places
                .iter()
                .map(|&(row, step)| {
                    let (reward, is_fixed) = rollout.reward(row, step);
                    let scale = if is_fixed { 1.0 } else { self.reward_scale };
                    scaled_reward(reward, scale, &self.config.reward_norm)
                })
                .collect();
            let values: Vec<f64> = places.iter().map(|&(row, step)| value(row, step)).collect();
            let found = gae(&rewards, &values, after, self.config.gamma, self.config.gae_lambda);
            for (&(row, step), ret) in places.iter().zip(found.returns) {
                targets[row * steps + step] = self.units.normalise(ret) as f32;
            }
            first = last + 1;
        }
        let size = [rollout.len() as i64, steps as i64];
        let device = rollout.observations.device();
        Ok(catch(|| Tensor::from_slice(&targets).reshape(size).to_device(device))?)
    }

    /// One descent on some sequences of a rollout: its loss, and 1 where no step was taken; f32 scalars.
    fn step(
        &self,
        rollout: &CriticRollout,
        targets: &Tensor,
        rows: &[i64],
        policy: &dyn TrainablePolicy,
        optimizer: &mut PolicyOptimizer,
        blocked: &Tensor,
    ) -> Result<(Tensor, Tensor), LearnerError> {
        let (part, targets) = catch(|| {
            let part = rollout.select(rows);
            let index = Tensor::from_slice(rows).to_device(targets.device());
            (part, targets.index_select(0, &index))
        })?;
        let values = catch(|| policy.evaluate_values(&part.input()))??;
        let loss = catch(|| {
            let counted = part.weights.gt(0.0);
            value_loss(&values, &targets, &targets, &part.weights, &counted, None)
        })?;
        let bad = optimizer.backward_critic(&loss, self.config.max_grad_norm)?;
        let suppressed = catch(|| {
            let is_infinite = loss.detach().isfinite().logical_not().to_kind(Kind::Float);
            bad.maximum(&is_infinite).maximum(blocked)
        })?;
        optimizer.step_critic(&suppressed)?;
        Ok((loss.detach(), suppressed))
    }
}
