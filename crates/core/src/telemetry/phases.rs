//! The clock of a round: the driver says which phase begins, a few systems know better, and the record of the round reads where
//! its time went. All time is some phase's, or none's, so that the parts add up to the whole.

use std::time::{Duration, Instant};

use bevy_ecs::prelude::Resource;
use serde::{Deserialize, Serialize};

use super::encoding::Num;
use super::payload::{Phase, PhaseTimes};

/// The time of a round so far, as checkpoints inside it keep it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTime {
    /// All of the time.
    pub time: Duration,
    phases: [Duration; Phase::COUNT],
    /// Thread time that envs spent on bringing training batches to their devices.
    pub copied: Duration,
}

impl RoundTime {
    /// The phases for the round's event.
    pub fn phases(&self) -> PhaseTimes {
        let explained: Duration = self.phases.iter().sum();
        let of_phase = |phase| milliseconds(self.phases[phase as usize]);
        PhaseTimes::of(of_phase, milliseconds(self.time.saturating_sub(explained)))
    }

    /// [`Self::copied`], for the round's event.
    pub fn copy_ms(&self) -> Num {
        milliseconds(self.copied)
    }
}

fn milliseconds(time: Duration) -> Num {
    Num(time.as_secs_f64() * 1e3)
}

/// Measures where the time of the running round goes.
#[derive(Resource, Debug)]
pub struct PhaseClock {
    /// Up to `read_at`.
    spent: RoundTime,
    phase: Option<Phase>,
    read_at: Instant,
}

impl Default for PhaseClock {
    fn default() -> Self {
        Self {
            spent: RoundTime::default(),
            phase: None,
            read_at: Instant::now(),
        }
    }
}

impl PhaseClock {
    /// Counts the time from here on for `phase`; between the schedules for none.
    pub fn enter(&mut self, phase: impl Into<Option<Phase>>) {
        self.read();
        self.phase = phase.into();
    }

    /// A round begins, or is taken up where it had `taken` so much. The phase stays.
    pub fn begin(&mut self, taken: RoundTime) {
        self.spent = taken;
        self.skip();
    }

    /// Drops the time since the clock was last read, which belongs to no round.
    pub fn skip(&mut self) {
        self.read_at = Instant::now();
    }

    /// Adds to the time that copying batches to their devices has taken.
    pub fn add_copied(&mut self, time: Duration) {
        self.spent.copied += time;
    }

    /// The time of the round up to now.
    pub fn read(&mut self) -> &RoundTime {
        let now = Instant::now();
        let passed = now - std::mem::replace(&mut self.read_at, now);
        self.spent.time += passed;
        if let Some(phase) = self.phase {
            self.spent.phases[phase as usize] += passed;
        }
        &self.spent
    }
}

#[cfg(test)]
mod tests;
