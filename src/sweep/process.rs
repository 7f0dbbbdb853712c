//! Processes by which workers know each other.

use serde::{Deserialize, Serialize};

/// A process, so that another one on the same machine can see whether it is still there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Host, boot and namespace of process ids.
    pub(super) machine: String,
    pub(super) pid: u32,
    /// When it started, in the system's ticks: ids are used again.
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

    /// Digits that no other process has.
    pub(super) fn digest(&self) -> String {
        blake3::hash(format!("{self:?}").as_bytes()).to_hex()[..16].into()
    }

    /// Whether it is known to have ended: it ran on this machine and does not any more.
    pub(super) fn is_gone(&self, this: &Self) -> bool {
        self.machine == this.machine && self.started.is_some() && start_of(self.pid) != self.started
    }
}

/// Field 22 of `/proc/PID/stat`; `None` where there is no such process, or no such file system.
fn start_of(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may hold anything.
    let (_, after_name) = text.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_knows_when_it_started() {
        assert!(!cfg!(target_os = "linux") || Worker::this().started.is_some());
    }

    #[test]
    fn no_two_processes_have_the_same_digits() {
        assert_eq!(Worker::this().digest(), Worker::this().digest());
        assert_ne!(Worker::this().digest(), Worker::of(1).digest());
    }
}
