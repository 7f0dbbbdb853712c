//! Runs with a record, played in this process, with something added to them, and their results; scenarios of an application.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value;
use simic_engine::internals::checkpoint::{CheckpointName, PastRun, ResumeError};
use simic_engine::internals::engine::{Prepared, RunReport};
use simic_engine::internals::prior_art::PriorArtPlugin;
use simic_engine::internals::run::StopRequest;
use simic_engine::internals::scenario::{self, Catalog, Input, Loaded, Override, Report};
use simic_engine::prelude::*;

use crate::support::{builder, lines};
use crate::training_loop::support::values;

/// Entries of a schedule that takes one seed from its germination in the first slot to its commit in step 18.
pub const ONE_SEED: &str = r#"entries: [
    (step: 1, command: germinate(slot: "r0c0", blueprint: "norm", style: "sigmoid_add", tempo: "standard", target: "full")),
    (step: 2, command: advance(slot: "r0c0")),
    (step: 12, command: advance(slot: "r0c0")),
    (step: 17, command: advance(slot: "r0c0")),
    (step: 18, command: commit(slot: "r0c0")),
]"#;

/// An application that adds nothing.
pub const NOTHING: fn(&mut App) = |_| {};

/// Plays `scenario` with what `extend` adds; its folder goes into `out`.
pub fn play(scenario: &str, out: &Path, extend: fn(&mut App)) -> RunReport {
    let engine = builder().with(extend).threads(2).recorded(out);
    engine.from_ron(scenario).expect("the scenario is sound").play()
}

/// The folder of a run that has not failed.
pub fn directory(report: &RunReport) -> PathBuf {
    assert!(report.failure.is_none(), "{:?}", report.failure);
    report.record.as_ref().expect("it was recorded").directory.clone()
}

/// Events of a run, of one type.
pub fn events(run: &Path, kind: &str) -> Vec<Value> {
    let mut lines = lines(run);
    lines.retain(|line| line["type"] == kind);
    lines
}

/// A system that asks the run to stop after a step.
pub fn stops_after(round: u32, step: u32) -> impl Fn(Res<RunClock>, Res<StopSignal>) + Copy {
    move |clock, stop| {
        if (clock.round(), clock.step()) == (round, step) {
            stop.request(StopRequest::Interrupt);
        }
    }
}

/// The engine that resumes the run in `run`, unchanged, from one of its checkpoints; not yet started.
///
/// # Errors
/// A run that cannot be resumed.
pub fn resumed(run: &Path, from: CheckpointName, extend: fn(&mut App), threads: usize) -> Result<Engine, ResumeError> {
    let past = PastRun::open(run, from)?;
    let extension = Extension::new(extend);
    let known = &extension.names().expect("names are free").catalog;
    let mut prepared = Prepared::from_ron("resolved.ron", &past.resolved, &[], known).expect("the scenario is sound");
    prepared.file = past.file.clone();
    let before = prepared.loaded.scenario.clone();
    let point = past.resume(&before, &prepared.loaded, &[], &[])?;
    let root = run.parent().expect("a run lies in a folder");
    let engine = Engine::builder().with(extension).threads(threads).recorded(root);
    Ok(engine.resumed(point).build(&prepared).expect("the engine is made"))
}

/// Bits of the last losses in training and validation, and the host's tensors, one entry per env.
pub type State = Vec<([u64; 2], Vec<f32>)>;

/// State of the run.
pub fn state(engine: &mut Engine) -> State {
    let mut envs = engine
        .world_mut()
        .query::<(&TrainMetrics, &ValMetrics, &mut HostModel)>();
    let envs = envs.iter_mut(engine.world_mut());
    envs.map(|(train, val, mut host)| {
        let tensors = host.0.get().params().all().flat_map(|param| values(&param.tensor));
        ([train.loss, val.loss].map(f64::to_bits), tensors.collect())
    })
    .collect()
}

/// The names that an application knows.
pub fn catalog(extend: fn(&mut App)) -> Catalog {
    let extension = Extension::new(extend);
    extension.names().expect("the names are free").catalog.clone()
}

/// The names that the program knows.
pub static CATALOG: LazyLock<Catalog> = LazyLock::new(|| catalog(|app| _ = app.add_plugins(PriorArtPlugin)));

/// A loaded scenario, or all of its problems.
///
/// # Errors
/// Its problems.
pub fn load(label: &str, text: &str, overrides: &[Override], catalog: &Catalog) -> Result<Loaded, Report> {
    let input = Input { label, text, overrides };
    scenario::load(&input, catalog)
}
