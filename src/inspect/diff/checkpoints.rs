//! Checkpoints that two runs have in equal places: tensors first, since what is said about them differs wherever they do.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{DiffError, Difference, Found, Side, read};
use crate::checkpoint::{CheckpointId, Checkpoints};
use crate::health::{AtPath, FileError};
use crate::inspect::tensors::tensor_files;
use crate::inspect::{outline, tensors};
use crate::telemetry::is_volatile;

/// What an interruption may change in `run.ron`: which of the checkpoints is the best, where one could not be written. The
/// accuracies that decide this, `history`, are compared.
const INCIDENTAL: &str = "best";

/// How many files were compared.
pub(super) fn compare(runs: [&Path; 2], found: &mut Found) -> Result<usize, DiffError> {
    let shelves = runs.map(Checkpoints::of);
    let ids = shelves
        .each_ref()
        .map(|shelf| shelf.ids().into_iter().collect::<BTreeSet<CheckpointId>>());
    let mut count = 0;
    for &id in ids[0].intersection(&ids[1]) {
        let folders = runs.map(|run| run.join(Checkpoints::relative_path(id)));
        count += compare_checkpoint(&folders, found)?;
        if found.is_full() {
            break;
        }
    }
    Ok(count)
}

fn compare_checkpoint(folders: &[PathBuf; 2], found: &mut Found) -> Result<usize, DiffError> {
    let mut count = 0;
    for list in [tensor_files, ron_files] {
        let names = [list(&folders[0])?, list(&folders[1])?];
        let all: BTreeSet<&String> = names.iter().flatten().collect();
        for name in all {
            let files = folders.each_ref().map(|folder| folder.join(name));
            if files.iter().all(|file| file.exists()) {
                count += 1;
                compare_files(&files, found)?;
            } else {
                // One of the runs has it alone.
                let sides = files
                    .each_ref()
                    .map(|file| Side::new(file, None, file.exists().then(|| name.as_str().into())));
                found.add(Difference::new(found.kind, "file", sides));
            }
        }
    }
    Ok(count)
}

fn compare_files(files: &[PathBuf; 2], found: &mut Found) -> Result<(), DiffError> {
    let [left, right] = files;
    if left.extension().is_some_and(|extension| extension == "ron") {
        for pair in outline::differing(&read(left)?, &read(right)?) {
            let path = pair.0.as_ref().or(pair.1.as_ref()).map(|field| field.path.as_str());
            if !path.is_some_and(is_left_out) {
                found.add_fields([left, right], pair);
            }
        }
        return Ok(());
    }
    for difference in tensors::differing(left, right)? {
        let sides = [(left, difference.left), (right, difference.right)];
        let sides = sides.map(|(file, value)| Side::new(file, None, value));
        found.add(Difference {
            ulp: difference.ulp,
            ..Difference::new(found.kind, difference.field, sides)
        });
    }
    Ok(())
}

fn is_left_out(path: &str) -> bool {
    let mut words = path.split('.').peekable();
    words.peek() == Some(&INCIDENTAL) || words.any(is_volatile)
}

/// The names of all RON files of a checkpoint.
fn ron_files(folder: &Path) -> Result<Vec<String>, FileError> {
    let mut names = Vec::new();
    for inner in ["", "policy/"] {
        let folder = folder.join(inner);
        if !folder.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(&folder).at(&folder)? {
            let name = entry.at(&folder)?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".ron") {
                names.push(format!("{inner}{name}"));
            }
        }
    }
    Ok(names)
}
