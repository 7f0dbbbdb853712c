//! The memory that a run may take: what the operating system has left, what a control group allows, or what the scenario
//! says.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::scenario::RunConfig;

const GIB: f64 = (1_u64 << 30) as f64;

/// Available bytes, and their source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The memory in bytes.
    pub bytes: u64,
    /// The source of the number.
    pub source: RoomSource,
}

/// Bound of a run's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomSource {
    /// All memory of the machine.
    Machine,
    /// Memory that the machine has left.
    Available,
    /// Limit of the process's control group.
    ControlGroup,
    /// `run.memory_limit_gib`.
    Limit,
}

impl Room {
    /// Memory that a run that begins now may take: `run.memory_limit_gib`, or else what the machine has left, or less where a
    /// control group allows less. `None` where the operating system does not say.
    pub fn now(run: &RunConfig) -> Option<Self> {
        let read = |path: &Path| std::fs::read_to_string(path).ok();
        Self::limit_of(run).or_else(|| left(read))
    }

    /// Bytes that the process takes of the machine's memory, and the most that it may take.
    pub(crate) fn in_use(run: &RunConfig) -> Option<(u64, u64)> {
        let (used, most) = taken(|path| std::fs::read_to_string(path).ok())?;
        Some((used, Self::limit_of(run).map_or(most, |room| room.bytes)))
    }

    /// The scenario's limit, if it does not leave that to the machine.
    pub(crate) fn limit_of(run: &RunConfig) -> Option<Self> {
        run.memory_limit_gib.map(|gib| Self {
            bytes: (gib * GIB) as u64,
            source: RoomSource::Limit,
        })
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = size(self.bytes.into());
        match self.source {
            RoomSource::Machine => write!(f, "this machine has {bytes}"),
            RoomSource::Available => write!(f, "this machine has {bytes} left"),
            RoomSource::ControlGroup => write!(f, "the control group of the process allows {bytes}"),
            RoomSource::Limit => write!(f, "run.memory_limit_gib allows {bytes}"),
        }
    }
}

/// Bytes as people read them: `15.6 GiB`.
pub fn size(bytes: u128) -> String {
    const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} bytes"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}

/// The lesser of what Linux calls available and what the control groups of the process allow.
fn left(read: impl Fn(&Path) -> Option<String>) -> Option<Room> {
    let of = |source| move |bytes| Room { bytes, source };
    let available = read(Path::new("/proc/meminfo")).and_then(|text| bytes_of("MemAvailable", &text));
    let rooms = [
        available.map(of(RoomSource::Available)),
        allowed(&read).map(of(RoomSource::ControlGroup)),
    ];
    rooms.into_iter().flatten().min_by_key(|room| room.bytes)
}

/// Bytes that the process uses, and the bytes of the machine, or less where a control group allows less.
fn taken(read: impl Fn(&Path) -> Option<String>) -> Option<(u64, u64)> {
    let bytes = |path: &str, name| read(Path::new(path)).and_then(|text| bytes_of(name, &text));
    let used = bytes("/proc/self/status", "VmRSS")?;
    let most = bytes("/proc/meminfo", "MemTotal")
        .into_iter()
        .chain(allowed(&read))
        .min()?;
    Some((used, most))
}

/// The memory that the control groups of the process allow.
fn allowed(read: &impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = limit_files(&groups).into_iter();
    // A group without a limit says `max`, or a number that no machine has.
    limits.filter_map(|path| read(&path)?.trim().parse::<u64>().ok()).min()
}

/// `MemAvailable: 16252928 kB`
fn bytes_of(name: &str, text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(of, _)| of.trim() == name)?;
    let kibibytes: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes.saturating_mul(1024))
}

/// The files with the limits of the process's control groups and of all groups around them, for both versions of control
/// groups. A container sees its own group as the outermost one.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        // `0::/user.slice` is version 2, `4:cpu,memory:/docker/1f3` version 1.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|controller| controller == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = Path::new(root).join(group.trim_start_matches('/'));
        let around = group.ancestors().take_while(|path| path.starts_with(root));
        files.extend(around.map(|folder| folder.join(file)));
    }
    files
}

#[cfg(test)]
mod tests;
