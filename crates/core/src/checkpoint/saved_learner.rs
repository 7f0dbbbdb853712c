//! The learner's part of a checkpoint: what it counts and normalises by in `learner.ron`, the moments of its
//! optimizer in `optim.safetensors`.

use std::path::Path;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use tch::Tensor;

use crate::files::{self, RonError, read_ron};
use crate::health::{AtPath, Failure};
use crate::learner::{Learner, LearnerState};
use crate::scenario::LearnerConfig;
use crate::storage::write_synced;
use crate::torch::{TorchError, encode_tensors};

const STATE_FILE: &str = "learner.ron";
const MOMENTS_FILE: &str = "optim.safetensors";
const FORMAT: u32 = 1;
/// How the names of tensors begin that only earlier versions have, and that nothing learns from.
const REMOVED: [&str; 3] = ["exp_avg.contrib.", "exp_avg_sq.contrib.", "step.contrib."];

/// What a checkpoint was when it was written; it stays what it was when others come after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CheckpointKind {
    /// The newest.
    Last,
    /// The newest, and the best so far.
    Best,
    /// The last good state of a run that failed.
    Emergency,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedLearner {
    format: u32,
    /// Version that wrote it.
    engine: String,
    kind: CheckpointKind,
    /// blake3 of the run's `resolved.ron`.
    scenario_hash: String,
    /// What it learnt with, for readers of the file; not read back: names of its fields change with versions, and a resumed
    /// run has the same values.
    #[serde(deserialize_with = "passed_over")]
    config: LearnerConfig,
    state: LearnerState,
}

fn passed_over<'de, D: Deserializer<'de>>(config: D) -> Result<LearnerConfig, D::Error> {
    IgnoredAny::deserialize(config).map(|_| LearnerConfig::default())
}

/// Why a saved learner cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum SavedLearnerError {
    #[error("{STATE_FILE} has format {found}; this version reads format {FORMAT}")]
    Format { found: u32 },
    #[error("{STATE_FILE} cannot be read: {0}; earlier versions wrote no `engine`, `kind` and `scenario_hash`")]
    Content(#[from] RonError),
    #[error("{MOMENTS_FILE} cannot be read: {0}")]
    Moments(TorchError),
    #[error("{STATE_FILE} belongs to a run of the scenario {saved}, its checkpoint to one of {running}")]
    OtherScenario { saved: String, running: String },
}

/// Writes the learner's files into a checkpoint of that kind. Only between two updates.
///
/// # Errors
/// A device error, or a file that cannot be written.
pub(super) fn save_learner(
    folder: &Path,
    learner: &Learner,
    kind: CheckpointKind,
    scenario_hash: &str,
) -> Result<(), Failure> {
    let saved = SavedLearner {
        format: FORMAT,
        engine: env!("CARGO_PKG_VERSION").into(),
        kind,
        scenario_hash: scenario_hash.into(),
        config: learner.config().clone(),
        state: learner.state(),
    };
    let layout = ron::ser::PrettyConfig::new().struct_names(false).depth_limit(3);
    let text = ron::ser::to_string_pretty(&saved, layout)?;
    write_synced(&folder.join(STATE_FILE), text.as_bytes())?;
    let moments = learner.state_tensors();
    Ok(write_synced(&folder.join(MOMENTS_FILE), &encode_tensors(&moments)?)?)
}

/// Puts a learner where its checkpoint was, which belongs to the scenario of that hash.
///
/// # Errors
/// A file that cannot be read or belongs to another scenario, or every difference between what was saved and `learner`;
/// then nothing has changed.
pub(super) fn load_learner(folder: &Path, learner: &mut Learner, scenario_hash: &str) -> Result<(), Failure> {
    let path = folder.join(STATE_FILE);
    let saved = read(&files::read_text(&path).at(&path)?)?;
    if saved.scenario_hash != scenario_hash {
        return Err(SavedLearnerError::OtherScenario {
            saved: saved.scenario_hash,
            running: scenario_hash.into(),
        }
        .into());
    }
    let moments = Tensor::read_safetensors(folder.join(MOMENTS_FILE));
    let mut moments = moments.map_err(|error| SavedLearnerError::Moments(error.into()))?;
    moments.retain(|(name, _)| !REMOVED.iter().any(|removed| name.starts_with(removed)));
    Ok(learner.restore(&saved.state, &moments)?)
}

fn read(text: &str) -> Result<SavedLearner, SavedLearnerError> {
    /// What every format has.
    #[derive(Deserialize)]
    struct AnyFormat {
        format: u32,
    }

    let AnyFormat { format } = read_ron(text)?;
    if format != FORMAT {
        return Err(SavedLearnerError::Format { found: format });
    }
    Ok(read_ron(text)?)
}

#[cfg(test)]
mod tests;
