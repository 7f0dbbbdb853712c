//! What is said of a run twice: by its events, and by its checkpoints.

use std::collections::BTreeSet;
use std::path::Path;

use super::checkpoints::ShelfFacts;
use super::events::EventFacts;
use super::scenario::ScenarioFacts;
use super::{Finding, Part};
use crate::checkpoint::{CheckpointId, Checkpoints, Progress};
use crate::record::{MANIFEST_FILE, RunEntry};
use crate::scenario::{Scenario, TelemetryLevel};
use crate::telemetry::Num;

/// Compares the checkpoints with what the events say of them and of their rounds.
pub(super) fn check_checkpoints(
    data: &EventFacts,
    shelf: &ShelfFacts,
    scenario: &ScenarioFacts,
    is_played: bool,
) -> Vec<Finding> {
    let mut part = Part::new("checkpoints");
    // While a run is played, its events know of checkpoints that came after the shelf was looked at; half of them know too
    // little.
    let can_tell = !is_played && data.is_intact;
    let missing = can_tell.then(|| missing(data, shelf, scenario.scenario.as_ref()));
    for round in missing.into_iter().flatten() {
        part.problem(
            Checkpoints::relative_path(CheckpointId::before(round)),
            "it was saved and should be there; it is not",
        );
    }
    let level = scenario.scenario.as_ref().map(|scenario| scenario.telemetry.level);
    for progress in &shelf.sound {
        if level.is_some_and(|level| level >= TelemetryLevel::Lifecycle)
            && let Some(what) = disagreement(progress, data)
        {
            part.problem(format!("{}/run.ron", Checkpoints::relative_path(progress.id())), what);
        }
    }
    part.findings
}

/// Rounds whose checkpoints are gone though nothing has thrown them away: of those that were saved since the run was taken
/// up last, the newest few stay, and the best one does.
fn missing(data: &EventFacts, shelf: &ShelfFacts, scenario: Option<&Scenario>) -> Vec<u32> {
    let newest = shelf.sound.first();
    let is_changed = newest.is_some_and(|newest| newest.changes.iter().any(|change| change.contains("keep_last")));
    let keep_last = scenario
        .filter(|_| !is_changed)
        .map_or(1, |scenario| scenario.run.keep_last);
    let between = shelf.there.iter().filter(|id| !id.is_inside_round());
    let there: Vec<u32> = between.map(|id| id.round).collect();
    // A run that was killed may not have recorded the last one, and one that was resumed inside a round has dropped the record
    // of the round's own.
    let known: BTreeSet<u32> = there.iter().chain(&data.saved).copied().collect();
    let kept = known.into_iter().rev().take(keep_last as usize);
    let best = newest.and_then(|newest| newest.best).map(|best| best.next_round);
    let mut missing: Vec<u32> = kept.chain(best).filter(|round| !there.contains(round)).collect();
    missing.sort_unstable();
    missing.dedup();
    missing
}

fn disagreement(progress: &Progress, data: &EventFacts) -> Option<String> {
    let (rounds, next_round) = (&data.live.rounds, progress.next_round as usize);
    if next_round > rounds.len() {
        return Some(format!(
            "{next_round} rounds were played by then; the events have {}",
            rounds.len()
        ));
    }
    let differs = |(data, kept): &(f64, f64)| Num(*data) != Num(*kept);
    let accuracies = rounds.iter().map(|round| round.data.accuracy_mean.0);
    let mut pairs = accuracies.zip(progress.history.iter().copied()).enumerate();
    let (round, (data, kept)) = pairs.find(|(_, pair)| differs(pair))?;
    Some(format!(
        "round {} ended with an accuracy of {kept}; the events say {data}",
        round + 1
    ))
}

/// Compares files that never change with the hashes in `run_started`.
pub(super) fn check_hashes(folder: &Path, data: &EventFacts, manifest: &mut Part, scenario: &mut Part) {
    for (name, hash) in &data.file_hashes {
        let part = if name == MANIFEST_FILE {
            &mut *manifest
        } else {
            &mut *scenario
        };
        // One that cannot be read was reported already.
        if let Ok(content) = crate::files::read(&folder.join(name))
            && blake3::hash(&content).to_hex().as_str() != hash
        {
            part.problem(name, "it is not what it was when the run began");
        }
    }
}

/// Compares the rounds that were played with those that were requested.
pub(super) fn check_rounds(data: &EventFacts, shelf: &ShelfFacts, entry: &RunEntry, is_played: bool) -> Part {
    let mut part = Part::new("rounds");
    let newest = shelf.sound.first();
    let by_checkpoints = newest.map_or(0, |newest| newest.next_round as usize);
    let played = data.live.rounds.len().max(by_checkpoints);
    let asked = newest.map(|newest| newest.rounds).or(entry.n_rounds);
    part.seen = asked.map_or_else(
        || format!("{played}"),
        |asked| format!("{played} of {asked} are played"),
    );
    if by_checkpoints < data.live.rounds.len() && !data.saved.is_empty() && !is_played {
        let lost = data.live.rounds.len() - by_checkpoints;
        part.note(
            "",
            format!("{lost} of the rounds played are in no sound checkpoint: a resume plays them again"),
        );
    }
    part
}
