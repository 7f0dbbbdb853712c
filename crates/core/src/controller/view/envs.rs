//! A controller's view of the envs that decide in a step.

use bevy_ecs::component::Component;
use smallvec::SmallVec;

use super::signals::TrainingSignals;
use crate::actions::DecisionPoint;
use crate::clock::RunClock;
use crate::env::{EnvId, Experiment};
use crate::random::{Domain, RunRng};
use crate::seed::SeedReport;
use crate::torch::HostSyncCounter;

/// An env that a controller decides for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvRow {
    /// Index in the run: what random streams are named by.
    pub env: usize,
    /// Number in the run: `round · E + env` with E envs.
    pub episode: u64,
}

impl EnvRow {
    /// The env in the round that is played.
    pub fn of(id: &EnvId, experiment: &Experiment, clock: &RunClock) -> Self {
        Self {
            env: id.index,
            episode: experiment.episode(clock.round(), id.index),
        }
    }

    /// The place of an error of the env in `step`.
    pub fn at(&self, step: u32) -> DecisionPoint {
        DecisionPoint {
            env: self.env,
            episode: self.episode,
            step,
        }
    }
}

/// One env's row. Empty if the run's controller doesn't ask for observations.
#[derive(Component, Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// In the schema's order and fixed scales: what normalisers learn from.
    pub raw: Vec<f32>,
    /// The same, normalised: what the policy sees.
    pub normalised: Vec<f32>,
    /// Blueprint of each slot's seed, -1 = empty slot.
    pub blueprints: SmallVec<[i64; 4]>,
}

/// The state of one env when its command is due.
#[derive(Clone, Copy, Debug)]
pub struct EnvView<'a> {
    /// The env and its episode.
    pub row: EnvRow,
    /// The slots in order. `None` is an empty slot.
    pub reports: &'a [Option<SeedReport>],
    /// Losses and accuracies of the step just measured, and values derived from them.
    pub signals: &'a TrainingSignals,
    /// `None` unless the controller asks for it by [`Controller::needs_observation`](crate::controller::Controller::needs_observation).
    pub observation: Option<&'a Observation>,
}

/// All envs that decide in this step. The masks are passed with it, one set per env, in the same order.
#[derive(Clone, Copy, Debug)]
pub struct DecisionView<'a> {
    /// 0-based.
    pub round: u32,
    /// 1-based.
    pub step: u32,
    /// In index order.
    pub envs: &'a [EnvView<'a>],
    /// Counts what is read from a device.
    pub reads: &'a HostSyncCounter,
}

impl DecisionView<'_> {
    /// The place of an error of the env in `row`.
    pub fn point(&self, row: EnvRow) -> DecisionPoint {
        row.at(self.step)
    }

    /// The stream from which a controller draws for the env in `row`.
    pub(in crate::controller) fn stream(&self, seed: u64, domain: Domain, row: EnvRow) -> RunRng {
        let (round, step) = (self.round.into(), self.step.into());
        RunRng::new(seed, domain, &[0, round, step, row.env as u64])
    }
}
