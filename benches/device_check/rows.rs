//! The rows, those that decide most first.

use std::error::Error;
use std::process::Command;

use serde_json::{Value, json};
use simic_engine::extend::RunRecord;
use simic_engine::internals::checkpoint::{CheckpointName, PastRun};
use simic_engine::internals::engine::Prepared;
use simic_engine::internals::seed::BlueprintRegistry;
use simic_engine::internals::torch::{TorchError, device_of, free_bytes};
use simic_engine::prelude::*;

use crate::play::{self, Play, largest_difference, norm_difference};
use crate::{Setting, eager_script, open_device};

/// Named numbers and texts.
pub type Played = Result<Value, Box<dyn Error>>;

/// A line of the table.
pub struct Row {
    pub name: String,
    pub play: Box<dyn Fn(&Setting) -> Played>,
}

/// Losses and weights of a CPU and of a device in float32 may differ by this much of themselves.
const TOLERANCE: f64 = 2e-3;

/// Words of rows that a quick look leaves out.
const LONG: [&str; 9] = [
    "ResNet-",
    "64 envs",
    "vgg11",
    "resnet20",
    "host threads",
    ", on the CPU",
    "batch 512",
    "text,",
    "transformer: CUDA graphs",
];

const GROWN: &str = r#"(
    name: "grown",
    task: preset("digits_impaired", (batches_per_step: count(4))),
    run: (rounds: 2, n_envs: 8, max_steps: 30),
    policy: (controller: "heuristic"),
    lifecycle: (auto_forward: true),
)"#;
const LEARNT: &str = r#"(
    name: "learnt", preset: "digits",
    task: preset("digits_impaired", (batches_per_step: count(2))),
    run: (rounds: 3, n_envs: 4, max_steps: 20),
    policy: (controller: "actor_critic"),
)"#;

/// Envs that only train.
fn trained(task: &str, envs: u32) -> String {
    format!(
        r#"(
            name: "trained", task: {task}, policy: (controller: "wait"),
            run: (rounds: 1, n_envs: {envs}, max_steps: 100000),
        )"#
    )
}

/// Four envs on 32x32 images, 2048 of them a step.
fn images(preset: &str, batch: u32) -> String {
    let task = format!(
        r#"preset("{preset}", (
            batch_size: {batch}, batches_per_step: count({}), val_batch_size: {batch}, val_batches_per_step: count(1),
            data: synth_images((train: 2048, val: {batch}, test: {batch})),
        ))"#,
        2048 / batch
    );
    trained(&task, 4)
}

/// Tasks of two batches, each of another kind of host.
fn small() -> [(&'static str, String); 5] {
    let images = "batch_size: 64, data: synth_images((train: 512, val: 128, test: 128)), ";
    let tasks = [
        ("cnn on 8x8 digits", "digits_baseline", ""),
        ("cnn on 32x32 images", "synth_baseline", images),
        ("resnet20", "synth_resnet20", images),
        ("vgg11", "synth_vgg11", images),
        ("transformer", "synth_tokens", "batch_size: 16, "),
    ];
    tasks.map(|(name, preset, fields)| {
        let fields = format!("{fields}batches_per_step: count(2), val_batches_per_step: count(1)");
        (name, format!("preset({preset:?}, ({fields}))"))
    })
}

pub fn all(setting: &Setting) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |name: &str, play: Box<dyn Fn(&Setting) -> Played>| {
        let name = name.into();
        rows.push(Row { name, play });
    };
    let on = |scenario: &str| Play::on(&setting.device, scenario);
    let text = r#"preset("synth_tokens", (batches_per_step: count(8), val_batches_per_step: count(1)))"#;
    let workloads = [
        ("8x8 digits, 8 envs", trained(r#"preset("digits_baseline")"#, 8)),
        ("32x32 images, batch 512, 4 envs", images("synth_baseline", 512)),
        ("ResNet-20, batch 128, 4 envs", images("synth_resnet20", 128)),
        ("ResNet-18, batch 128, 4 envs", images("synth_resnet18", 128)),
        ("text, 4 envs", trained(text, 4)),
    ];
    let [digits, images, resnet20, resnet18, _] = &workloads;

    add("the device opens", Box::new(open_device));
    for (name, task) in small() {
        let play = move |setting: &Setting| agrees(setting, &task, ("", 0));
        add(&format!("{name}: as on the CPU"), Box::new(play));
    }
    let [(_, task), ..] = small();
    let grown = move |setting: &Setting| agrees(setting, &task, ("conv_light", 3));
    add("cnn on 8x8 digits, three conv_light: as on the CPU", Box::new(grown));
    for (name, scenario) in &workloads {
        add(name, speed(on(scenario)));
    }
    add("eager PyTorch", Box::new(eager));
    for (name, preset) in [
        ("cnn on 8x8 digits", "digits_baseline"),
        ("transformer", "synth_tokens"),
    ] {
        let play = move |setting: &Setting| graphs_agree(setting, preset);
        add(&format!("{name}: CUDA graphs as without"), Box::new(play));
    }
    for (name, scenario) in &workloads {
        let play = on(scenario).with("run.cuda_graphs", true);
        add(&format!("{name}, CUDA graphs"), speed(play));
    }
    let play = on(GROWN).with("run.cuda_graphs", true);
    add("seeds under rules, CUDA graphs", rounds(play));
    for (name, scenario) in [digits, images] {
        let play = on(scenario).seeded("conv_light", 3);
        add(&format!("{name}, 3 conv_light"), speed(play));
    }
    for threads in [1, 2, 4] {
        for (name, scenario) in [digits, resnet20] {
            let play = on(scenario).threads(threads);
            add(&format!("{name}, {threads} host threads"), speed(play));
        }
    }
    add("seeds under rules, two rounds", rounds(on(GROWN)));
    add("a policy that learns, three rounds", rounds(on(LEARNT)));
    add("a policy's first update: as on the CPU", Box::new(first_update));
    add("deterministic: twice, with many threads and one", Box::new(twice));
    add("deterministic: resumed after a round", Box::new(resumed));
    add(
        "deterministic: killed in its second round and resumed",
        Box::new(killed),
    );
    add("no memory: said as such, and work continues", Box::new(out_of_memory));
    for (name, scenario) in [images, resnet18] {
        let play = on(scenario).with("run.matmul_precision", "highest");
        add(&format!("{name}, matmul_precision highest"), speed(play));
    }
    for envs in [2, 64] {
        let play = on(&digits.1).with("run.n_envs", envs);
        add(&format!("8x8 digits, {envs} envs"), speed(play));
    }
    let play = on(&images.1).with("data.residency", "host");
    add(
        &format!("{}, data in the machine's memory", images.0),
        speed(play.clone()),
    );
    let play = play.with("run.max_steps", 10);
    add(&format!("{}, a round with such data", images.0), rounds(play));
    if setting.device != "cpu" {
        let mut play = Play::on("cpu", &digits.1);
        play.devices.push(setting.device.clone());
        add("8x8 digits, 8 envs over the CPU and the device", speed(play));
        let apart = Play::on("cpu", LEARNT).with("policy.device", format!("{:?}", setting.device));
        add("envs on the CPU, their policy on the device", rounds(apart));
    }
    add("memory is constant over 20 rounds", Box::new(memory_is_flat));
    for (name, task) in small() {
        let play = move |setting: &Setting| every_blueprint(setting, &task);
        add(&format!("{name}: every seed module as on the CPU"), Box::new(play));
    }
    add("64 envs under rules", rounds(on(GROWN).with("run.n_envs", 64)));
    for (name, scenario) in [digits, images, resnet20] {
        add(&format!("{name}, on the CPU"), speed(Play::on("cpu", scenario)));
    }
    for amp in ["bf16", "fp16"] {
        for (name, scenario) in [images, resnet18] {
            let play = on(scenario).with("training.amp", amp);
            add(&format!("{name}, amp {amp}"), speed(play));
        }
        let grown = on(GROWN).with("training.amp", amp);
        add(&format!("seeds under rules, amp {amp}"), rounds(grown));
        let learnt = on(LEARNT).with("learner.amp", amp);
        add(&format!("a policy that learns, learner.amp {amp}"), rounds(learnt));
        let accurate = move |setting: &Setting| keeps_accuracy(setting, amp);
        add(&format!("accuracy of five seeds, amp {amp}"), Box::new(accurate));
    }
    if setting.is_quick {
        let is_long = |name: &str| LONG.iter().any(|word| name.contains(word));
        rows.retain(|row| !is_long(&row.name));
    }
    rows
}

fn speed(play: Play) -> Box<dyn Fn(&Setting) -> Played> {
    Box::new(move |setting| play::speed(&play, setting.is_quick))
}

fn rounds(play: Play) -> Box<dyn Fn(&Setting) -> Played> {
    Box::new(move |setting| last_round(&play, setting))
}

/// The same step in float32 on the CPU, by libtorch's kernels, and on the device.
fn agrees(setting: &Setting, task: &str, (blueprint, seeds): (&'static str, usize)) -> Played {
    let state = |device: &str| {
        let play = Play::on(device, &trained(task, 2))
            .with("run.kernels", "libtorch")
            .with("run.matmul_precision", "highest")
            .seeded(blueprint, seeds);
        play::state_after(&play, 1)
    };
    let (cpu, device) = (state("cpu")?, state(&setting.device)?);
    let losses = largest_difference(&cpu.losses, &device.losses);
    let weights = norm_difference(&cpu.weights, &device.weights);
    if losses <= TOLERANCE && weights <= TOLERANCE {
        return Ok(json!({"losses differ by": losses, "weights by": weights}));
    }
    let (cpu, device) = (&cpu.losses, &device.losses);
    let by = format!("losses differ by {losses:.2e}, weights by {weights:.2e}");
    Err(format!("{by}; CPU {cpu:.4?}, device {device:.4?}").into())
}

/// Four steps on the device, once without recorded batches and once with them, where most are replayed. Fails if none can be
/// recorded.
fn graphs_agree(setting: &Setting, preset: &str) -> Played {
    let task = format!("preset({preset:?}, (batches_per_step: count(8), val_batches_per_step: count(1)))");
    let state = |graphs: bool| {
        let play = Play::on(&setting.device, &trained(&task, 2))
            .with("run.cuda_graphs", graphs)
            .seeded("conv_light", if preset == "synth_tokens" { 0 } else { 1 });
        play::state_after(&play, 4)
    };
    let (eager, graphs) = (state(false)?, state(true)?);
    let losses = largest_difference(&eager.losses, &graphs.losses);
    let weights = norm_difference(&eager.weights, &graphs.weights);
    if graphs.refused > 0 && setting.device != "cpu" {
        return Err(format!("{} batches could not be recorded", graphs.refused).into());
    }
    match losses <= TOLERANCE && weights <= TOLERANCE {
        true => Ok(json!({"losses differ by": losses, "weights by": weights, "refused": graphs.refused})),
        false => Err(format!("losses differ by {losses:.2e}, weights by {weights:.2e}").into()),
    }
}

/// [`agrees`] for each seed module that the host may grow, alone in its first slot.
fn every_blueprint(setting: &Setting, task: &str) -> Played {
    let mut engine = Engine::from_ron(&trained(task, 2))?;
    engine.world_mut().run_schedule(Startup);
    let width = engine.world().resource::<Experiment>().layout.slots()[0].channels;
    let blueprints = engine.world().resource::<BlueprintRegistry>().iter();
    let mut figures = json!({});
    let mut problems = Vec::new();
    let blueprints = blueprints.filter(|(_, blueprint)| blueprint.param_count(width) > 0);
    for (_, blueprint) in blueprints.take(if setting.is_quick { 2 } else { usize::MAX }) {
        let name = blueprint.id();
        match agrees(setting, task, (name, 1)) {
            Ok(of_one) => figures[name] = of_one["losses differ by"].clone(),
            Err(why) => problems.push(format!("{name}: {why}")),
        }
    }
    match problems.is_empty() {
        true => Ok(figures),
        false => Err(problems.join("; ").into()),
    }
}

/// Lines of JSON of the script that is carried along.
fn eager(setting: &Setting) -> Played {
    let device = setting.device.split(':').next().unwrap_or("cpu");
    let mut script = Command::new("python3");
    script.arg(eager_script()).args(["--device", device]);
    if setting.is_quick {
        script.arg("--quick");
    }
    let done = script.output()?;
    if !done.status.success() {
        let text = String::from_utf8_lossy(&done.stderr);
        let why = text.lines().last().unwrap_or("it failed");
        // Without PyTorch there is nothing to compare with.
        return match why.contains("ImportError") || why.contains("ModuleNotFoundError") || why.contains("OSError") {
            true => Ok(json!({"skipped": why})),
            false => Err(why.into()),
        };
    }
    Ok(serde_json::from_slice(&done.stdout)?)
}

fn shortened(play: Play, setting: &Setting) -> Play {
    match setting.is_quick {
        true => play.with("run.max_steps", 4).with("run.n_envs", 2),
        false => play,
    }
}

fn recorded(play: &Play) -> Result<(RunRecord, tempfile::TempDir), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let builder = play.builder().recorded(folder.path());
    let report = builder.from_ron(&play.scenario)?.run()?;
    Ok((report.record.ok_or("nothing was recorded")?, folder))
}

fn last_round(play: &Play, setting: &Setting) -> Played {
    let (record, _folder) = recorded(&shortened(play.clone(), setting))?;
    let results = record.results.ok_or("the record has not begun")?;
    let data = &results.rounds.last().ok_or("no round was played")?.data;
    let mut figures = json!({"env-steps/s": data.perf.env_steps_per_s.0, "accuracy": data.accuracy_mean.0});
    let phases = &data.perf.phases_ms;
    figures["update ms"] = phases.update.0.into();
    figures["decide ms"] = phases.decide.0.into();
    figures["train ms"] = phases.train.0.into();
    figures["validate ms"] = phases.validate.0.into();
    figures["sync ms"] = phases.sync.0.into();
    figures["copy ms"] = data.perf.copy_ms.0.into();
    if let Some(fallbacks) = data.fallbacks.filter(|fallbacks| fallbacks.graph > 0) {
        figures["batches that could not be recorded"] = fallbacks.graph.into();
    }
    Ok(figures)
}

/// The numbers of the first update of a policy that has seen the same envs on the CPU and on the device.
fn first_update(setting: &Setting) -> Played {
    let losses = |device: &str| -> Result<Vec<f64>, Box<dyn Error>> {
        let play = Play::on(device, LEARNT).with("run.rounds", 1);
        let (record, _folder) = recorded(&shortened(play, setting))?;
        let update = events(&record, &["learner_update"])?;
        let measured = update.first().ok_or("the policy was not updated")?;
        let names = ["loss_policy", "loss_value", "loss_entropy", "grad_norm"];
        let numbers = names.map(|name| measured[name].as_f64().ok_or(format!("no {name} was measured")));
        Ok(numbers.into_iter().collect::<Result<_, String>>()?)
    };
    let (cpu, device) = (losses("cpu")?, losses(&setting.device)?);
    let differ = norm_difference(&cpu, &device);
    match differ <= 25.0 * TOLERANCE {
        true => Ok(json!({"losses and gradient differ by": differ})),
        false => Err(format!("they differ by {differ:.2e}; CPU {cpu:.4?}, device {device:.4?}").into()),
    }
}

/// The mean accuracy in lower precision against that in float32.
fn keeps_accuracy(setting: &Setting, amp: &str) -> Played {
    let seeds = if setting.is_quick { 1..=1 } else { 1..=5 };
    let reach = |amp: &str| -> Result<f64, Box<dyn Error>> {
        let mut sum = 0.0;
        for seed in seeds.clone() {
            let play = Play::on(&setting.device, &trained(r#"preset("digits_baseline")"#, 2))
                .with("run.max_steps", if setting.is_quick { 2 } else { 15 })
                .with("run.seed", seed)
                .with("training.amp", amp);
            sum += last_round(
                &play,
                &Setting {
                    is_quick: false,
                    ..setting.clone()
                },
            )?["accuracy"]
                .as_f64()
                .ok_or("no accuracy was measured")?;
        }
        Ok(sum / f64::from(*seeds.end()))
    };
    let (whole, lower) = (reach("off")?, reach(amp)?);
    match lower >= 0.9 * whole {
        true => Ok(json!({"accuracy": lower, "in float32": whole})),
        false => Err(format!("accuracy {lower:.2}, in float32 {whole:.2}").into()),
    }
}

/// The data of a run's events of these types.
fn events(record: &RunRecord, types: &[&str]) -> Result<Vec<Value>, Box<dyn Error>> {
    let text = std::fs::read_to_string(record.directory.join("events.jsonl"))?;
    let lines = text.lines().flat_map(serde_json::from_str::<Value>);
    let of_types = lines.filter(|line| line["type"].as_str().is_some_and(|name| types.contains(&name)));
    Ok(of_types.map(|mut line| line["data"].take()).collect())
}

/// Results of every env in every round, bit for bit.
fn reached(record: &RunRecord) -> Result<Vec<String>, Box<dyn Error>> {
    let steps = events(record, &["episode_finished", "env_step"])?;
    Ok(steps.iter().map(Value::to_string).collect())
}

fn same(one: &[String], other: &[String]) -> Played {
    if one == other {
        return Ok(json!({"equal events": one.len()}));
    }
    let differs = one.iter().zip(other).position(|(one, other)| one != other);
    let (one, other) = (one.len(), other.len());
    Err(format!("{one} and {other} events; the first that differs: {differs:?}").into())
}

fn deterministic(setting: &Setting) -> Play {
    let play = Play::on(&setting.device, GROWN).with("run.deterministic", true);
    shortened(play, setting)
}

fn twice(setting: &Setting) -> Played {
    let play = deterministic(setting);
    let (one, _first) = recorded(&play)?;
    let (other, _second) = recorded(&play.threads(1))?;
    same(&reached(&one)?, &reached(&other)?)
}

fn resumed(setting: &Setting) -> Played {
    let play = deterministic(setting);
    let (whole, _folder) = recorded(&play)?;
    let expected = reached(&whole)?;
    same(&continued(&play, &whole.directory)?, &expected)
}

/// A child plays the run and is killed as soon as its first round is kept.
fn killed(setting: &Setting) -> Played {
    let play = deterministic(setting);
    let (whole, _folder) = recorded(&play)?;
    let folder = tempfile::tempdir()?;
    let mut child = Command::new(std::env::current_exe()?);
    child.args(["--device", &setting.device, "--victim"]).arg(folder.path());
    if setting.is_quick {
        child.arg("--quick");
    }
    let mut child = child.spawn()?;
    let run = loop {
        let runs = std::fs::read_dir(folder.path())?.flatten().map(|entry| entry.path());
        let kept = runs
            .into_iter()
            .find(|run| PastRun::open(run, CheckpointName::Round(1)).is_ok());
        match (kept, child.try_wait()?) {
            (Some(run), _) => break run,
            (None, Some(status)) => {
                return Err(format!("the run ended before its first round was kept: {status}").into());
            }
            (None, None) => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    };
    child.kill()?;
    child.wait()?;
    same(&continued(&play, &run)?, &reached(&whole)?)
}

/// The run that [`killed`] kills, into `folder`.
pub fn play_victim(setting: &Setting, folder: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let play = deterministic(setting);
    play.builder().recorded(folder).from_ron(&play.scenario)?.run()?;
    Ok(())
}

/// Results of the envs of a run that is resumed after its first round.
fn continued(play: &Play, run: &std::path::Path) -> Result<Vec<String>, Box<dyn Error>> {
    let past = PastRun::open(run, CheckpointName::Round(1))?;
    let extension = Extension::default();
    let mut prepared = Prepared::from_ron("resolved.ron", &past.resolved, &[], &extension.names()?.catalog)?;
    prepared.file = past.file.clone();
    let loaded = &prepared.loaded;
    let point = past.resume(&loaded.scenario, loaded, &[], &[])?;
    let root = run.parent().ok_or("a run lies in a folder")?;
    let builder = Engine::builder().threads(play.threads).recorded(root).resumed(point);
    let report = builder.build(&prepared)?.run()?;
    reached(&report.record.ok_or("nothing was recorded")?)
}

fn out_of_memory(setting: &Setting) -> Played {
    let device = device_of(setting.device.parse()?);
    let Err(error) = Tensor::f_ones([1 << 44], (tch::Kind::Float, device)) else {
        return Err("64 TiB were allocated".into());
    };
    match TorchError::from(error) {
        TorchError::OutOfMemory(_) => last_round(&Play::on(&setting.device, GROWN).with("run.rounds", 1), setting),
        other => Err(format!("reported as another error: {other}").into()),
    }
}

fn memory_is_flat(setting: &Setting) -> Played {
    let device = device_of(setting.device.parse()?);
    let play = Play::on(&setting.device, GROWN).with("run.max_steps", 12);
    let play = shortened(play.with("run.rounds", if setting.is_quick { 4 } else { 20 }), setting);
    let mut engine = play.builder().from_ron(&play.scenario)?;
    let mut left = Vec::new();
    while engine.step()? {
        if engine.world().resource::<RunClock>().step() == 1 {
            left.push(free_bytes(device).unwrap_or(0) >> 20);
        }
    }
    match (left.get(2), left.last()) {
        (Some(third), Some(last)) if last + 64 < *third => Err(format!("free memory shrinks: {left:?} MiB").into()),
        _ => Ok(json!({"MiB left, by round": format!("{left:?}")})),
    }
}
