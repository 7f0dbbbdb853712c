//! The ends of trials, one file each. The name of the file alone shows the kind of end.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::place::{Place, Shelf};
use super::plan::Plan;
use crate::compare::TrainingRecord;
use crate::health::{AtPath, FileError};
use crate::record::Build;
use crate::telemetry::Num;

/// The end of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialEnd {
    /// All of its rounds were played.
    Done,
    /// It was given up at a rung, where others were better.
    GivenUp,
    /// It failed as often as it may.
    Failed,
}

impl TrialEnd {
    const ALL: [Self; 3] = [Self::Done, Self::GivenUp, Self::Failed];

    /// The name in tables and in the names of files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::GivenUp => "given_up",
            Self::Failed => "failed",
        }
    }
}

/// The content of a result file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialResult {
    /// The kind of end.
    pub end: TrialEnd,
    /// The reason of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// It ran into `budget.time_limit_s`: its numbers depend on the machine.
    #[serde(default)]
    pub timed_out: bool,
    /// It failed since the machine did not let it play: the same command has it tried again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_place: bool,
    /// Number of times that it was begun or resumed.
    pub attempts: u32,
    /// Wall time of all attempts, start-up and evaluation included.
    pub wall_s: f64,
    /// Version of the engine that ended it.
    pub engine: String,
    /// Commit that the engine was built from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Its results; `None` if it failed before its first round ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingRecord>,
}

impl TrialResult {
    /// A result of a trial that has ended so.
    pub fn new(end: TrialEnd, attempts: u32, wall_s: f64) -> Self {
        Self {
            end,
            reason: None,
            timed_out: false,
            by_place: false,
            attempts,
            wall_s,
            engine: Build::UNKNOWN.engine.into(),
            commit: None,
            training: None,
        }
    }

    /// Writes it for good.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, place: &dyn Place, id: &str) -> Result<(), FileError> {
        write_json(place, &result_name(id, self.end), self)
    }
}

fn result_name(id: &str, end: TrialEnd) -> String {
    format!("{id}.{}.json", end.name())
}

fn rung_name(id: &str, rung: usize) -> String {
    format!("{id}.rung{rung:02}.json")
}

/// The field of the score at a rung.
const SCORE: &str = "score";
/// The field of a file by which damage to the others is seen: blake3 of them.
const SEAL: &str = "seal";

fn seal_of(content: &Value) -> String {
    blake3::hash(content.to_string().as_bytes()).to_hex().to_string()
}

fn write_json(place: &dyn Place, name: &str, content: &impl Serialize) -> Result<(), FileError> {
    let path = place.path_of(Shelf::Results, name);
    let mut content = serde_json::to_value(content).at(&path)?;
    content[SEAL] = seal_of(&content).into();
    let mut text = serde_json::to_vec_pretty(&content).at(&path)?;
    text.push(b'\n');
    place.replace(Shelf::Results, name, &text)
}

fn read_json<T: DeserializeOwned>(place: &dyn Place, name: &str) -> Result<T, FileError> {
    let path = place.path_of(Shelf::Results, name);
    let mut content: Value = serde_json::from_slice(&place.read(Shelf::Results, name)?).at(&path)?;
    let seal = content.as_object_mut().and_then(|fields| fields.remove(SEAL));
    if seal != Some(Value::from(seal_of(&content))) {
        let damaged = "it has changed since it was written: its seal doesn't match";
        return Err(io::Error::new(ErrorKind::InvalidData, damaged)).at(&path);
    }
    serde_json::from_value(content).at(&path)
}

/// The results of a sweep so far, by the names of their files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    ends: BTreeMap<String, TrialEnd>,
    /// Rungs that each trial has reached.
    rungs: BTreeMap<String, Vec<usize>>,
    /// Number of requests to try a trial again after it had failed for good.
    retried: BTreeMap<String, u32>,
}

impl Results {
    /// Reads which there are.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn read(place: &dyn Place) -> Result<Self, FileError> {
        let mut results = Self::default();
        for name in place.names(Shelf::Results)? {
            let Some((id, rest)) = name.split_once('.') else {
                continue;
            };
            let word = rest.strip_suffix(".json");
            if let Some(end) = TrialEnd::ALL.into_iter().find(|end| word == Some(end.name())) {
                results.ends.insert(id.into(), end);
            } else if let Some(rung) = rest.strip_prefix("rung").and_then(|rest| rest.strip_suffix(".json")) {
                let rungs = results.rungs.entry(id.into()).or_default();
                rungs.extend(rung.parse::<usize>().ok());
            } else if rest.starts_with("retried") {
                *results.retried.entry(id.into()).or_default() += 1;
            }
        }
        Ok(results)
    }

    /// The end of a trial, if it has ended.
    pub fn end(&self, id: &str) -> Option<TrialEnd> {
        self.ends.get(id).copied()
    }

    /// Returns whether a trial has been scored at a rung.
    pub fn has_rung(&self, id: &str, rung: usize) -> bool {
        self.rungs.get(id).is_some_and(|rungs| rungs.contains(&rung))
    }

    /// Number of requests to try a trial again that had failed for good.
    pub fn retried(&self, id: &str) -> u32 {
        self.retried.get(id).copied().unwrap_or(0)
    }
}

/// The result of a trial that has ended.
///
/// # Errors
/// A file that cannot be read.
pub fn read_result(place: &dyn Place, id: &str, end: TrialEnd) -> Result<TrialResult, FileError> {
    read_json(place, &result_name(id, end))
}

/// Reads as [`read_result`] does. `None` if the result is damaged: the next worker has it again from the trial's run.
///
/// # Errors
/// A file that cannot be read.
pub fn read_sound(place: &dyn Place, id: &str, end: TrialEnd) -> Result<Option<TrialResult>, FileError> {
    match read_result(place, id, end) {
        Err(error) if is_damaged(&error) => {
            tracing::warn!(%error, "a result is damaged; `sweep work` rebuilds it from the trial's run");
            Ok(None)
        }
        read => read.map(Some),
    }
}

fn put_aside(place: &dyn Place, id: &str, name: &str) -> Result<(), FileError> {
    let damaged = |number: u32| format!("{id}.damaged-{number}.json");
    let mut number = 1;
    while place.has(Shelf::Results, &damaged(number))? {
        number += 1;
    }
    // Another worker may be quicker.
    place.rename(Shelf::Results, name, &damaged(number)).map(drop)
}

/// Returns whether the content of a file is wrong, and not its place.
fn is_damaged(error: &FileError) -> bool {
    matches!(error.source.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof)
}

/// Sets results and scores at rungs aside that are damaged: the runs give them again.
///
/// # Errors
/// A file that can be neither read nor renamed.
pub fn set_damaged_aside(place: &dyn Place, plan: &Plan) -> Result<(), FileError> {
    let results = Results::read(place)?;
    for id in plan.trials.iter().map(|trial| &trial.id) {
        if let Some(end) = results.end(id)
            && read_sound(place, id, end)?.is_none()
        {
            put_aside(place, id, &result_name(id, end))?;
        }
        for &rung in results.rungs.get(id).into_iter().flatten() {
            match read_rung(place, id, rung) {
                Err(error) if is_damaged(&error) => put_aside(place, id, &rung_name(id, rung))?,
                read => _ = read?,
            }
        }
    }
    Ok(())
}

/// Allows another attempt at trials that failed only because of their place.
///
/// # Errors
/// A result that can be neither read nor renamed.
pub fn try_misplaced_again(place: &dyn Place, plan: &Plan) -> Result<(), FileError> {
    let results = Results::read(place)?;
    for trial in &plan.trials {
        if results.end(&trial.id) == Some(TrialEnd::Failed)
            && read_sound(place, &trial.id, TrialEnd::Failed)?.is_some_and(|result| result.by_place)
        {
            try_again(place, &trial.id, &results)?;
        }
    }
    Ok(())
}

/// Writes the score of a trial at a rung for good: its rolling accuracy, percent, or minus infinity if it has none.
///
/// # Errors
/// If the file cannot be written.
pub fn write_rung(place: &dyn Place, id: &str, rung: usize, score: f64) -> Result<(), FileError> {
    write_json(place, &rung_name(id, rung), &BTreeMap::from([(SCORE, Num(score))]))
}

/// Score of a trial at a rung.
///
/// # Errors
/// A file that cannot be read, or has no score.
pub fn read_rung(place: &dyn Place, id: &str, rung: usize) -> Result<f64, FileError> {
    let name = rung_name(id, rung);
    let scores: BTreeMap<String, Num> = read_json(place, &name)?;
    let score = scores
        .get(SCORE)
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "it has no score"));
    Ok(score.at(&place.path_of(Shelf::Results, &name))?.0)
}

/// Returns whether a trial has neither ended nor been scored at a rung. It asks the file system by name.
///
/// # Errors
/// A folder that cannot be looked into.
pub fn is_still_to_do(place: &dyn Place, id: &str, rung: usize) -> Result<bool, FileError> {
    let ends = TrialEnd::ALL.map(|end| result_name(id, end));
    for name in ends.into_iter().chain([rung_name(id, rung)]) {
        if place.has(Shelf::Results, &name)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Allows another attempt at a trial that has failed for good. Its reason is kept under another name.
///
/// # Errors
/// If the file cannot be renamed.
pub fn try_again(place: &dyn Place, id: &str, results: &Results) -> Result<(), FileError> {
    let kept = format!("{id}.retried{:02}.json", results.retried(id) + 1);
    place.rename(Shelf::Results, &result_name(id, TrialEnd::Failed), &kept)?;
    Ok(())
}
