//! The rows, those that decide most first.

use std::process::Command;

use serde_json::{Map, Value};
use simic_engine::internals::checkpoint::{CheckpointName, PastRun};
use simic_engine::internals::engine::{Prepared, RunReport};
use simic_engine::internals::seed::BlueprintRegistry;
use simic_engine::internals::torch::{TorchError, device_of, free_bytes};
use simic_engine::prelude::*;

use crate::play::{self, Play, largest_difference, norm_difference};
use crate::{Setting, beside, open_device};

/// Named numbers and texts.
pub type Figures = Map<String, Value>;

type Played = Result<Figures, String>;

/// A line of the table.
pub struct Row {
    pub name: String,
    pub play: Box<dyn Fn(&Setting) -> Played>,
}

/// Losses and weights of a CPU and of a device in float32 may differ by this much of themselves.
const TOLERANCE: f64 = 2e-3;

const DIGITS: &str = r#"(
    name: "digits", task: preset("digits_baseline"),
    run: (rounds: 1, n_envs: 8, max_steps: 100000), policy: (controller: "wait"),
)"#;
const IMAGES: &str = r#"(
    name: "images",
    task: preset("synth_baseline", (
        batch_size: 512, batches_per_step: count(4), val_batch_size: 512, val_batches_per_step: count(1),
        data: synth_images((train: 2048, val: 512, test: 512)),
    )),
    run: (rounds: 1, n_envs: 4, max_steps: 100000), policy: (controller: "wait"),
)"#;
const RESNET20: &str = r#"(
    name: "resnet20",
    task: preset("synth_resnet20", (
        batch_size: 128, batches_per_step: count(16), val_batch_size: 128, val_batches_per_step: count(1),
        data: synth_images((train: 2048, val: 128, test: 128)),
    )),
    run: (rounds: 1, n_envs: 4, max_steps: 100000), policy: (controller: "wait"),
)"#;
const RESNET18: &str = r#"(
    name: "resnet18",
    task: preset("synth_resnet18", (
        batch_size: 128, batches_per_step: count(16), val_batch_size: 128, val_batches_per_step: count(1),
        data: synth_images((train: 2048, val: 128, test: 128)),
    )),
    run: (rounds: 1, n_envs: 4, max_steps: 100000), policy: (controller: "wait"),
)"#;
const TEXT: &str = r#"(
    name: "text", task: preset("synth_tokens", (batches_per_step: count(8), val_batches_per_step: count(1))),
    run: (rounds: 1, n_envs: 4, max_steps: 100000), policy: (controller: "wait"),
)"#;
/// Two batches of two envs.
const SMALL: [(&str, &str); 5] = [
    (
        "cnn on 8x8 digits",
        r#"preset("digits_baseline", (batches_per_step: count(2), val_batches_per_step: count(1)))"#,
    ),
    (
        "cnn on 32x32 images",
        r#"preset("synth_baseline", (batch_size: 64, batches_per_step: count(2), val_batches_per_step: count(1), data: synth_images((train: 512, val: 128, test: 128))))"#,
    ),
    (
        "resnet20",
        r#"preset("synth_resnet20", (batch_size: 64, batches_per_step: count(2), val_batches_per_step: count(1), data: synth_images((train: 512, val: 128, test: 128))))"#,
    ),
    (
        "vgg11",
        r#"preset("synth_vgg11", (batch_size: 64, batches_per_step: count(2), val_batches_per_step: count(1), data: synth_images((train: 512, val: 128, test: 128))))"#,
    ),
    (
        "transformer",
        r#"preset("synth_tokens", (batch_size: 16, batches_per_step: count(2), val_batches_per_step: count(1)))"#,
    ),
];
const GROWN: &str = r#"(
    name: "grown",
    task: preset("digits_impaired", (batches_per_step: count(4))),
    run: (rounds: 2, n_envs: 8, max_steps: 30),
    policy: (controller: "heuristic"),
    lifecycle: (auto_forward: (g1: true, g2: true, g3: true)),
)"#;
const LEARNT: &str = r#"(
    name: "learnt", preset: "digits",
    task: preset("digits_impaired", (batches_per_step: count(2))),
    run: (rounds: 3, n_envs: 4, max_steps: 20),
    policy: (controller: "actor_critic"),
)"#;

pub fn all(setting: &Setting) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |name: &str, play: Box<dyn Fn(&Setting) -> Played>| {
        let name = name.into();
        rows.push(Row { name, play });
    };
    let on = |scenario: &'static str| Play::on(&setting.device, scenario);
    let faster = |play: Play| -> Box<dyn Fn(&Setting) -> Played> { Box::new(move |setting| speed(setting, &play)) };
    let whole = |play: Play| -> Box<dyn Fn(&Setting) -> Played> { Box::new(move |setting| round(&play, setting)) };
    let workloads = [
        ("8x8 digits, 8 envs", DIGITS),
        ("32x32 images, batch 512, 4 envs", IMAGES),
        ("ResNet-20, batch 128, 4 envs", RESNET20),
        ("ResNet-18, batch 128, 4 envs", RESNET18),
        ("text, 4 envs", TEXT),
    ];
    let [digits, images, resnet20, resnet18, _] = workloads;

    add("the device opens", Box::new(open_device));
    for (name, task) in SMALL {
        let play = move |setting: &Setting| agrees(setting, task, ("", 0));
        add(&format!("{name}: as on the CPU"), Box::new(play));
    }
    let grown = |setting: &Setting| agrees(setting, SMALL[0].1, ("conv_light", 3));
    add("cnn on 8x8 digits, three conv_light: as on the CPU", Box::new(grown));
    for (name, scenario) in workloads {
        add(name, faster(on(scenario)));
    }
    add("eager PyTorch", Box::new(eager));
    for (name, scenario) in [digits, images] {
        add(
            &format!("{name}, 3 conv_light"),
            faster(on(scenario).seeded("conv_light", 3)),
        );
    }
    for threads in [1, 2, 4] {
        for (name, scenario) in [digits, resnet20] {
            add(
                &format!("{name}, {threads} host threads"),
                faster(on(scenario).threads(threads)),
            );
        }
    }
    add("seeds under rules, two rounds", whole(on(GROWN)));
    add("a policy that learns, three rounds", whole(on(LEARNT)));
    add("deterministic: twice, with many threads and one", Box::new(twice));
    add("deterministic: resumed after a round", Box::new(resumed));
    add("no memory: said as such, and work continues", Box::new(out_of_memory));
    for (name, scenario) in [images, resnet18] {
        let play = on(scenario).with("run.matmul_precision", "highest");
        add(&format!("{name}, matmul_precision highest"), faster(play));
    }
    for envs in [2, 64] {
        add(
            &format!("8x8 digits, {envs} envs"),
            faster(on(DIGITS).with("run.n_envs", envs)),
        );
    }
    add(
        &format!("{}, data in the machine's memory", images.0),
        faster(on(IMAGES).with("data.residency", "host")),
    );
    if setting.device != "cpu" {
        let mut play = Play::on("cpu", DIGITS);
        play.devices.push(setting.device.clone());
        add("8x8 digits, 8 envs over the CPU and the device", faster(play));
    }
    add("memory stays as it is over 12 rounds", Box::new(memory_is_flat));
    for (name, task) in SMALL {
        let play = move |setting: &Setting| every_blueprint(setting, task);
        add(&format!("{name}: every seed module as on the CPU"), Box::new(play));
    }
    add("64 envs under rules", whole(on(GROWN).with("run.n_envs", 64)));
    for (name, scenario) in [digits, images, resnet20] {
        add(&format!("{name}, on the CPU"), faster(Play::on("cpu", scenario)));
    }
    for amp in ["bf16", "fp16"] {
        for (name, scenario) in [images, resnet18] {
            add(
                &format!("{name}, amp {amp}"),
                faster(on(scenario).with("training.amp", amp)),
            );
        }
        add(
            &format!("seeds under rules, amp {amp}"),
            whole(on(GROWN).with("training.amp", amp)),
        );
        add(
            &format!("a policy that learns, learner.amp {amp}"),
            whole(on(LEARNT).with("learner.amp", amp)),
        );
    }
    if setting.is_quick {
        rows.retain(|row| !row.name.contains("ResNet-") && !row.name.contains("64 envs"));
    }
    rows
}

fn speed(setting: &Setting, play: &Play) -> Played {
    play::speed(play, setting.is_quick)
}

fn two_envs(task: &str) -> String {
    format!(
        r#"(name: "agrees", task: {task}, run: (rounds: 1, n_envs: 2, max_steps: 10), policy: (controller: "wait"))"#
    )
}

/// The same step in float32 on the CPU, by libtorch's kernels, and on the device.
fn agrees(setting: &Setting, task: &str, (blueprint, seeds): (&'static str, usize)) -> Played {
    let scenario = two_envs(task);
    let state = |device: &str| {
        let play = Play::on(device, &scenario)
            .with("run.kernels", "libtorch")
            .with("run.matmul_precision", "highest")
            .seeded(blueprint, seeds);
        play::state_after(&play, 1)
    };
    let (cpu, device) = (state("cpu")?, state(&setting.device)?);
    let losses = largest_difference(&cpu.losses, &device.losses);
    let weights = norm_difference(&cpu.weights, &device.weights);
    if losses <= TOLERANCE && weights <= TOLERANCE {
        let mut figures = Figures::new();
        figures.insert("losses differ by".into(), losses.into());
        figures.insert("weights by".into(), weights.into());
        Ok(figures)
    } else {
        let (cpu, device) = (&cpu.losses, &device.losses);
        Err(format!(
            "losses differ by {losses:.2e}, weights by {weights:.2e}; CPU {cpu:.4?}, device {device:.4?}"
        ))
    }
}

/// [`agrees`] for each seed module that the host may grow, alone in its first slot.
fn every_blueprint(setting: &Setting, task: &str) -> Played {
    let mut engine = Play::on("cpu", &two_envs(task)).engine()?;
    engine.world_mut().run_schedule(Startup);
    let width = engine.world().resource::<Experiment>().layout.slots()[0].channels;
    let blueprints = engine.world().resource::<BlueprintRegistry>().iter();
    let names: Vec<&'static str> = blueprints
        .filter(|(_, blueprint)| blueprint.param_count(width) > 0)
        .map(|(_, blueprint)| blueprint.id())
        .collect();
    let mut figures = Figures::new();
    let mut problems = Vec::new();
    for name in names {
        match agrees(setting, task, (name, 1)) {
            Ok(of_one) => {
                figures.insert(name.into(), of_one["losses differ by"].clone());
            }
            Err(why) => problems.push(format!("{name}: {why}")),
        }
    }
    if problems.is_empty() {
        Ok(figures)
    } else {
        Err(problems.join("; "))
    }
}

/// Lines of JSON of the script that is carried along.
fn eager(setting: &Setting) -> Played {
    let device = setting.device.split(':').next().unwrap_or("cpu");
    let mut script = Command::new("python3");
    script.arg(beside("eager.py")).args(["--device", device]);
    if setting.is_quick {
        script.arg("--quick");
    }
    let done = script.output().map_err(|error| error.to_string())?;
    if !done.status.success() {
        let text = String::from_utf8_lossy(&done.stderr);
        return Err(text.lines().last().unwrap_or("it failed").into());
    }
    serde_json::from_slice(&done.stdout).map_err(|error| error.to_string())
}

fn last_round(report: &RunReport) -> Played {
    if let Some(failure) = &report.failure {
        return Err(failure.to_string());
    }
    let record = report.record.as_ref().ok_or("nothing was recorded")?;
    let results = record.results.as_ref().ok_or("the record has not begun")?;
    let data = &results.rounds.last().ok_or("no round was played")?.data;
    let mut figures = Figures::new();
    figures.insert("env-steps/s".into(), data.perf.env_steps_per_s.0.into());
    figures.insert("accuracy".into(), data.accuracy_mean.0.into());
    if let Some(phases) = &data.perf.phases_ms {
        figures.insert("update ms".into(), phases.update.0.into());
        figures.insert("decide ms".into(), phases.decide.0.into());
        figures.insert("train ms".into(), phases.train.0.into());
        figures.insert("validate ms".into(), phases.validate.0.into());
        figures.insert("sync ms".into(), phases.sync.0.into());
    }
    Ok(figures)
}

fn shortened(play: Play, setting: &Setting) -> Play {
    match setting.is_quick {
        true => play.with("run.max_steps", 4).with("run.n_envs", 2),
        false => play,
    }
}

fn played(play: &Play) -> Result<(RunReport, tempfile::TempDir), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let builder = play.builder().recorded(folder.path());
    let mut engine = builder.from_ron(&play.scenario).map_err(|error| error.to_string())?;
    Ok((engine.play(), folder))
}

fn round(play: &Play, setting: &Setting) -> Played {
    let (report, _folder) = played(&shortened(play.clone(), setting))?;
    last_round(&report)
}

/// What every env reached in every round, to the bit.
fn reached(report: &RunReport) -> Result<Vec<String>, String> {
    if let Some(failure) = &report.failure {
        return Err(failure.to_string());
    }
    let record = report.record.as_ref().ok_or("nothing was recorded")?;
    let events = std::fs::read_to_string(record.directory.join("events.jsonl")).map_err(|error| error.to_string())?;
    let lines = events
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let steps = lines.filter(|line| line["type"] == "episode_finished" || line["type"] == "env_step");
    Ok(steps.map(|line| line["data"].to_string()).collect())
}

fn twice(setting: &Setting) -> Played {
    let play = shortened(
        Play::on(&setting.device, GROWN).with("run.deterministic", true),
        setting,
    );
    let (one, _first) = played(&play)?;
    let (other, _second) = played(&play.clone().threads(1))?;
    let (one, other) = (reached(&one)?, reached(&other)?);
    let differs = one.iter().zip(&other).position(|(one, other)| one != other);
    match differs {
        None if one.len() == other.len() => {
            let mut figures = Figures::new();
            figures.insert("equal events".into(), one.len().into());
            Ok(figures)
        }
        at => Err(format!(
            "events {} and {}, the first that differs: {at:?}",
            one.len(),
            other.len()
        )),
    }
}

fn resumed(setting: &Setting) -> Played {
    let play = shortened(
        Play::on(&setting.device, GROWN).with("run.deterministic", true),
        setting,
    );
    let (whole, _folder) = played(&play)?;
    let expected = reached(&whole)?;
    let run = whole.record.ok_or("nothing was recorded")?.directory;
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let past = PastRun::open(&run, CheckpointName::Round(1)).map_err(|error| text(&error))?;
    let extension = Extension::default();
    let known = &extension.names().map_err(|error| text(&error))?.catalog;
    let mut prepared = Prepared::from_ron("resolved.ron", &past.resolved, &[], known).map_err(|error| text(&error))?;
    prepared.file = past.file.clone();
    let before = prepared.loaded.scenario.clone();
    let point = past
        .resume(&before, &prepared.loaded, &[], &[])
        .map_err(|error| text(&error))?;
    let root = run.parent().ok_or("a run lies in a folder")?;
    let builder = Engine::builder().threads(play.threads).recorded(root).resumed(point);
    let report = builder.build(&prepared).map_err(|error| text(&error))?.play();
    let events = reached(&report)?;
    if events == expected {
        let mut figures = Figures::new();
        figures.insert("equal events".into(), events.len().into());
        Ok(figures)
    } else {
        let at = events.iter().zip(&expected).position(|(one, other)| one != other);
        Err(format!(
            "events {} and {}, the first that differs: {at:?}",
            events.len(),
            expected.len()
        ))
    }
}

fn out_of_memory(setting: &Setting) -> Played {
    let device = setting.device.parse().map(device_of).map_err(|_| "no device")?;
    let too_large = Tensor::f_ones([1 << 44], (tch::Kind::Float, device));
    let error = match too_large {
        Ok(_) => return Err("64 TiB were given".into()),
        Err(error) => TorchError::from(error),
    };
    if !matches!(error, TorchError::OutOfMemory(_)) {
        return Err(format!("taken for another error: {error}"));
    }
    round(&Play::on(&setting.device, GROWN).with("run.rounds", 1), setting)
}

fn memory_is_flat(setting: &Setting) -> Played {
    let device = setting.device.parse().map(device_of).map_err(|_| "no device")?;
    let play = shortened(
        Play::on(&setting.device, GROWN)
            .with("run.max_steps", 12)
            .with("run.rounds", 12),
        setting,
    );
    let mut engine = play.engine()?;
    let mut left = Vec::new();
    while engine.step().map_err(|error| error.to_string())? {
        let clock = engine.world().resource::<RunClock>();
        if clock.step() == 1 {
            left.push(free_bytes(device).unwrap_or(0) >> 20);
        }
    }
    let mut figures = Figures::new();
    figures.insert("MiB left, by round".into(), format!("{left:?}").into());
    let (Some(third), Some(last)) = (left.get(2), left.last()) else {
        return Ok(figures);
    };
    if last + 64 < *third {
        return Err(format!("memory that is left shrinks: {left:?} MiB"));
    }
    Ok(figures)
}
