//! Whether every blueprint that may grow has the initialization that the scenario asks for, in the features of the task's slots.

use super::Findings;
use crate::growth::Topology;
use crate::scenario::tree::listed;
use crate::scenario::{BlueprintEntry, Catalog, HostOutline, InitialTopology, Scenario, SeedInit, TaskSpec};

pub(super) fn check_inits(scenario: &Scenario, task: &TaskSpec, catalog: &Catalog, findings: &mut Findings) {
    let topology = task.data.topology();
    let lifecycle = &scenario.lifecycle;
    for blueprint in catalog.blueprints.iter().filter(|blueprint| blueprint.selectable) {
        let init = lifecycle.init_of(&blueprint.name);
        let Some(inits) = blueprint.inits_in(topology) else {
            continue;
        };
        if inits.contains(&init) || !may_grow(blueprint, scenario) {
            continue;
        }
        let message = format!(
            "seeds of \"{}\" cannot be initialized as {}; valid: {}",
            blueprint.name,
            init.name(),
            listed(inits.iter().map(SeedInit::name))
        );
        let is_own = lifecycle.blueprints.init_of(&blueprint.name).is_some();
        let own = format!("lifecycle.blueprints.{}.init", blueprint.name);
        let path = if is_own { own } else { "lifecycle.seed_init".into() };
        findings.error([path], message);
        if !is_own {
            findings.help(format!(
                "leave it out of policy.masks.action_space.blueprint, or give it another init, as in \
                 lifecycle.blueprints: (norm: (init: zero_gain)); instead of {} for all, each blueprint may name its own",
                init.name()
            ));
        }
    }
}

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
