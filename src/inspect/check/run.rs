//! A run: whether its files can be read, whether each is what its hash says, and whether all of them are there.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use serde::de::IgnoredAny;

use super::events::EventFacts;
use super::{Check, Part, Use, events};
use crate::checkpoint::{CheckpointId, Checkpoints, KEEP_LAST, Progress};
use crate::files::{self, counted, name_of};
use crate::keep::NetworkShelf;
use crate::network::GrownNetwork;
use crate::record::{
    MANIFEST_FILE, RESOLVED_FILE, RunDirectory, RunEntry, RunStatus, SOURCE_FILE, STATUS_FILE, scenario_folder,
};
use crate::scenario::{Catalog, Input, Scenario, load_in};
use crate::storage;
use crate::telemetry::EVENTS_FILE;
use crate::torch::Backend;

pub(super) fn check(folder: &Path, catalog: &Catalog) -> Check {
    let files = [RESOLVED_FILE, MANIFEST_FILE, STATUS_FILE, SOURCE_FILE, EVENTS_FILE];
    if !files.iter().any(|file| folder.join(file).exists()) {
        return Check::of_nothing(
            folder,
            "it is neither a run (it has no resolved.ron) nor a sweep (it has no plan.json)",
        );
    }
    let entry = RunEntry::read(folder);
    // A run that is just being resumed holds the lock before its status says so.
    let is_played = RunDirectory::is_claimed(folder).unwrap_or(entry.state.is_played());
    let [mut given, mut manifest, mut shelf_part] = ["scenario", "manifest", "checkpoints"].map(Part::new);
    let has_source = files::read_text(&folder.join(SOURCE_FILE))
        .inspect_err(|error| given.problem(SOURCE_FILE, format!("{error}; a resume needs it")))
        .is_ok();
    let (scenario, hash) = read_scenario(folder, catalog, &mut given);
    let has_manifest = read_manifest(folder, &mut manifest);
    let shelf = Shelf::read(folder, hash.as_deref(), is_played, &mut shelf_part);
    let status = RunStatus::read(folder);
    let end = status.as_ref().ok().filter(|_| !is_played);
    let end = end.and_then(|status| status.recorded.clone());
    let mut data = events::check(folder, &shelf.sound, end, is_played);
    // A process that was killed may leave none, but half of one is damage: it is written as a whole.
    if let Err(error) = status
        && error.source.kind() != ErrorKind::NotFound
    {
        data.part.problem(STATUS_FILE, error.source.to_string());
    }
    if !is_played {
        shelf.compare_with(&data, &mut shelf_part);
    }
    compare_hashes(folder, &data, &mut manifest, &mut given);
    data.part.seen = seen(&data, &shelf);

    let newest = shelf.sound.first();
    let is_of_scenario = newest.is_some_and(|newest| Some(&newest.scenario_hash) == hash.as_ref());
    let is_known = scenario.is_some();
    // An evaluation makes do without a manifest, though not with half of one.
    let has_policy = is_known && newest.is_some() && (has_manifest || !folder.join(MANIFEST_FILE).exists());
    let is_resumable = is_known && has_manifest && has_source && data.is_open && is_of_scenario;
    let uses = [
        (Use::Resume, is_resumable),
        (Use::Eval, has_policy),
        (Use::Replay, data.is_whole && data.has_decisions),
        (Use::Compare, data.is_whole && data.rounds > 0),
    ];
    let good_for = uses.into_iter().filter(|(_, is_good)| *is_good).map(|(good, _)| good);
    let mut parts = vec![given, manifest, shelf_part, data.part, leftovers(folder, is_played)];
    parts.extend(networks(folder));
    Check {
        state: Some(entry.state),
        ..Check::new(folder, parts, good_for.collect(), is_played)
    }
}

/// The scenario, unless this build cannot play it, and the blake3 of its file.
fn read_scenario(folder: &Path, catalog: &Catalog, part: &mut Part) -> (Option<Scenario>, Option<String>) {
    let path = folder.join(RESOLVED_FILE);
    let text = match files::read_text(&path) {
        Ok(text) => text,
        Err(error) => {
            part.problem(RESOLVED_FILE, error.to_string());
            return (None, None);
        }
    };
    let input = Input {
        label: RESOLVED_FILE,
        text: &text,
        overrides: &[],
    };
    // A manifest that doesn't say where paths lead from is a problem of the manifest.
    let folder = scenario_folder(&path).ok().flatten();
    let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
    match load_in(&input, folder.as_deref(), catalog) {
        Ok(loaded) => {
            let Scenario { name, run, policy, .. } = &loaded.scenario;
            let (rounds, envs) = (counted(run.rounds, "round"), counted(run.n_envs, "env"));
            part.seen = format!("{name}: {rounds} of {envs}, controller {}", policy.controller);
            (Some(loaded.scenario), Some(hash))
        }
        Err(report) => {
            for row in report.rows() {
                let place = row.line.map_or(String::new(), |line| format!("line {line}: "));
                let what = format!("this build cannot play it: {place}{}", row.message);
                part.problem(RESOLVED_FILE, what);
            }
            (None, Some(hash))
        }
    }
}

fn read_manifest(folder: &Path, part: &mut Part) -> bool {
    let text = files::read(&folder.join(MANIFEST_FILE)).map_err(|error| error.to_string());
    let read = text.and_then(|text| {
        serde_json::from_slice::<IgnoredAny>(&text).map_err(|error| format!("it isn't JSON: {error}"))
    });
    part.seen = "it can be read".into();
    read.inspect_err(|why| part.problem(MANIFEST_FILE, why)).is_ok()
}

/// Compares files that never change with the hashes in `run_started`.
fn compare_hashes(folder: &Path, data: &EventFacts, manifest: &mut Part, given: &mut Part) {
    let Some(started) = &data.started else { return };
    let resolved = (RESOLVED_FILE, &started.scenario_hash);
    let others = started.file_hashes.iter().map(|(name, hash)| (name.as_str(), hash));
    for (name, hash) in others.chain([resolved]) {
        let part = if name == MANIFEST_FILE {
            &mut *manifest
        } else {
            &mut *given
        };
        // One that cannot be read was reported already.
        if let Ok(content) = files::read(&folder.join(name))
            && blake3::hash(&content).to_hex().as_str() != hash
        {
            part.problem(name, "it has changed since the run began");
        }
    }
}

/// The checkpoints of a run.
struct Shelf {
    /// Those that are as they were written, the newest first.
    sound: Vec<Progress>,
    /// All that exist, sound or not.
    there: BTreeSet<CheckpointId>,
}

impl Shelf {
    /// `hash`: of the scenario.
    fn read(folder: &Path, hash: Option<&str>, is_played: bool, part: &mut Part) -> Self {
        let shelf = Checkpoints::of(folder);
        let there = shelf.list().unwrap_or_else(|error| {
            part.problem("checkpoints", error.to_string());
            Vec::new()
        });
        if there.is_empty() && part.findings.is_empty() && !is_played {
            part.problem("checkpoints", "there isn't one, so the run cannot be continued");
        }
        let mut sound = Vec::new();
        for &id in &there {
            let file = Checkpoints::relative_path(id);
            match check_one(&shelf, id, part) {
                Ok(progress) => {
                    if hash.is_some_and(|hash| progress.scenario_hash != hash) {
                        let named = &progress.scenario_hash;
                        part.problem(format!("{file}/run.ron"), format!("it belongs to the scenario {named}"));
                    }
                    sound.push(progress);
                }
                // Thrown away meanwhile.
                Err(_) if is_played && !shelf.ids().contains(&id) => {}
                Err(why) => part.problem(&file, why.replace(&format!("{}/", folder.display()), "")),
            }
        }
        let names: Vec<String> = sound.iter().rev().map(|progress| progress.id().to_string()).collect();
        part.seen = names.join(", ");
        Self {
            sound,
            there: there.into_iter().collect(),
        }
    }

    /// Checks that the saved ones are there: the newest few and the best one stay.
    fn compare_with(&self, data: &EventFacts, part: &mut Part) {
        let newest = self.sound.first();
        let in_checkpoints = newest.map_or(0, |newest| newest.next_round as usize);
        if in_checkpoints < data.rounds && !data.saved.is_empty() {
            let lost = data.rounds - in_checkpoints;
            let what = format!("no sound checkpoint has {lost} of the rounds played; a resume plays them again");
            part.note("", what);
        }
        if !data.is_whole {
            return;
        }
        // A run that was killed may not have recorded the last one, and one that was resumed inside a round has dropped the record
        // of the round's own.
        let there = self.there.iter().copied().filter(|id| !id.is_inside_round());
        let saved = data.saved.iter().map(|&round| CheckpointId::before(round));
        let known: BTreeSet<CheckpointId> = there.chain(saved).collect();
        let best = newest.and_then(|newest| newest.best);
        let best = best.map(|best| CheckpointId::before(best.next_round));
        let kept: BTreeSet<CheckpointId> = known.into_iter().rev().take(KEEP_LAST).chain(best).collect();
        for &id in kept.difference(&self.there) {
            let file = Checkpoints::relative_path(id);
            part.problem(file, "it was saved, but is missing");
        }
    }
}

/// Checks one checkpoint. Returns the run's progress.
fn check_one(shelf: &Checkpoints, id: CheckpointId, part: &mut Part) -> Result<Progress, String> {
    let (_, progress) = shelf
        .open(id)
        .map_err(|error| error.to_string().replace("; resume from another one with --from", ""))?;
    for name in shelf.unlisted(id).map_err(|error| error.to_string())? {
        let file = format!("{}/{name}", Checkpoints::relative_path(id));
        part.problem(file, "b3sums doesn't list it");
    }
    if progress.id() == id {
        Ok(progress)
    } else {
        Err(format!("run.ron belongs to the checkpoint {}", progress.id()))
    }
}

fn seen(data: &EventFacts, shelf: &Shelf) -> String {
    let newest = shelf.sound.first();
    let played = newest.map_or(0, |newest| newest.next_round as usize).max(data.rounds);
    let asked = newest.map(|newest| newest.rounds);
    let asked = asked.or(data.started.as_ref().map(|run| run.n_rounds));
    let rounds = asked.map_or_else(|| format!("{played}"), |asked| format!("{played} of {asked}"));
    format!(
        "{} events, {rounds} rounds; {} bytes match their hashes",
        data.count, data.vouched
    )
}

/// Files under the names that they have until they are whole.
fn leftovers(folder: &Path, is_played: bool) -> Part {
    let mut part = Part::new("files");
    part.seen = "no leftovers".into();
    if is_played {
        part.seen = "a process is writing them".into();
        return part;
    }
    let shelf = Checkpoints::of(folder);
    let inner = format!("{}/", name_of(shelf.path()));
    for (place, prefix) in [(folder, ""), (shelf.path(), inner.as_str())] {
        let mut names = storage::read_dir(place).unwrap_or_default();
        names.sort_unstable();
        for name in names.iter().map(|name| name.to_string_lossy()) {
            if name.ends_with(".tmp") || name.starts_with('.') {
                let what = "half written by a process that was killed; you can remove it";
                part.note(format!("{prefix}{name}"), what);
            }
        }
    }
    part
}

/// The networks that a run has kept: each is what was written, where it belongs, and can be built. `None` of a run that has
/// kept none.
fn networks(folder: &Path) -> Option<Part> {
    let mut part = Part::new("networks");
    let kept = NetworkShelf::of(folder).list().unwrap_or_else(|error| {
        part.problem("networks", error.to_string());
        Vec::new()
    });
    for file in &kept {
        let name = format!("networks/{}", name_of(&file.path));
        let built = GrownNetwork::load(&file.path).and_then(|network| {
            network.build(Backend::CPU)?;
            Ok((network.origin.round, network.origin.env))
        });
        match built {
            Ok(origin) if origin == (file.round, file.env) => {}
            Ok((round, env)) => {
                let round = u64::from(round) + 1;
                part.problem(name, format!("it holds the network of round {round}, env {env}"));
            }
            Err(error) => part.problem(name, error.to_string()),
        }
    }
    part.seen = format!("{} kept, each can be built", kept.len());
    (!kept.is_empty() || !part.findings.is_empty()).then_some(part)
}
