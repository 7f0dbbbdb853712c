//! The shelf of a run: each checkpoint against its list of hashes, its tensors, and the scenario that it belongs to.

use std::path::Path;

use super::Part;
use crate::checkpoint::{CheckpointName, Checkpoints, Progress};
use crate::inspect::tensors::{look_through, tensor_files};

/// What is known of the checkpoints.
pub(super) struct ShelfFacts {
    pub part: Part,
    /// Those that are as they were written, the newest first.
    pub sound: Vec<Progress>,
    /// Rounds before which there is one, sound or not, the newest first.
    pub there: Vec<u32>,
    /// The newest sound one belongs to the scenario.
    pub is_of_scenario: bool,
}

/// `hash`: of the scenario.
pub(super) fn check(folder: &Path, hash: Option<&str>, is_played: bool) -> ShelfFacts {
    let mut part = Part::new("checkpoints");
    let shelf = Checkpoints::of(folder);
    let there = shelf.rounds();
    let (mut sound, mut tensors) = (Vec::new(), 0);
    for &round in &there {
        let file = Checkpoints::relative_path(round);
        match check_one(&shelf, round, &mut part) {
            Ok((progress, count)) => {
                if hash.is_some_and(|hash| progress.scenario_hash != hash) {
                    let named = &progress.scenario_hash;
                    part.problem(format!("{file}/run.ron"), format!("it belongs to the scenario {named}"));
                }
                tensors += count;
                sound.push(progress);
            }
            // Thrown away meanwhile.
            Err(_) if is_played && !shelf.has(round) => {}
            Err(why) => part.problem(&file, why.replace(&format!("{}/", folder.display()), "")),
        }
    }
    if there.is_empty() && !is_played {
        part.problem("checkpoints", "there is none: the run ended before its first round");
    }
    let rounds: Vec<String> = sound
        .iter()
        .rev()
        .map(|progress| progress.next_round.to_string())
        .collect();
    part.seen = format!("after {} rounds; {tensors} tensors", rounds.join(", "));
    ShelfFacts {
        is_of_scenario: sound
            .first()
            .is_some_and(|newest| Some(newest.scenario_hash.as_str()) == hash),
        part,
        sound,
        there,
    }
}

/// How far the run had come, and how many tensors were looked through.
fn check_one(shelf: &Checkpoints, round: u32, part: &mut Part) -> Result<(Progress, usize), String> {
    let (folder, progress) = shelf
        .find(CheckpointName::Round(round))
        .map_err(|error| error.to_string().replace("; go on from another one by --from", ""))?;
    let file = Checkpoints::relative_path(round);
    for name in shelf.unlisted(round).map_err(|error| error.to_string())? {
        part.problem(format!("{file}/{name}"), "b3sums does not list it");
    }
    if progress.next_round != round {
        return Err(format!("run.ron says next_round {}", progress.next_round));
    }
    if progress.history.len() != round as usize {
        return Err(format!("run.ron has a history of {} rounds", progress.history.len()));
    }
    let mut tensors = 0;
    for name in tensor_files(&folder).map_err(|error| error.to_string())? {
        let (count, bad) = look_through(&folder.join(&name)).map_err(|error| error.to_string())?;
        tensors += count;
        if let Some(place) = bad {
            return Err(format!("{name}: {place} is not finite"));
        }
    }
    Ok((progress, tensors))
}
