//! In which precision hosts train: decided once, announced if it is not what was asked for.

use bevy_ecs::prelude::*;
use tch::Kind;

use crate::env::Experiment;
use crate::scenario::AmpMode;
use crate::torch::{self, DeviceSpec};

/// `None`: f32 throughout; else the type that autocast computes in.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq)]
pub struct TrainingPrecision(pub Option<Kind>);

/// bf16 needs no loss scaling and is what autocast uses here; `auto` falls back to f32 where the device has no bf16.
pub fn choose_precision(mut commands: Commands, experiment: Res<Experiment>) {
    let on_cpu = experiment.scenario.run.devices.contains(&DeviceSpec::Cpu);
    let has_bf16 = !on_cpu || torch::cpu_has_bf16();
    let chosen = match experiment.scenario.training.amp {
        AmpMode::Off => None,
        AmpMode::Bf16 => Some(Kind::BFloat16),
        AmpMode::Auto if has_bf16 => Some(Kind::BFloat16),
        AmpMode::Auto => {
            tracing::warn!("training.amp: auto, but this CPU computes no bf16 (AVX512-BF16); training in f32");
            None
        }
    };
    commands.insert_resource(TrainingPrecision(chosen));
}
