//! The end of a step's device work: one wait and one packed read per env.

use bevy_ecs::prelude::*;

use super::pass::{MAIN, ValPlan};
use crate::env::{EnvId, EnvStream, LoadedData, StepStatus, ValMetrics};
use crate::health::{Failure, InEnv};
use crate::torch::{HostSyncCounter, read_f64};
use crate::training::{EnvAccumulators, StepResult};

/// The step's only wait; errors of earlier device work surface here.
pub fn wait_all(
    mut envs: Query<(&EnvId, &StepStatus, &mut EnvStream)>,
    syncs: Res<HostSyncCounter>,
) -> Result<(), Failure> {
    syncs.allow();
    for (id, status, mut stream) in &mut envs {
        if status.is_active() {
            stream.0.get().synchronize().in_env(id.index)?;
        }
    }
    Ok(())
}

/// Reads every env's pack and gives its numbers their names.
pub fn unpack(
    mut envs: Query<(&EnvId, &StepStatus, &mut EnvAccumulators, &ValPlan, &mut StepResult)>,
    syncs: Res<HostSyncCounter>,
) -> Result<(), Failure> {
    for (id, status, mut sums, plan, mut result) in &mut envs {
        result.0 = None;
        if !status.is_active() {
            continue;
        }
        let sums = sums.0.get();
        let pack = read_f64(sums.pack(), &syncs).in_env(id.index)?;
        result.0 = Some(sums.layout().unpack(&pack, plan.places(), MAIN));
    }
    Ok(())
}

/// Loss and accuracy of the network as it is.
pub fn derive_val_metrics(mut envs: Query<(&StepResult, &mut ValMetrics)>, data: Res<LoadedData>) {
    let predictions = data.feed.val_units();
    for (result, mut val) in &mut envs {
        let Some(numbers) = &result.0 else { continue };
        let main = numbers.configs[MAIN];
        *val = ValMetrics {
            loss: main.loss(predictions),
            accuracy_percent: main.accuracy_percent(predictions),
        };
    }
}
