//! From a controller's command to a changed slot, or to a reason why not.

use bevy_ecs::prelude::*;

use crate::actions::Decision;
use crate::env::{GrowingEnv, GrowingEnvItem, GrowthContext, ValMetrics};
use crate::governor::Governor;
use crate::growth::{FailureReason, LifecycleCommand, LifecycleOp};
use crate::health::{Failure, InEnv};
use crate::seed::{BlueprintError, GateNetwork, Germination, SlotView, command_legal, plan_command};
use crate::torch::TorchError;

/// What was chosen in this step; `None` before the first.
#[derive(Component, Default)]
pub struct Chosen(pub Option<Decision>);

/// The step's command and its effect.
#[derive(Component, Clone, Debug, PartialEq)]
pub struct CommandOutcome {
    /// The ordered op if it took effect, else `Wait`.
    pub effective_op: LifecycleOp,
    /// The slot it was for, by index; `None` for a wait.
    pub slot: Option<usize>,
    /// Why the command changed nothing; `None` if it took effect, or was a wait.
    pub refusal: Option<FailureReason>,
}

impl Default for CommandOutcome {
    fn default() -> Self {
        Self {
            effective_op: LifecycleOp::Wait,
            slot: None,
            refusal: None,
        }
    }
}

/// Carries every env's command out. A refused or failed command leaves its env as it was.
pub fn execute_action(
    mut envs: Query<(
        GrowingEnv,
        &Chosen,
        &ValMetrics,
        &mut CommandOutcome,
        Option<&mut Governor>,
    )>,
    mut growth: GrowthContext,
) -> Result<(), Failure> {
    let mut envs: Vec<_> = envs.iter_mut().collect();
    envs.sort_unstable_by_key(|(env, ..)| env.id.index);
    for (env, chosen, val, outcome, governor) in &mut envs {
        let Some(decision) = &chosen.0 else {
            **outcome = CommandOutcome::default();
            continue;
        };
        let command = decision.command;
        let governor = governor.as_deref_mut();
        let refusal = execute(&command, val, governor, env, &mut growth).in_env(env.id.index)?;
        **outcome = CommandOutcome {
            effective_op: match refusal {
                None => command.op(),
                Some(_) => LifecycleOp::Wait,
            },
            slot: command.slot(),
            refusal,
        };
    }
    Ok(())
}

/// Validates, asks the governor, plans and applies; why the env's command was refused. An error ends the run.
fn execute(
    command: &LifecycleCommand,
    val: &ValMetrics,
    governor: Option<&mut Governor>,
    env: &mut GrowingEnvItem,
    growth: &mut GrowthContext,
) -> Result<Option<FailureReason>, Failure> {
    let limits = growth.experiment.limits();
    let views: Vec<_> = env.slots.records().map(|record| record.map(SlotView::from)).collect();
    if let Err(reason) = command_legal(command, &views, &limits) {
        return Ok(Some(reason));
    }
    if let Some(governor) = governor
        && let Some(factor) = governor.veto(command, val, &views, limits.max_seeds)
    {
        return Ok(Some(FailureReason::GovernorVeto { factor }));
    }
    let Some(slot) = command.slot() else {
        return Ok(None);
    };
    let (held, rules) = (&env.slots.0[slot], growth.rules(&limits));
    let gate_params = GateNetwork::param_count(held.spec.channels);
    let germination = |order| {
        let germination = growth.identity(order, env).map(|identity| Germination {
            identity,
            gate_params,
            accuracy: val.accuracy_percent,
        });
        germination.map_err(|_| FailureReason::BlueprintUnavailable)
    };
    match plan_command(command, held.record.as_ref(), gate_params, germination, &rules) {
        Ok(plan) => match growth.apply(plan, slot, env, true) {
            Ok(()) => Ok(None),
            Err(failure) => recoverable(failure).map(Some),
        },
        Err(refusal) => Ok(Some(refusal)),
    }
}

/// Growth that the device has no memory for is a failed command; anything else ends the run.
fn recoverable(failure: Failure) -> Result<FailureReason, Failure> {
    let is_out_of_memory = match (failure.cause::<TorchError>(), failure.cause::<BlueprintError>()) {
        (Some(error), _) => matches!(error, TorchError::OutOfMemory(_)),
        (_, Some(BlueprintError::Torch(error))) => {
            matches!(TorchError::classify(error.to_string()), TorchError::OutOfMemory(_))
        }
        _ => false,
    };
    if is_out_of_memory {
        Ok(FailureReason::OutOfMemory)
    } else {
        Err(failure)
    }
}
