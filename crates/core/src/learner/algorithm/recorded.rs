//! The steps of an update as CUDA graphs: those of minibatches of one size from the second minibatch on. What changes from update to
//! update is not in tensors, so each update has recordings of its own.

use tch::Device;

use super::error::LearnerError;
use super::measurements::MinibatchNumbers;
use super::sequences::SequenceBatch;
use crate::torch::{Graph, Stream, TorchError, catch, synchronize};
use crate::training::graphs::Graphs;

/// Recordings of the current update.
#[derive(Debug, Default)]
pub(super) struct RecordedSteps {
    /// Nothing is recorded in the device's default stream.
    stream: Option<Stream>,
    updates: u64,
    /// By update and size.
    graphs: Graphs<(u64, Vec<i64>), Graph>,
    /// The minibatch that all steps read.
    place: Option<SequenceBatch>,
    /// Where the recorded step measures.
    numbers: Option<MinibatchNumbers>,
    is_refused: bool,
}

impl RecordedSteps {
    /// Begins an update, which is to be played in the stream that this returns.
    pub fn begin(&mut self, device: Device) -> Result<Stream, TorchError> {
        self.updates += 1;
        (self.place, self.numbers) = (None, None);
        synchronize(device)?;
        let stream = match &self.stream {
            Some(stream) => stream.clone(),
            None => Stream::from_pool(device)?,
        };
        Ok(self.stream.insert(stream).clone())
    }

    /// Whether a step of `minibatch` may be recorded: padding is packed on the host.
    pub fn takes(&self, minibatch: &SequenceBatch) -> bool {
        !self.is_refused && minibatch.is_full()
    }

    /// Plays `step` on `minibatch`.
    pub fn play(
        &mut self,
        minibatch: SequenceBatch,
        step: &mut dyn FnMut(&SequenceBatch) -> Result<MinibatchNumbers, LearnerError>,
    ) -> Result<MinibatchNumbers, LearnerError> {
        let size = minibatch.valid.size();
        let place = match &mut self.place {
            Some(place) if place.valid.size() == size => {
                catch(|| place.copy_from(&minibatch))?;
                place
            }
            place => place.insert(minibatch),
        };
        let numbers = &mut self.numbers;
        let played = self.graphs.play((self.updates, size), false, || {
            *numbers = Some(step(place)?);
            Ok(())
        });
        if let Some(reason) = played.map_err(|failure| TorchError::classify(failure.to_string()))? {
            self.is_refused = true;
            tracing::warn!("run.cuda_graphs: the policy's updates can't be recorded and are played as usual: {reason}");
        }
        let unmeasured = || TorchError::Other("a minibatch was not measured".into());
        let numbers = numbers.as_ref().ok_or_else(unmeasured)?;
        Ok(catch(|| numbers.kept())?)
    }
}
