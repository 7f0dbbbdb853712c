//! The learner's part of a checkpoint: its counters and normalisers in `learner.ron`, the moments of its
//! optimizer in `optim.safetensors`. The checkpoint names their run and their format.

use std::path::Path;

use tch::Tensor;

use crate::files::{self, RonError, read_ron};
use crate::health::{AtPath, Failure};
use crate::learner::{Learner, LearnerState};
use crate::storage::write_synced;
use crate::torch::{TorchError, encode_tensors};

const STATE_FILE: &str = "learner.ron";
const MOMENTS_FILE: &str = "optim.safetensors";

/// The reason why a saved learner can't be loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum SavedLearnerError {
    #[error("{STATE_FILE} cannot be read: {0}")]
    Content(RonError),
    #[error("{MOMENTS_FILE} cannot be read: {0}")]
    Moments(TorchError),
}

/// Writes the learner's files into a checkpoint. May only be called between two updates.
///
/// # Errors
/// A device error, or a file that cannot be written.
pub(super) fn save_learner(folder: &Path, learner: &Learner) -> Result<(), Failure> {
    let layout = ron::ser::PrettyConfig::new().struct_names(false).depth_limit(2);
    let text = ron::ser::to_string_pretty(&learner.state(), layout)?;
    write_synced(&folder.join(STATE_FILE), text.as_bytes())?;
    let moments = learner.state_tensors();
    Ok(write_synced(&folder.join(MOMENTS_FILE), &encode_tensors(&moments)?)?)
}

/// Restores a learner to the state in its checkpoint.
///
/// # Errors
/// A file that can't be read, or every difference between the saved learner and `learner`. Nothing has changed then.
pub(super) fn load_learner(folder: &Path, learner: &mut Learner) -> Result<(), Failure> {
    let path = folder.join(STATE_FILE);
    let state: LearnerState = read_ron(&files::read_text(&path).at(&path)?).map_err(SavedLearnerError::Content)?;
    let moments = Tensor::read_safetensors(folder.join(MOMENTS_FILE));
    let moments = moments.map_err(|error| SavedLearnerError::Moments(error.into()))?;
    Ok(learner.restore(&state, &moments)?)
}

#[cfg(test)]
mod tests;
