//! Checks beyond single values: whether task, host, data, slots, devices and schedule fit together. Every finding
//! names the fields that it is about.

mod task;

use super::catalog::Catalog;
use super::problem::Severity;
use super::tree::listed;
use super::{
    ActionSpace, Algorithm, AttributionStrategy, Cadence, DeviceSpec, Fault, HeuristicConfig, HostOutline,
    InitialTopology, LEAST_ENTROPY_COEF, MeasurementNeed, PolicyConfig, RewardProfile, RunConfig, Scenario,
    ScheduleEntry, ScheduledCommand, TaskSpec,
};
use crate::files::counted;
use crate::growth::{AlphaTarget, GerminationStyle, LifecycleOp, SlotId, Tempo, Topology};

/// Values that do not fit together.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub severity: Severity,
    /// Fields that take part, the likeliest culprit first.
    pub paths: Vec<String>,
    pub message: String,
    pub help: Option<String>,
}

impl Finding {
    /// The host of the task is invalid.
    pub(super) fn of_host(why: String) -> Self {
        Self {
            severity: Severity::Error,
            paths: vec!["task.host".into(), "task.preset".into()],
            message: why,
            help: None,
        }
    }
}

/// All that is wrong with `scenario` as a whole, given its resolved task and the outline of the task's host.
pub fn validate(scenario: &Scenario, task: &TaskSpec, host: &HostOutline, catalog: &Catalog) -> Vec<Finding> {
    let mut findings = Findings(Vec::new());
    let reward = catalog.profiles.profile(&scenario.reward);
    task::check_task(scenario, task, host, &mut findings);
    check_devices(&scenario.run, &mut findings);
    check_network(&scenario.policy, &mut findings);
    check_controller(scenario, task, catalog, &mut findings);
    check_topology(scenario, task, catalog, &mut findings);
    check_action_space(scenario, catalog, &mut findings);
    check_faults(scenario, task, &mut findings);
    check_reward(scenario, &reward, &mut findings);
    check_learner(scenario, &mut findings);
    findings.0
}

struct Findings(Vec<Finding>);

impl Findings {
    fn error<S: Into<String>>(&mut self, paths: impl IntoIterator<Item = S>, message: impl Into<String>) {
        self.0.push(Finding {
            severity: Severity::Error,
            paths: paths.into_iter().map(Into::into).collect(),
            message: message.into(),
            help: None,
        });
    }

    fn warning<S: Into<String>>(&mut self, paths: impl IntoIterator<Item = S>, message: impl Into<String>) {
        self.error(paths, message);
        if let Some(last) = self.0.last_mut() {
            last.severity = Severity::Warning;
        }
    }

    fn help(&mut self, help: impl Into<String>) {
        if let Some(last) = self.0.last_mut() {
            last.help = Some(help.into());
        }
    }

    /// An error where a step lies beyond the episode.
    fn require_step<S: Into<String>>(&mut self, step: u32, task: &TaskSpec, paths: impl IntoIterator<Item = S>) {
        if step > task.max_steps {
            let steps = counted(task.max_steps, "step");
            let message = format!("there is no step {step}; the episode has {steps}");
            self.error(paths, message);
        }
    }

    /// An error where a blueprint is for features that the host of the task does not have.
    fn require_growth(&mut self, blueprint: &str, task: &TaskSpec, catalog: &Catalog, path: String) {
        let topology = task.data.topology();
        if catalog.is_for_others(blueprint, topology) {
            let what = match topology {
                Topology::Image => "images",
                Topology::Tokens => "text",
            };
            let message = format!(
                "\"{blueprint}\" does not grow in hosts for {what}; valid: {}",
                listed(catalog.growing_in(topology))
            );
            self.error([path.as_str(), "task.data", "task.preset"], message);
        }
    }

    /// An error where a blueprint has no parameters.
    fn refuse_placebo(&mut self, blueprint: &str, catalog: &Catalog, path: String) {
        if catalog.is_placebo(blueprint) {
            let message = format!("\"{blueprint}\" grows nothing; controllers may not choose it");
            self.error([path], message);
        }
    }

    /// An error where `slot` is not among those that may grow.
    fn require_slot<S: Into<String>>(&mut self, slot: SlotId, task: &TaskSpec, paths: impl IntoIterator<Item = S>) {
        if !task.slots.contains(&slot) {
            let message = format!("slot {slot} is not enabled; valid: {}", listed(&task.slots));
            self.error(paths, message);
        }
    }
}

fn check_devices(run: &RunConfig, findings: &mut Findings) {
    if run.devices.is_empty() {
        findings.error(["run.devices"], "no device is listed; write [\"cpu\"]");
    }
    for (index, device) in run.devices.iter().enumerate() {
        // Two entries of the CPU do what two devices do, where there is one.
        if *device != DeviceSpec::Cpu && run.devices[..index].contains(device) {
            let message = format!("\"{device}\" is listed twice");
            findings.error([format!("run.devices[{index}]")], message);
        }
    }
    if run.n_envs < run.devices.len() {
        let message = format!(
            "too few envs ({}) for the devices listed ({}); each runs at least one",
            run.n_envs,
            run.devices.len()
        );
        findings.error(["run.n_envs", "run.devices"], message);
    }
}

fn check_network(policy: &PolicyConfig, findings: &mut Findings) {
    let hidden_dim = policy.net_cfg.hidden_dim;
    if !hidden_dim.is_multiple_of(8) {
        let message = format!("{hidden_dim} isn't a multiple of 8");
        findings.error(["policy.net_cfg.hidden_dim"], message);
    }
}

/// Checks that the controller and its schedule fit the task.
fn check_controller(scenario: &Scenario, task: &TaskSpec, catalog: &Catalog, findings: &mut Findings) {
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

/// Checks that the topology that episodes start with fits task and controller.
fn check_topology(scenario: &Scenario, task: &TaskSpec, catalog: &Catalog, findings: &mut Findings) {
    if scenario.policy.controller == "static" && scenario.initial_topology == InitialTopology::Empty {
        let message = "the static controller needs seeds, but initial_topology is empty";
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

const ACTION_SPACE: &str = "policy.masks.action_space";

/// Checks that an action space leaves something to do.
fn check_action_space(scenario: &Scenario, catalog: &Catalog, findings: &mut Findings) {
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
        findings.error([format!("{ACTION_SPACE}.{name}")], "allows nothing");
        findings.help("leave it out to allow everything");
    }
    if excludes(&space.allowed_ops, &LifecycleOp::Wait) {
        let message = "\"wait\" is missing; add it, as waiting is always possible";
        findings.error([format!("{ACTION_SPACE}.allowed_ops")], message);
    }
    if let Some(blueprints) = &space.blueprint
        && !blueprints.is_empty()
        && blueprints.iter().all(|name| catalog.is_placebo(name))
    {
        findings.error(
            [format!("{ACTION_SPACE}.blueprint")],
            "allows nothing that has parameters",
        );
    }
    if scenario.policy.controller == "heuristic" {
        check_heuristic(scenario, space, findings);
    }
}

fn is_empty<T>(list: &Option<Vec<T>>) -> bool {
    list.as_ref().is_some_and(Vec::is_empty)
}

/// Returns whether a list excludes a member; an empty list is another finding.
fn excludes<T: PartialEq>(list: &Option<Vec<T>>, member: &T) -> bool {
    list.as_ref()
        .is_some_and(|list| !list.is_empty() && !list.contains(member))
}

/// The rules know one way to germinate, and the blueprints of their rotation.
fn check_heuristic(scenario: &Scenario, space: &ActionSpace, findings: &mut Findings) {
    let rotation = &scenario.policy.heuristic.rotation;
    if !rotation.is_empty() && rotation.iter().all(|name| excludes(&space.blueprint, name)) {
        let paths = ["policy.heuristic.rotation".into(), format!("{ACTION_SPACE}.blueprint")];
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
        findings.warning([format!("{ACTION_SPACE}.{list}")], message);
    }
}

/// Checks that the damage done on purpose can take effect.
fn check_faults(scenario: &Scenario, task: &TaskSpec, findings: &mut Findings) {
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

/// Checks that contributions can be measured, and that those are measured that the reward pays for.
fn check_reward(scenario: &Scenario, profile: &RewardProfile, findings: &mut Findings) {
    let (mode, attribution) = (scenario.reward.mode(), &scenario.attribution);
    let need = profile.measurement;
    if need != MeasurementNeed::Unknown && attribution.strategy == AttributionStrategy::Off {
        let message = format!("reward {mode} pays for contributions of seeds, but none is measured");
        findings.error(["attribution.strategy", "reward"], message);
        findings.help("measure them with attribution.strategy: auto");
    }
    let is_met = match (need, attribution.cadence) {
        (MeasurementNeed::Unknown | MeasurementNeed::AtTheEnd, _) | (_, Cadence::EveryStep | Cadence::EveryK(1)) => {
            true
        }
        // Only held seeds can be committed, and held seeds are measured at every step.
        (MeasurementNeed::AtCommit, Cadence::OnChange) => true,
        _ => false,
    };
    if !is_met {
        let what = match need {
            MeasurementNeed::EveryStep => "every step measured with committed seeds alone",
            _ => "contributions of the same step",
        };
        findings.error(["attribution.cadence", "reward"], format!("reward {mode} needs {what}"));
        findings.help("use attribution.cadence: every_step");
    }
}

/// Checks that rollouts, schedules and statistics of the learner fit the run.
fn check_learner(scenario: &Scenario, findings: &mut Findings) {
    let learner = &scenario.learner;
    if learner.episodes_per_update > scenario.run.rounds {
        let message = format!(
            "an update takes {}, but the run has {}: nothing is learnt",
            counted(learner.episodes_per_update, "round"),
            scenario.run.rounds
        );
        findings.warning(["learner.episodes_per_update", "run.rounds"], message);
    } else {
        check_rollouts(scenario, findings);
    }
    if matches!(learner.algorithm, Algorithm::Clone(_)) && !learner.is_offline() {
        let message = "there is nothing to imitate; list recordings in learner.recordings.sets";
        findings.error(["learner.algorithm"], message);
    }
    let end = learner.last_entropy_coef();
    if end < LEAST_ENTROPY_COEF {
        let message = format!("the entropy bonus ends at {end}, but never falls below {LEAST_ENTROPY_COEF}");
        let paths = ["learner.entropy_coef_end", "learner.entropy_coef"];
        findings.warning(paths, message);
    }
}

/// A rollout of several rounds leaves nothing to learn from before its last round is over.
fn check_rollouts(scenario: &Scenario, findings: &mut Findings) {
    let (rollout, run) = (scenario.learner.episodes_per_update, &scenario.run);
    let left = run.rounds % rollout.max(1);
    if left > 0 {
        let message = format!(
            "{} rounds aren't a multiple of {rollout}: the last {left} complete no rollout, and nothing is learnt from them",
            run.rounds
        );
        findings.warning(["learner.episodes_per_update", "run.rounds"], message);
    }
}
