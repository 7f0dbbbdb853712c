//! The detectors' memory of the events before the one they look at: a bounded fold.

use std::collections::{BTreeMap, VecDeque};

use crate::telemetry::event::{Event, Payload};
use crate::telemetry::payload::{Decision, EnvStep, RoundFinished};
use crate::telemetry::statistics::{Plateau, mean};

/// Rounds that are remembered.
const ROUNDS: usize = 32;
/// Weight of a new gradient norm in its moving average.
const GRADIENT_WEIGHT: f64 = 0.1;
/// The smallest value with which a moving average of gradient norms begins.
const LEAST_GRADIENT: f64 = 0.01;
/// Choices of a round from which on they show what they depend on.
const LEAST_CHOICES: usize = 16;

/// A finished round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecentRound {
    /// Mean final accuracy, percent.
    pub accuracy: f64,
    /// Mean accuracy with the committed seeds alone, percent; `None` if it was not measured.
    pub committed_accuracy: Option<f64>,
    /// Mean and deviation of the episodes' rewards; `None` where nothing pays.
    pub reward: Option<(f64, f64)>,
    /// Throughput.
    pub env_steps_per_s: f64,
}

/// The events before one, as a bounded fold.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    pub(super) learns: bool,
    rounds: VecDeque<RecentRound>,
    pub(super) best_of_three: Option<f64>,
    rolling: Plateau,
    pub(super) episodes: u32,
    pub(super) rolled_back: u32,
    committed: Vec<f64>,
    envs: BTreeMap<u32, RecentEnv>,
    /// Probabilities of the round's choices, by the operations that were allowed.
    choices: BTreeMap<Vec<usize>, Vec<Vec<f64>>>,
}

/// Nats.
fn entropy(probabilities: &[f64]) -> f64 {
    let possible = probabilities.iter().filter(|probability| **probability > 0.0);
    -possible.map(|probability| probability * probability.ln()).sum::<f64>()
}

/// A running episode.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentEnv {
    pub gradient: Option<f64>,
    pub accuracy: Option<f64>,
}

impl Recent {
    /// The last 32 rounds, the newest last.
    pub fn rounds(&self) -> impl DoubleEndedIterator<Item = &RecentRound> + ExactSizeIterator {
        self.rounds.iter()
    }

    /// The last rounds, and the one that ends now.
    pub(super) fn rounds_with(&self, round: &RoundFinished) -> Vec<RecentRound> {
        let ends = RecentRound {
            accuracy: round.accuracy_mean.0,
            committed_accuracy: mean(&self.committed),
            reward: round.paid.as_ref().map(|paid| (paid.reward_mean.0, paid.reward_std.0)),
            env_steps_per_s: round.perf.env_steps_per_s.0,
        };
        self.rounds.iter().copied().chain([ends]).collect()
    }

    /// The course of the rolling accuracy, with its next value.
    pub(super) fn rolling_with(&self, round: &RoundFinished) -> Plateau {
        let mut rolling = self.rolling;
        if let Some(accuracy) = round.rolling_accuracy {
            rolling.note(accuracy.0);
        }
        rolling
    }

    /// Nats per choice that the round's operations reveal about the policy's observations, apart from what was allowed: the mean
    /// divergence of its probabilities from their mean. Absent with few choices.
    pub(super) fn information(&self) -> Option<f64> {
        // A single choice is its own mean and reveals nothing.
        let groups = || self.choices.iter().filter(|(_, choices)| choices.len() > 1);
        let count: usize = groups().map(|(_, choices)| choices.len()).sum();
        let nats = groups().flat_map(|(allowed, choices)| {
            let (mut means, size) = (vec![0.0; allowed.len()], choices.len() as f64);
            for choice in choices {
                let sums = means.iter_mut().zip(choice);
                sums.for_each(|(mean, probability)| *mean += probability / size);
            }
            let whole = entropy(&means);
            choices.iter().map(move |choice| whole - entropy(choice))
        });
        (count >= LEAST_CHOICES).then(|| nats.sum::<f64>() / count as f64)
    }

    /// The env of an event.
    pub(super) fn env(&self, event: &Event) -> RecentEnv {
        let env = event.env.and_then(|env| self.envs.get(&env));
        env.copied().unwrap_or_default()
    }

    pub(super) fn apply(&mut self, event: &Event) {
        match &event.payload {
            Payload::RunStarted(run) => self.learns = run.policy_params.is_some(),
            Payload::EnvStep(row) => self.apply_step(event, row),
            Payload::Decision(decision) => self.apply_decision(decision),
            Payload::EpisodeFinished(episode) => {
                self.episodes += 1;
                self.rolled_back += u32::from(episode.rollbacks > 0);
                self.committed
                    .extend(episode.committed_accuracy.map(|accuracy| accuracy.0));
                event.env.map(|env| self.envs.remove(&env));
            }
            Payload::RoundFinished(round) => self.apply_round(round),
            _ => {}
        }
    }

    fn apply_step(&mut self, event: &Event, row: &EnvStep) {
        let Some(env) = event.env else {
            return;
        };
        let env = self.envs.entry(env).or_default();
        env.accuracy = Some(row.val_accuracy.0);
        if let Some(norm) = row.host_grad_norm.map(|norm| norm.0).filter(|norm| norm.is_finite()) {
            env.gradient = Some(env.gradient.map_or(norm.max(LEAST_GRADIENT), |average| {
                average + GRADIENT_WEIGHT * (norm - average)
            }));
        }
    }

    fn apply_decision(&mut self, decision: &Decision) {
        let probabilities = decision.policy.iter().flat_map(|readout| &readout.op_probs);
        let probabilities: Vec<f64> = probabilities.map(|probability| probability.0).collect();
        if !probabilities.is_empty() {
            let allowed = decision.allowed.iter().map(|op| op.code()).collect();
            self.choices.entry(allowed).or_default().push(probabilities);
        }
    }

    fn apply_round(&mut self, round: &RoundFinished) {
        self.rolling = self.rolling_with(round);
        self.rounds = self.rounds_with(round).into();
        if self.rounds.len() > ROUNDS {
            self.rounds.pop_front();
        }
        let accuracies: Vec<f64> = self.rounds.iter().rev().map(|round| round.accuracy).collect();
        let of_three = accuracies.get(..3).and_then(mean).filter(|mean| mean.is_finite());
        self.best_of_three = self.best_of_three.into_iter().chain(of_three).reduce(f64::max);
        (self.episodes, self.rolled_back) = (0, 0);
        self.committed.clear();
        self.choices.clear();
    }
}
