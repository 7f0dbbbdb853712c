//! Runs that go on (spec 06 §13, 07 §12.1): what is left of one is found and judged before anything of it is touched; then
//! its record is cut back to its newest checkpoint and continued in place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::shelf::{CheckpointError, CheckpointName, CheckpointShelf, Progress};
use super::{RunDirectory, RunDirectoryError, RunPlan};
use crate::scenario::{Loaded, Override, Scenario};
use crate::telemetry::sinks::JsonLinesSink;
use crate::telemetry::{CheckpointLoaded, Earlier, Event, LiveState, Note, Payload, ReadError, RunState, read_events};

/// Fields that may change without further ado: they touch neither what a round is nor what is learnt from it.
const MAY_CHANGE: [&str; 4] = [ROUNDS, "run.stop_at", "run.checkpoint_every", "run.keep_last"];

const ROUNDS: &str = "run.rounds";

/// Why a run cannot go on. Nothing of it has been changed.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    #[error("{0} is no run directory: it has no resolved.ron")]
    NoRun(PathBuf),
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error(
        "{0} has no checkpoint: the run ended before its first round; start it again with `simic-engine run \
         {0}/scenario.ron`"
    )]
    NoCheckpoint(PathBuf),
    #[error("the run cannot go on as it is asked to:\n  {}", .0.join("\n  "))]
    Incompatible(Vec<String>),
    #[error(transparent)]
    Checkpoint(CheckpointError),
    #[error(transparent)]
    Directory(#[from] RunDirectoryError),
    #[error(transparent)]
    Events(#[from] ReadError),
}

/// Where a run goes on.
#[derive(Clone, Debug)]
pub struct ResumePoint {
    pub directory: RunDirectory,
    /// The checkpoint's folder.
    pub checkpoint: PathBuf,
    pub progress: Progress,
    /// What differs from the scenario that was played until then, in words.
    pub changed: Vec<String>,
}

impl ResumePoint {
    /// The checkpoint, relative to the run directory.
    pub(super) fn relative_path(&self) -> String {
        CheckpointShelf::relative_path(self.progress.next_round)
    }

    /// What a resumed run tells before it starts.
    pub(super) fn loaded(&self) -> impl Iterator<Item = Event> {
        let loaded = CheckpointLoaded {
            path: self.relative_path(),
            round: self.progress.next_round,
        };
        let changes = self.changed.iter().map(|text| {
            Event::run(Note {
                text: text.clone(),
                author: None,
            })
        });
        std::iter::once(Event::run(loaded)).chain(changes)
    }

    /// Makes what was recorded after the checkpoint not have happened: it is moved aside, and the rest is folded.
    ///
    /// # Errors
    /// Files that cannot be read, written or moved.
    pub(super) fn return_to(&self) -> Result<Earlier, ResumeError> {
        let directory = self.directory.path();
        // Killed in between, a run goes on from here as well: its newest checkpoint is this one.
        CheckpointShelf::of(directory)
            .set_aside_after(self.progress.next_round)
            .map_err(ResumeError::Checkpoint)?;
        cut_back(directory, self.progress.next_seq)
    }
}

/// A run that has ended or been killed, as its directory shows it.
#[derive(Clone, Debug)]
pub struct PastRun {
    pub point: ResumePoint,
    /// The scenario file of the run, verbatim.
    pub source: String,
    /// The scenario that it began with, every default and override in it.
    pub resolved: String,
    /// Where that file was, as far as it had a place.
    pub scenario_path: Option<PathBuf>,
    /// The checkpoint was asked for.
    from: CheckpointName,
}

impl PastRun {
    /// Looks at a run directory and one of its checkpoints.
    ///
    /// # Errors
    /// No run, or none that has this checkpoint.
    pub fn open(path: &Path, from: CheckpointName) -> Result<Self, ResumeError> {
        if !RunDirectory::is_at(path) {
            return Err(ResumeError::NoRun(path.into()));
        }
        let directory = RunDirectory::open(path)?;
        let path = directory.path();
        let (checkpoint, progress) = CheckpointShelf::of(path).find(from).map_err(|error| match error {
            CheckpointError::None(_) => ResumeError::NoCheckpoint(path.into()),
            other => ResumeError::Checkpoint(other),
        })?;
        Ok(Self {
            source: read(&path.join("scenario.ron"))?,
            resolved: read(&directory.resolved_path())?,
            scenario_path: directory.scenario_path()?,
            point: ResumePoint {
                directory,
                checkpoint,
                progress,
                changed: Vec::new(),
            },
            from,
        })
    }

    /// What the run was changed by when it was resumed before.
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

    /// Whether the run has played all of `rounds` and said its last word, and was not asked to go back.
    ///
    /// # Errors
    /// Events that cannot be read.
    pub fn is_finished(&self, rounds: u32) -> Result<bool, ResumeError> {
        let progress = &self.point.progress;
        if self.from != CheckpointName::Last && progress.next_round < rounds {
            return Ok(false);
        }
        let events = read_events(&self.events_path())?.events;
        Ok(events.last().is_some_and(|event| {
            matches!(&event.payload, Payload::RunFinished(run)
                if run.status == RunState::Completed && progress.rounds >= rounds)
        }))
    }

    fn events_path(&self) -> PathBuf {
        self.point.directory.path().join(JsonLinesSink::FILE_NAME)
    }

    /// The plan that goes on with this run. `before` is its scenario as it was, `now` as it is to be, `changes` what
    /// makes the one into the other and `allowed` the paths, or sections, at which they may differ.
    ///
    /// # Errors
    /// Every difference that keeps the rounds to come from continuing those that have been played.
    pub fn plan(
        &self,
        before: &Scenario,
        now: Loaded,
        changes: &[Override],
        allowed: &[String],
    ) -> Result<RunPlan, ResumeError> {
        let changed = self.differences(before, &now, allowed)?;
        let mut point = self.point.clone();
        point.changed = changed;
        point.progress.changes = changes
            .iter()
            .filter(|change| change.path != ROUNDS)
            .map(|change| format!("{}={}", change.path, change.value))
            .collect();
        let mut plan = RunPlan::new(now, &self.source);
        plan.path.clone_from(&self.scenario_path);
        plan.resume = Some(point);
        Ok(plan)
    }

    /// What has changed and may, in words.
    fn differences(&self, before: &Scenario, now: &Loaded, allowed: &[String]) -> Result<Vec<String>, ResumeError> {
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
            let (rounds, done) = (scenario.run.rounds, progress.next_round);
            let why = format!("{done} rounds have been played already, {rounds} are asked for");
            found.add(ROUNDS, why);
        }
        let mut changed = Vec::new();
        let differing = changed_fields(before, scenario);
        for (path, saved, running) in &differing {
            if MAY_CHANGE.contains(&path.as_str()) || allowed.iter().any(|allowed| covers(allowed, path)) {
                changed.push(format!("resumed with {path} {running} instead of {saved}"));
            } else {
                let why = format!("the run has {saved}, now {running}; --allow {path} lets it change");
                found.add(path, why);
            }
        }
        for path in allowed {
            if !differing.iter().any(|(differing, ..)| covers(path, differing)) {
                found.add(path, "allowed to change, but it does not; change it by --set".into());
            }
        }
        if found.lines.is_empty() {
            Ok(changed)
        } else {
            Err(ResumeError::Incompatible(found.lines))
        }
    }
}

/// Whether `path` is `allowed` or inside of it.
fn covers(allowed: &str, path: &str) -> bool {
    path.strip_prefix(allowed)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What differs, each thing once.
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
    let (before, now) = (fields(before), fields(now));
    let paths: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let value = |fields: &BTreeMap<String, Value>, path| fields.get(path).cloned().unwrap_or_default();
    paths
        .into_iter()
        .map(|path| (path.clone(), value(&before, path), value(&now, path)))
        .filter(|(_, before, now)| before != now)
        .collect()
}

fn fields(scenario: &Scenario) -> BTreeMap<String, Value> {
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
    let mut into = BTreeMap::new();
    flatten("", serde_json::to_value(scenario).unwrap_or_default(), &mut into);
    into
}

fn read(path: &Path) -> Result<String, ResumeError> {
    fs::read_to_string(path).map_err(|source| ResumeError::File {
        path: path.into(),
        source,
    })
}

/// Cuts a run's events back to those with numbers below `next_seq` and folds them. What is cut off is kept beside them,
/// in `events.discarded-{n}.jsonl`: the rounds it tells of are played again.
///
/// # Errors
/// Files that cannot be read or written.
fn cut_back(directory: &Path, next_seq: u64) -> Result<Earlier, ResumeError> {
    let path = directory.join(JsonLinesSink::FILE_NAME);
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| ResumeError::File { path, source }
    };
    let content = fs::read(&path).map_err(at(&path))?;
    let kept = kept_bytes(&content, next_seq);
    if kept < content.len() {
        let tail = (1..)
            .map(|n| directory.join(format!("events.discarded-{n}.jsonl")))
            .find(|path| !path.exists())
            .unwrap_or_else(|| directory.join("events.discarded.jsonl"));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&tail)
            .map_err(at(&tail))?;
        file.write_all(&content[kept..]).map_err(at(&tail))?;
        file.sync_all().map_err(at(&tail))?;
        let events = OpenOptions::new().write(true).open(&path).map_err(at(&path))?;
        events.set_len(kept as u64).map_err(at(&path))?;
        events.sync_all().map_err(at(&path))?;
    }
    let events = read_events(&path)?.events;
    let told = events.last().map_or(0, |event| event.seq + 1);
    if told < next_seq {
        tracing::warn!(
            "{} lacks the events from number {told} to {}",
            path.display(),
            next_seq - 1
        );
    }
    let mut live = LiveState::default();
    events.iter().for_each(|event| live.apply(event));
    Ok(Earlier {
        live,
        next_seq: told.max(next_seq),
    })
}

/// How much of an event file belongs to the rounds before event `next_seq`. That the checkpoint of these rounds was saved
/// belongs to them; a header that opens a part of which nothing is kept does not.
fn kept_bytes(content: &[u8], next_seq: u64) -> usize {
    #[derive(Deserialize)]
    struct Line {
        seq: Option<u64>,
        #[serde(rename = "type")]
        kind: String,
    }
    let (mut position, mut kept) = (0, 0);
    for line in content.split_inclusive(|&byte| byte == b'\n') {
        position += line.len();
        let is_whole = line.ends_with(b"\n");
        let Ok(Line { seq, kind }) = serde_json::from_slice(line) else {
            break;
        };
        match seq {
            None if kept == 0 => kept = position,
            None => {}
            Some(seq) if is_whole && (seq < next_seq || kind == "checkpoint_saved") => kept = position,
            Some(_) => break,
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "{\"type\":\"header\",\"schema\":\"simic.telemetry\",\"major\":1,\"minor\":0}\n";
    const RESUMED: &str = "{\"type\":\"header\",\"schema\":\"simic.telemetry\",\"major\":1,\"resumed\":true}\n";

    fn note(seq: u64) -> String {
        format!(
            "{{\"seq\":{seq},\"t\":\"2026-01-01T00:00:00.000Z\",\"type\":\"note\",\"sev\":\"info\",\
             \"data\":{{\"text\":\"{seq}\"}}}}\n"
        )
    }

    fn saved(seq: u64) -> String {
        format!(
            "{{\"seq\":{seq},\"t\":\"2026-01-01T00:00:00.000Z\",\"type\":\"checkpoint_saved\",\"sev\":\"info\",\
             \"data\":{{\"path\":\"checkpoints/round-000001\",\"round\":1,\"reason\":\"periodic\",\"size_bytes\":1,\
             \"wall_ms\":1.0}}}}\n"
        )
    }

    fn cut(text: &str, next_seq: u64) -> (tempfile::TempDir, Earlier) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("events.jsonl"), text).unwrap();
        let earlier = cut_back(folder.path(), next_seq).unwrap();
        (folder, earlier)
    }

    #[test]
    fn events_of_a_round_that_will_be_played_again_are_moved_aside() {
        let (before, after) = (
            format!("{HEADER}{}{}{}", note(0), note(1), saved(2)),
            format!("{}{}", note(3), note(4)),
        );

        let (folder, earlier) = cut(&format!("{before}{after}{{\"seq\":5,\"ty"), 2);

        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("events.jsonl"), before);
        assert_eq!(read("events.discarded-1.jsonl"), format!("{after}{{\"seq\":5,\"ty"));
        assert_eq!(earlier.next_seq, 3);
    }

    #[test]
    fn a_part_of_which_nothing_is_kept_loses_its_header_too() {
        let before = format!("{HEADER}{}", note(0));

        let (folder, earlier) = cut(&format!("{before}{RESUMED}{}", note(1)), 1);

        assert_eq!(fs::read_to_string(folder.path().join("events.jsonl")).unwrap(), before);
        assert_eq!(earlier.next_seq, 1);
    }

    #[test]
    fn nothing_is_moved_where_nothing_is_too_much() {
        let (folder, earlier) = cut(&format!("{HEADER}{}{RESUMED}{}", note(0), note(1)), 2);

        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(earlier.next_seq, 2);
    }

    #[test]
    fn what_differs_between_two_scenarios_is_named_by_its_path() {
        let before = Scenario::default();
        let mut now = before.clone();
        assert_eq!(changed_fields(&before, &now), []);

        now.attribution.pairs_max = 3;

        let changed = changed_fields(&before, &now);
        assert_eq!(changed, [("attribution.pairs_max".into(), 8.into(), 3.into())]);
    }

    #[test]
    fn a_section_that_may_change_covers_its_fields_and_no_others() {
        assert!(covers("learner.lr", "learner.lr"));
        assert!(covers("learner", "learner.lr"));
        assert!(!covers("learner.lr", "learner.lr_schedule"));
        assert!(!covers("learner.lr", "learner"));
    }
}
