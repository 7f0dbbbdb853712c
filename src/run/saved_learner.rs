//! The learner's part of a checkpoint (spec 04 §15): what it counts and normalises by in `learner.ron`, the moments of its
//! optimizer in `optim.safetensors`.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tch::{Device, Tensor};

use crate::health::Failure;
use crate::learner::{Learner, LearnerState};
use crate::scenario::LearnerConfig;
use crate::torch::catch;

const STATE_FILE: &str = "learner.ron";
const MOMENTS_FILE: &str = "optim.safetensors";
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedLearner {
    format: u32,
    /// What it learnt with, for readers: a resumed run has the same.
    config: LearnerConfig,
    state: LearnerState,
}

/// Writes the learner's files into a checkpoint. Only between two updates.
///
/// # Errors
/// A device error, or a file that cannot be written.
pub(super) fn save_learner(folder: &Path, learner: &Learner) -> Result<(), Failure> {
    let saved = SavedLearner {
        format: FORMAT,
        config: learner.config().clone(),
        state: learner.state(),
    };
    let layout = ron::ser::PrettyConfig::new().struct_names(false).depth_limit(3);
    let mut file = File::create(folder.join(STATE_FILE))?;
    file.write_all(ron::ser::to_string_pretty(&saved, layout)?.as_bytes())?;
    file.sync_all()?;
    let path = folder.join(MOMENTS_FILE);
    catch(|| {
        let moments: Vec<(String, Tensor)> = learner
            .state_tensors()
            .into_iter()
            .map(|(name, tensor)| (name, tensor.to_device(Device::Cpu).contiguous()))
            .collect();
        Tensor::write_safetensors(&moments, &path)
    })??;
    Ok(File::open(&path)?.sync_all()?)
}

/// Puts a learner where its checkpoint was.
///
/// # Errors
/// A file that cannot be read, or every difference between what was saved and `learner`; then nothing has changed.
pub(super) fn load_learner(folder: &Path, learner: &mut Learner) -> Result<(), Failure> {
    let saved: SavedLearner = ron::from_str(&fs::read_to_string(folder.join(STATE_FILE))?)?;
    if saved.format != FORMAT {
        let found = saved.format;
        return Err(Failure::message(format!(
            "{STATE_FILE} has format {found}; this version reads format {FORMAT}"
        )));
    }
    let moments = Tensor::read_safetensors(folder.join(MOMENTS_FILE))?;
    Ok(learner.restore(&saved.state, &moments)?)
}
