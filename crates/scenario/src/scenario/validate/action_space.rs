//! Whether an action space leaves something to do.

use super::Findings;
use crate::growth::{AlphaTarget, GerminationStyle, LifecycleOp, Tempo};
use crate::scenario::{ActionSpace, Catalog, Scenario};

const PATH: &str = "policy.masks.action_space";

pub(super) fn check_action_space(scenario: &Scenario, catalog: &Catalog, findings: &mut Findings) {
    let space = &scenario.policy.masks.action_space;
    let lists = [
        ("allowed_ops", is_empty(&space.allowed_ops)),
        ("blueprint", is_empty(&space.blueprint)),
        ("style", is_empty(&space.style)),
        ("tempo", is_empty(&space.tempo)),
        ("alpha_target", is_empty(&space.alpha_target)),
        ("alpha_speed", is_empty(&space.alpha_speed)),
        ("alpha_curve", is_empty(&space.alpha_curve)),
    ];
    for (name, _) in lists.iter().filter(|(_, is_empty)| *is_empty) {
        findings.error([format!("{PATH}.{name}")], "allows nothing");
        findings.help("leave it out to allow everything");
    }
    if excludes(&space.allowed_ops, &LifecycleOp::Wait) {
        let message = "\"wait\" is missing, which is always possible";
        findings.error([format!("{PATH}.allowed_ops")], message);
    }
    if let Some(blueprints) = &space.blueprint
        && !blueprints.is_empty()
        && blueprints.iter().all(|name| catalog.is_placebo(name))
    {
        findings.error([format!("{PATH}.blueprint")], "allows nothing that has parameters");
    }
    if scenario.policy.controller == "heuristic" {
        check_heuristic(scenario, space, findings);
    }
}

fn is_empty<T>(list: &Option<Vec<T>>) -> bool {
    list.as_ref().is_some_and(Vec::is_empty)
}

/// Whether a list excludes a member; an empty list is another finding.
fn excludes<T: PartialEq>(list: &Option<Vec<T>>, member: &T) -> bool {
    list.as_ref()
        .is_some_and(|list| !list.is_empty() && !list.contains(member))
}

/// The rules know one way to germinate, and the blueprints of their rotation.
fn check_heuristic(scenario: &Scenario, space: &ActionSpace, findings: &mut Findings) {
    let rotation = &scenario.policy.heuristic.rotation;
    if !rotation.is_empty() && rotation.iter().all(|name| excludes(&space.blueprint, name)) {
        let paths = ["policy.heuristic.rotation".into(), format!("{PATH}.blueprint")];
        findings.error(paths, "no blueprint of the rotation is in the action space");
    }
    let needed = [
        (
            "style",
            "sigmoid_add",
            excludes(&space.style, &GerminationStyle::SigmoidAdd),
        ),
        ("tempo", "standard", excludes(&space.tempo, &Tempo::Standard)),
        (
            "alpha_target",
            "full",
            excludes(&space.alpha_target, &AlphaTarget::Full),
        ),
    ];
    for (list, member, _) in needed.into_iter().filter(|(_, _, is_excluded)| *is_excluded) {
        let message = format!("without \"{member}\" the heuristic controller can only wait");
        findings.warning([format!("{PATH}.{list}")], message);
    }
}
