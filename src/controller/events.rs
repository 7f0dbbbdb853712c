//! The `decision` event: what a controller ordered in one env and step, why, and what came of it.

use std::collections::BTreeMap;

use bevy_ecs::query::QueryData;

use super::execution::{Chosen, CommandOutcome};
use super::systems::Masks;
use super::view::SlotReports;
use crate::actions::{HEADS, Head, MaskSet, OPS, Sample, relevant};
use crate::growth::LifecycleOp;
use crate::host::SlotLayout;
use crate::seed::BlueprintRegistry;
use crate::telemetry::{
    self, Alternative, Choice, DecisionReward, EnvContext, Event, Num, PolicyReadout, refusal_code,
};

/// Operations shown beside the chosen one.
const ALTERNATIVES: usize = 2;

/// A decided env.
#[derive(QueryData)]
pub struct DecidedEnv {
    reports: &'static SlotReports,
    masks: &'static Masks,
    chosen: &'static Chosen,
    outcome: &'static CommandOutcome,
}

impl DecidedEnvItem<'_, '_> {
    /// `None` before the env's first decision. `value_of` turns what a policy's value head put out into units of reward,
    /// `paid` is what the step was worth.
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
        let forced = masks.forced_heads(&chosen.indices);
        let report = command.slot().and_then(|slot| self.reports.0.get(slot)?.as_ref());
        let payload = telemetry::Decision {
            op: command.op(),
            slot: command.slot().and_then(|slot| slots.id_at(slot)),
            success: reason.is_none(),
            blocked: reason.map(|reason| refusal_code(reason).into()),
            effective_op: self.outcome.effective_op,
            forced: Head::ALL
                .iter()
                .zip(forced)
                .filter(|(_, forced)| *forced)
                .map(|(head, _)| (head.to_string(), true))
                .collect(),
            scripted: false,
            choice: Choice::of(command, |index| blueprints.name_of(index).into()),
            policy: chosen
                .sample
                .as_ref()
                .map(|sample| readout(sample, command.op(), masks, forced, value_of)),
            op_mask: (0..OPS).map(|op| masks.ops().contains(op)).collect(),
            reason: Some(chosen.reason.to_string()),
            contribution_age: report.and_then(|report| report.contribution_age),
            paid,
            action_id: context.action_id(),
        };
        let event = Event::env(context, payload);
        Some(match reason {
            Some(reason) => event.message(reason.to_string()),
            None => event,
        })
    }
}

/// What a learned policy computed when it chose `op` under `masks`; `forced` marks heads without a choice.
fn readout(
    sample: &Sample,
    op: LifecycleOp,
    masks: &MaskSet,
    forced: [bool; HEADS],
    value_of: impl Fn(f64) -> f64,
) -> PolicyReadout {
    let by_head = |value: &dyn Fn(Head) -> Option<f32>| -> BTreeMap<String, Num> {
        let relevant = Head::ALL.into_iter().filter(|&head| relevant(op, head));
        relevant
            .filter_map(|head| Some((head.name().into(), Num::from(value(head)?))))
            .collect()
    };
    let mut others: Vec<LifecycleOp> = LifecycleOp::ALL
        .iter()
        .copied()
        .filter(|&other| other != op && masks.ops().contains(other.code()))
        .collect();
    let probability = |op: LifecycleOp| sample.op_probabilities[op.code()];
    others.sort_by(|&a, &b| probability(b).total_cmp(&probability(a)));
    others.truncate(ALTERNATIVES);
    PolicyReadout {
        p: by_head(&|head| Some(sample.log_probs[head as usize].exp())),
        h: by_head(&|head| (!forced[head as usize]).then(|| sample.entropies[head as usize])),
        op_probs: sample.op_probabilities.map(Num::from).into(),
        alternatives: others
            .into_iter()
            .map(|op| Alternative {
                op,
                p: probability(op).into(),
            })
            .collect(),
        value: Num(value_of(sample.value.into())),
    }
}

#[cfg(test)]
mod tests;
