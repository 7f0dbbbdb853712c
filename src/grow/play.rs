//! Plays one way to spend the compute: the scenario with what is set for it, `tries` networks side by side, and takes the best.

use bevy_ecs::world::World;

use super::budget::Budget;
use crate::compare::{Candidate, Episodes, play_until};
use crate::controller::SavedFolder;
use crate::data::DataError;
use crate::engine::{Extension, Prepared, SetupError};
use crate::env::{InitialSeeds, SeedOrder};
use crate::growth::SlotId;
use crate::health::EngineError;
use crate::host::HostError;
use crate::network::{GrownNetwork, NetworkError};
use crate::policy::DecideMode;
use crate::record::ScenarioFile;
use crate::run::StopSignal;
use crate::scenario::{Catalog, Override, Scenario};

/// What every attempt begins with.
pub struct Base<'a> {
    /// How messages name the scenario.
    pub label: String,
    /// The scenario.
    pub file: ScenarioFile,
    /// What is set for all attempts that do not set it themselves.
    pub sets: Vec<(&'static str, String)>,
    /// What the user has set of it.
    pub overrides: Vec<Override>,
    /// Names that it may use.
    pub catalog: &'a Catalog,
    /// What the application adds to the engine.
    pub extension: &'a Extension,
    /// Worker threads.
    pub threads: usize,
    /// Ends it.
    pub stop: &'a StopSignal,
}

/// What is set for an attempt.
#[derive(Clone, Default)]
pub struct Variant {
    /// Fields and their values, beside those of the base.
    pub sets: Vec<(&'static str, String)>,
    /// Who decides; waits if empty.
    pub controller: &'static str,
    /// Weights of a policy that decides.
    pub policy: Option<SavedFolder>,
    /// Seeds that are there from the first step on, with fresh weights.
    pub seeds: Option<Vec<SeedOrder>>,
}

/// The best network of an attempt.
#[derive(Clone)]
pub struct Attempt {
    /// The network.
    pub network: GrownNetwork,
    /// The seeds that are part of it, their slots counted as in `slots`.
    pub committed: Vec<SeedOrder>,
    /// The slots that were enabled.
    pub slots: Vec<SlotId>,
    /// Multiply-accumulates of its training and validation.
    pub macs: u64,
    /// Wall time of everything that was tried for it.
    pub seconds: f64,
    /// Steps of its training.
    pub steps: u32,
    /// Learning rate.
    pub rate: f64,
    /// How many networks were trained for it.
    pub tried: usize,
    /// What was played.
    pub scenario: Scenario,
}

impl Attempt {
    /// Percent of the validation part.
    pub fn validation(&self) -> f64 {
        self.network.measures.validation.map_or(f64::NAN, |part| part.accuracy)
    }

    /// The best of several, with the effort of all; `None` of none.
    pub fn best<'a>(attempts: impl Iterator<Item = &'a Self>) -> Option<Self> {
        attempts.fold(None, |best, attempt| Some(attempt.clone().or(best)))
    }

    /// The better of two attempts at the same thing, with the effort of both.
    pub fn or(self, other: Option<Self>) -> Self {
        let Some(other) = other else { return self };
        let (seconds, tried) = (self.seconds + other.seconds, self.tried + other.tried);
        let better = if self.network.is_better_than(&other.network) {
            self
        } else {
            other
        };
        Self {
            seconds,
            tried,
            ..better
        }
    }
}

/// Why nothing could be grown.
#[derive(Debug, thiserror::Error)]
pub enum GrowError {
    /// The scenario, as the base and the variant make it, is none.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A system failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The data have no test part, on which rows could be compared.
    #[error("the data have no test part, on which networks could be compared; set task.split, or bring one")]
    NoTestPart,
    /// Not even the smallest seed fits.
    #[error("no seed fits into a budget of {0}; raise it")]
    TooSmall(Budget),
    /// Data that cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A host that cannot be.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A network that cannot be applied.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// It was stopped.
    #[error("stopped before all rows were played; nothing was written")]
    Stopped,
}

impl Base<'_> {
    /// The scenario with what is set for `variant`.
    ///
    /// # Errors
    /// Every problem of it.
    pub fn prepare(&self, variant: &Variant) -> Result<Prepared, SetupError> {
        // The user's win, then the attempt's.
        let mut overrides = self.overrides.clone();
        for (path, value) in variant.sets.iter().chain(&self.sets) {
            let set = Override::argument(format!("grow: {path}={value}"), path, value.clone());
            if !overrides.iter().any(|other| other.overlaps(&set)) {
                overrides.push(set);
            }
        }
        Prepared::new(&self.label, self.file.clone(), &overrides, self.catalog)
    }

    /// Plays it. `None` if it was stopped, or no network was measured.
    ///
    /// # Errors
    /// A scenario that cannot be, or the first failure of a system.
    pub fn play(&self, variant: &Variant, stepped: impl FnMut(&mut World)) -> Result<Option<Attempt>, GrowError> {
        let prepared = self.prepare(variant)?;
        let experiment = prepared.experiment(self.threads).map_err(SetupError::from)?;
        let run = &experiment.scenario.run;
        let episodes = Episodes {
            seed: run.seed,
            rounds: 0..1,
            envs: run.n_envs,
        };
        let candidate = Candidate {
            controller: match variant.controller {
                "" => "wait".into(),
                controller => controller.into(),
            },
            policy: variant.policy.clone(),
            mode: DecideMode::Greedy,
            seeds: variant.seeds.clone().map(InitialSeeds::Same),
        };
        let (rate, scenario) = (experiment.task.host_opt.lr(), experiment.scenario.clone());
        let slots: Vec<SlotId> = experiment.layout.slots().iter().map(|spec| spec.slot).collect();
        let mut played = play_until(experiment, self.extension, &candidate, &episodes, self.stop, stepped)?;
        let Some(network) = played.networks.best.take().filter(|_| !self.stop.is_requested()) else {
            return Ok(None);
        };
        let mut episodes = played.outcomes.iter().zip(&played.standing);
        let Some((outcome, standing)) = episodes.find(|(outcome, _)| outcome.env == network.origin.env as usize) else {
            return Ok(None);
        };
        let is_committed = |order: &&SeedOrder| {
            let slot = slots.get(order.slot);
            network.growth.iter().any(|seed| Some(&seed.slot) == slot)
        };
        Ok(Some(Attempt {
            macs: outcome.compute.map_or(0, |compute| compute.macs()),
            committed: standing.iter().filter(is_committed).cloned().collect(),
            slots,
            seconds: played.seconds,
            steps: network.origin.steps,
            rate,
            tried: played.outcomes.len(),
            scenario,
            network,
        }))
    }
}
