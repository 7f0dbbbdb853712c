//! Checks that data, host, batches and slots of a task fit together.

use super::Findings;
use crate::files::counted;
use crate::growth::{SlotId, Topology};
use crate::scenario::tree::listed;
use crate::scenario::{
    BatchesPerStep, DataSource, GateMode, HostOutline, Normalise, Residency, Scenario, TaskSpec, ValBatches, stands_for,
};

pub(super) fn check_task(scenario: &Scenario, task: &TaskSpec, host: &HostOutline, findings: &mut Findings) {
    check_data(task, host, findings);
    check_residency(scenario, task, findings);
    check_host(task, host, findings);
    check_weights(scenario, task, host, findings);
    check_batch_norm(scenario, task, host, findings);
    check_batches(scenario, task, findings);
    check_slots(scenario, task, host, findings);
}

fn check_data(task: &TaskSpec, host: &HostOutline, findings: &mut Findings) {
    if let DataSource::SynthImages(synth) = &task.data {
        for (name, size) in [("height", synth.height), ("width", synth.width)] {
            if !size.is_multiple_of(8) {
                let message = format!("{size} isn't a multiple of 8");
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
    check_files(task, findings);
    check_text(task, findings);
    let split = &task.split;
    if split.val_permille + split.test_permille >= 1000 {
        let message = format!(
            "validation ({} ‰) and test ({} ‰) leave nothing to train on",
            split.val_permille, split.test_permille
        );
        findings.error(["task.split.val_permille", "task.split"], message);
    }
    if task.data == DataSource::Digits && task.augment.is_some_and(|augment| augment.flip_p > 0.0) {
        let message = "a mirrored digit is another digit, or isn't one; write 0.0";
        findings.warning(["task.augment.flip_p", "task.augment"], message);
    }
    if let Some(side) = task.augment.and_then(|augment| augment.cutout)
        && i64::from(side) >= host.side.saturating_mul(2)
        && task.data.topology() == Topology::Image
    {
        let message = format!(
            "a square of {side} blanks every {0}x{0} image completely; valid: below {1}",
            host.side,
            host.side.saturating_mul(2)
        );
        findings.error(["task.augment.cutout", "task.augment"], message);
    }
    if let Normalise::Constants { mean, std } = &task.normalise
        && task.data.topology() == Topology::Image
    {
        let channels = usize::try_from(host.channels).unwrap_or_default();
        for (name, list) in [("mean", mean), ("std", std)] {
            if list.len() != channels {
                let found = list.len();
                let message = format!(
                    "expected one {name} per channel of the host ({channels}) in task.normalise, found {found}"
                );
                findings.error(
                    [
                        &format!("task.normalise.{name}"),
                        "task.host.in_channels",
                        "task.host",
                        "task.data",
                    ],
                    message,
                );
                findings.help("give one per channel, or write task.normalise: auto, measured on the training part");
            }
        }
    }
}

fn check_residency(scenario: &Scenario, task: &TaskSpec, findings: &mut Findings) {
    if scenario.data.residency == Residency::Stream && !task.data.has_records() {
        let message = "these data are generated or decoded as a whole; there are no records to stream from a file";
        findings.error(["data.residency"], message);
        findings.help(
            "stream is for cifar10, cifar100, idx, idx_folder, npy, text and token_files that are not packed; \
             otherwise write residency: auto",
        );
    }
}

/// Checks that a section whose path may be left out names its file.
fn check_files(task: &TaskSpec, findings: &mut Findings) {
    let (path, field, what, example) = match &task.data {
        DataSource::Parquet(table) => (&table.path, "path", "table", "parquet((path: \"train.parquet\"))"),
        DataSource::Text(text) => (&text.path, "path", "text file", "text((path: \"my.txt\"))"),
        DataSource::TokenFiles(files) => {
            let example = "token_files((train: \"train.bin\"))";
            (&files.train, "train", "token file", example)
        }
        _ => return,
    };
    if path.is_empty() {
        let message = format!("no {what} is named");
        findings.error([&format!("task.data.{field}"), "task.data", "task.preset"], message);
        findings.help(format!("write data: {example}"));
    }
}

/// Texts have nothing that images are normalised and cropped for.
fn check_text(task: &TaskSpec, findings: &mut Findings) {
    if task.data.topology() == Topology::Image {
        return;
    }
    if task.normalise != Normalise::None {
        findings.error(["task.normalise", "task.data"], "text is not normalised; write none");
    }
    if task.augment.is_some() {
        let message = "text is neither cropped, mirrored nor cut out; leave it out";
        findings.error(["task.augment", "task.data"], message);
    }
}

/// Checks that a host reads the text: whether it reads text at all, how many tokens, and at most how many at a time.
fn check_reader(task: &TaskSpec, host: &HostOutline, findings: &mut Findings) {
    let Some(text) = task.data.text() else {
        if host.topology == Topology::Tokens {
            findings.error(
                ["task.host", "task.data"],
                "the host reads text, but the data are images",
            );
        }
        return;
    };
    if host.topology == Topology::Image {
        findings.error(
            ["task.host", "task.data"],
            "the host reads images, but the data are text",
        );
        findings.help("write a host for text: transformer((..))");
        return;
    }
    if task.classes != text.vocab {
        let message = format!(
            "{} tokens, but the data has {} different ones",
            task.classes, text.vocab
        );
        findings.error(["task.classes", "task.data.vocab", "task.data"], message);
    }
    if (text.block as i128) > i128::from(host.side) {
        let message = format!(
            "windows of {} tokens, but the host reads at most {}",
            text.block, host.side
        );
        let paths = ["task.data.block", "task.host.block", "task.data", "task.host"];
        findings.error(paths, message);
    }
}

fn check_host(task: &TaskSpec, host: &HostOutline, findings: &mut Findings) {
    check_reader(task, host, findings);
    if let Some(shape) = task.data.shape().filter(|_| host.topology == Topology::Image) {
        let pairs = [
            ("in_channels", host.channels, "channels", shape.channels),
            ("input_hw", host.side, "height", shape.height),
            ("input_hw", host.side, "width", shape.width),
        ];
        for (field, expected, what, found) in pairs {
            if expected != found {
                let paths = [
                    format!("task.host.{field}"),
                    format!("task.data.{what}"),
                    "task.host".into(),
                    "task.data".into(),
                ];
                let message = format!("the host takes {what} {expected}, but the data has {what} {found}");
                findings.error(paths, message);
            }
        }
        if task.classes != shape.classes {
            let message = format!("{} classes, but the data has {}", task.classes, shape.classes);
            findings.error(["task.classes", "task.data.classes", "task.data"], message);
        }
    }
    for problem in &host.problems {
        let fields = problem.fields.iter().map(|field| format!("task.host.{field}"));
        findings.error(
            fields.chain(["task.host".into(), "task.preset".into()]),
            problem.message.clone(),
        );
    }
}

/// Checks that the layers that are not trained are there, and the envs that start from given weights.
fn check_weights(scenario: &Scenario, task: &TaskSpec, host: &HostOutline, findings: &mut Findings) {
    for (index, name) in task.freeze.iter().flatten().enumerate() {
        if !host.has_layer(name) {
            let message = format!(
                "the host has no layer {name}; valid: all, statistics, {}",
                listed(&host.layers)
            );
            findings.error([format!("task.freeze[{index}]").as_str(), "task.freeze"], message);
        }
    }
    let frozen = |layer: &String| task.freeze.iter().flatten().any(|name| stands_for(name, layer));
    let gates = &scenario.lifecycle.gates;
    if gates.mode == GateMode::Strict && host.layers.iter().all(frozen) {
        let message = "a completely frozen host has no gradient to compare with a seed's, so no gate would open";
        findings.error(["lifecycle.gates.mode", "task.freeze"], message);
        findings.help("write mode: permissive");
    }
    let envs = task.weights.as_ref().and_then(|weights| weights.envs);
    if let Some(envs) = envs.filter(|envs| *envs > scenario.run.n_envs) {
        let message = format!("the first {envs} envs, but the run has {}", scenario.run.n_envs);
        findings.error(["task.weights.envs", "task.weights", "run.n_envs"], message);
    }
}

fn check_batches(scenario: &Scenario, task: &TaskSpec, findings: &mut Findings) {
    if scenario.training.micro_batches > task.batch_size {
        let message = format!(
            "{} micro-batches, but the batch has {} samples",
            scenario.training.micro_batches, task.batch_size
        );
        findings.error(["training.micro_batches", "task.batch_size"], message);
    }
    let Some(sizes) = task.data.part_sizes(&task.split) else {
        return;
    };
    let n_envs = scenario.run.n_envs;
    if task.train_batches(sizes.train, n_envs) == 0 {
        let shared = format!(" shared by {}", counted(n_envs, "env"));
        let (largest, mode) = match task.batches_per_step {
            BatchesPerStep::Shard => (sizes.train / n_envs.max(1), shared),
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
            let message = "no validation samples are left";
            findings.error(["task.split.val_permille", "task.split"], message);
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

/// The variance of a single value is 0/0: the running statistics would be lost with the first batch.
fn check_batch_norm(scenario: &Scenario, task: &TaskSpec, host: &HostOutline, findings: &mut Findings) {
    let rows = task.batch_size / scenario.training.micro_batches.max(1);
    let mut norms = host.batch_norms.iter();
    let single = norms.find(|(_, side)| rows == 1 && *side == 1);
    if let Some((op, _)) = single {
        let message = format!(
            "batch norm of {op} sees a single value per channel: a (micro-)batch of 1 sample, 1x1 pixels; at least 2 are \
             needed"
        );
        let paths = [
            "training.micro_batches",
            "task.batch_size",
            "task.host.pool_layers",
            "task.host",
            "task.preset",
        ];
        findings.error(paths, message);
        findings.help("use larger batches, fewer micro-batches, or fewer pools");
    }
}

fn check_slots(scenario: &Scenario, task: &TaskSpec, host: &HostOutline, findings: &mut Findings) {
    let list = match scenario.lifecycle.slots {
        Some(_) => "lifecycle.slots",
        None => "task.slots",
    };
    if task.slots.is_empty() {
        findings.error([list], "no slot is enabled: nothing could grow");
    }
    let available: Vec<SlotId> = host.injections.iter().map(|place| place.slot).collect();
    for (index, &slot) in task.slots.iter().enumerate() {
        let path = format!("{list}[{index}]");
        if task.slots[..index].contains(&slot) {
            findings.error([path], format!("slot {slot} is listed twice"));
        } else if !available.contains(&slot) {
            let message = format!("the host has no slot {slot}; valid: {}", listed(&available));
            findings.error([path.as_str(), "task.host", "task.preset"], message);
            let near = available
                .iter()
                .min_by_key(|s| u32::from(s.row.abs_diff(slot.row)) + u32::from(s.col.abs_diff(slot.col)));
            match (near, &scenario.lifecycle.slots) {
                (Some(near), Some(_)) => findings.help(format!("did you mean `{near}`?")),
                // The task's own list, which the user may never have seen.
                (Some(_), None) => {
                    let slots: Vec<String> = available.iter().map(ToString::to_string).collect();
                    findings.help(format!("write lifecycle.slots: {slots:?}, or some of them"));
                }
                (None, _) => {}
            }
        }
    }
}
