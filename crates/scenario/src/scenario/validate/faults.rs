//! Whether the damage done on purpose can take effect.

use super::Findings;
use crate::scenario::{Fault, Scenario, TaskSpec};

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
