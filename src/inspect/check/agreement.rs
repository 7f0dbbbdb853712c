//! What is said of a run twice: by its events, and by its checkpoints, its status or its summary.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::checkpoints::ShelfFacts;
use super::events::EventFacts;
use super::scenario::{ManifestFacts, ScenarioFacts};
use super::{Finding, Part};
use crate::checkpoint::{Checkpoints, Progress, Standing};
use crate::record::{
    Build, RunDirectory, RunEntry, RunStatus, STATUS_FILE, SUMMARY_FILE, SUMMARY_WIDTH, differing_line, summary,
};
use crate::scenario::{Scenario, TelemetryLevel};
use crate::telemetry::sinks::JsonLinesSink;
use crate::telemetry::{Num, RunState};

/// What the checkpoints say against what was told of them, and of the rounds that they have seen.
pub(super) fn check_checkpoints(
    told: &EventFacts,
    shelf: &ShelfFacts,
    scenario: &ScenarioFacts,
    is_played: bool,
) -> Vec<Finding> {
    let mut part = Part::new("checkpoints");
    // While a run is played, its events know of checkpoints that came after the shelf was looked at; half of them know too
    // little.
    let can_tell = !is_played && told.is_intact;
    let missing = can_tell.then(|| missing(told, shelf, scenario.scenario.as_ref()));
    for round in missing.into_iter().flatten() {
        part.problem(
            Checkpoints::relative_path(Standing::before(round)),
            "it was saved and should be there; it is not",
        );
    }
    let level = scenario.scenario.as_ref().map(|scenario| scenario.telemetry.level);
    for progress in &shelf.sound {
        if level.is_some_and(|level| level >= TelemetryLevel::Lifecycle)
            && let Some(what) = disagreement(progress, told)
        {
            part.problem(
                format!("{}/run.ron", Checkpoints::relative_path(progress.standing())),
                what,
            );
        }
    }
    part.findings
}

/// Rounds whose checkpoints are gone though nothing has thrown them away: of those that were saved since the run was taken
/// up last, the newest few stay, and the best one does.
fn missing(told: &EventFacts, shelf: &ShelfFacts, scenario: Option<&Scenario>) -> Vec<u32> {
    let newest = shelf.sound.first();
    let is_changed = newest.is_some_and(|newest| newest.changes.iter().any(|change| change.contains("keep_last")));
    let keep_last = scenario
        .filter(|_| !is_changed)
        .map_or(1, |scenario| scenario.run.keep_last);
    let between = shelf.there.iter().filter(|standing| !standing.is_inside_round());
    let there: Vec<u32> = between.map(|standing| standing.round).collect();
    // A run that was killed may not have told of the last one, and one that went on from inside a round has forgotten that it
    // told of the round's own.
    let known: BTreeSet<u32> = there.iter().chain(&told.saved).copied().collect();
    let kept = known.into_iter().rev().take(keep_last as usize);
    let best = newest.and_then(|newest| newest.best).map(|best| best.next_round);
    let mut missing: Vec<u32> = kept.chain(best).filter(|round| !there.contains(round)).collect();
    missing.sort_unstable();
    missing.dedup();
    missing
}

fn disagreement(progress: &Progress, told: &EventFacts) -> Option<String> {
    let (rounds, next_round) = (&told.live.rounds, progress.next_round as usize);
    if next_round > rounds.len() {
        return Some(format!(
            "{next_round} rounds were played by then; the events tell of {}",
            rounds.len()
        ));
    }
    let differs = |(told, kept): &(f64, f64)| Num(*told) != Num(*kept);
    let accuracies = rounds.iter().map(|round| round.told.accuracy_mean.0);
    let mut pairs = accuracies.zip(progress.history.iter().copied()).enumerate();
    let (round, (told, kept)) = pairs.find(|(_, pair)| differs(pair))?;
    Some(format!(
        "round {} ended with an accuracy of {kept}; the events say {told}",
        round + 1
    ))
}

/// `status.json` of a run whose record is closed; what was killed may have written one of both last.
pub(super) fn check_status(folder: &Path, told: &EventFacts, is_played: bool) -> Part {
    let mut part = Part::new("status");
    let status = match RunStatus::read(folder) {
        Ok(status) => status,
        Err(error) => {
            part.problem(STATUS_FILE, error.source.to_string());
            return part;
        }
    };
    part.seen = state_name(status.state);
    let Some(finished) = told.live.finished.as_ref().filter(|_| told.is_closed) else {
        let is_over = matches!(
            status.state,
            RunState::Completed | RunState::Interrupted | RunState::Failed
        );
        if is_over && !is_played && told.next_seq > 0 {
            let what = format!(
                "the run is {}, which no event at the end of {} says",
                part.seen,
                JsonLinesSink::FILE_NAME
            );
            part.problem(STATUS_FILE, what);
        }
        return part;
    };
    let rounds = u32::try_from(told.live.rounds.len()).ok();
    let pairs = [
        ("state", state_name(status.state), state_name(finished.status)),
        ("rounds", or_none(status.rounds), or_none(rounds)),
        (
            "episodes",
            status.episodes.to_string(),
            told.live.episodes_done.to_string(),
        ),
        (
            "error",
            or_none(status.error.as_ref()),
            or_none(finished.error.as_ref()),
        ),
    ];
    for (field, says, expected) in pairs.into_iter().filter(|(_, says, expected)| says != expected) {
        part.problem(STATUS_FILE, format!("{field} is {says}; the events say {expected}"));
    }
    part
}

fn or_none(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "none".into(), |value| value.to_string())
}

fn state_name(state: RunState) -> String {
    serde_json::to_value(state)
        .ok()
        .and_then(|name| Some(name.as_str()?.to_owned()))
        .unwrap_or_default()
}

/// `summary.txt` of a run whose record is closed, if this build would write it alike.
pub(super) fn check_summary(folder: &Path, told: &EventFacts, manifest: &ManifestFacts) -> Part {
    let mut part = Part::new("summary");
    let kept = RunDirectory::kept_summary(folder);
    let Some(kept) = kept.filter(|_| told.is_closed) else {
        if told.is_closed {
            part.problem(SUMMARY_FILE, "it is not there; the run has ended: `show` draws it anew");
        }
        part.seen = "none before the run ends".into();
        return part;
    };
    if serde_json::to_value(Build::current()).ok().as_ref() != Some(&manifest.build) || manifest.build == Value::Null {
        part.seen = "not compared: another build has written it".into();
        return part;
    }
    match differing_line(&kept, &summary(&told.live, folder, SUMMARY_WIDTH)) {
        Some(line) => part.problem(
            SUMMARY_FILE,
            format!("line {} is not what the events come to", line + 1),
        ),
        None => part.seen = "as the events say".into(),
    }
    part
}

/// The rounds that were played against those that were asked for.
pub(super) fn check_rounds(told: &EventFacts, shelf: &ShelfFacts, entry: &RunEntry, is_played: bool) -> Part {
    let mut part = Part::new("rounds");
    let newest = shelf.sound.first();
    let by_checkpoints = newest.map_or(0, |newest| newest.next_round as usize);
    let played = told.live.rounds.len().max(by_checkpoints);
    let asked = newest.map(|newest| newest.rounds).or(entry.n_rounds);
    part.seen = asked.map_or_else(
        || format!("{played}"),
        |asked| format!("{played} of {asked} are played"),
    );
    if by_checkpoints < told.live.rounds.len() && !told.saved.is_empty() && !is_played {
        let lost = told.live.rounds.len() - by_checkpoints;
        part.note(
            "",
            format!("{lost} of the rounds played are in no sound checkpoint: a resume plays them again"),
        );
    }
    part
}
