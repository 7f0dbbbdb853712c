//! The results of a run as values: the content of its summary, for programs to read.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use super::words::{signed, worth};
use crate::compare::statistics::mean_and_interval;
use crate::telemetry::{CommittedSeed, EpisodeResult, LiveState, RoundResult, statistics};

/// Both ends of the learning curve: means over as many rounds each. Rounds differ much from one to the next.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Learning {
    pub rounds: usize,
    pub reward: [f64; 2],
    pub accuracy: [f64; 2],
}

/// Hosts and their committed seeds alone, validation. The best of them is the luckiest of many.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Average {
    pub accuracy: f64,
    /// Ends of the 95 % interval (t).
    pub half_width: f64,
    pub hosts: usize,
    pub rounds: usize,
    /// Mean of parameters, as a ratio to the host's.
    pub param_ratio: f64,
}

impl Average {
    /// `61.25 ± 0.50 %`
    pub fn words(&self, decimals: usize) -> String {
        format!("{:.decimals$} ± {:.decimals$} %", self.accuracy, self.half_width)
    }
}

/// The results of a run, from the state that its events fold into. Accuracies are in percent, differences in points; rounds and
/// episodes are counted from 0, steps from 1. What was not measured is left out.
pub fn run_results(live: &LiveState) -> Value {
    let rounds = live.rounds.iter().map(|round| {
        let of_round = json!({ "round": round.round, "rollbacks": round.rollbacks });
        merged(of_round, &round.data)
    });
    // Counts of seeds that were not committed. Without a reason the episode was over.
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
        // Updates that were due and not performed.
        "skipped_updates": live.skipped_updates,
        "last_update": live.latest_update(),
        "learning": learning(&live.rounds),
        "committed": live.committed.iter().map(commit).collect::<Vec<_>>(),
        "committed_seeds": live.committed.len(),
        "germinated": live.seed_ends.germinated,
        "ends": ends.collect::<Vec<_>>(),
        "refusals": refusals.collect::<Vec<_>>(),
        "confounders": live.confounders,
        // Findings of detectors, by cause: how often, in how many episodes, and with how many seeds.
        "anomalies": live.anomalies.run,
        // Hosts of the last rounds.
        "average": average(live),
        // Hosts that never grew.
        "alone": alone(live),
        // Grown hosts that no other beats in both accuracy and size, the best first.
        "front": live.front.iter().rev().map(grown_host).collect::<Vec<_>>(),
        // The best host again, without growth.
        "baseline": live.baseline,
        "env_steps_per_s": live.env_steps_per_s(),
        // Samples that were trained on.
        "samples_per_s": live.samples_per_s(),
        "memory_bytes": (!memory.is_empty()).then_some(memory),
    });
    if let Some(fields) = results.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    results
}

/// An object with the fields of another, if that is one, or with `error` if JSON cannot express it.
pub fn merged(mut object: Value, other: &impl Serialize) -> Value {
    let more = serde_json::to_value(other).unwrap_or_else(|error| json!({ "error": error.to_string() }));
    if let (Some(fields), Value::Object(more)) = (object.as_object_mut(), more) {
        fields.extend(more);
    }
    object
}

/// All committed seeds, those that contribute most first.
pub(super) fn by_contribution(live: &LiveState) -> Vec<&CommittedSeed> {
    let points = |seed: &CommittedSeed| seed.worth.contribution.map_or(f64::NEG_INFINITY, |worth| worth.points);
    let mut seeds: Vec<_> = live.committed.iter().collect();
    seeds.sort_by(|a, b| points(b).total_cmp(&points(a)));
    seeds
}

/// Reward terms of an episode of the last round that was paid, on average; those that weigh most first.
pub(super) fn terms_by_weight(live: &LiveState) -> Vec<(&str, f64)> {
    let terms = live.reward_terms().into_iter().flatten();
    let mut terms: Vec<_> = terms.map(|(name, mean)| (name.as_str(), mean.0)).collect();
    terms.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    terms
}

/// A committed seed in tables: blueprint, id, round, env, step, parameters, contribution, and its Shapley value.
pub(super) fn seed_cells(seed: &CommittedSeed) -> [String; 8] {
    [
        seed.data.blueprint.clone(),
        seed.seed_id.clone(),
        (seed.at.round + 1).to_string(),
        seed.at.env.to_string(),
        seed.at.step.to_string(),
        seed.data.params_added.to_string(),
        worth(seed.worth.contribution),
        signed(seed.worth.shapley, 2),
    ]
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

/// Means at both ends of the learning curve. `None` where no round was paid.
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

/// The mean with its interval. `None` with fewer than two hosts.
pub(super) fn average(live: &LiveState) -> Option<Average> {
    let rounds: BTreeSet<u32> = live.latest_hosts.iter().map(|&(round, ..)| round).collect();
    let (accuracies, ratios): (Vec<f64>, Vec<f64>) = live
        .latest_hosts
        .iter()
        .map(|&(_, accuracy, ratio)| (accuracy, ratio))
        .unzip();
    average_of(&accuracies, rounds.len(), statistics::mean(&ratios)?)
}

/// The result of hosts that never grew. `None` where fewer than two were measured.
pub(super) fn alone(live: &LiveState) -> Option<Average> {
    let hosts: Vec<f64> = live.baseline.as_ref()?.hosts.iter().map(|host| host.0).collect();
    average_of(&hosts, 1, 1.0)
}

fn average_of(accuracies: &[f64], rounds: usize, param_ratio: f64) -> Option<Average> {
    let (accuracy, half_width) = mean_and_interval(accuracies)?;
    Some(Average {
        accuracy,
        half_width,
        hosts: accuracies.len(),
        rounds,
        param_ratio,
    })
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
