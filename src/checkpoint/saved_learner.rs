//! The learner's part of a checkpoint: what it counts and normalises by in `learner.ron`, the moments of its
//! optimizer in `optim.safetensors`.

use std::fs::{self, File};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tch::{Device, Tensor};

use crate::files::{RonError, read_ron, write_synced};
use crate::health::Failure;
use crate::learner::{Learner, LearnerState};
use crate::scenario::LearnerConfig;
use crate::torch::{TorchError, catch};

const STATE_FILE: &str = "learner.ron";
const MOMENTS_FILE: &str = "optim.safetensors";
const FORMAT: u32 = 1;

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
    /// What it learnt with, for readers: a resumed run has the same.
    config: LearnerConfig,
    state: LearnerState,
}

/// Why a saved learner cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub(super) enum SavedLearnerError {
    #[error("{STATE_FILE} has format {found}; this version reads format {FORMAT}")]
    Format { found: u32 },
    #[error("{STATE_FILE} cannot be read: {0}; one of an earlier version lacks `engine`, `kind` and `scenario_hash`")]
    Content(#[from] RonError),
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
    let path = folder.join(MOMENTS_FILE);
    catch(|| {
        let moments: Vec<(String, Tensor)> = learner
            .state_tensors()
            .into_iter()
            .map(|(name, tensor)| (name, tensor.to_device(Device::Cpu).contiguous()))
            .collect();
        Tensor::write_safetensors(&moments, &path).map_err(TorchError::from)
    })??;
    Ok(File::open(&path)?.sync_all()?)
}

/// Puts a learner where its checkpoint was, which belongs to the scenario of that hash.
///
/// # Errors
/// A file that cannot be read or belongs to another scenario, or every difference between what was saved and `learner`;
/// then nothing has changed.
pub(super) fn load_learner(folder: &Path, learner: &mut Learner, scenario_hash: &str) -> Result<(), Failure> {
    let saved = read(&fs::read_to_string(folder.join(STATE_FILE))?)?;
    if saved.scenario_hash != scenario_hash {
        return Err(SavedLearnerError::OtherScenario {
            saved: saved.scenario_hash,
            running: scenario_hash.into(),
        }
        .into());
    }
    let moments = Tensor::read_safetensors(folder.join(MOMENTS_FILE)).map_err(TorchError::from)?;
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
mod tests {
    use super::*;
    use crate::controller::{ActorCriticController, fixtures::Ground};
    use crate::learner::Horizon;
    use crate::scenario::NetConfig;
    use crate::torch::{HostSyncCounter, Implementation, NoGrad, read_f64};

    fn learner() -> Learner {
        let mut ground = Ground::default();
        ground.scenario.policy.net_cfg = NetConfig {
            feature_dim: 24,
            hidden_dim: 32,
            ..NetConfig::default()
        };
        let policy = ActorCriticController::new(&ground.context()).unwrap();
        let horizon = Horizon {
            total_updates: 4,
            envs: 2,
        };
        Learner::new(
            ground.scenario.learner.clone(),
            horizon,
            1,
            &policy,
            Implementation::Plain,
        )
        .unwrap()
    }

    fn moments(learner: &Learner) -> Vec<f64> {
        let tensors = learner.state_tensors().into_iter();
        tensors
            .flat_map(|(_, tensor)| read_f64(&tensor, &HostSyncCounter::default()).unwrap())
            .collect()
    }

    /// A checkpoint of a learner whose moments are not zero.
    fn saved(folder: &Path) -> Learner {
        let learner = learner();
        for (_, mut tensor) in learner.state_tensors() {
            let _no_grad = NoGrad::new();
            let _ = tensor.fill_(0.5);
        }
        save_learner(folder, &learner, CheckpointKind::Best, "abcd").unwrap();
        learner
    }

    #[test]
    fn a_saved_learner_says_what_it_was_and_comes_back_whole() {
        let folder = tempfile::tempdir().unwrap();
        let before = saved(folder.path());

        let text = fs::read_to_string(folder.path().join("learner.ron")).unwrap();
        for line in ["format: 1", "kind: best", "scenario_hash: \"abcd\"", "engine: \"0."] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let mut after = learner();
        assert_ne!(moments(&after), moments(&before));
        load_learner(folder.path(), &mut after, "abcd").unwrap();
        assert_eq!(moments(&after), moments(&before));
    }

    #[test]
    fn numbers_that_are_not_finite_are_refused_and_nothing_changes() {
        let folder = tempfile::tempdir().unwrap();
        let before = saved(folder.path());
        for (name, mut tensor) in before.state_tensors() {
            let _no_grad = NoGrad::new();
            let _ = match name.as_str() {
                name if name.starts_with("exp_avg_sq.") => tensor.fill_(-1.0),
                name if name.starts_with("exp_avg.") => tensor.fill_(f64::NAN),
                _ => tensor,
            };
        }
        save_learner(folder.path(), &before, CheckpointKind::Last, "abcd").unwrap();
        let path = folder.path().join("learner.ron");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("mean: 0.0", "mean: inf")).unwrap();
        let mut fresh = learner();
        let untouched = moments(&fresh);

        let why = load_learner(folder.path(), &mut fresh, "abcd").unwrap_err().to_string();

        for problem in [
            "the statistics of rewards are not finite",
            "the statistics of returns are not finite",
            "`exp_avg.core.0.lstm.weight_hh` holds values that are not finite",
            "`exp_avg_sq.core.0.lstm.weight_hh` holds squares below 0",
        ] {
            assert!(why.contains(problem), "{problem}: {why}");
        }
        assert_eq!(moments(&fresh), untouched);
    }

    #[test]
    fn a_learner_of_another_run_version_or_format_is_refused_and_nothing_changes() {
        let folder = tempfile::tempdir().unwrap();
        saved(folder.path());
        let path = folder.path().join("learner.ron");
        let text = fs::read_to_string(&path).unwrap();
        let mut fresh = learner();
        let untouched = moments(&fresh);
        let mut why = |text: &str, hash: &str| {
            fs::write(&path, text).unwrap();
            let error = load_learner(folder.path(), &mut fresh, hash).unwrap_err();
            assert_eq!(moments(&fresh), untouched);
            error.to_string()
        };

        let foreign = "learner.ron belongs to a run of the scenario abcd, its checkpoint to one of ef01";
        assert_eq!(why(&text, "ef01"), foreign);
        let newer = text.replace("format: 1", "format: 2, novelty: true");
        assert_eq!(
            why(&newer, "abcd"),
            "learner.ron has format 2; this version reads format 1"
        );
        let older = why(&text.replace("kind: best,", ""), "abcd");
        assert!(
            older.contains("kind") && older.contains("one of an earlier version lacks"),
            "{older}"
        );
    }
}
