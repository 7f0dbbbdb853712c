//! Whether the topology that episodes start with fits task and controller.

use super::Findings;
use crate::scenario::{Catalog, InitialTopology, Scenario, TaskSpec};

pub(super) fn check_topology(scenario: &Scenario, task: &TaskSpec, catalog: &Catalog, findings: &mut Findings) {
    if scenario.policy.controller == "static" && scenario.initial_topology == InitialTopology::Empty {
        let message = "a static topology needs one: initial_topology is empty";
        findings.error(["policy.controller", "initial_topology"], message);
        findings.help("controller \"wait\" plays the host alone");
    }
    let InitialTopology::Seeds(seeds) = &scenario.initial_topology else {
        return;
    };
    if seeds.is_empty() {
        findings.error(["initial_topology"], "lists no seed; for empty slots write empty");
    }
    if task.max_seeds > 0 && seeds.len() > task.max_seeds as usize {
        let message = format!("{} seeds, but at most {} may grow", seeds.len(), task.max_seeds);
        findings.error(["initial_topology", "lifecycle.max_seeds", "task.max_seeds"], message);
    }
    for (index, seed) in seeds.iter().enumerate() {
        let path = |field: &str| format!("initial_topology[{index}].{field}");
        if seeds[..index].iter().any(|earlier| earlier.slot == seed.slot) {
            findings.error([path("slot")], format!("slot {} is listed twice", seed.slot));
        }
        let paths = [path("slot"), "lifecycle.slots".into(), "task.slots".into()];
        findings.require_slot(seed.slot, task, paths);
        findings.require_growth(&seed.blueprint, task, catalog, path("blueprint"));
        findings.refuse_placebo(&seed.blueprint, catalog, path("blueprint"));
    }
}
