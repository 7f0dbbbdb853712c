//! The shelf of a run: each checkpoint against its list of hashes, its tensors, and the scenario that it belongs to.

use std::path::Path;

use super::Part;
use crate::checkpoint::{CheckpointId, Checkpoints, Progress};
use crate::inspect::tensors::{look_through, tensor_files};
use crate::unfinished;

/// What is known of the checkpoints.
pub(super) struct ShelfFacts {
    pub part: Part,
    /// Those that are as they were written, the newest first.
    pub sound: Vec<Progress>,
    /// Where there is one, sound or not, the newest first.
    pub there: Vec<CheckpointId>,
    /// The newest sound one belongs to the scenario.
    pub is_of_scenario: bool,
}

/// `hash`: of the scenario.
pub(super) fn check(folder: &Path, hash: Option<&str>, is_played: bool) -> ShelfFacts {
    let mut part = Part::new("checkpoints");
    let shelf = Checkpoints::of(folder);
    let there = shelf.list().unwrap_or_else(|error| {
        part.problem("checkpoints", error.to_string());
        Vec::new()
    });
    let (mut sound, mut tensors) = (Vec::new(), 0);
    for &id in &there {
        let file = Checkpoints::relative_path(id);
        match check_one(&shelf, id, &mut part) {
            Ok((progress, count)) => {
                if hash.is_some_and(|hash| progress.scenario_hash != hash) {
                    let named = &progress.scenario_hash;
                    part.problem(format!("{file}/run.ron"), format!("it belongs to the scenario {named}"));
                }
                tensors += count;
                sound.push(progress);
            }
            // Thrown away meanwhile.
            Err(_) if is_played && !shelf.ids().contains(&id) => {}
            Err(why) => part.problem(&file, why.replace(&format!("{}/", folder.display()), "")),
        }
    }
    if there.is_empty() && part.findings.is_empty() && !is_played {
        part.problem("checkpoints", "there is none: the run cannot be continued");
    }
    part.seen = format!("{}; {tensors} tensors", seen(&sound));
    ShelfFacts {
        is_of_scenario: sound
            .first()
            .is_some_and(|newest| Some(newest.scenario_hash.as_str()) == hash),
        part,
        sound,
        there,
    }
}

/// Positions of sound checkpoints, the oldest first.
fn seen(sound: &[Progress]) -> String {
    let ids = sound.iter().rev().map(Progress::id);
    let (inside, between): (Vec<_>, Vec<_>) = ids.partition(|id| id.is_inside_round());
    let rounds: Vec<String> = between.iter().map(|id| id.round.to_string()).collect();
    let rounds = (!rounds.is_empty()).then(|| format!("after {} rounds", rounds.join(", ")));
    let parts: Vec<String> = rounds
        .into_iter()
        .chain(inside.iter().map(CheckpointId::to_string))
        .collect();
    parts.join(", ")
}

/// How far the run had come, and how many tensors were looked through.
fn check_one(shelf: &Checkpoints, id: CheckpointId, part: &mut Part) -> Result<(Progress, usize), String> {
    let (folder, progress) = shelf
        .open(id)
        .map_err(|error| error.to_string().replace("; resume from another one by --from", ""))?;
    let file = Checkpoints::relative_path(id);
    for name in shelf.unlisted(id).map_err(|error| error.to_string())? {
        part.problem(format!("{file}/{name}"), "b3sums does not list it");
    }
    if progress.id() != id {
        let CheckpointId { round, step } = progress.id();
        return Err(format!("run.ron says next_round {round}, step {step}"));
    }
    if progress.history.len() != id.round as usize {
        return Err(format!("run.ron has a history of {} rounds", progress.history.len()));
    }
    let mut tensors = 0;
    for name in tensor_files(&folder).map_err(|error| error.to_string())? {
        let (count, bad) = look_through(&folder.join(&name)).map_err(|error| error.to_string())?;
        tensors += count;
        // A network with such numbers is for the governor to judge.
        if let Some(place) = bad.filter(|_| name != unfinished::TENSORS_FILE) {
            return Err(format!("{name}: {place} is not finite"));
        }
    }
    Ok((progress, tensors))
}
