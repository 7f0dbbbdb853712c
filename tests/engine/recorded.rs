//! Runs with a record, played in this process, with something added to them, and their results.

use std::path::Path;

use simic_engine::internals::checkpoint::{CheckpointName, PastRun, ResumeError};
use simic_engine::internals::engine::{Prepared, RunReport};
use simic_engine::internals::env::HostModel;
use simic_engine::prelude::*;
use tch::Tensor;

/// An application that adds nothing.
pub const NOTHING: fn(&mut App) = |_| {};

/// Plays `scenario` with what `extend` adds; its folder goes into `out`.
pub fn play(scenario: &str, out: &Path, extend: fn(&mut App)) -> RunReport {
    let engine = Engine::builder().with(extend).threads(2).recorded(out);
    engine.from_ron(scenario).expect("the scenario is sound").play()
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

/// Bits of the host's tensors and of the last loss, one entry an env.
pub fn state(engine: &mut Engine) -> Vec<(u64, Vec<f32>)> {
    let mut envs = engine.world_mut().query::<(&ValMetrics, &mut HostModel)>();
    let envs = envs.iter_mut(engine.world_mut());
    let values = |tensor: &Tensor| Vec::<f32>::try_from(tensor.flatten(0, -1)).expect("numbers");
    envs.map(|(metrics, mut host)| {
        let tensors = host.0.get().params().all().flat_map(|param| values(&param.tensor));
        (metrics.loss.to_bits(), tensors.collect())
    })
    .collect()
}
