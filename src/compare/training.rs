//! A training and its results, read back from the folder of its run: the unit of every comparison between methods.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::statistics::mean_of;
use super::{EpisodeOutcome, Metric};
use crate::files::name_of;
use crate::telemetry::statistics::ROLLING_ROUNDS;
use crate::telemetry::{
    BigInteger, Confounders, EndReason, EpisodeFinished, Event, EventReader, Payload, ReadError, RunState, round,
};

/// One finished round of a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundPoint {
    /// From 0.
    #[serde(deserialize_with = "round")]
    pub round: u32,
    /// Env-steps of this round and all before it.
    pub env_steps: u64,
    /// Wall time of this round and all before it.
    pub seconds: f64,
    /// Mean final validation accuracy over the envs, percent.
    pub accuracy: f64,
    /// Mean final accuracy less mean rent over the envs, points; `None` where nothing was charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy_minus_rent: Option<f64>,
    /// Mean size of the networks over their hosts'.
    pub param_ratio: f64,
    /// Multiply-accumulates of training and validation of this round and all before it, in billions; `None` where they were
    /// not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gmacs: Option<f64>,
    /// Plugins' measurements of this round, by the names of their metrics.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
}

/// The results of one training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainingRecord {
    /// Name of the run's folder.
    pub run_id: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the task.
    pub task: String,
    /// The controller that decided.
    pub controller: String,
    /// `run.seed`.
    pub seed: BigInteger,
    /// Rounds that the run was to have.
    pub rounds: u32,
    /// All of them were played, or the run ended early by its own rule.
    pub is_complete: bool,
    /// Updates of its policy; 0 of a controller that does not learn.
    #[serde(default)]
    pub updates: u64,
    /// It trained in fp16, whose loss scale is each training's own.
    #[serde(default)]
    pub scales_loss: bool,
    /// Caveats for readers of its numbers.
    #[serde(default)]
    pub confounders: Confounders,
    /// `true` if the episodes are those of an evaluation; else they are the last ones of the training.
    pub is_evaluated: bool,
    /// Episodes that score the training; those whose network was never measured are left out of scores.
    pub episodes: Vec<EpisodeOutcome>,
    /// One point a finished round.
    pub curve: Vec<RoundPoint>,
}

impl TrainingRecord {
    /// Reads the events of the run at `directory`. The episodes are those of its last ten rounds, which the run's rolling
    /// accuracy is a mean of.
    ///
    /// # Errors
    /// Events that cannot be read.
    pub fn of_run(directory: &Path) -> Result<Self, ReadError> {
        let mut record = Self {
            run_id: name_of(directory),
            ..Self::default()
        };
        let mut in_round = Vec::new();
        for event in EventReader::open(directory)? {
            record.apply(&event?, &mut in_round);
        }
        Ok(record)
    }

    /// `in_round`: episodes of the round that has not ended yet, with their lengths.
    fn apply(&mut self, event: &Event, in_round: &mut Vec<(EpisodeOutcome, u32)>) {
        self.confounders.apply(event);
        match &event.payload {
            Payload::RunStarted(started) => {
                self.scenario.clone_from(&started.scenario);
                self.task.clone_from(&started.task);
                self.controller.clone_from(&started.controller);
                self.seed = started.seed;
                self.rounds = started.n_rounds;
                self.scales_loss = started.amp_dtype.as_deref() == Some("fp16");
            }
            Payload::EpisodeFinished(episode) if episode.end != EndReason::Stopped => {
                in_round.push((self.outcome(event, episode), episode.length));
            }
            Payload::RoundFinished(episode) => {
                let round = event.round.unwrap_or_default();
                let episodes = std::mem::take(in_round);
                let metrics = episode.metrics.iter().map(|(name, value)| (name.clone(), value.0));
                let before = self.curve.last();
                let steps: u64 = episodes.iter().map(|(_, steps)| u64::from(*steps)).sum();
                let outcomes = || episodes.iter().map(|(outcome, _)| outcome);
                self.curve.push(RoundPoint {
                    round,
                    env_steps: before.map_or(0, |before| before.env_steps) + steps,
                    seconds: before.map_or(0.0, |before| before.seconds) + episode.perf.round_wall_s.0,
                    accuracy: episode.accuracy_mean.0,
                    accuracy_minus_rent: mean_of(outcomes().filter_map(EpisodeOutcome::accuracy_minus_rent)),
                    param_ratio: mean_of(outcomes().map(|outcome| outcome.param_ratio)).unwrap_or(f64::NAN),
                    gmacs: outcomes()
                        .map(EpisodeOutcome::gmacs)
                        .sum::<Option<f64>>()
                        .zip(before.map_or(Some(0.0), |before| before.gmacs))
                        .map(|(round, before)| before + round),
                    metrics: metrics.collect(),
                });
                self.episodes.extend(episodes.into_iter().map(|(outcome, _)| outcome));
                let first = (round + 1).saturating_sub(ROLLING_ROUNDS as u32);
                self.episodes.retain(|outcome| outcome.round >= first);
            }
            Payload::RunFinished(finished) => {
                self.is_complete = finished.status == RunState::Completed;
                self.updates = finished.updates;
            }
            _ => {}
        }
    }

    fn outcome(&self, event: &Event, episode: &EpisodeFinished) -> EpisodeOutcome {
        EpisodeOutcome {
            seed: self.seed,
            round: event.round.unwrap_or_default(),
            env: event.env.unwrap_or_default() as usize,
            // The accuracy of a failed env isn't a result of the method.
            accuracy: Some(episode.final_accuracy.0)
                .filter(|accuracy| accuracy.is_finite() && episode.end != EndReason::Failed),
            committed_accuracy: episode.committed_accuracy.map(|accuracy| accuracy.0),
            test_accuracy: episode.test_accuracy.map(|accuracy| accuracy.0),
            loss: Some(episode.final_loss.0).filter(|loss| loss.is_finite() && episode.end != EndReason::Failed),
            test_loss: episode.test_loss.map(|loss| loss.0),
            rent: episode.paid.as_ref().map(|paid| paid.rent.0),
            reward: episode.paid.as_ref().map_or(0.0, |paid| paid.reward.0),
            param_ratio: episode.param_ratio.0,
            rollbacks: episode.rollbacks,
            compute: Some(episode.compute),
            decisions: None,
        }
    }

    /// Wall time of all finished rounds.
    pub fn seconds(&self) -> f64 {
        self.curve.last().map_or(0.0, |point| point.seconds)
    }

    /// Env-steps of all finished rounds.
    pub fn env_steps(&self) -> u64 {
        self.curve.last().map_or(0, |point| point.env_steps)
    }

    /// Scores of the training under a metric: one list an evaluation seed, in the order in which seeds come. Episodes without a
    /// value are left out.
    pub fn scores(&self, metric: Metric) -> Vec<Vec<f64>> {
        if metric == Metric::CurveArea {
            return mean_of(self.curve.iter().map(|point| point.accuracy))
                .map(|area| vec![vec![area]])
                .unwrap_or_default();
        }
        let mut scores: Vec<(BigInteger, Vec<f64>)> = Vec::new();
        for outcome in &self.episodes {
            let Some(value) = metric.of_episode(outcome) else {
                continue;
            };
            match scores.iter_mut().find(|(seed, _)| *seed == outcome.seed) {
                Some((_, values)) => values.push(value),
                None => scores.push((outcome.seed, vec![value])),
            }
        }
        scores.into_iter().map(|(_, values)| values).collect()
    }

    /// Returns whether trainings were evaluated on the same hosts, with a value of every one of them.
    pub(crate) fn share_hosts<'a>(trainings: impl Iterator<Item = &'a Self>, metric: Metric) -> bool {
        let mut hosts = trainings.map(|training| {
            let valued = |outcome: &&EpisodeOutcome| metric.of_episode(outcome).is_some();
            let valued = training.episodes.iter().filter(valued);
            let hosts = valued.map(|outcome| (outcome.seed, outcome.round, outcome.env));
            training.is_evaluated.then(|| hosts.collect::<Vec<_>>())
        });
        let first = hosts.next().flatten();
        first.is_some() && hosts.all(|hosts| hosts == first)
    }

    /// Mean over the episodes; `None` where none has a value.
    pub fn score(&self, metric: Metric) -> Option<f64> {
        mean_of(self.scores(metric).into_iter().flatten())
    }
}

#[cfg(test)]
mod tests;
