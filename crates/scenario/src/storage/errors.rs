//! Meaning of the operating system's error numbers: the one table for all code that tells one cause from another.

/// Subject of an error, where that is neither its caller nor what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The machine, or the folder: anything that is done there fails until the cause is removed.
    Place,
    /// A file system that has no locks.
    Locks,
}

use ErrorClass::{Locks, Place};

/// Numbers on Linux and on macOS, and what they mean.
#[rustfmt::skip]
const CLASSES: [(i32, i32, ErrorClass); 13] = [
    (1, 1, Place),      // EPERM: forbidden to this user
    (5, 5, Place),      // EIO: a device fails
    (12, 12, Place),    // ENOMEM: the memory is taken
    (13, 13, Place),    // EACCES: no rights
    (23, 23, Place),    // ENFILE: no more open files on the machine
    (24, 24, Place),    // EMFILE: no more open files for a process
    (28, 28, Place),    // ENOSPC: the disk is full
    (30, 30, Place),    // EROFS: a device that failed can only be read
    (116, 70, Place),   // ESTALE: mounted again meanwhile
    (122, 69, Place),   // EDQUOT: the quota is used up
    (37, 77, Locks),    // ENOLCK: NFS without its lock daemon
    (38, 78, Locks),    // ENOSYS: FUSE
    (95, 102, Locks),   // EOPNOTSUPP: Lustre
];

impl ErrorClass {
    /// The class of the error with this number.
    pub fn of(number: i32) -> Option<Self> {
        let mut rows = CLASSES.iter();
        let row = rows.find(|(linux, macos, _)| number == *if cfg!(target_os = "macos") { macos } else { linux });
        row.map(|(.., class)| *class)
    }
}
