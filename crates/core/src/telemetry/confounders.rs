//! Caveats to a run's numbers: rollbacks, episodes that ended early, interruptions, and settings that changed on the
//! way. A part of the [live state](super::LiveState), of summaries and of comparisons.

use serde::{Deserialize, Serialize};

use super::event::{Event, Payload};
use super::payload::EndReason;

/// Everything that makes a run differ from an undisturbed run of its scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confounders {
    /// Envs that the governor rolled back.
    pub rollbacks: u64,
    /// Episodes that the governor ended, after too many rollbacks.
    pub ended_by_governor: u64,
    /// Episodes that ended before their last step, as nothing more was to be gained.
    pub ended_early: u64,
    /// Episodes of envs that failed.
    pub failed: u64,
    /// Devices of the envs, where a resumed run had others.
    pub devices: Vec<Vec<String>>,
    /// Settings that a resumed run changed, and why the run ended early.
    pub notes: Vec<String>,
}

impl Confounders {
    /// Takes the next event.
    pub fn apply(&mut self, event: &Event) {
        match &event.payload {
            Payload::GovernorRollback(_) => self.rollbacks += 1,
            Payload::EpisodeFinished(episode) => match episode.end {
                EndReason::GovernorLimit => self.ended_by_governor += 1,
                EndReason::EarlyStop => self.ended_early += 1,
                EndReason::Failed => self.failed += 1,
                EndReason::Horizon | EndReason::Stopped => {}
            },
            Payload::RunStarted(run) if self.devices.last() != Some(&run.env_devices) => {
                self.devices.push(run.env_devices.clone());
            }
            Payload::Note(note) if note.command.is_none() => self.notes.push(note.text.clone()),
            _ => {}
        }
    }

    /// One entry each, in words. A resume changes nothing, so it doesn't have an entry.
    pub fn entries(&self) -> Vec<String> {
        let counts = [
            (self.rollbacks, "rollbacks"),
            (self.ended_by_governor, "episodes ended by the governor"),
            (self.ended_early, "episodes ended early"),
            (self.failed, "episodes of envs that failed"),
        ];
        let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
        let counts = counts.map(|(count, what)| format!("{what}: {count}"));
        let devices = self.devices.windows(2).map(|pair| {
            let [before, after] = [0, 1].map(|place| pair[place].join(", "));
            format!("devices changed from {before} to {after}")
        });
        counts.chain(devices).chain(self.notes.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests;
