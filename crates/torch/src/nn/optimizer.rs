//! The engine's optimizers: fused SGD and fused AdamW over plain state tensors.
//!
//! tch's optimizers can neither export nor reset their state nor drop a parameter; checkpoints, rollback and gates need
//! all three. One optimizer owns one group: a host, or one seed with its gate. Parameters are leaves that require
//! gradients; state tensors have the parameter's layout and exist, zeroed, from creation, so nothing is allocated later.

mod group_update;
mod plain;

use tch::{Device, Kind, TchError, Tensor};

use crate::kernels::{Trained, drop_grads};
use crate::scenario::OptimizerConfig;
use crate::torch::{NoGrad, TorchError, catch, copy_to_host, zero_all};

/// The list of update counts.
const STEP: &str = "step";

/// The way in which steps are computed; the numbers agree within 1e-6 relative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implementation {
    /// The engine's own kernel, for float32 on a CPU.
    Own,
    /// One libtorch kernel for the whole group.
    Fused,
    /// Tensor by tensor, for devices that refuse the kernels.
    Plain,
}

/// An optimizer over one parameter group.
#[derive(Debug)]
pub struct Optimizer {
    implementation: Implementation,
    config: OptimizerConfig,
    /// The learning rate, `[]`, on the parameters' device, where libtorch's kernels read it: f32 on CUDA, f64 on a CPU.
    rate: Tensor,
    params: Vec<Tensor>,
    /// State by kind: the name, and one tensor per parameter in the parameters' order. SGD keeps `velocity` (empty without
    /// momentum), AdamW `exp_avg`, `exp_avg_sq` and `step`, f32 scalars that count the updates of each parameter.
    state: Vec<(&'static str, Vec<Tensor>)>,
}

impl Optimizer {
    /// An optimizer over `params` (shallow clones of leaves that require gradients, f32, any shape, on one device), with zeroed
    /// state.
    ///
    /// # Errors
    /// `Other` if a parameter isn't a leaf that requires a gradient.
    pub fn new(
        config: &OptimizerConfig,
        params: Vec<Tensor>,
        implementation: Implementation,
    ) -> Result<Self, TorchError> {
        let kinds: &[&'static str] = match config {
            OptimizerConfig::Sgd { .. } => &["velocity"],
            OptimizerConfig::Adamw { .. } => &["exp_avg", "exp_avg_sq", STEP],
        };
        let device = params.first().map_or(Device::Cpu, Tensor::device);
        let kind = if device == Device::Cpu {
            Kind::Double
        } else {
            Kind::Float
        };
        let mut optimizer = Self {
            implementation,
            config: *config,
            rate: Tensor::f_full([0i64; 0], config.lr(), (kind, device))?,
            params: Vec::with_capacity(params.len()),
            state: kinds.iter().map(|&kind| (kind, Vec::new())).collect(),
        };
        optimizer.append(params)?;
        Ok(optimizer)
    }

    /// The settings in force.
    pub fn config(&self) -> &OptimizerConfig {
        &self.config
    }

    /// The parameters, in the order in which they were given: f32, any shape.
    pub fn params(&self) -> &[Tensor] {
        &self.params
    }

    /// Adds parameters (f32, any shape, on the device of the others) with zeroed state, e.g. of a gate that a seed grew later.
    ///
    /// # Errors
    /// `Other` if a parameter isn't a leaf that requires a gradient; the optimizer is then unchanged.
    pub fn append(&mut self, params: Vec<Tensor>) -> Result<(), TorchError> {
        if let Some(stray) = params.iter().find(|p| !p.is_leaf() || !p.requires_grad()) {
            return Err(TorchError::Other(format!(
                "a tensor of size {:?} cannot be trained: it isn't a leaf that requires a gradient",
                stray.size()
            )));
        }
        if !matches!(self.config, OptimizerConfig::Sgd { momentum: 0.0, .. }) {
            let zeros = |kind: &str| -> Result<Vec<Tensor>, TchError> {
                let zero = |param: &Tensor| match kind {
                    STEP => Tensor::f_zeros([0i64; 0], (Kind::Float, param.device())),
                    _ => param.f_zeros_like(),
                };
                params.iter().map(zero).collect()
            };
            let added = self
                .state
                .iter()
                .map(|(kind, _)| zeros(kind))
                .collect::<Result<Vec<_>, _>>()?;
            for ((_, list), tensors) in self.state.iter_mut().zip(added) {
                list.extend(tensors);
            }
        }
        self.params.extend(params);
        Ok(())
    }

    /// Drops the parameters from index `len` on, with their state.
    pub fn truncate(&mut self, len: usize) {
        self.params.truncate(len);
        for (_, list) in &mut self.state {
            list.truncate(len);
        }
    }

    /// Zeroes the state in place: the next step is a first step.
    pub fn zero_state(&mut self) -> Result<(), TorchError> {
        self.state.iter().try_for_each(|(_, list)| zero_all(list))
    }

    /// Makes all gradients undefined, so that the next backward pass hands over its own.
    pub fn drop_gradients(&mut self) -> Result<(), TorchError> {
        drop_grads(&self.params)
    }

    /// Changes the weight decay, e.g. to 0 when a seed is committed.
    pub fn set_weight_decay(&mut self, weight_decay: f64) {
        match &mut self.config {
            OptimizerConfig::Sgd {
                weight_decay: value, ..
            }
            | OptimizerConfig::Adamw {
                weight_decay: value, ..
            } => {
                *value = weight_decay;
            }
        }
    }

    /// Changes the learning rate, e.g. to follow a schedule.
    ///
    /// # Errors
    /// The device's.
    pub fn set_lr(&mut self, lr: f64) -> Result<(), TorchError> {
        let (OptimizerConfig::Sgd { lr: value, .. } | OptimizerConfig::Adamw { lr: value, .. }) = &mut self.config;
        if *value != lr {
            *value = lr;
            let _ = self.rate.f_fill_(lr)?;
        }
        Ok(())
    }

    /// The way in which steps are computed.
    pub fn implementation(&self) -> Implementation {
        self.implementation
    }

    /// The state by name, one tensor per parameter (velocities only where there is momentum): of its shape, `step` a scalar `[]`;
    /// f32, on its device. The tensors are the live ones: copying into them restores a state.
    pub fn state_tensors(&self) -> Vec<(&'static str, &[Tensor])> {
        self.state.iter().map(|(kind, list)| (*kind, list.as_slice())).collect()
    }

    /// Updates the parameters from their gradients.
    ///
    /// Parameters without a gradient are skipped: neither momentum decay nor weight decay nor step count. `found_inf`
    /// is a scalar `[]`, f32, on the parameters' device; where it is 1 nothing changes at all.
    pub fn step(&mut self, found_inf: &Tensor) -> Result<(), TorchError> {
        match self.implementation {
            Implementation::Own => self.trained().own_step(found_inf),
            Implementation::Fused => self.trained().fused_step(&self.rate, found_inf),
            Implementation::Plain => catch(|| self.plain_step(found_inf)),
        }
    }

    fn trained(&self) -> Trained<'_> {
        Trained {
            rule: &self.config,
            params: &self.params,
            state: &self.state,
        }
    }

    fn plain_step(&mut self, found_inf: &Tensor) {
        let _no_grad = NoGrad::new();
        for (index, param) in self.params.iter_mut().enumerate() {
            let grad = param.grad();
            if !grad.defined() {
                continue;
            }
            let mut state: Vec<_> = self
                .state
                .iter_mut()
                .filter_map(|(_, list)| list.get_mut(index))
                .collect();
            plain::step(&self.config, param, &grad, &mut state, found_inf);
        }
    }
}

/// Largest difference from the formulas that is rounding, of parameters of at most 1 after two steps of rate 0.1. A CUDA device
/// was measured at 3.1e-6; a wrong or missing term is above 1e-4.
const TOLERANCE: f64 = 1e-5;

/// Tries the kernels of an implementation on a tiny tensor of `device` and compares them with the plain formulas.
///
/// Returns the reason against them, `None` if they agree; the caller announces it once. Run once at start per device; this
/// reads the device, so never inside a step.
pub fn self_test(device: Device, implementation: Implementation) -> Option<String> {
    let kind = format!("{implementation:?}").to_lowercase();
    let rules = [
        (
            "SGD",
            OptimizerConfig::Sgd {
                lr: 0.1,
                momentum: 0.9,
                weight_decay: 0.01,
            },
        ),
        (
            "AdamW",
            OptimizerConfig::Adamw {
                lr: 0.1,
                beta1: 0.9,
                beta2: 0.999,
                eps: 1e-8,
                weight_decay: 0.01,
            },
        ),
    ];
    rules
        .iter()
        .find_map(|(name, rule)| match disagreement(rule, implementation, device) {
            Ok(difference) if difference <= TOLERANCE => None,
            Ok(difference) => Some(format!(
                "{kind} {name} differs from its formula by {difference:e} on {device:?}"
            )),
            Err(error) => Some(format!("{kind} {name} fails on {device:?}: {error}")),
        })
}

/// Largest difference of the parameters from the plain formulas over a good, a suppressed and a good step.
fn disagreement(rule: &OptimizerConfig, implementation: Implementation, device: Device) -> Result<f64, TorchError> {
    let [tried, plain] =
        [implementation, Implementation::Plain].map(|implementation| trial_steps(rule, implementation, device));
    let (tried, plain) = (tried?, plain?);
    let difference = catch(|| (tried - plain).abs().max())?;
    Ok(copy_to_host(&difference, Kind::Double)?[0])
}

fn trial_steps(rule: &OptimizerConfig, implementation: Implementation, device: Device) -> Result<Tensor, TorchError> {
    let param = catch(|| {
        Tensor::from_slice(&[1.0f32, -0.5, 0.25])
            .to_device(device)
            .set_requires_grad(true)
    })?;
    let mut optimizer = Optimizer::new(rule, vec![param.shallow_clone()], implementation)?;
    for suppressed in [0.0, 1.0, 0.0] {
        let found_inf = catch(|| {
            (&param * &param).sum(Kind::Float).backward();
            Tensor::full([0i64; 0], suppressed, (Kind::Float, device))
        })?;
        optimizer.step(&found_inf)?;
        optimizer.drop_gradients()?;
    }
    Ok(param.detach())
}

#[cfg(test)]
mod tests;
