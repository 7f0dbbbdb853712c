//! Whether the options of blueprints that may grow fit the task's slots.

use super::Findings;
use crate::growth::Topology;
use crate::scenario::{BlueprintEntry, Catalog, HostOutline, InitialTopology, Scenario, TaskSpec};

/// Attentions of texts whose heads do not divide the channels of a slot.
pub(super) fn check_heads(
    scenario: &Scenario,
    task: &TaskSpec,
    host: &HostOutline,
    catalog: &Catalog,
    findings: &mut Findings,
) {
    if host.topology != Topology::Tokens {
        return;
    }
    let options = &scenario.lifecycle.blueprints;
    for (name, heads) in [
        ("attention", options.attention.heads),
        ("flex_attention", options.flex_attention.heads),
    ] {
        let entry = catalog.blueprints.iter().find(|entry| entry.name == name);
        let mut slots = host.injections.iter().filter(|place| task.slots.contains(&place.slot));
        let unfit = slots.find(|place| place.channels % heads != 0);
        if let Some(place) = unfit.filter(|_| entry.is_some_and(|entry| may_grow(entry, scenario))) {
            let fitting = (1..=heads).rev().find(|heads| place.channels % heads == 0);
            let message = format!(
                "the {} channels of slot {} do not divide into {heads} heads",
                place.channels, place.slot
            );
            findings.error([format!("lifecycle.blueprints.{name}.heads")], message);
            findings.help(format!(
                "the next smaller number that divides them is {}; or leave \"{name}\" out of policy.masks.action_space.blueprint",
                fitting.unwrap_or(1)
            ));
        }
    }
}

/// Whether the action space or the initial topology lets it grow.
fn may_grow(blueprint: &BlueprintEntry, scenario: &Scenario) -> bool {
    let allowed = scenario.policy.masks.action_space.blueprint.as_ref();
    let is_planted = match &scenario.initial_topology {
        InitialTopology::Empty => false,
        InitialTopology::Seeds(seeds) => seeds.iter().any(|seed| seed.blueprint == blueprint.name),
    };
    is_planted || allowed.is_none_or(|allowed| allowed.contains(&blueprint.name))
}
