//! A run: start-up, the driver, and its record on disk (directory, manifest, status, events, summary).

mod announce;
mod checkpoint;
mod directory;
mod driver;
mod evaluation;
mod extension;
mod frozen;
mod inventory;
mod log;
mod manifest;
mod parts;
mod record;
mod resume;
mod saved_learner;
mod session;
mod shelf;
mod startup;
mod status;
mod stop;
mod summary;
mod table;

pub use announce::{RunFolder, RunRequest};
pub use checkpoint::{CheckpointPlugin, Keeper};
pub use driver::drive;
pub use evaluation::{Contestant, EpisodeOutcome, Episodes, play};
pub use extension::{Extension, ExtensionError, NO_EXTENSION, catalog};
pub use frozen::{FrozenPolicy, FrozenPolicyError, PolicyOrigin};
pub use inventory::{Inventory, InventoryPlugin, PluginInfo, plugins};
pub use log::LogFile;
pub use parts::MissingPart;
pub use record::RecordPlugin;
pub use resume::{PastRun, ResumeError, ResumePoint};
pub use session::{RunPlan, RunRecord, RunReport, experiment, run};
pub use shelf::{CheckpointError, CheckpointName, CheckpointShelf, Progress, Record};
pub use startup::StartupPlugin;
pub use stop::{StopRequest, StopSignal, stop_on_signals};

pub use directory::{RunDirectory, RunDirectoryError, find_run, runs_root};
pub use manifest::{Build, DeviceInfo, Labels, Libraries, Machine, Manifest, Resolved, Threads};
pub use status::{RunStatus, StatusSink, is_legal_transition};
pub use summary::summary;
pub use table::{Align, Table};

use std::io::Write;
use std::path::Path;

/// Replaces `path` in one step: a reader sees the old content or the new, never half of either.
fn write_atomically(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let mut file = std::fs::File::create(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}

/// Makes `name` in `folder` a link to `target`. Convenience only: a folder that cannot hold the link, or something else of
/// that name, is left as it is, and said so.
#[cfg(unix)]
fn point_at(folder: &Path, name: &str, target: &str) {
    let link = folder.join(name);
    let is_in_the_way = link.symlink_metadata().is_ok_and(|metadata| !metadata.is_symlink());
    let replaced = if is_in_the_way {
        Err(std::io::ErrorKind::AlreadyExists.into())
    } else {
        let temporary = folder.join(format!(".{name}-{target}"));
        // Left by a process that was killed in between; where there is none, the link below tells.
        let _ = std::fs::remove_file(&temporary);
        std::os::unix::fs::symlink(target, &temporary).and_then(|()| std::fs::rename(&temporary, &link))
    };
    if let Err(error) = replaced {
        tracing::warn!(link = %link.display(), %error, "a link was not set");
    }
}

#[cfg(not(unix))]
fn point_at(_folder: &Path, _name: &str, _target: &str) {}
