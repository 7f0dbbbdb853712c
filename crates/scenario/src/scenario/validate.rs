//! What single values cannot tell: whether task, host, data, slots, devices and schedule fit together. Every finding
//! names the fields that it is about.

mod action_space;
mod controller;
mod faults;
mod learner;
mod reward;
mod task;
mod topology;

use super::catalog::Catalog;
use super::problem::Severity;
use super::tree::listed;
use super::{DeviceSpec, HostOutline, RunConfig, Scenario, TaskSpec};
use crate::growth::{SlotId, Topology};

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
    /// The host of the task is none.
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
    controller::check_network(&scenario.policy, &mut findings);
    controller::check_controller(scenario, task, catalog, &mut findings);
    topology::check_topology(scenario, task, catalog, &mut findings);
    action_space::check_action_space(scenario, catalog, &mut findings);
    faults::check_faults(scenario, task, &mut findings);
    reward::check_reward(scenario, &reward, &mut findings);
    learner::check_learner(scenario, &mut findings);
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
            let message = format!("step {step} lies beyond the episode's {} steps", task.max_steps);
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
