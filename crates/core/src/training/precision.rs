//! The precision in which hosts train, decided once and announced if it isn't the requested one; and the scale of each env's
//! loss where that is float16.

use bevy_ecs::prelude::*;
use tch::{Device, Kind, Tensor};

use super::components::EnvLossScaler;
use crate::env::unfinished::name_of;
use crate::env::{EnvId, EnvPool, EnvStream, Experiment};
use crate::health::{Failure, InEnv};
use crate::nn::LossScaler;
use crate::scenario::{DeviceSpec, Override};
use crate::torch;
use crate::unfinished::{UnfinishedRound, UnfinishedRoundError};

/// Turns mixed precision off, in one place for every scenario.
const AMP_VARIABLE: &str = "SIMIC_ENGINE_AMP";

/// Overrides of a scenario with those of the environment, which lie over all others.
///
/// # Errors
/// Any word except `off`.
pub fn with_environment(overrides: &[Override]) -> Result<Vec<Override>, String> {
    let mut all = overrides.to_vec();
    let word = std::env::var_os(AMP_VARIABLE);
    if let Some(other) = word.as_ref().filter(|word| *word != "off") {
        return Err(format!(
            "{AMP_VARIABLE} is {other:?}; set it to off, for f32 throughout, or unset it"
        ));
    }
    for path in ["training.amp", "learner.amp"].iter().filter(|_| word.is_some()) {
        all.push(Override {
            is_above: true,
            ..Override::argument(format!("{AMP_VARIABLE}=off"), path, "off".into())
        });
    }
    Ok(all)
}

/// `None`: f32 throughout; else the type that autocast computes in.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq)]
pub struct TrainingPrecision(pub Option<Kind>);

impl TrainingPrecision {
    /// Precision of a batch on `device` at first. Where asking for its loss would mean waiting, one that is not finite
    /// is known at the step's end, and the env plays the next step in f32. `nonfinite_batches`: of its last step.
    pub fn at_first(self, device: Device, nonfinite_batches: u64) -> Option<Kind> {
        self.0.filter(|_| device == Device::Cpu || nonfinite_batches == 0)
    }
}

/// Chooses one precision for all envs: one that is not on CUDA is enough for `auto` to mean f32.
pub fn choose_precision(mut commands: Commands, experiment: Res<Experiment>) {
    let amp = experiment.scenario.training.amp;
    let devices = &experiment.scenario.run.devices;
    let on_cuda = devices.iter().all(|device| matches!(device, DeviceSpec::Cuda(_)));
    commands.insert_resource(TrainingPrecision(torch::mixed_kind("training.amp", amp, on_cuda)));
}

/// Every episode begins with a fresh scale: an env's training does not depend on earlier episodes.
pub fn reset_loss_scales(
    mut envs: Query<(&EnvId, &mut EnvStream, &mut EnvLossScaler)>,
    pool: Res<EnvPool>,
) -> Result<(), Failure> {
    let envs = envs.iter_mut().map(|(id, stream, scaler)| (*id, (stream, scaler)));
    pool.for_each(envs, |_, (mut stream, mut scaler)| {
        let _guard = stream.0.get().enter()?;
        Ok(scaler.reset()?)
    })
}

/// Saves the scales of the loss for a checkpoint inside the round.
pub fn save_loss_scales(
    mut envs: Query<(&EnvId, &mut EnvStream, &mut EnvLossScaler)>,
    mut round: ResMut<UnfinishedRound>,
) -> Result<(), Failure> {
    for_each_scale(&mut envs, |name, tensor| round.put_tensor(name, tensor))
}

/// Restores what [`save_loss_scales`] has kept.
pub fn restore_loss_scales(
    mut envs: Query<(&EnvId, &mut EnvStream, &mut EnvLossScaler)>,
    round: Res<UnfinishedRound>,
) -> Result<(), Failure> {
    for_each_scale(&mut envs, |name, tensor| round.copy_to(name, tensor))
}

/// Visits the state of every scaler, each tensor by its name in a checkpoint.
fn for_each_scale(
    envs: &mut Query<(&EnvId, &mut EnvStream, &mut EnvLossScaler)>,
    mut visit: impl FnMut(&str, &Tensor) -> Result<(), UnfinishedRoundError>,
) -> Result<(), Failure> {
    for (id, mut stream, mut scaler) in envs {
        let _guard = stream.0.get().enter()?;
        for (what, tensor) in scaler.0.get().iter().flat_map(LossScaler::state_tensors) {
            visit(&name_of(id, &format!("loss_scale.{what}")), tensor).in_env(id.index)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
