//! Responses to anomalies, by `run.on_anomaly`: a checkpoint, a folder with the circumstances, and the end of the run.

use std::io;
use std::path::{Path, PathBuf};

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use serde::Serialize;

use super::writer::CheckpointState;
use crate::env::{EnvId, EpisodeStats, Experiment, TrainMetrics};
use crate::record::RunDirectory;
use crate::record::memory::{MEMORY_FILE, MemoryInUse};
use crate::run::{StopRequest, StopSignal};
use crate::scenario::AnomalyAnswer;
use crate::storage::{create_dir_all, replace_folder};
use crate::telemetry::{Event, EventTrail, Note, Num, Payload, Severity, TelemetryHub, TelemetryOutbox};
use crate::torch::mixed_name;
use crate::training::TrainingPrecision;

/// Folder of a run directory.
const FOLDER: &str = "anomalies";
/// The largest number of anomaly folders in a run. The record has the rest.
const MOST: usize = 20;

/// The precision of each part of the computation when an anomaly began.
#[derive(Serialize)]
struct Precision<'a> {
    amp_dtype: Option<&'static str>,
    matmul_precision: &'static str,
    policy_amp_dtype: Option<&'a str>,
    policy_loss_scale: Option<Num>,
    envs: Vec<EnvPrecision>,
}

#[derive(Serialize)]
struct EnvPrecision {
    env: usize,
    loss_scale: Option<Num>,
    /// Batches of the step.
    nonfinite_batches: u64,
    /// Updates of the episode.
    skipped_updates: u64,
}

/// State of the run that is written with an anomaly.
#[derive(SystemParam)]
pub(crate) struct Circumstances<'w, 's> {
    envs: Query<'w, 's, (&'static EnvId, &'static TrainMetrics, &'static EpisodeStats)>,
    experiment: Res<'w, Experiment>,
    precision: Res<'w, TrainingPrecision>,
    folder: Res<'w, RunDirectory>,
}

/// Returns whether there is an anomaly to respond to.
pub(crate) fn has_onsets(hub: Option<Res<TelemetryHub>>) -> bool {
    hub.is_some_and(|hub| hub.onsets().next().is_some())
}

/// Responds to the anomalies that have just begun, as the scenario says.
pub(crate) fn answer_anomalies(
    at: Circumstances,
    stop: Res<StopSignal>,
    mut state: ResMut<CheckpointState>,
    mut hub: ResMut<TelemetryHub>,
    mut outbox: ResMut<TelemetryOutbox>,
) {
    let answer = at.experiment.scenario.run.on_anomaly;
    for event in hub.take_onsets() {
        let Payload::Anomaly(anomaly) = &event.payload else {
            continue;
        };
        if answer == AnomalyAnswer::Note || event.severity < Severity::Error {
            continue;
        }
        state.anomaly_asks = true;
        if let Some(trail) = hub.trail() {
            at.keep(&event, trail, &mut state);
        }
        if answer == AnomalyAnswer::Stop && !stop.is_requested() {
            let text = format!("the run stops: {} (run.on_anomaly)", anomaly.rule);
            tracing::warn!("{text}: {}", event.message.as_deref().unwrap_or_default());
            outbox.push(Event::run(Note::of_engine(text)));
            stop.request(StopRequest::Anomaly);
        }
    }
    hub.flush(&mut outbox);
}

impl Circumstances<'_, '_> {
    /// Writes the folder of an anomaly. If that fails, it warns and the run continues.
    fn keep(&self, event: &Event, trail: &EventTrail, state: &mut CheckpointState) {
        let folder = self.folder.path().join(FOLDER);
        match free_name(&folder) {
            Some(place) => {
                if let Err(error) = self.write(&folder, &place, event, trail) {
                    tracing::warn!(%error, folder = %place.display(), "the folder of an anomaly could not be written");
                }
            }
            None if std::mem::replace(&mut state.has_all_anomalies, true) => {}
            None => tracing::warn!(
                "{} has {MOST} folders; further anomalies are not kept",
                folder.display()
            ),
        }
    }

    fn write(&self, folder: &Path, place: &Path, event: &Event, trail: &EventTrail) -> io::Result<()> {
        // A run directory that was deleted must not come back as a stump.
        if !self.folder.path().is_dir() {
            return Err(io::ErrorKind::NotFound.into());
        }
        create_dir_all(folder)?;
        let memory = MemoryInUse::now(&self.experiment.scenario);
        let files = [
            ("anomaly.json", serde_json::to_string_pretty(event)? + "\n"),
            ("steps.jsonl", lines(trail.steps())?),
            ("updates.jsonl", lines(trail.updates())?),
            (
                "precision.json",
                serde_json::to_string_pretty(&self.precision(trail))? + "\n",
            ),
            (MEMORY_FILE, serde_json::to_string_pretty(&memory)? + "\n"),
        ];
        replace_folder(place, &files.each_ref().map(|(name, text)| (*name, text.as_bytes())))
    }

    fn precision<'a>(&self, trail: &'a EventTrail) -> Precision<'a> {
        let update = trail.updates().last().and_then(|event| match &event.payload {
            Payload::LearnerUpdate(update) => Some(update),
            _ => None,
        });
        let of_env = |(id, train, stats): (&EnvId, &TrainMetrics, &EpisodeStats)| EnvPrecision {
            env: id.index,
            loss_scale: train.loss_scale.map(Num),
            nonfinite_batches: train.nonfinite_batches,
            skipped_updates: stats.skipped_updates,
        };
        let mut envs: Vec<_> = self.envs.iter().map(of_env).collect();
        envs.sort_unstable_by_key(|env| env.env);
        Precision {
            amp_dtype: mixed_name(self.precision.0),
            matmul_precision: self.experiment.scenario.run.matmul_precision_in_force().name(),
            policy_amp_dtype: update.map(|update| update.amp_dtype.as_str()),
            policy_loss_scale: update.and_then(|update| update.loss_scale),
            envs,
        }
    }
}

/// The next in a row of numbers, or `None` if all are taken.
fn free_name(folder: &Path) -> Option<PathBuf> {
    let names = (1..=MOST).map(|number| folder.join(number.to_string()));
    names.into_iter().find(|name| !name.exists())
}

fn lines<'a>(events: impl Iterator<Item = &'a Event>) -> serde_json::Result<String> {
    let lines = events.map(|event| Ok(serde_json::to_string(event)? + "\n"));
    lines.collect()
}

#[cfg(test)]
mod tests;
