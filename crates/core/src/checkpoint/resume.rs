//! Resumed runs: `resume` reads and checks the folder of a run before it changes anything in it. Then
//! it cuts the record back to its newest checkpoint and continues it in place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use bevy_ecs::prelude::{Resource, World};
use bevy_ecs::system::RunSystemOnce;
use serde_json::Value;

use super::shelf::{CheckpointError, CheckpointName, Checkpoints, POLICY_FOLDER, Progress};
use crate::controller::systems::build_controller;
use crate::controller::{ActiveController, CONTROLLER_FILE, SavedFolder};
use crate::env::StartingWeights;
use crate::files::counted;
use crate::health::{AtPath, Failure, FileError};
use crate::record::{Continuation, RunClaim, RunDirectory, RunDirectoryError, ScenarioFile};
use crate::scenario::{Loaded, Override, Scenario};
use crate::telemetry::{EVENTS_FILE, RunState, record_end};

/// Fields that may change without `--allow`, because they affect neither the rounds nor the learning.
const MAY_CHANGE: [&str; 3] = [ROUNDS, "run.checkpoint_every_steps", "run.memory_limit_gib"];

const ROUNDS: &str = "run.rounds";

/// Name of the data set's content in `--allow`. It isn't a field of a scenario, but is in the section about feeding the data.
const DATA: &str = "data.hash";

/// The reason why a run can't be resumed. Nothing in its folder has been changed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ResumeError {
    #[error("{0} isn't a run directory: it has no resolved.ron")]
    NoRun(PathBuf),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{0} has no checkpoint to continue from; start it again with `simic-engine run {0}/resolved.ron`")]
    NoCheckpoint(PathBuf),
    #[error(
        "{record}: a run cannot be continued without its events; `simic-engine check {run}` says what is left of it, \
         `simic-engine run {run}/resolved.ron` starts it again"
    )]
    NoEvents { run: PathBuf, record: FileError },
    #[error(
        "the run has learnt from other data: the hash of its data set was {saved}, now it is {now}; restore that data \
         set, or continue with this one: --allow {DATA}"
    )]
    OtherData { saved: String, now: String },
    #[error(
        "the run's episodes start from other weights: the hash of task.weights, or of a grown host, was {saved}, now it is {now}; \
         restore that file"
    )]
    OtherWeights { saved: String, now: String },
    #[error("the run cannot be resumed as requested:\n  {}", .0.join("\n  "))]
    Incompatible(Vec<String>),
    #[error(transparent)]
    Checkpoint(CheckpointError),
    #[error(transparent)]
    Directory(#[from] RunDirectoryError),
}

/// The checkpoint that a run resumes from.
#[derive(Resource, Clone, Debug)]
pub struct ResumePoint {
    /// The folder of the run.
    pub directory: RunDirectory,
    /// The checkpoint's folder.
    pub checkpoint: PathBuf,
    /// The round and step of the checkpoint, and what it counts.
    pub progress: Progress,
    /// Differences from the run as it has been played, in words.
    pub changed: Vec<String>,
    /// True if the run may continue with data other than it has learnt from.
    pub allows_other_data: bool,
    /// The claim on the run, taken before anything of it was read.
    pub claim: RunClaim,
}

impl ResumePoint {
    /// The point from which the record continues, given the hash of the data set, and of the weights if episodes start from some.
    ///
    /// # Errors
    /// If the run has learnt from other data and may not continue with this one, or its episodes started from other weights.
    pub fn continuation(&self, data_hash: &str, weights_hash: Option<&str>) -> Result<Continuation, ResumeError> {
        compare_weights(&self.progress, weights_hash)?;
        let saved = &self.progress.data_hash;
        let has_other_data = saved != data_hash;
        if has_other_data && !self.allows_other_data {
            return Err(ResumeError::OtherData {
                saved: saved.clone(),
                now: data_hash.into(),
            });
        }
        let other_data = has_other_data.then(|| format!("resumed with {DATA} {data_hash} instead of {saved}"));
        Ok(Continuation {
            directory: self.directory.clone(),
            checkpoint: Checkpoints::relative_path(self.progress.id()),
            next_round: self.progress.next_round,
            step: self.progress.step,
            next_seq: self.progress.next_seq,
            changed: self.changed.iter().cloned().chain(other_data).collect(),
        })
    }
}

/// A run that has ended or been killed, as its directory shows it.
#[derive(Clone, Debug)]
pub struct PastRun {
    /// The point to resume from.
    pub point: ResumePoint,
    /// The scenario file of the run.
    pub file: ScenarioFile,
    /// The scenario that it began with, including every default and override.
    pub resolved: String,
    /// The requested checkpoint.
    from: CheckpointName,
}

impl PastRun {
    /// Claims a run and looks at its directory and one of its checkpoints.
    ///
    /// # Errors
    /// If there is no run, another process plays it, or it doesn't have this checkpoint.
    pub fn open(path: &Path, from: CheckpointName) -> Result<Self, ResumeError> {
        if !RunDirectory::is_at(path) {
            return Err(ResumeError::NoRun(path.into()));
        }
        let directory = RunDirectory::open(path)?;
        // The claim comes first, because files that another process still changes must not be read.
        let claim = directory.claim()?;
        let (checkpoint, progress, file) = start_of(&directory, from)?;
        Ok(Self {
            file,
            resolved: crate::files::read_text(&directory.resolved_path()).at(&directory.resolved_path())?,
            point: ResumePoint {
                directory,
                checkpoint,
                progress,
                changed: Vec::new(),
                allows_other_data: false,
                claim,
            },
            from,
        })
    }

    /// Checks that the folder of a run has what a resume starts from, for messages that suggest it. Changes nothing.
    ///
    /// # Errors
    /// The part that is missing or cannot be read.
    pub fn can_continue(path: &Path) -> Result<(), ResumeError> {
        start_of(&RunDirectory::open(path)?, CheckpointName::Last).map(drop)
    }

    /// Overrides with which the run was resumed before.
    ///
    /// # Errors
    /// A checkpoint that was edited by hand.
    pub fn earlier_changes(&self) -> Result<Vec<Override>, String> {
        self.point
            .progress
            .changes
            .iter()
            .map(|change| Override::parse(change))
            .collect()
    }

    /// Returns whether the run has played all of `rounds` and closed its record, and the user didn't ask for an earlier
    /// checkpoint.
    ///
    /// # Errors
    /// Events that cannot be read.
    pub fn is_finished(&self, rounds: u32) -> Result<bool, ResumeError> {
        let progress = &self.point.progress;
        if self.from != CheckpointName::Last && progress.next_round < rounds {
            return Ok(false);
        }
        let finished = record_end(self.point.directory.path())?.and_then(|end| end.finished);
        Ok(finished.is_some_and(|run| run.status == RunState::Completed) && progress.rounds >= rounds)
    }

    /// Tidies the folder of a run that has ended. A process that was killed may have left too many checkpoints,
    /// half of one, or links to older ones. The newest few and the best stay.
    pub fn tidy(&self) {
        let shelf = Checkpoints::of(self.point.directory.path());
        shelf.sweep();
        shelf.tidy(&self.point.progress);
    }

    /// The point to resume from. `before` is the run's scenario so far, `now` the one to resume with, `changes` the overrides
    /// between the two and `allowed` the paths, or sections, at which they may differ.
    ///
    /// # Errors
    /// Every difference that prevents the next rounds from continuing the played ones.
    pub fn resume(
        &self,
        before: &Scenario,
        now: &Loaded,
        changes: &[Override],
        allowed: &[String],
    ) -> Result<ResumePoint, ResumeError> {
        let mut point = self.point.clone();
        let differing = changed_fields(before, &now.scenario);
        point.changed = self.differences(&differing, now, allowed)?;
        let (engine, saved) = (env!("CARGO_PKG_VERSION"), &point.progress.engine);
        if saved != engine {
            point
                .changed
                .push(format!("resumed with engine {engine} instead of {saved}"));
        }
        point.allows_other_data = allowed.iter().any(|allowed| covers(allowed, DATA));
        point.progress.changes = changes
            .iter()
            .filter(|change| change.path != ROUNDS)
            .map(|change| format!("{}={}", change.path, change.value))
            .collect();
        Ok(point)
    }

    /// Permitted differences, in words.
    fn differences(
        &self,
        differing: &[(String, Value, Value)],
        now: &Loaded,
        allowed: &[String],
    ) -> Result<Vec<String>, ResumeError> {
        let (progress, scenario) = (&self.point.progress, &now.scenario);
        let slots: Vec<String> = now.slots.iter().map(ToString::to_string).collect();
        let mut found = Differences::default();
        found.compare(
            "resolved.ron (hash)",
            &progress.scenario_hash,
            &self.point.directory.scenario_hash(),
        );
        found.compare("run.n_envs", &progress.n_envs, &scenario.run.n_envs);
        found.compare("lifecycle.slots", &progress.slots, &slots);
        found.compare("policy.controller", &progress.controller, &scenario.policy.controller);
        if scenario.run.rounds < progress.next_round {
            let (rounds, done) = (scenario.run.rounds, counted(progress.next_round, "round"));
            let why = format!("{done} played already, but only {rounds} requested");
            found.add(ROUNDS, why);
        }
        let mut changed = Vec::new();
        for (path, saved, running) in differing {
            if MAY_CHANGE.contains(&path.as_str()) || allowed.iter().any(|allowed| covers(allowed, path)) {
                changed.push(format!("resumed with {path} {running} instead of {saved}"));
            } else {
                let why = format!("the run has {saved}, now {running}; --allow {path} lets it change");
                found.add(path, why);
            }
        }
        for path in allowed {
            // The hash of the data is known once they are loaded.
            if !covers(path, DATA) && !differing.iter().any(|(differing, ..)| covers(path, differing)) {
                found.add(path, "allowed to change, but it does not; change it with --set".into());
            }
        }
        if found.lines.is_empty() {
            Ok(changed)
        } else {
            Err(ResumeError::Incompatible(found.lines))
        }
    }
}

/// The checkpoint that a run resumes from, its progress, and the scenario file. Its events have to be there too.
fn start_of(directory: &RunDirectory, from: CheckpointName) -> Result<(PathBuf, Progress, ScenarioFile), ResumeError> {
    let path = directory.path();
    let (checkpoint, progress) = Checkpoints::of(path).find(from).map_err(|error| match error {
        CheckpointError::None(_) => ResumeError::NoCheckpoint(path.into()),
        other => ResumeError::Checkpoint(other),
    })?;
    let file = directory.scenario_file()?;
    let events = path.join(EVENTS_FILE);
    let opened = crate::files::open(&events).at(&events);
    opened.map_err(|record| ResumeError::NoEvents {
        run: path.into(),
        record,
    })?;
    Ok((checkpoint, progress, file))
}

fn compare_weights(progress: &Progress, now: Option<&str>) -> Result<(), ResumeError> {
    let now = now.unwrap_or("none");
    match &progress.weights_hash {
        Some(saved) if saved != now => Err(ResumeError::OtherWeights {
            saved: saved.clone(),
            now: now.into(),
        }),
        _ => Ok(()),
    }
}

/// Checks that an engine of the run's scenario finds the weights and the recording that a checkpoint was played with, like a
/// resume. It reads neither data nor the weights of a policy.
///
/// # Errors
/// Weights or a recording that are missing or differ.
pub fn compare_inputs(world: &mut World, checkpoint: &Path, progress: &Progress) -> Result<(), Failure> {
    if progress.weights_hash.is_some() {
        let weights = StartingWeights::read(world.resource(), world.resource())?;
        compare_weights(progress, weights.hash.as_deref())?;
    }
    let saved = SavedFolder::read(&checkpoint.join(POLICY_FOLDER))?;
    if saved.file(CONTROLLER_FILE).is_ok() {
        let built = world.run_system_once::<_, Result<(), Failure>, _>(build_controller);
        built.map_err(|error| Failure::message(error.to_string()))??;
        world.resource_mut::<ActiveController>().0.get().load(&saved)?;
    }
    Ok(())
}

/// Returns whether `path` is `allowed` or inside it.
fn covers(allowed: &str, path: &str) -> bool {
    path.strip_prefix(allowed)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Differences, without repetition.
#[derive(Default)]
struct Differences {
    named: BTreeSet<String>,
    lines: Vec<String>,
}

impl Differences {
    fn compare<T, U>(&mut self, path: &str, saved: &T, running: &U)
    where
        T: PartialEq<U> + fmt::Debug,
        U: fmt::Debug,
    {
        if saved != running {
            self.add(path, format!("the run began with {saved:?}, now {running:?}"));
        }
    }

    fn add(&mut self, path: &str, what: String) {
        if self.named.insert(path.to_owned()) {
            self.lines.push(format!("{path}: {what}"));
        }
    }
}

/// Dotted paths at which two scenarios differ, with both values.
fn changed_fields(before: &Scenario, now: &Scenario) -> Vec<(String, Value, Value)> {
    let (before, now) = (scenario_fields(before), scenario_fields(now));
    let paths: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let value = |fields: &BTreeMap<String, Value>, path| fields.get(path).cloned().unwrap_or_default();
    paths
        .into_iter()
        .map(|path| (path.clone(), value(&before, path), value(&now, path)))
        .filter(|(_, before, now)| before != now)
        .collect()
}

/// The values of a scenario by their dotted paths.
pub fn scenario_fields(scenario: &Scenario) -> BTreeMap<String, Value> {
    fn flatten(path: &str, value: Value, into: &mut BTreeMap<String, Value>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = if path.is_empty() {
                        name
                    } else {
                        format!("{path}.{name}")
                    };
                    flatten(&path, value, into);
                }
            }
            plain => {
                into.insert(path.into(), plain);
            }
        }
    }
    let mut value = serde_json::to_value(scenario).unwrap_or_default();
    // `--set` and `--allow` name a field of the task, not the choice that it is written in.
    if let Some(task) = value.pointer_mut("/task/custom").map(Value::take) {
        value["task"] = task;
    }
    let mut into = BTreeMap::new();
    flatten("", value, &mut into);
    into
}

#[cfg(test)]
mod tests;
