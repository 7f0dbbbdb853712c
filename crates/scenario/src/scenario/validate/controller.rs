//! Whether the controller, its network and its schedule fit the task.

use super::Findings;
use crate::scenario::{Catalog, HeuristicConfig, PolicyConfig, Scenario, ScheduleEntry, ScheduledCommand, TaskSpec};

pub(super) fn check_network(policy: &PolicyConfig, findings: &mut Findings) {
    let hidden_dim = policy.net_cfg.hidden_dim;
    if !hidden_dim.is_multiple_of(8) {
        let message = format!("{hidden_dim} is no multiple of 8");
        findings.error(["policy.net_cfg.hidden_dim"], message);
    }
}

pub(super) fn check_controller(scenario: &Scenario, task: &TaskSpec, catalog: &Catalog, findings: &mut Findings) {
    let policy = &scenario.policy;
    if policy.controller == "heuristic" && policy.heuristic.rotation.is_empty() {
        findings.error(["policy.heuristic.rotation"], "no blueprint to germinate");
    }
    for (index, name) in policy.heuristic.rotation.iter().enumerate() {
        findings.refuse_placebo(name, catalog, format!("policy.heuristic.rotation[{index}]"));
    }
    check_growths(scenario, task, catalog, findings);
    for (index, entry) in policy.schedule.entries.iter().enumerate() {
        if let ScheduledCommand::Germinate { blueprint, .. } = &entry.command {
            let path = format!("policy.schedule.entries[{index}].command.blueprint");
            findings.require_growth(blueprint, task, catalog, path.clone());
            findings.refuse_placebo(blueprint, catalog, path);
        }
    }
    if policy.controller == "replay" && policy.replay.run.is_none() {
        let message = "the replay controller needs the folder of a recorded run in policy.replay.run";
        findings.error(["policy.replay.run", "policy.replay", "policy.controller"], message);
    }
    if policy.controller == "schedule" && policy.schedule.entries.is_empty() {
        let message = "the schedule controller needs commands in policy.schedule.entries";
        findings.error(["policy.schedule", "policy.controller"], message);
    }
    check_entries(&policy.schedule.entries, task, findings);
}

/// Blueprints of the controller in force have to grow in the host.
fn check_growths(scenario: &Scenario, task: &TaskSpec, catalog: &Catalog, findings: &mut Findings) {
    let policy = &scenario.policy;
    let (list, names) = match policy.controller.as_str() {
        "heuristic" if policy.heuristic.rotation != HeuristicConfig::default().rotation => {
            ("policy.heuristic.rotation", &policy.heuristic.rotation)
        }
        "periodic" | "fragrow" => ("policy.periodic.blueprints", &policy.periodic.blueprints),
        _ => return,
    };
    for (index, name) in names.iter().enumerate() {
        findings.require_growth(name, task, catalog, format!("{list}[{index}]"));
    }
}

fn check_entries(entries: &[ScheduleEntry], task: &TaskSpec, findings: &mut Findings) {
    let mut previous = 0;
    for (index, entry) in entries.iter().enumerate() {
        let path = |field: &str| format!("policy.schedule.entries[{index}].{field}");
        if entry.step <= previous {
            let message = format!("step {} does not come after step {previous}", entry.step);
            findings.error([path("step")], message);
        } else {
            let paths = [path("step"), "run.max_steps".into(), "task.max_steps".into()];
            findings.require_step(entry.step, task, paths);
        }
        previous = entry.step;
        let paths = [path("command.slot"), "lifecycle.slots".into(), "task.slots".into()];
        findings.require_slot(entry.command.slot(), task, paths);
    }
}
