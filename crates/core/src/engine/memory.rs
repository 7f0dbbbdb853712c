//! How much memory a run takes, reckoned before any of it is asked for: what no machine has is an error with a place to mend
//! it, not the end of the process in the middle of an allocation.
//!
//! In: a checked scenario, the sizes of the seeds that may grow in its slots, the number of workers. Out: a
//! [`MemoryEstimate`], device by device, which is held against the [`Room`] that there is.

mod needs;

use std::fmt;

use serde::Serialize;

pub use needs::{Grown, Need, PlaceMemory};

use crate::run::{Room, RoomSource, size};
use crate::scenario::{DeviceSpec, Loaded};
use crate::seed::BlueprintRegistry;

/// What a run takes of each memory. Printed, it is a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryEstimate {
    /// The machine's, then that of each other device that is listed.
    pub places: Vec<PlaceMemory>,
}

impl MemoryEstimate {
    /// Of a run whose seeds may be any of `blueprints`, the largest ones supposed, with up to `threads` envs at work at once.
    pub fn of(loaded: &Loaded, blueprints: &BlueprintRegistry, threads: usize) -> Self {
        let enabled = loaded.host.injections.iter();
        let enabled = enabled.filter(|spec| loaded.slots.contains(&spec.slot));
        let largest = enabled.map(|spec| {
            let sizes = blueprints
                .iter()
                .map(|(_, blueprint)| blueprint.param_count(spec.channels));
            Grown {
                slot: spec.slot,
                parameters: sizes.max().unwrap_or(0),
            }
        });
        Self {
            places: needs::estimate(loaded, &largest.collect::<Vec<_>>(), threads),
        }
    }

    /// Whether the run fits into the machine. What other devices have room for is not known before they are opened.
    ///
    /// # Errors
    /// What it takes, and how many envs would fit.
    pub fn check(&self, room: Room) -> Result<(), MemoryShortage> {
        let machine = self.places.iter().find(|place| place.device == DeviceSpec::Cpu);
        let Some(place) = machine.filter(|place| place.bytes() > u128::from(room.bytes)) else {
            return Ok(());
        };
        let mut needs: Vec<(Need, u128)> = place
            .needs
            .iter()
            .map(|need| (*need, need.bytes(place.envs, place.workers)))
            .collect();
        needs.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        Err(MemoryShortage {
            total: place.bytes(),
            is_certain: place.needs.iter().all(|need| need.is_certain),
            most_envs: match place.envs {
                0 => None,
                _ => Some(place.most_envs(room.bytes) * self.envs() / place.envs),
            },
            needs,
            room,
        })
    }

    /// On all devices.
    fn envs(&self) -> usize {
        self.places.iter().map(|place| place.envs).sum()
    }

    /// Only what every run allocates, whether its hosts grow or not.
    fn certain(mut self) -> Self {
        for place in &mut self.places {
            place.needs.retain(|need| need.is_certain);
        }
        self
    }
}

impl fmt::Display for MemoryEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, place) in self.places.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let total = size(place.bytes());
            match place.envs {
                0 => write!(f, "memory of {}: up to {total}", place.device)?,
                envs => write!(f, "memory of {}, {envs} envs: up to {total}", place.device)?,
            }
            for need in &place.needs {
                let bytes = size(need.bytes(place.envs, place.workers));
                write!(f, "\n  {:<10} {} (smaller with {})", bytes, need.what, need.fields)?;
            }
        }
        Ok(())
    }
}

/// A scenario that needs more memory than there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryShortage {
    /// The largest first, with their bytes.
    needs: Vec<(Need, u128)>,
    total: u128,
    /// No run of the scenario takes less.
    is_certain: bool,
    /// The largest number of envs that fits; `None` where no envs take the memory.
    most_envs: Option<usize>,
    room: Room,
}

impl fmt::Display for MemoryShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = if self.is_certain { "at least" } else { "up to" };
        write!(
            f,
            "the run needs {bound} {} of memory, {};",
            size(self.total),
            self.room
        )?;
        match self.most_envs {
            Some(0) => f.write_str(" it would not fit with a single env;")?,
            Some(envs) => write!(f, " it would fit with run.n_envs: {envs};")?,
            None => {}
        }
        f.write_str(" what takes most of it:")?;
        let most = self.needs.iter().filter(|(_, bytes)| *bytes > self.total / 20);
        for (Need { what, fields, .. }, bytes) in most {
            write!(f, "\n  {what} {} (smaller with {fields})", size(*bytes))?;
        }
        Ok(())
    }
}

impl std::error::Error for MemoryShortage {}

/// Whether a scenario fits into the `available` bytes of a machine, and into its own `run.memory_limit_gib`; `None` where the
/// machine does not report its memory.
///
/// # Errors
/// It certainly does not: only what every run allocates is counted, so a scenario that passes may still be too large.
pub fn check_memory(loaded: &Loaded, available: Option<u64>) -> Result<(), MemoryShortage> {
    let machine = available.map(|bytes| Room {
        bytes,
        source: RoomSource::Machine,
    });
    let rooms = [Room::limit_of(&loaded.scenario.run), machine].into_iter().flatten();
    match rooms.min_by_key(|room| room.bytes) {
        Some(room) => {
            let places = needs::estimate(loaded, &[], 1);
            MemoryEstimate { places }.certain().check(room)
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
