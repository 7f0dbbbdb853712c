//! The assignment of trials to workers: one file per attempt, which only one worker can create.
//!
//! `leases/ID.0001` belongs to the worker that created it, which rewrites it as a sign of life. Once that is long enough
//! ago, or its process is known to be gone, another worker may create `ID.0002`, and again only one can. Nothing is
//! ever removed, so no two workers can both believe to have taken over; the former holder finds the newer file and lets go.
//! Times are those of the file system itself: clocks of machines are not compared.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::place::{Place, Shelf};
use super::process::Worker;
use crate::checkpoint::CheckpointId;
use crate::health::{AtPath, FileError};

/// Content of a lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeaseContent {
    /// The worker that plays.
    pub worker: Worker,
    /// Number of failures of the trial so far.
    pub failures: u32,
    /// Number of times that the machine did not let its process play.
    #[serde(default)]
    pub setbacks: Setbacks,
    /// Seconds that the trial has been played for, by all attempts.
    pub played_s: f64,
    /// The process that the worker has begun for it. It ends a moment after the worker, in which it may still write; not
    /// every file system has locks that would tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub player: Option<Worker>,
}

impl LeaseContent {
    /// A lease of a trial that no worker has played.
    fn first(worker: Worker) -> Self {
        Self {
            worker,
            failures: 0,
            setbacks: Setbacks::default(),
            played_s: 0.0,
            player: None,
        }
    }

    /// Returns whether nothing of it runs any more. This is known only of processes on this machine.
    fn is_gone(&self, place: &dyn Place) -> bool {
        place.is_gone(&self.worker) && self.player.as_ref().is_none_or(|player| place.is_gone(player))
    }
}

/// Ends of a trial's process that were the machine's doing: it was killed, or its folder could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setbacks {
    /// Since a newer checkpoint has appeared.
    in_a_row: u32,
    /// The newest checkpoint then.
    newest: Option<CheckpointId>,
}

impl Setbacks {
    /// Setbacks without a newer checkpoint after which the trial has failed.
    pub const MOST: u32 = 5;

    /// Counts one more, with this as the newest checkpoint. Returns the pause before the trial is resumed; `None` if these were
    /// too many, and the count starts again.
    pub fn pause_after(&mut self, newest: Option<CheckpointId>) -> Option<Duration> {
        if newest > self.newest {
            *self = Self { in_a_row: 0, newest };
        }
        self.in_a_row += 1;
        if self.in_a_row < Self::MOST {
            return Some(Duration::from_secs(1 << (self.in_a_row - 1)));
        }
        *self = Self::default();
        None
    }
}

/// A trial that this process plays, for as long as [`Lease::renew`] says so.
pub struct Lease<'a> {
    place: &'a dyn Place,
    id: String,
    /// Number of this attempt at the trial, from 1.
    pub attempt: u32,
    /// Its content.
    pub content: LeaseContent,
}

/// Holder of a trial, by its lease files.
#[derive(Clone, Debug, PartialEq)]
pub enum Holder {
    /// No worker has begun it.
    None,
    /// A worker plays it.
    Playing(LeaseContent),
    /// A worker has begun it and is gone.
    Lost(Option<LeaseContent>),
}

/// All leases of a sweep, read at once.
pub struct Leases<'a> {
    place: &'a dyn Place,
    names: BTreeSet<String>,
    now: SystemTime,
    expiry: Duration,
}

impl<'a> Leases<'a> {
    /// Reads which there are. `expiry`: a worker without a sign of life for this long counts as gone. `now` is the folder's
    /// [time](Place::now); for those who only look, and write nothing, it is this machine's.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn read(place: &'a dyn Place, expiry: Duration, now: SystemTime) -> Result<Self, FileError> {
        Ok(Self {
            place,
            names: place.names(Shelf::Leases)?,
            now,
            expiry,
        })
    }

    /// The newest attempt at a trial; 0 if there is none.
    pub fn newest(&self, id: &str) -> u32 {
        let of_trial = self.names.range(format!("{id}.")..format!("{id}/"));
        let attempts = of_trial.filter_map(|name| name.rsplit_once('.')?.1.parse().ok());
        // A number that none follows is not a worker's.
        attempts.filter(|&attempt| attempt < u32::MAX).max().unwrap_or(0)
    }

    /// The holder of a trial.
    ///
    /// # Errors
    /// A lease that cannot be read.
    pub fn holder(&self, id: &str) -> Result<Holder, FileError> {
        let attempt = self.newest(id);
        if attempt == 0 {
            return Ok(Holder::None);
        }
        let name = lease_name(id, attempt);
        let modified = self.place.modified(Shelf::Leases, &name)?;
        let silent = self.now.duration_since(modified).unwrap_or_default();
        // Created and not yet written, or written by half: only its age counts.
        let content: Option<LeaseContent> = serde_json::from_slice(&self.place.read(Shelf::Leases, &name)?).ok();
        let is_gone = content.as_ref().is_some_and(|content| content.is_gone(self.place));
        Ok(match content {
            content if is_gone || silent > self.expiry => Holder::Lost(content),
            Some(content) => Holder::Playing(content),
            None => Holder::Playing(LeaseContent::first(self.place.this())),
        })
    }

    /// Takes a free trial; `None` if another worker plays it or was quicker.
    ///
    /// # Errors
    /// A lease that cannot be read or written.
    pub fn take(&self, id: &str) -> Result<Option<Lease<'a>>, FileError> {
        let before = match self.holder(id)? {
            Holder::Playing(_) => return Ok(None),
            Holder::None => None,
            Holder::Lost(content) => content,
        };
        let lease = Lease {
            place: self.place,
            id: id.into(),
            attempt: self.newest(id) + 1,
            content: LeaseContent {
                worker: self.place.this(),
                player: None,
                ..before.unwrap_or_else(|| LeaseContent::first(self.place.this()))
            },
        };
        if !self.place.create(Shelf::Leases, &lease.name())? {
            return Ok(None);
        }
        lease.write()?;
        Ok(Some(lease))
    }
}

impl Lease<'_> {
    fn name(&self) -> String {
        lease_name(&self.id, self.attempt)
    }

    /// Name of the lease by which another worker takes the trial over.
    pub fn successor(&self) -> String {
        lease_name(&self.id, self.attempt + 1)
    }

    /// Notes which process plays the trial; true if it isn't the same as before, which [`Lease::renew`] writes down.
    pub fn names_player(&mut self, pid: u32) -> bool {
        let is_known = self.content.player.as_ref().is_some_and(|player| player.pid == pid);
        if !is_known {
            self.content.player = Some(Worker::of(pid));
        }
        !is_known
    }

    /// Gives a sign of life. False where another worker has taken over: the trial is not this process's any more.
    ///
    /// # Errors
    /// A lease that cannot be written.
    pub fn renew(&self) -> Result<bool, FileError> {
        if self.place.has(Shelf::Leases, &self.successor())? {
            return Ok(false);
        }
        self.write()?;
        Ok(true)
    }

    /// Lets go of the trial: another worker may take it at once.
    ///
    /// # Errors
    /// A lease that cannot be written.
    pub fn release(self) -> Result<(), FileError> {
        self.place.age(Shelf::Leases, &self.name())
    }

    /// In place, so that the file is never absent: a reader that meets half of it goes by its age.
    fn write(&self) -> Result<(), FileError> {
        let name = self.name();
        let content = serde_json::to_vec(&self.content).at(&self.place.path_of(Shelf::Leases, &name))?;
        self.place.write(Shelf::Leases, &name, &content)
    }
}

fn lease_name(id: &str, attempt: u32) -> String {
    format!("{id}.{attempt:04}")
}

#[cfg(test)]
mod tests;
