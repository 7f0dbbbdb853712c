//! The folder of a `grow` while it is under way: the order, and the result of every attempt. The result takes its place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::play::{GrowError, Played};
use crate::health::AtPath;
use crate::network::GrownNetwork;
use crate::storage::{File, put_back, read_dir, replace_folder, replace_synced};

/// Settings of an order, by name.
pub type Ordered = BTreeMap<String, String>;

/// File whose presence says that a folder holds no result yet.
const ORDER: &str = "order.json";

/// Begins in `folder`, and with `is_forced` replaces all of its content, or continues the same order. While the returned file is
/// open, no other process can.
///
/// # Errors
/// A folder with other content, with another order, or with another process that grows; a folder that cannot be written.
pub fn open(folder: &Path, ordered: &Ordered, is_forced: bool) -> Result<File, GrowError> {
    let order = folder.join(ORDER);
    put_back(folder).at(folder)?;
    let held = match read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        names => names.at(folder)?,
    };
    let occupied = |why: String| GrowError::Refused(format!("{} {why}", folder.display()));
    let locked = || -> Result<File, GrowError> {
        let file = File::change(&order).at(&order)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(occupied("is in use by another process that grows".into())),
            // A file system without locks.
            _ => Ok(file),
        }
    };
    let lock = order.is_file().then(locked).transpose()?;
    // An order under which nothing has been played may be replaced.
    match (held.iter().find(|name| !is_forced && *name != ORDER), lock) {
        // The result is written in the same way at the end: if that is impossible, it fails now.
        (None, _) => {
            let text = serde_json::to_vec_pretty(ordered).at(&order)?;
            replace_folder(folder, &[(ORDER, text.as_slice())]).at(folder)?;
            locked()
        }
        (Some(_), Some(lock)) => {
            // All content is replaced at the end.
            let mut names = held.iter().map(|name| name.to_string_lossy());
            if let Some(name) = names.find(|name| !["order", "attempt", "."].iter().any(|own| name.starts_with(own))) {
                return Err(occupied(format!(
                    "holds {name}, which isn't part of this growth; move it elsewhere"
                )));
            }
            let text = fs::read_to_string(&order).at(&order)?;
            let differing = differing(&serde_json::from_str(&text).at(&order)?, ordered).join("\n  ");
            match differing.is_empty() {
                true => Ok(lock),
                false => Err(occupied(format!(
                    "holds the attempts of another command:\n  {differing}\nto continue it, repeat that command; else give \
                     another folder, or --force to begin again"
                ))),
            }
        }
        (Some(name), None) => Err(occupied(format!(
            "holds {}; give another folder, or --force to remove its content and begin again",
            name.display()
        ))),
    }
}

/// The files of attempt `number`: about it, and its network.
pub fn files(folder: &Path, number: usize) -> [PathBuf; 2] {
    ["json", "safetensors"].map(|ending| folder.join(format!("attempt{number}.{ending}")))
}

/// Attempt `number`, if it was written whole.
pub fn read(folder: &Path, number: usize) -> Option<Played> {
    let [about, network] = files(folder, number);
    let mut played: Played = serde_json::from_str(&fs::read_to_string(about).ok()?).ok()?;
    if played.macs.is_some() {
        played.network = Some(GrownNetwork::load(&network).ok()?);
    }
    Some(played)
}

/// Writes it, its network first: the file about the attempt marks it as whole.
///
/// # Errors
/// Files that cannot be written.
pub fn put(folder: &Path, number: usize, played: &Played) -> Result<(), GrowError> {
    let [about, place] = files(folder, number);
    if let Some(network) = &played.network {
        network.save(&place)?;
    }
    let text = serde_json::to_vec_pretty(played).at(&about)?;
    Ok(replace_synced(&about, &text).at(&about)?)
}

/// Settings that differ, with both values.
fn differing(begun: &Ordered, now: &Ordered) -> Vec<String> {
    let names: BTreeSet<&String> = begun.keys().chain(now.keys()).collect();
    let names = names.into_iter().filter(|name| begun.get(*name) != now.get(*name));
    let changes = names.map(|name| {
        let [was, is] = [begun, now].map(|order| order.get(name).map_or("nothing", String::as_str));
        format!("{name} was {was}, now {is}")
    });
    changes.collect()
}

#[cfg(test)]
mod tests;
