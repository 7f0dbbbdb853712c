//! Whether the governor's rules, and the damage done on purpose, can take effect.

use super::Findings;
use crate::scenario::{CollapseConfig, Fault, GovernorConfig, Scenario, SnapshotPolicy, TaskSpec};

pub(super) fn check_governor(governor: &GovernorConfig, findings: &mut Findings) {
    if governor.history_window < governor.min_history {
        let message = format!(
            "{} remembered losses never reach min_history {}: no divergence would be seen",
            governor.history_window, governor.min_history
        );
        findings.error(["governor.history_window", "governor.min_history"], message);
    }
    let CollapseConfig { arm, band } = governor.collapse;
    if arm >= 1.0 - band {
        let message = format!("arm {arm} must lie below 1 - band ({:.3})", 1.0 - band);
        findings.error(["governor.collapse.arm", "governor.collapse.band"], message);
    }
    if let SnapshotPolicy::Adaptive {
        min_interval,
        max_interval,
        ..
    } = governor.snapshot
        && min_interval > max_interval
    {
        let message = format!("min_interval {min_interval} exceeds max_interval {max_interval}");
        findings.error(
            ["governor.snapshot.min_interval", "governor.snapshot.max_interval"],
            message,
        );
    }
}

pub(super) fn check_faults(scenario: &Scenario, task: &TaskSpec, findings: &mut Findings) {
    let sizes = task.data.part_sizes(&task.split);
    let batches = sizes.map(|sizes| task.train_batches(sizes.train, scenario.run.n_envs));
    for (index, entry) in scenario.faults.iter().enumerate() {
        let path = |field: &str| format!("faults[{index}].{field}");
        let run = &scenario.run;
        for (what, field, index, count) in [
            ("env", "run.n_envs", entry.env, run.n_envs),
            ("round", "run.rounds", entry.round as usize, run.rounds as usize),
        ] {
            if index >= count {
                let message = format!("there is no {what} {index}; the run has {count}, counted from 0");
                findings.error([path(what), field.into()], message);
            }
        }
        findings.require_step(entry.step, task, [path("step"), "run.max_steps".into()]);
        if let (Some(batch), Some(batches)) = (entry.batch, batches)
            && batch >= batches
        {
            let message = format!("a step has no batch {batch}; it has {batches}, counted from 0");
            findings.error([path("batch"), "task.batch_size".into()], message);
        }
        if let Fault::ScaleSeed { slot, .. } = entry.fault {
            findings.require_slot(slot, task, [path("fault.slot"), "lifecycle.slots".into()]);
        }
    }
}
