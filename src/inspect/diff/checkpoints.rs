//! Checkpoints that two runs have in equal places: tensors first, since their descriptions differ wherever they do.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{DiffError, Difference, Found, Side, read, tensors};
use crate::checkpoint::{CheckpointId, Checkpoints};
use crate::files::name_of;
use crate::health::{AtPath, FileError};
use crate::telemetry::is_volatile;

/// The field of `run.ron` that an interruption may change: which of the checkpoints is the best, where one could not be
/// written. The accuracies that decide this, `history`, are compared.
const INCIDENTAL: &str = "best";

/// Compares them, and returns the number of files.
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
    for extension in ["safetensors", "ron"] {
        let names = [names(&folders[0], extension)?, names(&folders[1], extension)?];
        let all: BTreeSet<&String> = names.iter().flatten().collect();
        for name in all {
            let files = folders.each_ref().map(|folder| folder.join(name));
            if files.iter().all(|file| file.exists()) {
                count += 1;
                compare_files(&files, found)?;
            } else {
                // Only one of the runs has it.
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
    if files[0].extension().is_some_and(|extension| extension == "ron") {
        found.add_fields(files, &[read(&files[0])?, read(&files[1])?], is_left_out);
    } else {
        let differences = tensors::differing(files)?;
        differences.into_iter().for_each(|difference| found.add(difference));
    }
    Ok(())
}

fn is_left_out(path: &str) -> bool {
    let mut words = path.split('.').peekable();
    words.peek() == Some(&INCIDENTAL) || words.any(is_volatile)
}

/// The names of all files with an extension in a folder and the folders in it, with `/` between their parts.
fn names(folder: &Path, extension: &str) -> Result<Vec<String>, FileError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).at(folder)? {
        let path = entry.at(folder)?.path();
        let name = name_of(&path);
        if path.is_dir() {
            let inner = names(&path, extension)?;
            files.extend(inner.into_iter().map(|file| format!("{name}/{file}")));
        } else if path.extension().is_some_and(|own| own == extension) {
            files.push(name);
        }
    }
    Ok(files)
}
