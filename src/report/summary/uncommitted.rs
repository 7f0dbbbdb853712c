//! The reasons why a run has committed no seed: the fate of those that germinated, the gates that refused, and the settings to
//! change. Drawn from the [counts](crate::telemetry::SeedEnds) that the live state keeps.

use std::cmp::Reverse;
use std::fmt::Write;

use super::{listed, number, said};
use crate::growth::GateLevel::{self, G2, G3, G5};
use crate::growth::PruneReason::{self, HoldingTimeout, Policy};
use crate::growth::SeedStage;
use crate::seed::next_stage;
use crate::telemetry::{Ages, LiveState};

/// Settings that are proposed. They are those of the causes that ended most seeds.
const REMEDIES_SHOWN: usize = 3;

/// The change by gate and check that makes it refuse less.
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

/// Text in place of a table of committed seeds.
pub(super) fn uncommitted(live: &LiveState, width: usize) -> String {
    let (seeds, run) = (&live.seed_ends, live.started.as_ref());
    let controller = run.map_or("the controller", |run| run.controller.as_str());
    let mut text = String::from("No seed was committed");
    if live.episodes_done == 0 && seeds.germinated == 0 {
        return text + ".\n";
    }
    _ = writeln!(text, "; {} germinated", seeds.germinated);
    let mut ends: Vec<_> = seeds.ends.iter().collect();
    ends.sort_by_key(|(_, ages)| Reverse(count(ages)));
    let mut remedies = Vec::new();
    if seeds.germinated == 0 {
        remedies.push("choose another policy.controller, or raise run.max_steps".into());
    }
    for (&(stage, reason), ages) in ends {
        let by = match reason {
            Some(Policy) => format!("pruned by {controller}"),
            Some(reason) => format!("pruned for {reason}"),
            None => "the episode was over".into(),
        };
        _ = writeln!(text, "{:>8} in {stage}, {} steps old: {by}", count(ages), range(ages));
        let remedy = remedy(live, stage, reason, count(ages));
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

/// Advice on settings that would have let the `seeds` that ended so continue.
fn remedy(live: &LiveState, stage: SeedStage, reason: Option<PruneReason>, seeds: u64) -> String {
    let refused = refused_most(live, stage, seeds);
    match reason {
        None | Some(Policy | HoldingTimeout) if refused.is_some() => refused.unwrap_or_default(),
        Some(Policy) => {
            format!("pruned in {stage}: choose another policy.controller, or raise lifecycle.min_prune_age")
        }
        Some(HoldingTimeout) => "no commit was ordered in time: raise lifecycle.max_holding_steps".into(),
        Some(_) => "training diverged: lower the rates of task.host_opt and task.seed_opt".into(),
        None if stage == SeedStage::Holding => {
            "no commit was ordered in time: raise run.max_steps, or choose another policy.controller".into()
        }
        None => format!(
            "episodes were over before seeds had passed {stage}: raise run.max_steps; if ADVANCE is never ordered, set \
             lifecycle.auto_forward"
        ),
    }
}

/// The setting that changes the most frequent refusal of the gate after `stage`, if that gate refused at least once for each
/// of the seeds that ended there.
fn refused_most(live: &LiveState, stage: SeedStage, seeds: u64) -> Option<String> {
    let gate = next_stage(stage).map_or(G5, |(gate, _)| gate);
    let of_gate = live.seed_ends.refusals.iter().filter(|((of, _), _)| *of == gate);
    let ((_, check), refused) = of_gate.max_by_key(|(_, refused)| refused.count)?;
    let (.., setting) = CHECKS.iter().find(|(of, name, _)| *of == gate && name == check)?;
    (refused.count >= seeds).then(|| format!("{gate} refused for {check}: {setting}"))
}

#[cfg(test)]
mod tests;
