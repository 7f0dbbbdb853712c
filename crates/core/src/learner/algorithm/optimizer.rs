//! AdamW over a policy's parameter groups, with the last state known to be good.

use tch::{Device, Kind, Tensor};

use super::steps::LearnerError;
use crate::kernels::{GroupNorm, backward, clip_group, zero_grads};
use crate::nn::{Implementation, LossScaler, Optimizer};
use crate::policy::{ParamGroup, PolicyParam, TrainablePolicy};
use crate::scenario::{Kernels, LearnerConfig, OptimizerConfig};
use crate::torch::{Backend, NoGrad, TorchError, catch, copy_all};

/// Names of the scaler's tensors begin with it.
pub(super) const SCALER: &str = "loss_scaler.";

/// Decay of AdamW's two moments.
const BETAS: (f64, f64) = (0.9, 0.999);
/// Added to the root of the second moment. Larger than AdamW's usual 1e-8, which blows rare gradients up.
const EPSILON: f64 = 1e-5;

/// The parameters of one part of the policy.
#[derive(Debug)]
struct PartOptimizer {
    part: ParamGroup,
    names: Vec<String>,
    optimizer: Optimizer,
}

/// The gradients of a step before they were clipped.
#[derive(Debug)]
pub(super) struct Gradients {
    /// f64 scalar, of all. Overwritten by the next step.
    pub norm: Tensor,
    /// f32 scalar, 1 where any is not finite.
    pub bad: Tensor,
}

/// The optimizer of a policy.
#[derive(Debug)]
pub(super) struct PolicyOptimizer {
    groups: Vec<PartOptimizer>,
    /// The backend on which gradients are computed, with own kernels if the steps have them.
    pub backend: Backend,
    /// All parameters, which are clipped together.
    params: Vec<Tensor>,
    norm: GroupNorm,
    /// Scales the loss. `None` if the policy is not evaluated in float16.
    scaler: Option<LossScaler>,
    /// Copies of parameters and moments at the start of the newest update.
    last_good: Vec<Tensor>,
}

impl PolicyOptimizer {
    pub fn new(
        policy: &dyn TrainablePolicy,
        config: &LearnerConfig,
        implementation: Implementation,
    ) -> Result<Self, LearnerError> {
        let params = policy.params();
        check_params(&params)?;
        let device = params.first().map_or(Device::Cpu, |param| param.tensor.device());
        let kernels = match implementation {
            Implementation::Own => Kernels::Own,
            Implementation::Fused | Implementation::Plain => Kernels::Libtorch,
        };
        let mut optimizer = Self {
            groups: part_optimizers(&params, config, implementation)?,
            backend: Backend::new(device, kernels),
            params: params.iter().map(|param| param.tensor.shallow_clone()).collect(),
            norm: GroupNorm::new(device),
            scaler: match policy.precision() {
                Some(Kind::Half) => Some(LossScaler::new(device)?),
                _ => None,
            },
            last_good: Vec::new(),
        };
        optimizer.last_good = catch(|| {
            let state = optimizer.everything();
            state.iter().map(|tensor| tensor.detach().copy()).collect()
        })?;
        Ok(optimizer)
    }

    pub fn set_lr(&mut self, lr: f64) -> Result<(), TorchError> {
        let mut groups = self.groups.iter_mut();
        groups.try_for_each(|group| group.optimizer.set_lr(lr))
    }

    pub fn zero_grad(&self) -> Result<(), TorchError> {
        zero_grads(&self.params)
    }

    /// Leaves the gradients of `loss` in the parameters, computed on `backend`.
    pub fn backward(&self, loss: &Tensor, backend: Backend) -> Result<(), TorchError> {
        let Some(scaler) = &self.scaler else {
            return backward(loss, backend);
        };
        backward(&scaler.scaled(loss)?, backend)?;
        scaler.unscale(&self.params, &self.norm.bad)
    }

    /// Factor of the next step's loss, f32 scalar.
    pub fn loss_scale(&self) -> Option<Tensor> {
        self.scaler.as_ref().map(|scaler| scaler.scale().copy())
    }

    /// Moves the scale by the gradients that were last clipped.
    pub fn update_scale(&mut self, gradients: &Gradients) -> Result<(), TorchError> {
        self.scaler
            .as_mut()
            .map_or(Ok(()), |scaler| scaler.update(&gradients.bad))
    }

    /// Measures the gradients, then clips all of them together.
    pub fn clip(&mut self, max_norm: Option<f64>) -> Result<Gradients, TorchError> {
        clip_group(&self.params, max_norm, &mut self.norm)?;
        catch(|| Gradients {
            norm: self.norm.norm.shallow_clone(),
            bad: self.norm.bad.copy(),
        })
    }

    /// Steps. If `found_inf` (f32 scalar) is 1, neither parameters nor moments nor step counts change. Those of parts other
    /// than the critic never change if it learns alone.
    pub fn step(&mut self, found_inf: &Tensor, is_critic_alone: bool) -> Result<(), TorchError> {
        let is_stepping = |group: &&mut PartOptimizer| !is_critic_alone || group.part == ParamGroup::Critic;
        let groups = self.groups.iter_mut().filter(is_stepping);
        groups.into_iter().try_for_each(|group| group.optimizer.step(found_inf))
    }

    /// Remembers the current parameters and moments.
    pub fn remember(&mut self) -> Result<(), TorchError> {
        copy_all(&self.last_good, &self.everything(), false)
    }

    /// Back to what was remembered, in place.
    pub fn restore(&mut self) -> Result<(), TorchError> {
        copy_all(&self.everything(), &self.last_good, false)
    }

    /// The remembered parameters by name: the tensors themselves, which the next update overwrites.
    pub fn last_good_params(&self) -> Vec<(String, Tensor)> {
        let names = self.groups.iter().flat_map(|group| group.names.iter().cloned());
        names.zip(self.last_good.iter().map(Tensor::shallow_clone)).collect()
    }

    /// f64 scalar on the device: squared norm of the parameters.
    pub fn squares(&self) -> Result<Tensor, TorchError> {
        catch(|| {
            let _no_grad = NoGrad::new();
            let squares = self
                .params()
                .map(|param| param.to_kind(Kind::Double).square().sum(Kind::Double));
            Tensor::stack(&squares.collect::<Vec<_>>(), 0).sum(Kind::Double)
        })
    }

    /// Moments by name, `exp_avg.<parameter>` and so on: the live tensors.
    pub fn named_state(&self) -> Vec<(String, Tensor)> {
        let mut named = Vec::new();
        for group in &self.groups {
            for (kind, list) in group.optimizer.state_tensors() {
                let members = group.names.iter().zip(list);
                named.extend(members.map(|(name, tensor)| (format!("{kind}.{name}"), tensor.shallow_clone())));
            }
        }
        named
    }

    /// State of the loss scaler by name: the live tensors; none where the loss is not scaled. A step that spoils the
    /// parameters does not put the scale back: it has to keep falling.
    pub fn named_scale(&self) -> Vec<(String, Tensor)> {
        let tensors = self.scaler.iter().flat_map(LossScaler::state_tensors);
        tensors
            .map(|(name, tensor)| (format!("{SCALER}{name}"), tensor.shallow_clone()))
            .collect()
    }

    fn params(&self) -> impl Iterator<Item = &Tensor> {
        self.groups.iter().flat_map(|group| group.optimizer.params())
    }

    /// Parameters, then moments: live handles in a fixed order.
    fn everything(&self) -> Vec<Tensor> {
        let moments = self.named_state().into_iter().map(|(_, tensor)| tensor);
        self.params().map(Tensor::shallow_clone).chain(moments).collect()
    }
}

/// One group for each kind of parameter that the policy has, in a fixed order.
fn part_optimizers(
    params: &[PolicyParam],
    config: &LearnerConfig,
    implementation: Implementation,
) -> Result<Vec<PartOptimizer>, TorchError> {
    let mut groups = Vec::new();
    for group in [ParamGroup::ActorHeads, ParamGroup::Shared, ParamGroup::Critic] {
        let members: Vec<&PolicyParam> = params.iter().filter(|param| param.group == group).collect();
        if members.is_empty() {
            continue;
        }
        let rule = OptimizerConfig::Adamw {
            lr: config.lr,
            beta1: BETAS.0,
            beta2: BETAS.1,
            eps: EPSILON,
            // Decay would sharpen or flatten the actor's distributions.
            weight_decay: 0.0,
        };
        let tensors = members.iter().map(|param| param.tensor.shallow_clone()).collect();
        groups.push(PartOptimizer {
            part: group,
            names: members.iter().map(|param| param.name.clone()).collect(),
            optimizer: Optimizer::new(&rule, tensors, implementation)?,
        });
    }
    Ok(groups)
}

/// Every trainable tensor once, by a unique name.
fn check_params(params: &[PolicyParam]) -> Result<(), LearnerError> {
    let mut problems = Vec::new();
    if params.is_empty() {
        problems.push("it has no parameters".to_string());
    }
    for (index, param) in params.iter().enumerate() {
        let earlier = &params[..index];
        if earlier.iter().any(|other| other.name == param.name) {
            problems.push(format!("`{}` is listed twice", param.name));
        } else if let Some(other) = earlier.iter().find(|o| o.tensor.data_ptr() == param.tensor.data_ptr()) {
            problems.push(format!("`{}` and `{}` are one tensor", other.name, param.name));
        }
        if !(param.tensor.is_leaf() && param.tensor.requires_grad()) {
            problems.push(format!("`{}` isn't a leaf that requires a gradient", param.name));
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(LearnerError::Parameters(problems))
    }
}
