//! Plays one way to spend the compute: the scenario with its settings and a number of networks. It takes the best of these.

use std::ops::AddAssign;
use std::path::PathBuf;

use bevy_ecs::world::World;
use serde::{Deserialize, Serialize};

use crate::compare::{Candidate, EpisodeOutcome, Episodes, play_until};
use crate::controller::SavedFolder;
use crate::data::{DataError, TaskData};
use crate::engine::{Extension, Prepared, SetupError};
use crate::growth::GerminationStyle;
use crate::health::{EngineError, FileError};
use crate::host::HostError;
use crate::network::{GrownNetwork, NetworkError};
use crate::policy::DecideMode;
use crate::record::ScenarioFile;
use crate::run::StopSignal;
use crate::scenario::{Catalog, InitialSeed, InitialTopology, Loaded, Override};

/// Starting point of every attempt.
#[derive(Clone)]
pub struct Base<'a> {
    /// Name of the scenario in messages.
    pub label: String,
    /// The scenario.
    pub file: ScenarioFile,
    /// Fields set for all attempts that do not set them themselves.
    pub sets: Vec<(&'static str, String)>,
    /// The user's settings of the scenario.
    pub overrides: Vec<Override>,
    /// Names that it may use.
    pub catalog: &'a Catalog,
    /// The application's additions to the engine.
    pub extension: &'a Extension,
    /// Worker threads.
    pub threads: usize,
    /// The signal that ends it.
    pub stop: &'a StopSignal,
}

/// Settings of an attempt.
#[derive(Clone, Default)]
pub struct Variant {
    /// Fields and their values, added to those of the base.
    pub sets: Vec<(&'static str, String)>,
    /// The controller that decides. If left out, it waits.
    pub controller: Option<&'static str>,
    /// Weights of a policy that decides.
    pub policy: Option<SavedFolder>,
    /// `true` if a single network is enough.
    pub is_single: bool,
}

/// Effort spent on all networks that were tried.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub struct Effort {
    /// Number of networks.
    pub tried: usize,
    /// Multiply-accumulates of their training and validation.
    pub macs: u64,
    /// Wall time.
    pub seconds: f64,
}

impl AddAssign for Effort {
    fn add_assign(&mut self, other: Self) {
        self.tried += other.tried;
        self.macs += other.macs;
        self.seconds += other.seconds;
    }
}

/// Result of playing a variant.
#[derive(Serialize, Deserialize)]
pub struct Played {
    /// Effort of all networks.
    pub effort: Effort,
    /// Networks whose training diverged, so that the governor put an earlier state back.
    pub diverged: usize,
    /// Multiply-accumulates of the training and validation of the best network, if one was measured.
    pub macs: Option<u64>,
    /// The best network.
    #[serde(skip)]
    pub network: Option<GrownNetwork>,
}

/// The best network of those that were tried.
#[derive(Clone)]
pub struct Attempt {
    /// The network.
    pub network: GrownNetwork,
    /// Multiply-accumulates of its training and validation.
    pub macs: u64,
    /// The scenario that was played.
    pub loaded: Loaded,
}

impl Attempt {
    /// Percent of the validation part.
    pub fn validation(&self) -> f64 {
        self.network.measures.validation.map_or(f64::NAN, |part| part.accuracy)
    }

    /// The better of two attempts at the same thing.
    #[must_use]
    pub fn or(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if !self.network.is_better_than(&other.network) => other,
            _ => self,
        }
    }

    /// Its seeds, in the form of a scenario's `initial_topology`.
    pub fn topology(&self) -> InitialTopology {
        let network = &self.network;
        let seeds = network.growth.iter().map(|seed| {
            let graphs = network.graph.seeds().filter(|graph| graph.slot == seed.slot);
            let operator = graphs.last().map(|graph| graph.operator);
            let mut styles = GerminationStyle::ALL.into_iter();
            InitialSeed {
                slot: seed.slot,
                blueprint: seed.blueprint.clone(),
                style: styles.find(|style| Some(style.algorithm()) == operator),
            }
        });
        InitialTopology::Seeds(seeds.collect())
    }
}

/// A way to use the compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The unchanged given network.
    Given,
    /// The same host trained without growth: fine-tuned, where its weights were given.
    Trained,
    /// Its head alone.
    Head,
    /// A wider host of the grown network's size from fresh weights.
    Widened,
    /// The grown network's architecture from fresh weights.
    FromScratch,
    /// Growth.
    Grown,
}

impl Way {
    /// The name in tables.
    pub const fn name(self, is_given: bool) -> &'static str {
        match self {
            Self::Given => "as given",
            Self::Trained if is_given => "fine-tuned",
            Self::Trained => "trained",
            Self::Head => "head alone",
            Self::Widened => "widened",
            Self::FromScratch => "from scratch",
            Self::Grown => "grown",
        }
    }
}

/// The best network of a way to spend the compute.
pub struct Entry {
    /// The way.
    pub way: Way,
    /// The attempt with its network.
    pub attempt: Attempt,
    /// Effort of all networks that were tried for it.
    pub effort: Effort,
    /// The part of the compute that it could not use.
    pub note: Option<String>,
}

/// The reason why nothing could be grown.
#[derive(Debug, thiserror::Error)]
pub enum GrowError {
    /// The base and the variant don't make a valid scenario.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A system failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Growth is impossible with these inputs, in words.
    #[error("{0}")]
    Refused(String),
    /// Data that cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A host that cannot be built.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A network that cannot be applied.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A file of its folder.
    #[error(transparent)]
    File(#[from] FileError),
    /// It was stopped.
    #[error("stopped; the finished attempts are kept in {}; to continue, repeat the command without --force", .0.display())]
    Stopped(PathBuf),
}

impl Base<'_> {
    /// The scenario with the settings of `variant`.
    ///
    /// # Errors
    /// Every problem of it.
    pub fn prepare(&self, variant: &Variant) -> Result<Prepared, SetupError> {
        // The user's settings win, then those of the attempt.
        let mut overrides = self.overrides.clone();
        for (path, value) in variant.sets.iter().chain(&self.sets) {
            let set = Override::argument(format!("set for a training: {path}={value}"), path, value.clone());
            if !overrides.iter().any(|other| other.overlaps(&set)) {
                overrides.push(set);
            }
        }
        Prepared::new(&self.label, self.file.clone(), &overrides, self.catalog)
    }

    /// Plays `prepared`, the scenario with the settings of `variant`, on data that have been loaded. `None` if it was stopped.
    ///
    /// # Errors
    /// The first failure of a system.
    pub fn play(
        &self,
        prepared: &Prepared,
        variant: &Variant,
        data: &TaskData,
        stepped: impl FnMut(&mut World),
    ) -> Result<Option<Played>, GrowError> {
        let mut experiment = prepared.experiment(self.threads);
        experiment.data = Some(data.clone());
        let run = &experiment.scenario.run;
        let episodes = Episodes {
            seed: run.seed,
            rounds: 0..run.rounds,
            envs: if variant.is_single { 1 } else { run.n_envs },
        };
        let candidate = Candidate {
            controller: variant.controller.unwrap_or("wait").into(),
            policy: variant.policy.clone(),
            mode: DecideMode::Greedy,
            seeds: None,
        };
        let mut played = play_until(experiment, self.extension, &candidate, &episodes, self.stop, stepped)?;
        if self.stop.is_requested() {
            return Ok(None);
        }
        let macs = |outcome: &EpisodeOutcome| outcome.compute.map_or(0, |compute| compute.macs());
        let network = played.networks.best.take();
        let is_best = |outcome: &&EpisodeOutcome| {
            let place = (outcome.round, outcome.env);
            network
                .as_ref()
                .is_some_and(|best| place == (best.origin.round, best.origin.env as usize))
        };
        Ok(Some(Played {
            effort: Effort {
                tried: played.outcomes.len(),
                macs: played.outcomes.iter().map(macs).sum(),
                seconds: played.seconds,
            },
            diverged: played.outcomes.iter().filter(|outcome| outcome.rollbacks > 0).count(),
            macs: played.outcomes.iter().find(is_best).map(macs),
            network,
        }))
    }
}
