//! What lies in the folder of a run beside what belongs there, and what a folder is that is no run.

use std::fs;
use std::path::Path;

use super::Part;
use super::checkpoints::ShelfFacts;
use crate::checkpoint::Checkpoints;
use crate::files::name_of;
use crate::record::{MANIFEST_FILE, RESOLVED_FILE, SOURCE_FILE, STATUS_FILE};
use crate::telemetry::EVENTS_FILE;

/// Whether a folder holds anything of a run.
pub(super) fn holds_run(folder: &Path) -> bool {
    let files = [RESOLVED_FILE, MANIFEST_FILE, STATUS_FILE, SOURCE_FILE, EVENTS_FILE];
    files.iter().any(|file| folder.join(file).exists())
}

/// Files under the names that they have until they are whole, and links that lead to older checkpoints.
pub(super) fn check(folder: &Path, shelf: &ShelfFacts, is_played: bool) -> Part {
    let mut part = Part::new("files");
    if is_played {
        part.seen = "a process is at work on them".into();
        return part;
    }
    let path = Checkpoints::of(folder).path().to_path_buf();
    let shelf_name = name_of(&path);
    for name in names_in(folder) {
        if name.ends_with(".tmp") {
            part.note(
                name,
                "left half written by a process that was killed; it can be removed",
            );
        }
    }
    for name in names_in(&path) {
        if name.starts_with('.') {
            let why = "left half written by a process that was killed; a resume removes it";
            part.note(format!("{shelf_name}/{name}"), why);
        }
    }
    let newest = shelf
        .there
        .first()
        .map(|&standing| Checkpoints::relative_path(standing));
    let link = fs::read_link(path.join("last")).ok();
    if let (Some(newest), Some(link)) = (newest, link)
        && !Path::new(&newest).ends_with(&link)
    {
        let why = format!(
            "it leads to {}; the newest is {newest}; a resume sets it",
            link.display()
        );
        part.note(format!("{shelf_name}/last"), why);
    }
    part.seen = "no leftovers".into();
    part
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names
}
