//! Files that other processes read while a run writes them.

use std::path::Path;

use serde::Serialize;

use crate::storage::{self, replace_synced};

/// Replaces `path` in one step; see [`replace_synced`].
pub(super) fn write_json(path: &Path, content: &impl Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_vec_pretty(content)?;
    text.push(b'\n');
    replace_synced(path, &text)
}

/// Bytes of all files in a folder; a file that cannot be read counts for nothing.
pub(crate) fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) if metadata.is_file() => metadata.len(),
        _ => 0,
    };
    entries.map(size).sum()
}

/// Makes `name` in `folder` a link to `target`. Convenience only: a folder that cannot hold the link, or something else of
/// that name, stays unchanged, with a warning.
#[cfg(unix)]
pub(crate) fn point_at(folder: &Path, name: &str, target: &str) {
    let link = folder.join(name);
    let is_in_the_way = link.symlink_metadata().is_ok_and(|metadata| !metadata.is_symlink());
    let replaced = if is_in_the_way {
        Err(std::io::ErrorKind::AlreadyExists.into())
    } else {
        let temporary = folder.join(format!(".{name}-{target}"));
        // A process that was killed in between has left it; if removing fails, the link below fails too.
        let _ = storage::remove_file(&temporary);
        storage::symlink(target, &temporary).and_then(|()| storage::rename(&temporary, &link))
    };
    if let Err(error) = replaced {
        tracing::warn!(link = %link.display(), %error, "a link was not set");
    }
}

#[cfg(not(unix))]
pub(crate) fn point_at(_folder: &Path, _name: &str, _target: &str) {}
