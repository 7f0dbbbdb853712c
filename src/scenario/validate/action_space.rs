//! Whether an action space leaves something to do (spec 03 §3.4, §3.5).

use super::{ActionSpace, Catalog, Findings, Scenario};

const PATH: &str = "policy.masks.action_space";
/// How the rule-based controller germinates (spec 03 §9.2).
const HEURISTIC_STYLE: [(&str, &str); 3] = [
    ("style", "sigmoid_add"),
    ("tempo", "standard"),
    ("alpha_target", "full"),
];

pub fn check_action_space(scenario: &Scenario, catalog: &Catalog, findings: &mut Findings) {
    let space = &scenario.policy.masks.action_space;
    for (name, list) in space.lists() {
        if list.is_some_and(<[String]>::is_empty) {
            findings.error([format!("{PATH}.{name}")], "allows nothing".into());
            findings.help("leave it out to allow everything");
        }
    }
    let ops = space.allowed_ops.as_deref().filter(|ops| !ops.is_empty());
    if !ActionSpace::allows(ops, "wait") {
        findings.error(
            [format!("{PATH}.allowed_ops")],
            "lacks \"wait\", which is always possible".into(),
        );
    }
    let is_placebo = |name: &str| {
        let known = catalog
            .blueprints
            .iter()
            .find(|known| known.name.eq_ignore_ascii_case(name));
        known.is_some_and(|blueprint| !blueprint.selectable)
    };
    if let Some(blueprints) = space.blueprint.as_deref()
        && !blueprints.is_empty()
        && !scenario.lifecycle.allow_parameterless_seeds
        && blueprints.iter().all(|name| is_placebo(name))
    {
        findings.error(
            [format!("{PATH}.blueprint")],
            "allows nothing that has parameters".into(),
        );
        findings.help("a placebo needs lifecycle.allow_parameterless_seeds: true");
    }
    if scenario.policy.controller == "heuristic" {
        check_heuristic(scenario, space, findings);
    }
}

/// The rules know one way to germinate, and the blueprints of their rotation.
fn check_heuristic(scenario: &Scenario, space: &ActionSpace, findings: &mut Findings) {
    let rotation = &scenario.policy.heuristic.rotation;
    let blueprints = space.blueprint.as_deref().filter(|names| !names.is_empty());
    if !rotation.is_empty() && !rotation.iter().any(|name| ActionSpace::allows(blueprints, name)) {
        let paths = ["policy.heuristic.rotation".into(), format!("{PATH}.blueprint")];
        findings.error(paths, "no blueprint of the rotation is in the action space".into());
    }
    for (name, list) in space.lists() {
        let list = list.filter(|list| !list.is_empty());
        for (_, member) in HEURISTIC_STYLE.iter().filter(|(head, _)| *head == name) {
            if !ActionSpace::allows(list, member) {
                let message = format!("without \"{member}\" the heuristic controller can only wait");
                findings.warning([format!("{PATH}.{name}")], message);
            }
        }
    }
}
