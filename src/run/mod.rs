//! A run: start-up, the driver, and its record on disk (directory, manifest, status, events, summary).

mod announce;
mod directory;
mod driver;
mod evaluation;
mod extension;
mod frozen;
mod log;
mod manifest;
mod parts;
mod record;
mod session;
mod startup;
mod status;
mod summary;
mod table;

pub use announce::{RunFolder, RunRequest};
pub use driver::drive;
pub use evaluation::{Contestant, EpisodeOutcome, Episodes, play};
pub use extension::{Extension, ExtensionError, NO_EXTENSION, catalog};
pub use frozen::{FrozenPolicy, FrozenPolicyError, PolicyOrigin};
pub use log::LogFile;
pub use parts::MissingPart;
pub use record::RecordPlugin;
pub use session::{RunPlan, RunRecord, RunReport, experiment, run};
pub use startup::StartupPlugin;

pub use directory::{RunDirectory, RunDirectoryError, runs_root};
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
