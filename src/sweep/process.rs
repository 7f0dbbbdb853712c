//! Processes by which workers know each other.

use serde::{Deserialize, Serialize};

/// A process, so that another one on the same machine can see whether it is still there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Host, boot and namespace of process ids.
    pub(super) machine: String,
    pub(super) pid: u32,
    /// The time at which it started, in the system's ticks: ids are used again.
    pub(super) started: Option<u64>,
}

impl Worker {
    /// This process.
    pub fn this() -> Self {
        Self::of(std::process::id())
    }

    /// A process on this machine.
    pub(super) fn of(pid: u32) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        Self {
            machine: format!(
                "{} {} {}",
                read("/proc/sys/kernel/hostname"),
                read("/proc/sys/kernel/random/boot_id"),
                namespace.display()
            ),
            pid,
            started: start_of(pid),
        }
    }

    /// `host pid 123`
    pub fn name(&self) -> String {
        let host = self.machine.split(' ').next().unwrap_or_default();
        format!("{host} pid {}", self.pid)
    }

    /// The process with its machine as the first digits of a hash, as the names of files have it.
    pub(super) fn hashed(&self) -> Self {
        Self {
            machine: blake3::hash(self.machine.as_bytes()).to_hex()[..16].into(),
            ..self.clone()
        }
    }

    /// End of the names of files that belong only to this process: `1f2e3d4c5b6a7988-123-4567`. No other process has the same.
    pub(super) fn mark(&self) -> String {
        let Self { machine, pid, started } = self.hashed();
        let started = started.map_or_else(|| "unknown".into(), |started| started.to_string());
        format!("{machine}-{pid}-{started}")
    }

    /// The process, [hashed](Self::hashed), whose mark the name of a file ends in, after its last point.
    pub(super) fn marked(name: &str) -> Option<Self> {
        let (_, mark) = name.rsplit_once('.')?;
        let mut words = mark.split('-');
        let (machine, pid, started) = (words.next()?, words.next()?, words.next()?);
        let is_whole = machine.len() == 16 && machine.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_whole && words.next().is_none()).then_some(Self {
            machine: machine.into(),
            pid: pid.parse().ok()?,
            started: started.parse().ok(),
        })
    }

    /// Returns whether it is known to have ended: it ran on this machine and doesn't any more.
    pub(super) fn is_gone(&self, this: &Self) -> bool {
        self.machine == this.machine && self.started.is_some() && start_of(self.pid) != self.started
    }
}

/// Field 22 of `/proc/PID/stat`. `None` without such a process or such a file system.
fn start_of(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may hold anything.
    let (_, after_name) = text.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests;
