//! Shared by both halves of the matrix of interruptions: the commit's draws, and the files left on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use simic_engine::internals::random::mix;

/// A number of the commit, so that pairs that are played move; the same for all where there is no commit.
pub fn seed_of_commit() -> u64 {
    let commit = Command::new("git").args(["rev-parse", "HEAD"]).output();
    let commit = commit.map(|output| output.stdout).unwrap_or_default();
    commit.iter().fold(0, |seed, &letter| mix(seed ^ u64::from(letter)))
}

/// Files below `root` by their names, links among them, without those that tell of interruptions.
pub fn files(root: &Path) -> BTreeMap<String, PathBuf> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
                found.insert(name.into_owned(), path);
            }
        }
    }
    found.retain(|name, _| !name.contains("discarded"));
    found
}

/// Names that only one of two has.
pub fn unpaired<T>(one: &BTreeMap<String, T>, other: &BTreeMap<String, T>) -> Vec<String> {
    let alone = |these: &BTreeMap<String, T>, those: &BTreeMap<String, T>| -> Vec<String> {
        let names = these.keys().filter(|name| !those.contains_key(*name));
        names.cloned().collect()
    };
    [alone(one, other), alone(other, one)].concat()
}
