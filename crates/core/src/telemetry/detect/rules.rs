//! The engine's own detectors: the table, then what each reads.

use super::{Comparison, Detector, Place, Reading, Recent};
use crate::telemetry::event::{Event, Payload, Severity};
use crate::telemetry::payload::{LearnerUpdate, SeedRow, UpdateSkip};
use crate::telemetry::statistics::{mean, mean_and_std, median};

use Comparison::{Above, AtLeast, AtMost, Below};
use Severity::{Error, Info, Warning};

/// A row of the table.
pub(super) struct BuiltIn {
    pub name: &'static str,
    pub summary: &'static str,
    condition: (Comparison, f64),
    window: u32,
    severity: Severity,
    remedy: &'static str,
    read: fn(&Event, &Recent) -> Vec<Reading>,
    /// It follows from times or memory.
    pub of_machine: bool,
}

impl BuiltIn {
    const fn new(
        (name, summary): (&'static str, &'static str),
        condition: (Comparison, f64),
        window: u32,
        severity: Severity,
        remedy: &'static str,
        read: fn(&Event, &Recent) -> Vec<Reading>,
    ) -> Self {
        Self {
            name,
            summary,
            condition,
            window,
            severity,
            remedy,
            read,
            of_machine: false,
        }
    }

    const fn of_machine(mut self) -> Self {
        self.of_machine = true;
        self
    }

    pub(super) fn detector(&self) -> Detector {
        let (comparison, threshold) = self.condition;
        Detector {
            comparison,
            threshold,
            window: self.window,
            severity: self.severity,
            remedy: self.remedy.into(),
            read: Box::new(self.read),
        }
    }
}

#[rustfmt::skip]
pub(super) const BUILT_IN: [BuiltIn; 17] = [
    BuiltIn::new(
        ("blind_policy", "the policy decides regardless of what it sees"),
        (Below, 0.0005), 10, Info,
        "train it longer and with more envs, or check with `simic-engine eval` whether a schedule does as well", blind_policy,
    ),
    BuiltIn::new(
        ("dead_host", "the validation accuracy doesn't change at all"),
        (AtMost, 0.0), 10, Warning,
        "ignore it if few hosts do so from their first step, due to their initial weights; else lower the rate of task.host_opt", dead_host,
    ),
    BuiltIn::new(
        ("degradation", "the accuracy has fallen far below what it was"),
        (AtLeast, 0.1), 1, Warning,
        "resume from the best checkpoint with a lower learning rate of the policy", degradation,
    ),
    BuiltIn::new(
        ("entropy_collapse", "a head of the policy hardly explores any more"),
        (Below, 0.08), 3, Warning,
        "raise the entropy bonus or its floor", entropy_collapse,
    ),
    BuiltIn::new(
        ("gradient_pathology", "a seed's gradients vanish or explode"),
        (AtLeast, 1.0), 3, Warning,
        "leave it to the controller if few seeds do; else lower the rate of task.seed_opt", gradient_pathology,
    ),
    BuiltIn::new(
        ("gradient_spike", "the host's gradient is far beyond its usual size"),
        (Above, 100.0), 1, Warning,
        "lower the host's learning rate, or look at the seed that was just blended in", gradient_spike,
    ),
    BuiltIn::new(
        ("idle_critic", "the critic explains none of the returns where there is a choice"),
        (AtMost, 0.02), 10, Info,
        "train it with more envs or episodes an update, or look at what the policy observes", idle_critic,
    ),
    BuiltIn::new(
        ("memory", "the process has used most of the memory that it may use"),
        (AtLeast, 0.9), 1, Warning,
        "lower run.n_envs or the batch size, or give it more memory", memory,
    ).of_machine(),
    BuiltIn::new(
        ("numerical_instability", "numbers in the training aren't finite"),
        (Above, 0.0), 1, Error,
        "lower the learning rate, or train in higher precision", numerical_instability,
    ),
    BuiltIn::new(
        ("plateau", "the rolling accuracy has stopped rising"),
        (AtLeast, 10.0), 1, Info,
        "end the run here, or set run.run_early_stop", plateau,
    ),
    BuiltIn::new(
        ("ratio_collapse", "one update has made an action of the policy far less likely"),
        (Below, 0.1), 1, Warning,
        "lower the policy's learning rate, the epochs of an update or its limit of divergence", ratio_collapse,
    ),
    BuiltIn::new(
        ("ratio_explosion", "one update has made an action of the policy far more likely"),
        (Above, 5.0), 1, Warning,
        "lower the policy's learning rate, the epochs of an update or its limit of divergence", ratio_explosion,
    ),
    BuiltIn::new(
        ("reward_hacking", "the reward rises while the accuracy with the committed seeds falls"),
        (Above, 2.0), 1, Error,
        "audit the reward with `simic-engine reward-audit`", reward_hacking,
    ),
    BuiltIn::new(
        ("rollback_storm", "a large share of the episodes was rolled back"),
        (Above, 0.25), 1, Error,
        "lower the learning rates of hosts and seeds, or let fewer seeds blend at once", rollback_storm,
    ),
    BuiltIn::new(
        ("stuck_seed", "a gate refuses the same seed again and again"),
        (AtLeast, 1.0), 10, Info,
        "loosen the threshold of the check that refuses it", stuck_seed,
    ),
    BuiltIn::new(
        ("throughput_drop", "the run is far slower than before"),
        (Below, 0.5), 3, Warning,
        "look for other work on this machine, or for storage that has become slow", throughput_drop,
    ).of_machine(),
    BuiltIn::new(
        ("value_collapse", "the critic's estimates are far from the returns"),
        (Above, 5.0), 3, Warning,
        "lower the policy's learning rate, or raise the weight of the value loss", value_collapse,
    ),
];

fn measured(value: impl IntoIterator<Item = f64>) -> Vec<Reading> {
    value.into_iter().map(Reading::of).collect()
}

/// Information about observations in the operations that a learning policy chose in the round, nats a choice.
fn blind_policy(event: &Event, recent: &Recent) -> Vec<Reading> {
    match event.payload {
        Payload::RoundFinished(_) if recent.learns => measured(recent.information()),
        _ => Vec::new(),
    }
}

/// The difference of the accuracy from that of the step before, points. A host that makes no mistake is not dead.
fn dead_host(event: &Event, recent: &Recent) -> Vec<Reading> {
    let Payload::EnvStep(row) = &event.payload else {
        return Vec::new();
    };
    let accuracy = row.val_accuracy.0;
    measured(recent.env(event).accuracy.map(|before| match accuracy {
        100.0 => accuracy,
        _ => (accuracy - before).abs(),
    }))
}

/// The share by which the mean of the last three rounds is below the best such mean.
fn degradation(event: &Event, recent: &Recent) -> Vec<Reading> {
    let (Payload::RoundFinished(round), Some(best)) = (&event.payload, recent.best_of_three) else {
        return Vec::new();
    };
    let rounds = recent.rounds_with(round);
    let newest: Vec<f64> = rounds.iter().rev().take(3).map(|round| round.accuracy).collect();
    measured(mean(&newest).map(|mean| 1.0 - mean / best))
}

/// Normalised entropy by head, with a floor for each; a head that never had a choice has exactly none.
fn entropy_collapse(event: &Event, _: &Recent) -> Vec<Reading> {
    let heads = update(event)
        .into_iter()
        .flat_map(|update| &update.measured.head_entropy_avail);
    let reading = |(head, entropy): (&String, &crate::telemetry::Num)| Reading {
        place: Place::Head(head.clone()),
        value: entropy.0,
        threshold: Some(match head.as_str() {
            "op" => 0.08,
            "blueprint" => 0.05,
            "slot" => 0.1,
            _ => 0.09,
        }),
    };
    heads.filter(|(_, entropy)| entropy.0 > 0.0).map(reading).collect()
}

/// 1 for each growing seed whose gradients explode, or vanish as a whole, else 0: a single tensor without a gradient is usual.
fn gradient_pathology(event: &Event, _: &Recent) -> Vec<Reading> {
    const VANISHED: f64 = 1e-3;
    let Payload::EnvStep(row) = &event.payload else {
        return Vec::new();
    };
    let reading = |seed: &SeedRow| {
        let ratio = seed.gradient_ratio?.0;
        let has_vanished = seed.vanishing && ratio < VANISHED;
        Some(Reading {
            place: Place::Slot(seed.slot),
            ..Reading::of(share(seed.exploding || has_vanished))
        })
    };
    row.seeds.iter().filter_map(reading).collect()
}

/// The norm of the host's gradient over its moving average; one that is not finite is for `numerical_instability`.
fn gradient_spike(event: &Event, recent: &Recent) -> Vec<Reading> {
    let Payload::EnvStep(row) = &event.payload else {
        return Vec::new();
    };
    let norm = row.host_grad_norm.filter(|norm| norm.0.is_finite());
    measured(
        norm.zip(recent.env(event).gradient)
            .map(|(norm, average)| norm.0 / average),
    )
}

/// Share of the returns' variance that values explain where there is a choice and returns vary.
fn idle_critic(event: &Event, _: &Recent) -> Vec<Reading> {
    let data = update(event).and_then(|update| update.data);
    let data = data.filter(|data| !data.ev_low_return_variance);
    measured(data.and_then(|data| Some(data.explained_variance_free?.0)))
}

/// Used over allowed.
fn memory(event: &Event, _: &Recent) -> Vec<Reading> {
    let Payload::RoundFinished(round) = &event.payload else {
        return Vec::new();
    };
    let used = round.perf.memory_bytes.zip(round.perf.memory_limit_bytes);
    measured(used.map(|(used, limit)| used as f64 / limit as f64))
}

/// Batches and updates that were not finite. Updates that a scaled loss suppresses are normal and don't count. For an update: 1.
fn numerical_instability(event: &Event, _: &Recent) -> Vec<Reading> {
    match &event.payload {
        Payload::EnvStep(row) => {
            let of_seeds: u64 = row.seeds.iter().map(|seed| u64::from(seed.skipped_updates)).sum();
            let is_scaled = row.loss_scale.is_some();
            let skipped = if is_scaled { 0 } else { row.skipped_updates + of_seeds };
            measured([(row.nonfinite_batches + skipped) as f64])
        }
        Payload::LearnerUpdate(update) => {
            let failed = matches!(update.skip_reason, UpdateSkip::Nonfinite | UpdateSkip::Mismatch);
            measured([share(failed)])
        }
        _ => Vec::new(),
    }
}

/// Rounds since the rolling accuracy rose by half a point, of a policy that learns.
fn plateau(event: &Event, recent: &Recent) -> Vec<Reading> {
    match &event.payload {
        Payload::RoundFinished(round) if recent.learns => measured([f64::from(recent.rolling_with(round).length())]),
        _ => Vec::new(),
    }
}

fn ratio_collapse(event: &Event, _: &Recent) -> Vec<Reading> {
    measured(update(event).and_then(|update| Some(update.measured.ratio_min?.0)))
}

fn ratio_explosion(event: &Event, _: &Recent) -> Vec<Reading> {
    measured(update(event).and_then(|update| Some(update.measured.ratio_max?.0)))
}

/// Points by which the committed accuracy has fallen over four rounds against the four before, if the reward of a policy that
/// learns has risen by more than it varies; else 0.
fn reward_hacking(event: &Event, recent: &Recent) -> Vec<Reading> {
    const WINDOW: usize = 4;
    let Payload::RoundFinished(round) = &event.payload else {
        return Vec::new();
    };
    let rounds = recent.rounds_with(round);
    let paid = rounds
        .iter()
        .rev()
        .map_while(|round| Some((round.reward?, round.committed_accuracy?)));
    let (rewards, accuracies): (Vec<_>, Vec<_>) = paid.take(2 * WINDOW).unzip();
    if !recent.learns || rewards.len() < 2 * WINDOW {
        return Vec::new();
    }
    let (means, deviations): (Vec<f64>, Vec<f64>) = rewards.into_iter().unzip();
    let of = |values: &[f64]| mean_and_std(values).unwrap_or((f64::NAN, f64::NAN));
    let rise = of(&means[..WINDOW]).0 - of(&means[WINDOW..]).0;
    let deviation = of(&means[WINDOW..]).1.max(of(&deviations).0);
    let fall = of(&accuracies[WINDOW..]).0 - of(&accuracies[..WINDOW]).0;
    measured([if rise > deviation { fall } else { 0.0 }])
}

/// Share of the round's episodes; a single one isn't a storm.
fn rollback_storm(event: &Event, recent: &Recent) -> Vec<Reading> {
    if !matches!(event.payload, Payload::RoundFinished(_)) || recent.episodes == 0 {
        return Vec::new();
    }
    let count = if recent.rolled_back > 1 { recent.rolled_back } else { 0 };
    measured([f64::from(count) / f64::from(recent.episodes)])
}

/// 1 where a seed is refused, else 0. A seed that is too young waits, and isn't refused.
fn stuck_seed(event: &Event, _: &Recent) -> Vec<Reading> {
    let (Payload::SeedGateEvaluated(gate), Some(slot)) = (&event.payload, event.slot) else {
        return Vec::new();
    };
    let is_waiting = gate
        .checks
        .iter()
        .any(|check| !check.passed && WAITS.contains(&check.name.as_str()));
    let reading = Reading {
        place: Place::Slot(slot),
        ..Reading::of(share(!gate.passed))
    };
    if is_waiting { Vec::new() } else { vec![reading] }
}

/// Checks that time alone passes.
const WAITS: [&str; 2] = ["steps_in_stage", "target_reached"];

/// Env-steps a second over the median of the last twenty rounds, once there are five.
fn throughput_drop(event: &Event, recent: &Recent) -> Vec<Reading> {
    let Payload::RoundFinished(round) = &event.payload else {
        return Vec::new();
    };
    let speeds: Vec<f64> = recent
        .rounds()
        .rev()
        .take(20)
        .map(|round| round.env_steps_per_s)
        .collect();
    let usual = median(&speeds).filter(|_| speeds.len() >= 5);
    measured(usual.map(|usual| round.perf.env_steps_per_s.0 / usual))
}

fn value_collapse(event: &Event, _: &Recent) -> Vec<Reading> {
    measured(update(event).and_then(|update| Some(update.measured.loss_value?.0)))
}

fn update(event: &Event) -> Option<&LearnerUpdate> {
    match &event.payload {
        Payload::LearnerUpdate(update) => Some(update),
        _ => None,
    }
}

const fn share(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}
