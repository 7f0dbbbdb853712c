//! The results of a run as values: what the summary of the run tells, for programs to read.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::growth::{GateLevel, PruneReason, SeedStage};
use crate::telemetry::{
    BaselineMeasured, CommittedSeed, Confounders, EpisodeResult, LearnerUpdate, LiveState, Num, RoundFinished,
    RoundResult, SeedCommitted, statistics,
};

/// The results of a run, drawn from its events alone. Accuracies are in percent, differences in points.
#[derive(Serialize)]
pub struct RunResults<'a> {
    /// In the order in which they finished.
    rounds: Vec<Round<'a>>,
    /// Mean of each reward term over the episodes of the last round.
    #[serde(skip_serializing_if = "Option::is_none")]
    reward_terms: Option<&'a BTreeMap<String, Num>>,
    updates: u64,
    /// Due and not performed.
    skipped_updates: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_update: Option<&'a LearnerUpdate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    learning: Option<Learning>,
    /// In the order in which they were committed.
    committed: Vec<Commit<'a>>,
    germinated: u64,
    /// Of seeds that were not committed.
    ends: Vec<SeedEnd>,
    refusals: Vec<Refusal<'a>>,
    confounders: &'a Confounders,
    #[serde(skip_serializing_if = "Option::is_none")]
    average: Option<Average>,
    /// Grown hosts that none beats in both accuracy and size, the best first.
    front: Vec<GrownHost>,
    /// The host that never grew.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<BaselineMeasured>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gains: Option<Gains>,
    #[serde(skip_serializing_if = "Option::is_none")]
    env_steps_per_s: Option<f64>,
    /// Samples that were trained on.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples_per_s: Option<f64>,
}

#[derive(Serialize)]
struct Round<'a> {
    /// From 0.
    round: u32,
    rollbacks: u32,
    #[serde(flatten)]
    told: &'a RoundFinished,
}

#[derive(Serialize)]
struct Commit<'a> {
    seed_id: &'a str,
    env: u32,
    episode: u32,
    /// From 0.
    round: u32,
    /// From 1.
    step: u32,
    #[serde(flatten)]
    told: &'a SeedCommitted,
    /// Validation accuracy lost without it, as last measured.
    last_contribution: Option<f64>,
    /// Of the contribution, paired.
    standard_error: Option<f64>,
    shapley: Option<f64>,
}

/// Seeds that ended alike.
#[derive(Serialize)]
struct SeedEnd {
    stage: SeedStage,
    /// `None`: the episode was over.
    pruned_for: Option<PruneReason>,
    seeds: u64,
    /// Steps since germination of the youngest and the oldest.
    ages: [u32; 2],
}

#[derive(Serialize)]
struct Refusal<'a> {
    gate: GateLevel,
    check: &'a str,
    count: u64,
    asked: Option<Num>,
    /// The most that a refused seed had.
    most: Option<Num>,
}

/// Both ends of the learning curve: means over as many rounds each. Rounds differ much from one to the next.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Learning {
    pub rounds: usize,
    pub reward: [f64; 2],
    pub accuracy: [f64; 2],
}

/// Hosts of the last rounds with their committed seeds alone, validation: the best of them is the luckiest of many.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Average {
    pub accuracy: f64,
    /// Of the 95 % interval (t).
    pub half_width: f64,
    pub hosts: usize,
    pub rounds: usize,
}

#[derive(Serialize)]
struct GrownHost {
    env: u32,
    episode: u32,
    /// From 0.
    round: u32,
    test_accuracy: Option<Num>,
    /// Validation, with committed seeds alone.
    accuracy: f64,
    param_ratio: Option<Num>,
}

/// The best grown host less the one that never grew, points.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Gains {
    pub test: Option<f64>,
    pub validation: f64,
}

impl<'a> RunResults<'a> {
    /// What has been told of a run.
    pub fn of(live: &'a LiveState) -> Self {
        let ends = live.seed_ends.ends.iter().filter_map(|(&(stage, pruned_for), ages)| {
            Some(SeedEnd {
                stage,
                pruned_for,
                seeds: ages.values().sum(),
                ages: [*ages.keys().next()?, *ages.keys().next_back()?],
            })
        });
        let refusals = live.seed_ends.refusals.iter().map(|((gate, check), refused)| Refusal {
            gate: *gate,
            check,
            count: refused.count,
            asked: refused.asked,
            most: refused.most,
        });
        let rounds = live.rounds.iter().map(|round| Round {
            round: round.round,
            rollbacks: round.rollbacks,
            told: &round.told,
        });
        Self {
            rounds: rounds.collect(),
            reward_terms: live.reward_terms(),
            updates: live.updates(),
            skipped_updates: live.skipped_updates,
            last_update: live.latest_update(),
            learning: learning(&live.rounds),
            committed: live.committed.iter().map(commit).collect(),
            germinated: live.seed_ends.germinated,
            ends: ends.collect(),
            refusals: refusals.collect(),
            confounders: &live.confounders,
            average: average(live),
            front: live.front.iter().rev().map(grown_host).collect(),
            baseline: live.baseline,
            gains: gains(live),
            env_steps_per_s: live.env_steps_per_s(),
            samples_per_s: live.samples_per_s(),
        }
    }
}

fn commit(seed: &CommittedSeed) -> Commit<'_> {
    let contribution = seed.worth.contribution;
    Commit {
        seed_id: &seed.seed_id,
        env: seed.at.env,
        episode: seed.at.episode,
        round: seed.at.round,
        step: seed.at.step,
        told: &seed.told,
        last_contribution: contribution.map(|contribution| contribution.points),
        standard_error: contribution.and_then(|contribution| contribution.standard_error),
        shapley: seed.worth.shapley,
    }
}

fn grown_host(host: &EpisodeResult) -> GrownHost {
    GrownHost {
        env: host.at.env,
        episode: host.at.episode,
        round: host.at.round,
        test_accuracy: host.told.test_accuracy,
        accuracy: host.committed_accuracy(),
        param_ratio: host.told.committed_ratio,
    }
}

/// `None` where no round was paid.
pub(super) fn learning(rounds: &[RoundResult]) -> Option<Learning> {
    let paid = rounds
        .iter()
        .filter_map(|round| Some((round.reward_mean()?, round.told.accuracy_mean.0)));
    let paid: Vec<(f64, f64)> = paid.collect();
    let rounds = (paid.len() / 4).clamp(1, 10);
    let first = paid.get(..rounds)?;
    let last = &paid[paid.len() - rounds..];
    let mean =
        |rounds: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| rounds.iter().map(of).sum::<f64>() / rounds.len() as f64;
    Some(Learning {
        rounds,
        reward: [first, last].map(|rounds| mean(rounds, |round| round.0)),
        accuracy: [first, last].map(|rounds| mean(rounds, |round| round.1)),
    })
}

pub(super) fn average(live: &LiveState) -> Option<Average> {
    let values: Vec<f64> = live.latest_accuracies.iter().map(|&(_, accuracy)| accuracy).collect();
    let rounds: BTreeSet<u32> = live.latest_accuracies.iter().map(|&(round, _)| round).collect();
    let (accuracy, half_width) = statistics::mean_and_interval(&values)?;
    Some(Average {
        accuracy,
        half_width,
        hosts: values.len(),
        rounds: rounds.len(),
    })
}

/// `None` where nothing was committed, or the host that never grew was not measured.
pub(super) fn gains(live: &LiveState) -> Option<Gains> {
    let best = live.best_episode().filter(|best| best.has_committed())?;
    let still = live.baseline.as_ref()?;
    let test = best.told.test_accuracy.zip(still.test_accuracy);
    Some(Gains {
        test: test.map(|(grown, still)| grown.0 - still.0),
        validation: best.committed_accuracy() - still.val_accuracy.0,
    })
}
