//! What single values cannot tell: whether task, host, data, slots, devices and schedule fit together (spec 02 §1.6,
//! 03 §9-10, 06 §2). Every finding names the fields that it is about.

mod action_space;
mod reward;
mod topology;

use super::catalog::Catalog;
use super::problem::Severity;
use super::*;
use crate::growth::SlotId;

/// Values that do not fit together.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub severity: Severity,
    /// Fields that take part, the likeliest culprit first.
    pub paths: Vec<String>,
    pub message: String,
    pub help: Option<String>,
}

/// All that is wrong with `scenario` as a whole, given its resolved task.
pub fn validate(scenario: &Scenario, task: &TaskSpec, catalog: &Catalog) -> Vec<Finding> {
    let mut findings = Findings(Vec::new());
    check_data(task, &mut findings);
    check_host(task, &mut findings);
    check_batches(scenario, task, &mut findings);
    check_losses(task, &mut findings);
    check_slots(scenario, task, &mut findings);
    check_attribution(&scenario.attribution, task, &mut findings);
    check_devices(&scenario.run, &mut findings);
    check_network(&scenario.policy, &mut findings);
    check_controller(scenario, task, catalog, &mut findings);
    topology::check_topology(scenario, task, catalog, &mut findings);
    action_space::check_action_space(scenario, catalog, &mut findings);
    check_governor(&scenario.governor, &mut findings);
    check_faults(scenario, task, &mut findings);
    reward::check_reward(scenario, &mut findings);
    check_learner(scenario, task, &mut findings);
    findings.0
}

struct Findings(Vec<Finding>);

impl Findings {
    fn error<S: Into<String>>(&mut self, paths: impl IntoIterator<Item = S>, message: String) {
        self.0.push(Finding {
            severity: Severity::Error,
            paths: paths.into_iter().map(Into::into).collect(),
            message,
            help: None,
        });
    }

    fn warning<S: Into<String>>(&mut self, paths: impl IntoIterator<Item = S>, message: String) {
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
}

fn check_network(policy: &PolicyConfig, findings: &mut Findings) {
    let NetConfig {
        hidden_dim,
        frame_stack,
        ..
    } = policy.net_cfg;
    if !hidden_dim.is_multiple_of(8) {
        let message = format!("{hidden_dim} is no multiple of 8");
        findings.error(["policy.net_cfg.hidden_dim"], message);
    }
    if frame_stack > 1 && ["lstm", "gru"].contains(&policy.net.as_str()) {
        let message = format!("{frame_stack} frames for a network with memory of its own; valid: 1, or net: \"mlp\"");
        findings.error(["policy.net_cfg.frame_stack", "policy.net"], message);
    }
}

fn check_data(task: &TaskSpec, findings: &mut Findings) {
    if let DataSource::SynthImages(synth) = &task.data {
        for (name, size) in [("height", synth.height), ("width", synth.width)] {
            if !size.is_multiple_of(8) {
                let message = format!("{size} is no multiple of 8");
                findings.error([format!("task.data.{name}")], message);
            }
        }
        let fewest = synth.train.min(synth.val);
        if (fewest as u64) < synth.classes {
            let message = format!(
                "{} classes need as many samples in each of train ({}) and val ({})",
                synth.classes, synth.train, synth.val
            );
            findings.error(["task.data.classes", "task.data.train", "task.data.val"], message);
        }
    }
    let split = &task.split;
    if split.val_permille + split.test_permille >= 1000 {
        let message = format!(
            "validation ({} ‰) and test ({} ‰) leave nothing to train on",
            split.val_permille, split.test_permille
        );
        findings.error(["task.split.val_permille", "task.split"], message);
    }
    if task.data == DataSource::Digits && task.augment.is_some_and(|augment| augment.flip_p > 0.0) {
        findings.warning(
            ["task.augment.flip_p", "task.augment"],
            "mirrored digits are other digits, or none; 0.0 is advised".into(),
        );
    }
    if let Normalise::Constants { mean, std } = &task.normalise {
        let channels = usize::try_from(task.host.in_channels).unwrap_or_default();
        for (name, list) in [("mean", mean), ("std", std)] {
            if list.len() != channels {
                let message = format!("expected one value per channel ({channels}), found {}", list.len());
                findings.error(
                    [
                        &format!("task.normalise.{name}"),
                        "task.host.in_channels",
                        "task.host",
                        "task.data",
                    ],
                    message,
                );
            }
        }
    }
}

fn check_host(task: &TaskSpec, findings: &mut Findings) {
    let host = &task.host;
    if let Some(shape) = task.data.shape() {
        let pairs = [
            ("in_channels", host.in_channels, "channels", shape.channels),
            ("input_hw", host.input_hw, "height", shape.height),
            ("input_hw", host.input_hw, "width", shape.width),
        ];
        for (field, expected, what, found) in pairs {
            if expected != found {
                let paths = [
                    format!("task.host.{field}"),
                    format!("task.data.{what}"),
                    "task.host".into(),
                    "task.data".into(),
                ];
                let message = format!("the host takes {what} {expected}, the data has {what} {found}");
                findings.error(paths, message);
            }
        }
        if task.classes != shape.classes {
            let message = format!("{} classes, but the data has {}", task.classes, shape.classes);
            findings.error(["task.classes", "task.data.classes", "task.data"], message);
        }
    }
    if host.kernel_size % 2 == 0 {
        let message = format!("{} is even; valid: odd kernels", host.kernel_size);
        findings.error(["task.host.kernel_size"], message);
    }
    if host.pool_layers > host.n_blocks {
        let message = format!("{} pools for {} blocks", host.pool_layers, host.n_blocks);
        findings.error(["task.host.pool_layers"], message);
    }
    let pools = u32::try_from(host.pool_layers).unwrap_or(u32::MAX);
    if host.input_hw.checked_shr(pools).unwrap_or(0) == 0 {
        let most = host.input_hw.checked_ilog2().unwrap_or(0);
        let message = format!(
            "{pools} pools shrink {0}x{0} pixels to nothing; at most {most} fit",
            host.input_hw
        );
        findings.error(["task.host.pool_layers", "task.host.input_hw", "task.host"], message);
    }
}

fn check_batches(scenario: &Scenario, task: &TaskSpec, findings: &mut Findings) {
    if scenario.training.micro_batches > task.batch_size {
        let message = format!(
            "{} micro-batches of a batch of {}",
            scenario.training.micro_batches, task.batch_size
        );
        findings.error(["training.micro_batches", "task.batch_size"], message);
    }
    let Some(sizes) = task.data.part_sizes(&task.split) else {
        return;
    };
    let n_envs = scenario.run.n_envs;
    if task.train_batches(sizes.train, n_envs) == 0 {
        let (largest, mode) = match task.batches_per_step {
            BatchesPerStep::Shard => (sizes.train / n_envs.max(1), format!(" shared by {n_envs} envs")),
            _ => (sizes.train, String::new()),
        };
        let message = format!(
            "a batch of {} does not fit into {} training samples{mode}; the largest that does is {largest}",
            task.batch_size, sizes.train
        );
        let paths = [
            "task.batch_size",
            "task.batches_per_step",
            "run.n_envs",
            "task.data",
            "task.preset",
        ];
        findings.error(paths, message);
    }
    let all = sizes.val.div_ceil(task.val_rows().max(1));
    match task.val_batches_per_step {
        _ if sizes.val == 0 => {
            findings.error(
                ["task.split.val_permille", "task.split"],
                "no validation samples are left".into(),
            );
        }
        ValBatches::Count(count) if count > all => {
            let rows = task.val_rows();
            let message = format!(
                "{} validation samples do not fill {count} batches of {rows}; at most {all}",
                sizes.val
            );
            findings.error(["task.val_batches_per_step", "task.val_batch_size"], message);
        }
        _ => {}
    }
}

fn check_losses(task: &TaskSpec, findings: &mut Findings) {
    if task.baseline_loss <= task.target_loss {
        let message = format!(
            "baseline_loss {} must exceed target_loss {}",
            task.baseline_loss, task.target_loss
        );
        findings.error(["task.baseline_loss", "task.target_loss"], message);
    }
}

fn check_slots(scenario: &Scenario, task: &TaskSpec, findings: &mut Findings) {
    let list = match scenario.lifecycle.slots {
        Some(_) => "lifecycle.slots",
        None => "task.slots",
    };
    if task.slots.is_empty() {
        findings.error([list], "no slot is enabled: nothing could grow".into());
    }
    let available = task.host.slots();
    let mut seen: Vec<SlotId> = Vec::new();
    for (index, name) in task.slots.iter().enumerate() {
        let Ok(slot) = name.parse::<SlotId>() else {
            continue;
        };
        let path = format!("{list}[{index}]");
        if seen.contains(&slot) {
            findings.error([path], format!("slot {slot} is listed twice"));
        } else if !available.contains(&slot) {
            let message = format!(
                "the host has no slot {slot}; valid: {}",
                available.iter().map(SlotId::to_string).collect::<Vec<_>>().join(", ")
            );
            findings.error([path.as_str(), "task.host", "task.preset"], message);
            let near = available
                .iter()
                .min_by_key(|s| u32::from(s.row.abs_diff(slot.row)) + u32::from(s.col.abs_diff(slot.col)));
            if let Some(near) = near {
                findings.help(format!("did you mean `{near}`?"));
            }
        }
        seen.push(slot);
    }
}

fn check_attribution(attribution: &AttributionConfig, task: &TaskSpec, findings: &mut Findings) {
    let slots = task.slots.len();
    if attribution.strategy == AttributionStrategy::FullFactorial && slots > FULL_FACTORIAL_LIMIT {
        let message = format!("all configurations of {slots} slots are 2^{slots} forward passes");
        findings.error(["attribution.strategy"], message);
        findings.help(format!(
            "at most {FULL_FACTORIAL_LIMIT} slots can be evaluated so; use auto"
        ));
    }
    if !attribution.shapley_permutations.is_multiple_of(2) {
        let message = format!(
            "{} is odd; every sampled order comes with its reverse",
            attribution.shapley_permutations
        );
        findings.error(["attribution.shapley_permutations"], message);
    }
}

fn check_devices(run: &RunConfig, findings: &mut Findings) {
    if run.devices.is_empty() {
        findings.error(["run.devices"], "no device is listed; write [\"cpu\"]".into());
    }
    for (index, device) in run.devices.iter().enumerate() {
        if run.devices[..index].contains(device) {
            findings.error(
                [format!("run.devices[{index}]")],
                format!("\"{device}\" is listed twice"),
            );
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

fn check_controller(scenario: &Scenario, task: &TaskSpec, catalog: &Catalog, findings: &mut Findings) {
    let policy = &scenario.policy;
    if policy.controller == "heuristic" && policy.heuristic.rotation.is_empty() {
        findings.error(["policy.heuristic.rotation"], "no blueprint to germinate".into());
    }
    let is_placebo = |name: &str| {
        let mut blueprints = catalog.blueprints.iter();
        blueprints.any(|blueprint| blueprint.name == name && !blueprint.selectable)
    };
    for (index, name) in policy.heuristic.rotation.iter().enumerate() {
        if is_placebo(name) {
            let message = format!("\"{name}\" grows nothing; controllers may not choose it");
            findings.error([format!("policy.heuristic.rotation[{index}]")], message);
        }
    }
    for (index, entry) in policy.schedule.entries.iter().enumerate() {
        if let ScheduledCommand::Germinate { blueprint, .. } = &entry.command
            && is_placebo(blueprint)
            && !scenario.lifecycle.allow_parameterless_seeds
        {
            let path = format!("policy.schedule.entries[{index}].command.blueprint");
            findings.error([path], format!("\"{blueprint}\" has no parameters"));
            findings.help("as a placebo it needs lifecycle.allow_parameterless_seeds: true");
        }
    }
    if policy.controller == "replay" && policy.replay.run.is_none() {
        findings.error(
            ["policy.replay.run", "policy.replay", "policy.controller"],
            "the replay controller needs the folder of a recorded run in policy.replay.run".into(),
        );
    }
    let schedule = &policy.schedule;
    match (&schedule.builtin, schedule.entries.is_empty()) {
        (Some(_), false) => findings.error(
            ["policy.schedule.builtin"],
            "a built-in schedule and entries exclude each other".into(),
        ),
        (None, true) if policy.controller == "schedule" => findings.error(
            ["policy.schedule", "policy.controller"],
            "the schedule controller needs policy.schedule.entries or policy.schedule.builtin".into(),
        ),
        (Some(builtin), true) if builtin == "grow_one_seed" && task.max_steps < 18 => {
            let message = format!("grow_one_seed needs 18 steps, an episode has {}", task.max_steps);
            findings.error(["policy.schedule.builtin", "run.max_steps", "task.max_steps"], message);
        }
        _ => check_entries(&schedule.entries, task, findings),
    }
}

fn check_entries(entries: &[ScheduleEntry], task: &TaskSpec, findings: &mut Findings) {
    let mut previous = 0;
    for (index, entry) in entries.iter().enumerate() {
        let step_path = format!("policy.schedule.entries[{index}].step");
        let slot_path = format!("policy.schedule.entries[{index}].command.slot");
        if entry.step <= previous {
            let message = format!("step {} does not come after step {previous}", entry.step);
            findings.error([step_path.as_str()], message);
        } else if entry.step > task.max_steps {
            let message = format!("step {} lies beyond the episode's {} steps", entry.step, task.max_steps);
            let paths = [step_path.as_str(), "run.max_steps", "task.max_steps"];
            findings.error(paths, message);
        }
        previous = entry.step;
        let slot = entry.command.slot();
        let is_enabled = task.slots.iter().any(|name| name == slot);
        if !is_enabled && slot.parse::<SlotId>().is_ok() {
            let message = format!("slot {slot} is not enabled; valid: {}", task.slots.join(", "));
            let paths = [slot_path.as_str(), "lifecycle.slots", "task.slots"];
            findings.error(paths, message);
        }
    }
}

fn check_governor(governor: &GovernorConfig, findings: &mut Findings) {
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

fn check_faults(scenario: &Scenario, task: &TaskSpec, findings: &mut Findings) {
    let sizes = task.data.part_sizes(&task.split);
    let batches = sizes.map(|sizes| task.train_batches(sizes.train, scenario.run.n_envs));
    for (index, entry) in scenario.faults.iter().enumerate() {
        let path = |field: &str| format!("faults[{index}].{field}");
        let run = &scenario.run;
        if entry.env >= run.n_envs {
            let message = format!(
                "there is no env {}; the run has {}, counted from 0",
                entry.env, run.n_envs
            );
            findings.error([path("env"), "run.n_envs".into()], message);
        }
        if entry.round >= run.rounds {
            let message = format!(
                "there is no round {}; the run has {}, counted from 0",
                entry.round, run.rounds
            );
            findings.error([path("round"), "run.rounds".into()], message);
        }
        if entry.step > task.max_steps {
            let message = format!("step {} lies beyond the episode's {} steps", entry.step, task.max_steps);
            findings.error([path("step"), "run.max_steps".into()], message);
        }
        if let (Some(batch), Some(batches)) = (entry.batch, batches)
            && batch >= batches
        {
            let message = format!("a step has no batch {batch}; it has {batches}, counted from 0");
            findings.error([path("batch"), "task.batch_size".into()], message);
        }
        if let Fault::ScaleSeed { slot, .. } = &entry.fault
            && !task.slots.contains(slot)
            && slot.parse::<SlotId>().is_ok()
        {
            let message = format!("slot {slot} is not enabled; valid: {}", task.slots.join(", "));
            findings.error([path("fault.slot"), "lifecycle.slots".into()], message);
        }
    }
}

fn check_learner(scenario: &Scenario, task: &TaskSpec, findings: &mut Findings) {
    let learner = &scenario.learner;
    let max_steps = task.max_steps;
    if learner.chunk_length.is_some_and(|length| length > max_steps) {
        let message = format!("a chunk is longer than an episode of {max_steps} steps");
        let paths = ["learner.chunk_length", "run.max_steps", "task.max_steps"];
        findings.error(paths, message);
    }
    if learner.episodes_per_update > scenario.run.rounds {
        let message = format!(
            "an update takes {} rounds, the run has {}: nothing is learnt",
            learner.episodes_per_update, scenario.run.rounds
        );
        findings.warning(["learner.episodes_per_update", "run.rounds"], message);
    }
    check_observation_norm(scenario, findings);
    let (_, end) = learner.entropy_coefs();
    if end < learner.entropy_coef_min {
        let message = format!(
            "the entropy bonus ends at {end}, but never falls below {}",
            learner.entropy_coef_min
        );
        let paths = [
            "learner.entropy_coef_end",
            "learner.entropy_coef",
            "learner.entropy_coef_min",
        ];
        findings.warning(paths, message);
    }
}

/// Whether statistics that are to be fitted or frozen move at all, and leave rollouts to learn from.
fn check_observation_norm(scenario: &Scenario, findings: &mut Findings) {
    let learner = &scenario.learner;
    let norm = &learner.obs_norm;
    if norm.warmup_rollouts > 0 {
        let last = scenario.run.rounds.saturating_sub(1);
        if !norm.fits() {
            let message = "warm-up rollouts fit statistics, and this mode has none that move".to_string();
            findings.error(["learner.obs_norm.warmup_rollouts", "learner.obs_norm.mode"], message);
            findings.help("valid: warmup_rollouts: 0, or mode running or running_all");
        } else if learner.is_warm_up(last) {
            let message = format!(
                "{} warm-up rollouts take all {} rounds of the run: nothing is learnt",
                norm.warmup_rollouts, scenario.run.rounds
            );
            findings.warning(["learner.obs_norm.warmup_rollouts", "run.rounds"], message);
        }
    }
    if norm.freeze_after_updates.is_some() && !norm.fits() {
        let message = "it has no effect: this mode has no statistics that move".to_string();
        let paths = ["learner.obs_norm.freeze_after_updates", "learner.obs_norm.mode"];
        findings.warning(paths, message);
    }
}
