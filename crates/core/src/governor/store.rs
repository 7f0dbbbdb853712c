//! The tensors of snapshots: host and committed seeds, captured into kept storage and copied back in place.
//!
//! An env owns two buffers: the known good state and the other one. A capture always writes the other one and a
//! promotion swaps them, so a capture that is discarded has damaged nothing. Live seeds are never captured: their
//! module would come back without the record that fits it, or the other way round.

use bevy_ecs::prelude::*;
use bevy_platform::cell::SyncCell;
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::state::GovernorError;
use crate::env::SeedSlots;
use crate::growth::SeedStage;
use crate::health::Failure;
use crate::host::Host;
use crate::nn::ParamSet;
use crate::seed::SeedRecord;
use crate::torch::{TorchError, copy_all, copy_into};
use crate::unfinished::{UnfinishedRound, UnfinishedRoundError};

/// The snapshots of an env.
#[derive(Component)]
pub struct Snapshots(pub SyncCell<SnapshotStore>);

impl Default for Snapshots {
    fn default() -> Self {
        Self(SyncCell::new(SnapshotStore::default()))
    }
}

/// Everything of an env's network that a rollback restores, in its current state.
#[derive(Default)]
pub struct CapturedNetwork {
    /// Handles that share storage with the network. All of them are f32.
    tensors: Vec<Tensor>,
    table: Vec<Entry>,
    elements: i64,
    committed: Vec<(usize, SeedRecord)>,
}

impl CapturedNetwork {
    /// Parameters and buffers of the host, then of module and gate of every committed seed, in slot order.
    pub fn of(host: &dyn Host, slots: &mut SeedSlots) -> Self {
        let mut network = Self::default();
        network.push_all("host", host.params());
        for (index, slot) in slots.0.iter_mut().enumerate() {
            let record = slot.record.as_ref();
            let Some(record) = record.filter(|seed| seed.stage == SeedStage::Committed) else {
                continue;
            };
            network.committed.push((index, record.clone()));
            if let Some(module) = &mut slot.module {
                let seed = module.get();
                network.push_all(&record.identity.seed_id, seed.module.params());
                if let Some(gate) = &seed.gate {
                    network.push_all(&record.identity.seed_id, gate.params());
                }
            }
        }
        network
    }

    fn push_all(&mut self, owner: &str, params: &ParamSet) {
        for param in params.all() {
            self.table.push(Entry {
                name: format!("{owner}/{}", param.name),
                shape: param.tensor.size(),
                strides: param.tensor.stride(),
                offset: self.elements,
            });
            self.elements += param.tensor.numel() as i64;
            self.tensors.push(param.tensor.shallow_clone());
        }
    }
}

/// The place of a tensor in a flat buffer, in the memory layout that it has in the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    name: String,
    shape: Vec<i64>,
    strides: Vec<i64>,
    offset: i64,
}

/// Storage for all captured values, and a view of it for each tensor.
struct Flat {
    values: Tensor,
    views: Vec<Tensor>,
}

impl Flat {
    fn new(table: &[Entry], elements: i64, device: Device) -> Result<Self, TorchError> {
        let values = Tensor::f_empty([elements], (Kind::Float, device))?;
        let view = |entry: &Entry| Ok(values.f_as_strided(&entry.shape, &entry.strides, entry.offset)?);
        let views = table.iter().map(view).collect::<Result<_, TorchError>>()?;
        Ok(Self { values, views })
    }
}

/// One captured state.
struct Snapshot {
    table: Vec<Entry>,
    committed: Vec<(usize, SeedRecord)>,
    flat: Flat,
}

/// Both buffers of an env and what their captures share.
#[derive(Default)]
pub struct SnapshotStore {
    known_good: Option<Snapshot>,
    other: Option<Snapshot>,
    /// f64 scalar: number of values of the last capture that aren't finite.
    nonfinite: Option<Tensor>,
    /// True if the count is still to be read.
    is_count_due: bool,
}

impl SnapshotStore {
    /// Captures `live` into the other buffer. Call inside the env's stream guard: nothing waits, neither host nor
    /// device, because the stream's order alone puts the capture before any later rollback.
    ///
    /// # Errors
    /// libtorch's, e.g. when there is not enough memory for a grown network.
    pub fn capture(&mut self, live: CapturedNetwork, device: Device) -> Result<(), TorchError> {
        let CapturedNetwork {
            tensors,
            table,
            elements,
            committed,
        } = live;
        let mut snapshot = match self.other.take() {
            Some(old) if old.table == table => old,
            _ => Snapshot {
                flat: Flat::new(&table, elements, device)?,
                table,
                committed: Vec::new(),
            },
        };
        copy_all(&snapshot.flat.views, &tensors, true)?;
        let count = snapshot
            .flat
            .values
            .f_isfinite()?
            .f_logical_not()?
            .f_sum(Kind::Double)?;
        match &mut self.nonfinite {
            Some(kept) => copy_into(kept, &count, true)?,
            None => self.nonfinite = Some(count),
        }
        snapshot.committed = committed;
        self.is_count_due = true;
        self.other = Some(snapshot);
        Ok(())
    }

    /// The capture in the other buffer becomes the known good state.
    pub fn promote(&mut self) {
        std::mem::swap(&mut self.known_good, &mut self.other);
    }

    /// The count of the last capture, once: it belongs into the next read pack.
    pub fn take_count(&mut self) -> Option<&Tensor> {
        std::mem::take(&mut self.is_count_due).then_some(self.nonfinite.as_ref())?
    }

    /// Copies the known good state back into the network, in place, and gives the committed seeds their records of
    /// then. Call inside the env's stream guard.
    ///
    /// # Errors
    /// [`GovernorError`] if there is none or the network has changed since. Nothing has been written then.
    pub fn restore(&self, host: &dyn Host, slots: &mut SeedSlots) -> Result<(), Failure> {
        let snapshot = self.known_good.as_ref().ok_or(GovernorError::NoSnapshot)?;
        let live = CapturedNetwork::of(host, slots);
        check(snapshot, &live)?;
        copy_all(&live.tensors, &snapshot.flat.views, true)?;
        for (index, record) in &snapshot.committed {
            slots.0[*index].record = Some(record.clone());
        }
        Ok(())
    }
}

/// A snapshot without its values.
#[derive(Serialize, Deserialize)]
struct KeptSnapshot {
    table: Vec<Entry>,
    committed: Vec<(usize, SeedRecord)>,
}

/// Names in a checkpoint inside a round, after the name of the store.
const KNOWN_GOOD: &str = "known_good";
const OTHER: &str = "other";
const NONFINITE: &str = "nonfinite";

impl SnapshotStore {
    /// Saves the known good state in a checkpoint inside the round, and with `has_probation` the other buffer, which is otherwise
    /// only storage. The names begin with `name`. Call inside the env's stream guard.
    ///
    /// # Errors
    /// A device error.
    pub fn save(
        &self,
        name: &str,
        has_probation: bool,
        round: &mut UnfinishedRound,
    ) -> Result<(), UnfinishedRoundError> {
        let probation = self.other.as_ref().filter(|_| has_probation);
        for (which, snapshot) in [(KNOWN_GOOD, self.known_good.as_ref()), (OTHER, probation)] {
            let name = format!("{name}.{which}");
            let kept = snapshot.map(|snapshot| KeptSnapshot {
                table: snapshot.table.clone(),
                committed: snapshot.committed.clone(),
            });
            round.put(&name, &kept)?;
            if let Some(snapshot) = snapshot {
                round.put_tensor(name, &snapshot.flat.values)?;
            }
        }
        let due = self.nonfinite.as_ref().filter(|_| self.is_count_due);
        let name = format!("{name}.{NONFINITE}");
        round.put(&name, &due.is_some())?;
        due.map_or(Ok(()), |count| round.put_tensor(name, count))
    }

    /// Restores the state that [`save`](Self::save) has kept. Call inside the env's stream guard.
    ///
    /// # Errors
    /// Saved state that is missing or doesn't fit, or too little memory.
    pub fn restore_kept(&mut self, name: &str, round: &UnfinishedRound, device: Device) -> Result<(), Failure> {
        for (which, snapshot) in [(KNOWN_GOOD, &mut self.known_good), (OTHER, &mut self.other)] {
            let name = format!("{name}.{which}");
            let Some(kept) = round.get::<Option<KeptSnapshot>>(&name)? else {
                *snapshot = None;
                continue;
            };
            let elements = round.tensor(&name)?.numel() as i64;
            let fresh = Snapshot {
                flat: Flat::new(&kept.table, elements, device)?,
                table: kept.table,
                committed: kept.committed,
            };
            round.copy_to(&name, &fresh.flat.values)?;
            *snapshot = Some(fresh);
        }
        let name = format!("{name}.{NONFINITE}");
        self.is_count_due = round.get(&name)?;
        if self.is_count_due {
            let count = Tensor::f_zeros([0i64; 0], (Kind::Double, device)).map_err(TorchError::from)?;
            round.copy_to(&name, &count)?;
            self.nonfinite = Some(count);
        }
        Ok(())
    }
}

/// Tensors and committed seeds must be the captured ones, name by name and shape by shape.
fn check(snapshot: &Snapshot, live: &CapturedNetwork) -> Result<(), GovernorError> {
    let tensor = |entry: &Entry| format!("{} {:?}", entry.name, entry.shape);
    let seed = |(index, record): &(usize, SeedRecord)| {
        format!(
            "slot {index}: {} {}",
            record.identity.blueprint, record.identity.seed_id
        )
    };
    let names = |table: &[Entry], committed: &[(usize, SeedRecord)]| -> Vec<String> {
        table.iter().map(tensor).chain(committed.iter().map(seed)).collect()
    };
    let captured = names(&snapshot.table, &snapshot.committed);
    let present = names(&live.table, &live.committed);
    if captured == present {
        return Ok(());
    }
    let absent = |of: &[String], from: &[String]| -> Vec<String> {
        of.iter().filter(|name| !from.contains(name)).cloned().collect()
    };
    Err(GovernorError::SnapshotMismatch {
        missing: absent(&captured, &present),
        unexpected: absent(&present, &captured),
    })
}

#[cfg(test)]
mod tests;
