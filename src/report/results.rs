//! The results of a run as values: the content of its summary, for programs to read.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use crate::telemetry::{CommittedSeed, EpisodeResult, LiveState, RoundResult, statistics};

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

/// The best grown host less the one that never grew, points.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Gains {
    pub test: Option<f64>,
    pub validation: f64,
}

/// The results of a run, from the state that its events fold into. Accuracies are in percent, differences in points; rounds and
/// episodes are counted from 0, steps from 1. What was not measured is left out.
pub fn run_results(live: &LiveState) -> Value {
    let rounds = live.rounds.iter().map(|round| {
        let of_round = json!({ "round": round.round, "rollbacks": round.rollbacks });
        merged(of_round, &round.data)
    });
    // Of seeds that were not committed; without a reason the episode was over.
    let ends = live.seed_ends.ends.iter().map(|((stage, pruned_for), ages)| {
        // Steps since germination of the youngest and the oldest.
        let range = [ages.keys().next(), ages.keys().next_back()];
        json!({ "stage": stage, "pruned_for": pruned_for, "seeds": ages.values().sum::<u64>(), "ages": range })
    });
    let refusals = live.seed_ends.refusals.iter().map(|((gate, check), refused)| {
        // `most`: that a refused seed had.
        json!({ "gate": gate, "check": check, "count": refused.count, "asked": refused.asked, "most": refused.most })
    });
    let memory: BTreeMap<&str, u64> = memory(&live.rounds).into_iter().collect();
    let mut results = json!({
        "rounds": rounds.collect::<Vec<_>>(),
        // Means over the episodes of the last round.
        "reward_terms": live.reward_terms(),
        "updates": live.updates(),
        // Due and not performed.
        "skipped_updates": live.skipped_updates,
        "last_update": live.latest_update(),
        "learning": learning(&live.rounds),
        "committed": live.committed.iter().map(commit).collect::<Vec<_>>(),
        "germinated": live.seed_ends.germinated,
        "ends": ends.collect::<Vec<_>>(),
        "refusals": refusals.collect::<Vec<_>>(),
        "confounders": live.confounders,
        "average": average(live),
        // Grown hosts that none beats in both accuracy and size, the best first.
        "front": live.front.iter().rev().map(grown_host).collect::<Vec<_>>(),
        // The host that never grew.
        "baseline": live.baseline,
        "gains": gains(live),
        "env_steps_per_s": live.env_steps_per_s(),
        // Samples that were trained on.
        "samples_per_s": live.samples_per_s(),
        "time_shares": time_shares(&live.rounds).map(BTreeMap::from),
        "memory_bytes": (!memory.is_empty()).then_some(memory),
    });
    if let Some(fields) = results.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    results
}

/// An object with the fields of another, if that is one.
pub fn merged(mut object: Value, other: &impl Serialize) -> Value {
    if let (Some(fields), Ok(Value::Object(more))) = (object.as_object_mut(), serde_json::to_value(other)) {
        fields.extend(more);
    }
    object
}

fn commit(seed: &CommittedSeed) -> Value {
    let (at, contribution) = (&seed.at, seed.worth.contribution);
    let of_seed = json!({
        "seed_id": seed.seed_id,
        "env": at.env,
        "episode": at.episode,
        "round": at.round,
        "step": at.step,
        // Validation accuracy lost without it, as last measured, with the error of the paired difference.
        "last_contribution": contribution.map(|contribution| contribution.points),
        "standard_error": contribution.and_then(|contribution| contribution.standard_error),
        "shapley": seed.worth.shapley,
    });
    merged(of_seed, &seed.data)
}

fn grown_host(host: &EpisodeResult) -> Value {
    json!({
        "env": host.at.env,
        "episode": host.at.episode,
        "round": host.at.round,
        "test_accuracy": host.data.test_accuracy,
        // Validation, with committed seeds alone.
        "accuracy": host.committed_accuracy(),
        "param_ratio": host.data.committed_ratio,
    })
}

/// `None` where no round was paid.
pub(super) fn learning(rounds: &[RoundResult]) -> Option<Learning> {
    let paid = rounds
        .iter()
        .filter_map(|round| Some((round.reward_mean()?, round.data.accuracy_mean.0)));
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

/// What of the time of the rounds was spent on what, 0 to 1; `None` where it was not measured.
pub(super) fn time_shares(rounds: &[RoundResult]) -> Option<[(&'static str, f64); 11]> {
    let mut measured = rounds.iter().filter_map(|round| round.data.perf.phases_ms);
    let mut sums = measured.next()?.named().map(|(name, time)| (name, time.0));
    for phases in measured {
        for ((_, sum), (_, time)) in sums.iter_mut().zip(phases.named()) {
            *sum += time.0;
        }
    }
    let whole: f64 = sums.iter().map(|(_, time)| time).sum();
    Some(sums.map(|(name, time)| (name, time / whole)))
}

/// The most memory in bytes that a round ended with in the process, and that it had in tensors of each device, where that was measured.
pub(super) fn memory(rounds: &[RoundResult]) -> Vec<(&str, u64)> {
    let perfs = rounds.iter().map(|round| &round.data.perf);
    let process = perfs.clone().filter_map(|perf| perf.memory_bytes).max();
    let mut peaks: BTreeMap<&str, u64> = BTreeMap::new();
    for (device, memory) in perfs.flat_map(|perf| &perf.device_memory_bytes) {
        let peak = peaks.entry(device).or_default();
        *peak = memory.peak.max(*peak);
    }
    let process = process.map(|bytes| ("process", bytes));
    process.into_iter().chain(peaks).collect()
}

/// `None` where nothing was committed, or the host that never grew was not measured.
pub(super) fn gains(live: &LiveState) -> Option<Gains> {
    let best = live.best_episode().filter(|best| best.has_committed())?;
    let still = live.baseline.as_ref()?;
    let test = best.data.test_accuracy.zip(still.test_accuracy);
    Some(Gains {
        test: test.map(|(grown, still)| grown.0 - still.0),
        validation: best.committed_accuracy() - still.val_accuracy.0,
    })
}
