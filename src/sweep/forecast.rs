//! What a sweep will take, going by a run of its scenario that is recorded already: the same work on the same machine.

use std::path::Path;

use serde::Serialize;

use crate::compare::TrainingRecord;
use crate::record::{ListedState, RunEntry, list_runs};

/// What all trials of a sweep will take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Of all trainings; evaluations are not counted.
    pub env_steps: u64,
    /// Name of the scenario.
    pub scenario: String,
    /// `None` where no run of the scenario is recorded.
    pub by: Option<Basis>,
}

/// The run that a forecast goes by.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Basis {
    /// Name of its folder.
    pub run_id: String,
    /// Wall time of the sweep on this machine, seconds: trials that are played at once share it.
    pub seconds: f64,
    /// Of all runs of the sweep.
    pub bytes: u64,
}

impl Forecast {
    /// Goes by the newest completed run of the scenario under `root`.
    pub fn new(scenario: &str, env_steps: u64, root: &Path) -> Self {
        // A folder without runs forecasts nothing.
        let runs = list_runs(root).unwrap_or_default();
        let of_scenario = |run: &&RunEntry| {
            run.state == ListedState::Completed && run.scenario.as_deref().is_some_and(|name| name == scenario)
        };
        Self {
            env_steps,
            scenario: scenario.into(),
            by: runs
                .iter()
                .filter(of_scenario)
                .find_map(|run| Basis::of(run, env_steps)),
        }
    }
}

impl Basis {
    /// `None` where the run played nothing that can be read.
    fn of(run: &RunEntry, env_steps: u64) -> Option<Self> {
        let training = TrainingRecord::of_run(&run.directory).ok()?;
        let share = env_steps as f64 / training.env_steps() as f64;
        share.is_finite().then(|| Self {
            run_id: run.run_id.clone(),
            seconds: share * training.seconds(),
            bytes: (share * run.size_bytes as f64) as u64,
        })
    }
}
