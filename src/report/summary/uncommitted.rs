//! Why a run has committed no seed: what became of those that germinated, which gates refused, and the settings to change.
//! Drawn from the [counts](crate::telemetry::SeedEnds) that the live state keeps.

use std::cmp::Reverse;
use std::fmt::Write;

use super::{listed, number, said};
use crate::growth::GateLevel::{self, G2, G3, G5};
use crate::growth::PruneReason::{self, HoldingTimeout, Policy};
use crate::growth::{LifecycleOp, SeedStage};
use crate::seed::next_stage;
use crate::telemetry::{Ages, LiveState};

/// Settings that are proposed, those of what ended most seeds.
const REMEDIES_SHOWN: usize = 3;

/// By gate and check: what makes it refuse less.
const CHECKS: [(GateLevel, &str, &str); 11] = [
    (G2, "steps_in_stage", "lower lifecycle.gates.min_training_steps"),
    (G2, "gradient_health", "lower lifecycle.gates.min_gradient_health"),
    (G2, "not_exploding", "raise lifecycle.exploding_factor"),
    (G2, "improvement", "set lifecycle.gates.mode to permissive"),
    (G2, "gradient_ratio", "set lifecycle.gates.mode to permissive"),
    (G3, "steps_in_stage", "lower lifecycle.gates.min_blending_steps"),
    (G3, "target_is_full", "restrict policy.masks.action_space.alpha_target"),
    (G3, "target_reached", "raise run.max_steps"),
    (G5, "contribution_age", "set attribution.cadence to every_step"),
    (G5, "healthy", "raise lifecycle.exploding_factor"),
    (G5, "contribution", "set lifecycle.gates.mode to permissive"),
];

/// What is said in place of a table of committed seeds.
pub(super) fn uncommitted(live: &LiveState, width: usize) -> String {
    let (seeds, controller) = (&live.seed_ends, controller(live));
    let mut text = String::from("No seed was committed");
    if live.episodes_done == 0 && seeds.germinated == 0 {
        return text + ".\n";
    }
    _ = writeln!(text, "; {} germinated", seeds.germinated);
    let mut ends: Vec<_> = seeds.ends.iter().collect();
    ends.sort_by_key(|(_, ages)| Reverse(count(ages)));
    let mut remedies = Vec::new();
    if seeds.germinated == 0 {
        remedies.push(setting(controller, LifecycleOp::Germinate));
    }
    for (&(stage, reason), ages) in ends {
        let by = match reason {
            Some(Policy) => format!("pruned by {controller}"),
            Some(reason) => format!("pruned for {reason}"),
            None => "the episode was over".into(),
        };
        _ = writeln!(text, "{:>8} in {stage}, {} steps old: {by}", count(ages), range(ages));
        let remedy = remedy(live, stage, reason, ages);
        if !remedies.contains(&remedy) {
            remedies.push(remedy);
        }
    }
    let refused = seeds.refusals.iter().map(|((gate, check), refused)| {
        let (asked, most) = (number(refused.asked, 2), number(refused.most, 2));
        format!("{gate} {check} {}x (asked {asked}; most {most})", refused.count)
    });
    let refused: Vec<String> = refused.collect();
    if !refused.is_empty() {
        text += &listed("refused", &refused, width);
    }
    for remedy in remedies.iter().take(REMEDIES_SHOWN) {
        text += &said("to change", remedy, width);
    }
    text
}

fn controller(live: &LiveState) -> &str {
    live.started.as_ref().map_or("the controller", |run| &run.controller)
}

fn count(ages: &Ages) -> u64 {
    ages.values().sum()
}

/// `5 to 10`
fn range(ages: &Ages) -> String {
    match (ages.keys().next(), ages.keys().next_back()) {
        (Some(first), Some(last)) if first < last => format!("{first} to {last}"),
        (only, _) => only.map_or_else(String::new, u32::to_string),
    }
}

/// What makes a controller order an operation more often, or a prune less often.
fn setting(controller: &str, op: LifecycleOp) -> String {
    let way = if op == LifecycleOp::Prune { "lower" } else { "raise" };
    let name = op.name().to_ascii_lowercase();
    match (controller, op) {
        ("actor_critic", _) => format!("{way} policy.net_cfg.op_bias.{name}"),
        ("heuristic", LifecycleOp::Prune) => "raise policy.heuristic.prune_if_accuracy_drops_by".into(),
        ("heuristic", LifecycleOp::Commit) => "lower policy.heuristic.min_improvement_to_commit".into(),
        ("heuristic", _) => "lower policy.heuristic.plateau_steps_to_germinate".into(),
        _ => "choose another policy.controller".into(),
    }
}

/// What would have let the seeds on that ended so.
fn remedy(live: &LiveState, stage: SeedStage, reason: Option<PruneReason>, ages: &Ages) -> String {
    let (run, controller) = (live.started.as_ref(), controller(live));
    let [prune, commit] = [LifecycleOp::Prune, LifecycleOp::Commit].map(|op| setting(controller, op));
    let asked = run.and_then(|run| run.min_training_steps).unwrap_or_default();
    let is_young = ages.keys().any(|&age| age < asked);
    let asks = format!("lifecycle.gates.min_training_steps asks {asked} steps of training");
    let refused = refused_most(live, stage, count(ages));
    match (reason, stage) {
        (Some(Policy), SeedStage::Training) if is_young => format!(
            "{asks}, {controller} pruned at an age of {}: lower it, raise lifecycle.min_prune_age to {}, or {prune}",
            range(ages),
            asked + 1
        ),
        (None | Some(Policy | HoldingTimeout), _) if refused.is_some() => refused.unwrap_or_default(),
        (Some(Policy), _) => format!("{controller} pruned in {stage}: {prune}, or raise lifecycle.min_prune_age"),
        (Some(HoldingTimeout), _) => {
            format!("no commit was ordered in time: {commit}, or raise lifecycle.max_holding_steps")
        }
        (Some(_), _) => "training diverged: lower the rates of task.host_opt and task.seed_opt".into(),
        (None, SeedStage::Training) if is_young => {
            format!("{asks}, and the episode was over first: lower it, or raise run.max_steps")
        }
        (None, SeedStage::Holding) => format!("no commit was ordered: {commit}, or raise run.max_steps"),
        (None, _) => format!(
            "episodes were over before seeds had passed {stage}: raise run.max_steps; if ADVANCE is never ordered, set \
             lifecycle.auto_forward"
        ),
    }
}

/// Where the gate behind `stage` refused at least once for each of the seeds that ended there: what its most frequent
/// refusal is changed by.
fn refused_most(live: &LiveState, stage: SeedStage, seeds: u64) -> Option<String> {
    let gate = next_stage(stage).map_or(G5, |(gate, _)| gate);
    let of_gate = live.seed_ends.refusals.iter().filter(|((of, _), _)| *of == gate);
    let ((_, check), refused) = of_gate.max_by_key(|(_, refused)| refused.count)?;
    let (.., setting) = CHECKS.iter().find(|(of, name, _)| *of == gate && name == check)?;
    (refused.count >= seeds).then(|| format!("{gate} refused for {check}: {setting}"))
}

#[cfg(test)]
mod tests;
