//! Damage done on purpose: the `faults` section of a scenario, for tests and to see the governor work.
//!
//! Every entry is applied once, at its own env, round, step and batch, and recorded as a `user_event`. Nothing is drawn at
//! random and no other env is touched, so the rest of a run is the run without the fault.

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use tch::Tensor;

use crate::clock::RunClock;
use crate::env::{EnvId, Experiment, StepStatus, ValMetrics};
use crate::health::Failure;
use crate::nn::Param;
use crate::scenario::{Fault, FaultEntry};
use crate::schedule::{AddWork, Assess, Startup, Work};
use crate::telemetry::{Event, Num, TelemetryOutbox, UserEvent, UserValue};
use crate::torch::{NoGrad, TorchError};
use crate::training::{BatchHooks, BatchPoint, HookedBatch, TrainingEnvItem};

/// Applies the scenario's faults; does nothing where there are none.
pub struct FaultPlugin;

impl Plugin for FaultPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<BatchHooks>()
            .add_work_if(Startup, Work::ArmFaults, arm_faults, has_faults)
            .add_work_if(Assess, Work::SpikeLosses, spike_losses, has_faults);
    }
}

fn has_faults(experiment: Res<Experiment>) -> bool {
    !experiment.scenario.faults.is_empty()
}

/// Batches of a scenario without faults call nothing.
pub(crate) fn arm_faults(mut hooks: ResMut<BatchHooks>) {
    hooks.add_first(BatchPoint::Backward, inject_faults);
}

/// Weights and gradients of the batch, between backward and update.
fn inject_faults(batch: &mut HookedBatch) -> Result<(), Failure> {
    let has_parts = batch.experiment.scenario.training.micro_batches > 1;
    for entry in due(&batch.experiment.scenario.faults, batch.clock) {
        if (entry.env, entry.batch.unwrap_or(0)) != (batch.env.id.index, batch.index) {
            continue;
        }
        // Memory suffices for a part.
        if entry.fault == Fault::OutOfMemory && has_parts {
            continue;
        }
        if damage(&entry.fault, batch.env)? {
            batch.emit(event(&entry.fault));
        }
        match entry.fault {
            Fault::EnvError => return Err(Failure::message("the scenario's faults request an error")),
            Fault::OutOfMemory => return Err(TorchError::OutOfMemory("the scenario's faults request it".into()).into()),
            _ => {}
        }
    }
    Ok(())
}

/// After the sync: what the governor is going to judge.
pub(crate) fn spike_losses(
    mut envs: Query<(&EnvId, &StepStatus, &mut ValMetrics)>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    mut outbox: ResMut<TelemetryOutbox>,
) {
    for entry in due(&experiment.scenario.faults, &clock) {
        let Fault::LossSpike(loss) = entry.fault else { continue };
        let mut envs = envs.iter_mut();
        let meant = envs.find(|(id, status, _)| id.index == entry.env && status.is_active());
        if let Some((id, _, mut val)) = meant {
            val.loss = loss;
            outbox.push(Event::env(experiment.context(id, &clock), event(&entry.fault)));
        }
    }
}

/// The faults of this round and step, in the scenario's order.
fn due<'a>(faults: &'a [FaultEntry], clock: &RunClock) -> impl Iterator<Item = &'a FaultEntry> {
    let (round, step) = (clock.round(), clock.step());
    faults
        .iter()
        .filter(move |entry| (entry.round, entry.step) == (round, step))
}

/// Returns whether there was anything to damage. Multiplying by NaN makes every value NaN.
fn damage(fault: &Fault, env: &mut TrainingEnvItem) -> Result<bool, Failure> {
    let _no_grad = NoGrad::new();
    let handle = |param: &Param| param.tensor.shallow_clone();
    let mut weights = || env.host.0.get().params().trainable().iter().map(handle).collect();
    let (tensors, factor): (Vec<Tensor>, f64) = match *fault {
        Fault::NanWeight => (weights(), f64::NAN),
        Fault::ScaleWeights(factor) => (weights(), factor),
        Fault::NanGrad => {
            let gradients = env.optimizer.0.get().params().iter().map(Tensor::grad);
            (gradients.filter(Tensor::defined).collect(), f64::NAN)
        }
        Fault::ScaleSeed { slot, factor } => {
            let place = env.slots.0.iter_mut().find(|place| place.spec.slot == slot);
            let Some(module) = place.and_then(|place| place.module.as_mut()) else {
                return Ok(false);
            };
            (module.get().params().map(handle).collect(), factor)
        }
        // Training has seen to the last two itself.
        Fault::EnvError | Fault::OutOfMemory | Fault::KernelError(_) | Fault::NanLoss => return Ok(true),
        Fault::LossSpike(_) => return Ok(false),
    };
    let is_anything = !tensors.is_empty();
    for mut tensor in tensors {
        let _ = tensor.f_mul_scalar_(factor).map_err(TorchError::from)?;
    }
    Ok(is_anything)
}

fn event(fault: &Fault) -> UserEvent {
    let number = |value: f64| UserValue::Number(Num(value));
    let fields: Vec<(&str, UserValue)> = match fault {
        Fault::NanWeight | Fault::NanGrad | Fault::NanLoss | Fault::EnvError | Fault::OutOfMemory => Vec::new(),
        Fault::KernelError(call) => vec![("call", number(f64::from(*call)))],
        Fault::ScaleWeights(factor) => vec![("factor", number(*factor))],
        Fault::ScaleSeed { slot, factor } => {
            vec![("slot", UserValue::Text(slot.to_string())), ("factor", number(*factor))]
        }
        Fault::LossSpike(loss) => vec![("loss", number(*loss))],
    };
    UserEvent {
        name: format!("fault.{}", fault.name()),
        fields: fields.into_iter().map(|(key, value)| (key.into(), value)).collect(),
    }
}
