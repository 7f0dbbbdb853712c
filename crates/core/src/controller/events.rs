//! The `decision` event: a controller's order in one env and step, its reason, and the result.

use std::collections::BTreeMap;

use bevy_ecs::query::QueryData;

use super::systems::{Chosen, CommandOutcome, Masks};
use crate::actions::{HEADS, Head, MaskSet, Sample, choice_of, relevant};
use crate::growth::LifecycleOp;
use crate::host::SlotLayout;
use crate::seed::BlueprintRegistry;
use crate::telemetry::{self, DecisionReward, EnvContext, Event, Num, PolicyReadout, refusal_code};

/// A decided env.
#[derive(QueryData)]
pub struct DecidedEnv {
    masks: &'static Masks,
    chosen: &'static Chosen,
    outcome: &'static CommandOutcome,
}

impl DecidedEnvItem<'_, '_> {
    /// `None` before the env's first decision. `value_of` converts the output of a policy's value head into units of reward,
    /// and `paid` is the reward of the step.
    pub fn event(
        &self,
        context: EnvContext,
        slots: &SlotLayout,
        blueprints: &BlueprintRegistry,
        value_of: impl Fn(f64) -> f64,
        paid: Option<DecisionReward>,
    ) -> Option<Event> {
        let (chosen, masks) = (self.chosen.0.as_ref()?, self.masks.0.as_ref()?);
        let command = &chosen.command;
        let reason = self.outcome.refusal.as_ref();
        let payload = telemetry::Decision {
            op: command.op(),
            slot: command.slot().and_then(|slot| Some(slots.slots().get(slot)?.slot)),
            blocked: reason.map(|reason| refusal_code(reason).into()),
            choice: choice_of(command, |index| blueprints.name_of(index).into()),
            policy: chosen.sample.as_ref().map(|sample| {
                let forced = masks.forced_heads(&chosen.indices);
                readout(sample, command.op(), masks, forced, value_of)
            }),
            allowed: allowed(masks).collect(),
            reason: chosen.sample.is_none().then(|| chosen.reason.to_string()),
            paid,
        };
        let event = Event::env(context, payload);
        Some(match reason {
            Some(reason) => event.message(reason.to_string()),
            None => event,
        })
    }
}

fn allowed(masks: &MaskSet) -> impl Iterator<Item = LifecycleOp> {
    let members = LifecycleOp::ALL.into_iter();
    members.filter(|op| masks.ops().contains(op.code()))
}

/// Outputs of a learned policy when it chose `op` under `masks`. `forced` marks heads without a choice.
fn readout(
    sample: &Sample,
    op: LifecycleOp,
    masks: &MaskSet,
    forced: [bool; HEADS],
    value_of: impl Fn(f64) -> f64,
) -> PolicyReadout {
    let by_head = |value: &dyn Fn(Head) -> f32| -> BTreeMap<String, Num> {
        let heads = Head::ALL.into_iter();
        let chosen = heads.filter(|&head| relevant(op, head) && !forced[head as usize]);
        chosen.map(|head| (head.name().into(), value(head).into())).collect()
    };
    let op_probs: Vec<_> = allowed(masks)
        .map(|op| sample.op_probabilities[op.code()].into())
        .collect();
    PolicyReadout {
        p: by_head(&|head| sample.log_probs[head as usize].exp()),
        op_probs: if op_probs.len() > 1 { op_probs } else { Vec::new() },
        value: Num::short(value_of(sample.value.into())),
    }
}

#[cfg(test)]
mod tests;
