//! The content of an occupied slot: a module and, for the Gate operator, its gate network.

use tch::{Device, Kind, Tensor};

use super::{
    Amplitude, BlendError, BlueprintError, BlueprintRegistry, GateNetwork, Residual, SeedModule, fit_residual,
};
use crate::growth::AlphaAlgorithm;
use crate::kernels::Onto;
use crate::nn::{Mode, Param};
use crate::random::RunRng;
use crate::torch::{Backend, TorchError};

/// The tensors of one seed.
pub struct SeedInstance {
    /// The module that grows.
    pub module: Box<dyn SeedModule>,
    /// Present exactly while the seed's operator is Gate.
    pub gate: Option<GateNetwork>,
    /// The place where training reads the amplitude, `[]`, and its value; `None`: from the call.
    placed_amplitude: Option<(f64, Tensor)>,
}

impl SeedInstance {
    /// A seed of these parts.
    pub fn new(module: Box<dyn SeedModule>, gate: Option<GateNetwork>) -> Self {
        Self {
            module,
            gate,
            placed_amplitude: None,
        }
    }

    /// Puts the amplitude of the training batches that follow on `device`, where a recorded one reads it.
    ///
    /// # Errors
    /// The device's.
    pub fn place_amplitude(&mut self, alpha: f64, device: Device) -> Result<(), TorchError> {
        match &mut self.placed_amplitude {
            Some((placed, _)) if *placed == alpha => {}
            Some((placed, tensor)) => {
                let _ = tensor.f_fill_(alpha)?;
                *placed = alpha;
            }
            None => self.placed_amplitude = Some((alpha, Tensor::f_full([0i64; 0], alpha, (Kind::Float, device))?)),
        }
        Ok(())
    }

    /// Builds blueprint `index` for `dim` channels, at least 1, with a gate if the operator needs one. `rng` is the stream of
    /// this germination; the gate draws after the module.
    ///
    /// # Errors
    /// [`BlueprintError`]; nothing has changed then.
    pub fn germinate(
        registry: &BlueprintRegistry,
        index: usize,
        dim: i64,
        algorithm: AlphaAlgorithm,
        rng: &mut RunRng,
        backend: Backend,
    ) -> Result<Self, BlueprintError> {
        let blueprint = registry.get(index)?;
        let module = blueprint.build(dim, rng, backend)?;
        let gate = match algorithm {
            AlphaAlgorithm::Gate => Some(GateNetwork::new(blueprint.topology(), dim, rng, backend)?),
            AlphaAlgorithm::Add | AlphaAlgorithm::Multiply => None,
        };
        Ok(Self::new(module, gate))
    }

    /// Trainable parameters: the module's, then the gate's.
    pub fn params(&self) -> impl Iterator<Item = &Param> {
        let gate = self.gate.iter().flat_map(|gate| gate.params().trainable());
        self.module.params().trainable().iter().chain(gate)
    }

    /// Multiply-accumulates per sample over `positions` spatial positions, or tokens, with the gate's.
    pub fn macs(&self, positions: u64) -> u64 {
        self.module.macs(positions) + self.gate.as_ref().map_or(0, |gate| gate.macs(positions))
    }

    /// The seed's addition to the features at amplitude `alpha`, clamped to 0 to 1. The seed sees them as `x`
    /// (`[batch, channels, height, width]`, for texts `[batch, tokens, channels]`). `None` if it adds
    /// nothing: at amplitude 0 the seed isn't run, so values that aren't finite can't leak.
    ///
    /// # Errors
    /// [`BlendError`] if the operator's gate is missing or the module breaks its contract.
    pub fn residual(
        &self,
        x: &Tensor,
        alpha: f64,
        algorithm: AlphaAlgorithm,
        mode: Mode,
    ) -> Result<Option<Residual>, BlendError> {
        let amplitude = match &self.placed_amplitude {
            _ if alpha <= 0.0 => return Ok(None),
            Some((_, placed)) if mode == Mode::Train => Amplitude::OnDevice(placed),
            _ => Amplitude::Number(alpha.clamp(0.0, 1.0)),
        };
        let Some(delta) = self.module.delta(x, mode)? else {
            return Ok(None);
        };
        let delta = fit_residual(delta, x)?;
        let gate = match (algorithm, &self.gate) {
            (AlphaAlgorithm::Gate, Some(gate)) => Some(gate.forward(x)?.f_to_kind(x.kind())?),
            _ => None,
        };
        Residual::new(delta, amplitude, algorithm, gate.as_ref()).map(Some)
    }

    /// The slot's output at amplitude `alpha` for features `h` (`[batch, channels, height, width]`, for texts
    /// `[batch, tokens, channels]`); `isolated` keeps the seed's gradient from the host.
    ///
    /// # Errors
    /// Those of [`residual`](Self::residual).
    pub fn blend(
        &self,
        h: &Tensor,
        alpha: f64,
        algorithm: AlphaAlgorithm,
        isolated: bool,
        mode: Mode,
    ) -> Result<Tensor, BlendError> {
        let detached;
        let x = if isolated {
            detached = h.f_detach()?;
            &detached
        } else {
            h
        };
        let alpha = alpha.clamp(0.0, 1.0);
        let is_placed = self.placed_amplitude.is_some() && mode == Mode::Train;
        let blended = if algorithm == AlphaAlgorithm::Add && alpha > 0.0 && !is_placed {
            self.module.delta_onto(x, Onto::Added { features: h, alpha }, mode)?
        } else {
            let residual = self.residual(x, alpha, algorithm, mode)?;
            residual.map(|residual| residual.apply(h)).transpose()?
        };
        Ok(blended.unwrap_or_else(|| h.shallow_clone()))
    }

    /// The slot's output while the seed incubates: exactly `h` (`[batch, channels, height, width]`, for texts
    /// `[batch, tokens, channels]`), from which the seed learns as if it were added
    /// (straight-through: Bengio, Léonard and Courville 2013, arXiv:1308.3432).
    ///
    /// # Errors
    /// [`BlendError`] if the module breaks its contract.
    pub fn incubate(&self, h: &Tensor, mode: Mode) -> Result<Tensor, BlendError> {
        let onto = Onto::StraightThrough { features: h };
        let shown = self.module.delta_onto(&h.f_detach()?, onto, mode)?;
        Ok(shown.unwrap_or_else(|| h.shallow_clone()))
    }
}

#[cfg(test)]
mod tests;
