//! A running average of a policy's weights, from update to update: what a frozen policy plays with (Polyak and Juditsky 1992;
//! kept with a decay as in Tarvainen and Valpola 2017).

use tch::Tensor;

use super::parameters::PolicyParams;
use crate::torch::{NoGrad, TorchError, catch, copy_all};

/// The average of the weights after every update so far, old ones weighing less and less.
#[derive(Debug)]
pub struct AveragedWeights {
    decay: f64,
    /// In the order of the parameters; `None` before the first update.
    weights: Option<Vec<Tensor>>,
}

impl AveragedWeights {
    /// Of no weights yet. `decay`: what an update leaves of the weight of those before it.
    pub fn new(decay: f64) -> Self {
        Self { decay, weights: None }
    }

    /// In the order of the parameters; `None` before the first update.
    pub fn weights(&self) -> Option<&[Tensor]> {
        self.weights.as_deref()
    }

    /// Goes on from what was saved.
    pub fn restore(&mut self, weights: Option<Vec<Tensor>>) {
        self.weights = weights;
    }

    /// Takes the weights after an update in. The first ones are the average: no fresh network is part of it.
    ///
    /// # Errors
    /// A device error.
    pub fn take_in(&mut self, params: &PolicyParams) -> Result<(), TorchError> {
        let decay = self.decay;
        catch(|| {
            let _no_grad = NoGrad::new();
            match &mut self.weights {
                None => self.weights = Some(params.iter().map(|param| param.tensor.detach().copy()).collect()),
                Some(averages) => {
                    for (average, param) in averages.iter_mut().zip(params.iter()) {
                        *average = &*average * decay + param.tensor.detach() * (1.0 - decay);
                    }
                }
            }
        })
    }

    /// Copies the average, if there is one, into the parameters, in place.
    ///
    /// # Errors
    /// A device error.
    pub fn put_into(&self, params: &PolicyParams) -> Result<(), TorchError> {
        let Some(averages) = &self.weights else {
            return Ok(());
        };
        let targets: Vec<Tensor> = params.iter().map(|param| param.tensor.shallow_clone()).collect();
        copy_all(&targets, averages, false)
    }
}
