//! Training batches of an env that are recorded as CUDA graphs and replayed: one launch instead of some hundred.
//!
//! A recording holds as long as the same kernels run on the same memory. A [`TrainingTopology`] describes both. With another one
//! all recordings of the env are dropped. What differs between batches of one topology lies in tensors that stay: samples and
//! targets, learning rates, amplitudes, the scale of the loss.

use bevy_ecs::prelude::*;
use bevy_platform::cell::SyncCell;
use smallvec::SmallVec;
use tch::{Kind, Tensor};

use crate::data::Batch;
use crate::env::Slot;
use crate::env::grafted::{GraftKind, graft_kind};
use crate::growth::SeedStage;
use crate::health::Failure;
use crate::nn::Mode;
use crate::scenario::OnCommit;
use crate::seed::{Isolation, trains};
use crate::torch::{Graph, TorchError};

/// Batches of a kind that are played as usual before one is recorded, while libraries choose their kernels and workspaces.
const WARM_UP: u32 = 2;

/// A recording of a batch's launches.
pub(crate) trait Recording: Sized {
    /// Records `batch`, which computes nothing yet. Memory is shared with an earlier recording, as no two are replayed at once.
    fn record(earlier: Option<&Self>, batch: &mut dyn FnMut() -> Result<(), Failure>) -> Result<Self, Failure>;

    /// Launches it.
    fn replay(&self) -> Result<(), Failure>;
}

impl Recording for Graph {
    fn record(earlier: Option<&Self>, batch: &mut dyn FnMut() -> Result<(), Failure>) -> Result<Self, Failure> {
        Graph::capture(earlier, batch)
    }

    fn replay(&self) -> Result<(), Failure> {
        Ok(self.replay()?)
    }
}

/// Everything that decides which kernels a batch launches, and on which memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TrainingTopology {
    samples: usize,
    precision: Option<Kind>,
    slots: SmallVec<[SlotTopology; 4]>,
}

#[derive(Clone, Debug, PartialEq)]
struct SlotTopology {
    revision: u64,
    stage: Option<SeedStage>,
    /// The kind of graft, without its amplitude.
    kind: Option<GraftKind>,
    trains: bool,
}

impl TrainingTopology {
    /// Topology of an env with `slots` that trains on `samples`.
    pub fn of(
        samples: &Batch,
        precision: Option<Kind>,
        slots: &[Slot],
        (isolation, on_commit): (Isolation, OnCommit),
    ) -> Self {
        let of_slot = |slot: &Slot| {
            let seed = slot.record.as_ref();
            let kind = seed.and_then(|seed| {
                let kind = graft_kind(seed.stage, seed.alpha.alpha(), seed.algorithm, isolation, Mode::Train)?;
                Some(kind.at_amplitude(1.0))
            });
            SlotTopology {
                revision: slot.revision,
                stage: seed.map(|seed| seed.stage),
                kind,
                trains: seed.is_some_and(|seed| trains(seed.stage, seed.alpha.mode(), on_commit)),
            }
        };
        Self {
            samples: samples.x.data_ptr() as usize,
            precision,
            slots: slots.iter().map(of_slot).collect(),
        }
    }
}

/// Progress of batches of one kind towards a recording.
#[derive(Debug)]
enum Seen<R> {
    /// Played as usual, this often.
    Played(u32),
    Recorded(R),
    /// Recording failed, for this reason.
    Refused(String),
}

/// The recordings of batches of two kinds; `K` describes the conditions that they depend on.
#[derive(Debug)]
pub(crate) struct Graphs<K, R> {
    topology: Option<K>,
    /// Recordings of an env: without statistics of the gradients, and with them.
    kinds: [Seen<R>; 2],
    /// A recording of the last topology, whose memory the first of the next takes over. Else it would be freed only when the
    /// device has no more.
    retired: Option<R>,
    /// The targets of recorded batches.
    targets: Option<Tensor>,
}

/// The recordings of an env's training batches.
#[derive(Component)]
pub struct EnvGraphs(pub(super) SyncCell<Graphs<TrainingTopology, Graph>>);

impl Default for EnvGraphs {
    fn default() -> Self {
        Self(SyncCell::new(Graphs::default()))
    }
}

impl<K, R> Default for Graphs<K, R> {
    fn default() -> Self {
        Self {
            topology: None,
            kinds: [Seen::Played(0), Seen::Played(0)],
            retired: None,
            targets: None,
        }
    }
}

impl<K: PartialEq, R: Recording> Graphs<K, R> {
    /// The samples in the place where every batch has them. All except the targets are there already.
    pub fn in_place(&mut self, samples: &Batch) -> Result<Batch, TorchError> {
        let targets = match &mut self.targets {
            Some(targets) => targets,
            empty => empty.insert(samples.y.f_empty_like()?),
        };
        targets.f_copy_(&samples.y)?;
        Ok(Batch {
            x: samples.x.shallow_clone(),
            y: targets.shallow_clone(),
            n: samples.n,
        })
    }

    /// Plays `batch`, recorded where it has been played often enough. Returns why it could not be recorded, where that has failed in this
    /// topology: such batches are played as usual.
    pub fn play(
        &mut self,
        topology: K,
        is_of_second_kind: bool,
        mut batch: impl FnMut() -> Result<(), Failure>,
    ) -> Result<Option<&str>, Failure> {
        if self.topology.as_ref() != Some(&topology) {
            self.topology = Some(topology);
            let kinds = std::mem::replace(&mut self.kinds, [Seen::Played(0), Seen::Played(0)]);
            let recorded = kinds.into_iter().find_map(|seen| match seen {
                Seen::Recorded(recording) => Some(recording),
                Seen::Played(_) | Seen::Refused(_) => None,
            });
            self.retired = recorded.or(self.retired.take());
        }
        let [first, second] = &mut self.kinds;
        let (seen, other) = if is_of_second_kind {
            (second, first)
        } else {
            (first, second)
        };
        if let Seen::Played(times) = seen {
            if *times < WARM_UP {
                *times += 1;
                return batch().map(|()| None);
            }
            let earlier = match other {
                Seen::Recorded(recording) => Some(&*recording),
                Seen::Played(_) | Seen::Refused(_) => self.retired.as_ref(),
            };
            *seen = match R::record(earlier, &mut batch) {
                Ok(recording) => {
                    self.retired = None;
                    Seen::Recorded(recording)
                }
                Err(failure) => Seen::Refused(failure.to_string()),
            };
        }
        match seen {
            Seen::Recorded(recording) => recording.replay().map(|()| None),
            Seen::Refused(reason) => batch().map(|()| Some(reason.as_str())),
            Seen::Played(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests;
