//! Sections of a run's page about learning: accuracy, size, rewards, the policy and speed.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::chart::Chart;
use super::page::{figure, table};
use super::pictures::{Dot, scattered};
use crate::files::counted;
use crate::report::results;
use crate::report::state::{EpisodePoint, ViewState};
use crate::report::words::number;
use crate::run;
use crate::telemetry::{LearnerUpdate, Num, PerfRound, RoundResult};

/// Rounds that a curve shows. Longer runs show this many evenly spread ones.
const ROUNDS: usize = 400;
/// Terms of a reward that have their own colour.
const TERMS: usize = 7;

/// Rounds for curves, thinned in long runs.
fn rounds(state: &ViewState) -> Vec<&RoundResult> {
    let rounds = &state.live.rounds;
    let shown = rounds.len().min(ROUNDS);
    (0..shown)
        .map(|place| &rounds[place * (rounds.len() - 1) / (shown - 1).max(1)])
        .collect()
}

/// A chart over rounds as people count them.
fn over(rounds: &[&RoundResult], id: &str, unit: &str) -> Chart {
    let x = by_round(rounds, |round| f64::from(round.round) + 1.0);
    Chart::new(id, ("round", unit), x)
}

fn by_round(rounds: &[&RoundResult], of: impl Fn(&RoundResult) -> f64) -> Vec<f64> {
    rounds.iter().map(|round| of(round)).collect()
}

/// Between ordered values, linear between neighbours.
fn quantile(values: &[Num], q: f64) -> f64 {
    let finite = values.iter().map(|value| value.0).filter(|value| value.is_finite());
    let mut finite: Vec<f64> = finite.collect();
    finite.sort_by(f64::total_cmp);
    match finite.len() {
        0 => f64::NAN,
        _ => crate::compare::statistics::percentile(&finite, q),
    }
}

pub(super) fn accuracy(state: &ViewState) -> Markup {
    let rounds = rounds(state);
    let ends = |q: f64| by_round(&rounds, |round| quantile(&round.data.accuracy_env, q));
    let of_best = state.live.baseline.as_ref().map(|baseline| baseline.val_accuracy.0);
    let still = results::alone(&state.live).map(|alone| alone.accuracy).or(of_best);
    let best = by_round(&rounds, |round| round.data.accuracy_best.0);
    let about = "Line: mean of the envs; band: the middle half of them.";
    let chart = over(&rounds, "accuracy", "accuracy, %")
        .titled("Validation accuracy at the end of each round.", about)
        .band("middle half", ends(0.25), ends(0.75))
        .line("mean", by_round(&rounds, |round| round.data.accuracy_mean.0))
        .line("best env at any step", best)
        .level(still, "never grew");
    html! {
        @if rounds.is_empty() { p { "No round has ended yet." } }
        (chart.figure())
        div.grid { @for chart in metrics(&rounds) { (chart.figure()) } }
    }
}

/// Plugins' measurements of the rounds.
fn metrics(rounds: &[&RoundResult]) -> Vec<Chart> {
    let names: BTreeSet<&String> = rounds.iter().flat_map(|round| round.data.metrics.keys()).collect();
    let chart = |name: &String| {
        let values = by_round(rounds, |round| {
            round.data.metrics.get(name).map_or(f64::NAN, |value| value.0)
        });
        let chart = over(rounds, &format!("metric {name}"), name);
        chart.titled(name, "Measured by a plugin.").line(name, values)
    };
    names.into_iter().map(chart).collect()
}

/// Accuracy against parameters of all episodes. The ones that no other beats are marked.
pub(super) fn size(state: &ViewState) -> Markup {
    let points: Vec<&EpisodePoint> = state.episodes.points.iter().collect();
    if points.is_empty() {
        return html! { p { "No episode has ended yet." } };
    }
    let front = &state.live.front;
    let last = points.iter().map(|point| point.round).max().unwrap_or_default();
    let dots = points.iter().map(|point| Dot {
        at: (point.ratio, point.accuracy),
        class: if point.round == last { "c0" } else { "faint" }.into(),
        title: format!("{}: {:.1} % at {:.2}x", point.name(), point.accuracy, point.ratio),
    });
    let best = front.iter();
    let best = best.map(|host| (host.committed_ratio(), host.committed_accuracy()));
    let labels = ("parameters over the host's", "accuracy, %");
    let picture = scattered(labels, &dots.collect::<Vec<_>>(), &best.collect::<Vec<_>>());
    let rows = front.iter().rev().map(|host| {
        vec![
            format!("round {}, env {}", host.at.round + 1, host.at.env),
            number(Some(Num(host.committed_accuracy())), 2),
            number(host.data.test_accuracy, 2),
            format!("{:.2}x", host.committed_ratio()),
        ]
    });
    let (kept, seen) = (points.len() as u64, state.episodes.points.seen());
    let mut about = String::from(
        "One point per episode, those of the last round in colour. Line: episodes that no other beats in both.",
    );
    if kept < seen {
        about += &format!(" {kept} of {seen} episodes are drawn.");
    }
    html! {
        (figure("Accuracy against parameters, with committed seeds alone.", &about, &picture))
        (table(&["unbeaten"], &["validation, %", "test, %", "parameters"], rows))
    }
}

pub(super) fn rewards(state: &ViewState) -> Markup {
    let rounds = rounds(state);
    let paid = |round: &RoundResult, term: &str| {
        let terms = round.data.paid.as_ref().map(|paid| &paid.reward_terms_mean);
        terms.and_then(|terms| terms.get(term)).map_or(0.0, |sum| sum.0)
    };
    let names: BTreeSet<&String> = rounds
        .iter()
        .filter_map(|round| round.data.paid.as_ref())
        .flat_map(|paid| paid.reward_terms_mean.keys())
        .collect();
    let weight = |name: &str| rounds.iter().map(|round| paid(round, name).abs()).sum::<f64>();
    let mut names: Vec<&String> = names.into_iter().collect();
    names.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let rest = names.split_off(TERMS.min(names.len()));
    let about = "Means over the envs of a round; costs are below zero.";
    let mut chart = over(&rounds, "rewards", "reward").titled("What an episode is paid, by term.", about);
    for name in names {
        chart = chart.stacked(name, by_round(&rounds, |round| paid(round, name)));
    }
    if !rest.is_empty() {
        let others = by_round(&rounds, |round| rest.iter().map(|name| paid(round, name)).sum());
        chart = chart.stacked("others", others);
    }
    html! { (chart.figure()) (calibration(state)) }
}

/// A chart that shows if the reward pays for the right thing: the reward of an episode against the accuracy at its end.
fn calibration(state: &ViewState) -> Markup {
    let points = state.episodes.points.iter();
    let points = points.filter_map(|point| Some((point, point.reward?)));
    let is_measured = |(point, reward): &(&EpisodePoint, f64)| point.accuracy.is_finite() && reward.is_finite();
    let points: Vec<(&EpisodePoint, f64)> = points.filter(is_measured).collect();
    let pairs: Vec<[f64; 2]> = points.iter().map(|(point, reward)| [point.accuracy, *reward]).collect();
    let Some(correlation) = correlation(&pairs) else {
        return html! {};
    };
    let dots = points.iter().map(|(point, reward)| Dot {
        at: (point.accuracy, *reward),
        class: "c0".into(),
        title: format!("{}: {:.1} %, paid {reward:+.2}", point.name(), point.accuracy),
    });
    let labels = ("accuracy with committed seeds alone, %", "reward of the episode");
    let picture = scattered(labels, &dots.collect::<Vec<_>>(), &[]);
    let mut about = format!("A point for each episode; correlation {correlation:.2}.");
    if correlation < 0.3 {
        about += " Episodes that are paid more do not reach a higher accuracy: look at the terms.";
    }
    figure("What is paid against what is reached.", &about, &picture)
}

/// Pearson's correlation. `None` with fewer than three pairs, or where one of both does not vary.
fn correlation(pairs: &[[f64; 2]]) -> Option<f64> {
    let means = [0, 1].map(|of| pairs.iter().map(|pair| pair[of]).sum::<f64>() / pairs.len() as f64);
    let product = |pair: &[f64; 2], a: usize, b: usize| (pair[a] - means[a]) * (pair[b] - means[b]);
    let sum = |a, b| pairs.iter().map(|pair| product(pair, a, b)).sum::<f64>();
    let scale = (sum(0, 0) * sum(1, 1)).sqrt();
    (pairs.len() >= 3 && scale > 1e-12).then(|| sum(0, 1) / scale)
}

/// Detectors that watch the policy and its reward.
const OF_POLICY: &str =
    "blind_policy entropy_collapse idle_critic ratio_collapse ratio_explosion reward_hacking value_collapse";

/// The health of the policy, in a sentence.
fn health(state: &ViewState) -> String {
    let (updates, skipped) = (counted(state.live.updates(), "update"), state.live.skipped_updates);
    let found = state.anomalies.counts.iter();
    let found = found.filter(|(rule, _)| OF_POLICY.split(' ').any(|of| of == rule.as_str()));
    let found = found.map(|(rule, count)| format!("{rule} was found {count}x"));
    let mut wrong: Vec<String> = found.collect();
    wrong.extend((skipped > 0).then(|| format!("{} skipped", counted(skipped, "update"))));
    let newest = state.updates.last().and_then(|(_, update)| update.data);
    let explained = newest.and_then(|data| data.explained_variance_free);
    if explained.is_some_and(|share| share.0 <= 0.0) {
        wrong.push("its critic predicts the returns no better than their mean".into());
    }
    match wrong.is_empty() {
        true => format!("Healthy in its {updates}: no detector found anything, and no update was skipped."),
        false => format!("Not always healthy in its {updates}: {}.", wrong.join("; ")),
    }
}

pub(super) fn policy(state: &ViewState) -> Markup {
    let updates: Vec<&(u32, LearnerUpdate)> = state.updates.iter().collect();
    let x: Vec<f64> = updates.iter().map(|(round, _)| f64::from(*round) + 1.0).collect();
    let series = |of: &dyn Fn(&LearnerUpdate) -> Option<Num>| -> Vec<f64> {
        let values = updates.iter().map(|(_, update)| of(update));
        values.map(|value| value.map_or(f64::NAN, |value| value.0)).collect()
    };
    let chart = |id: &str, unit: &str| Chart::new(id, ("round", unit), x.clone());
    let heads: BTreeSet<&String> = updates
        .iter()
        .flat_map(|(_, update)| update.measured.head_entropy_avail.keys())
        .collect();
    let mut entropy = chart("entropy", "entropy, 0 to 1").titled(
        "Entropy by head.",
        "1: all options are equally likely; 0: one is certain.",
    );
    for head in heads {
        let of_head = series(&|update| update.measured.head_entropy_avail.get(head).copied());
        entropy = entropy.line(head, of_head);
    }
    let about = "Share of the returns' variance that its values explain.";
    let free = series(&|update| update.data?.explained_variance_free);
    let critic = chart("critic", "share")
        .titled("The critic.", about)
        .line("all steps", series(&|update| Some(update.data?.explained_variance)))
        .line("steps with a choice", free)
        .level(Some(0.0), "as good as the mean");
    let about = "KL divergence from the policy that acted.";
    let moved = chart("divergence", "nats")
        .titled("How far an update moves the policy.", about)
        .line("KL", series(&|update| update.measured.approx_kl));
    let clipped = chart("clipped", "share")
        .titled("Ratios beyond the clip.", "Share of the steps of an update.")
        .line("clipped", series(&|update| update.measured.clip_fraction));
    let about = "The largest norm of an update's steps.";
    let gradient = chart("gradient", "norm")
        .titled("The gradient before clipping.", about)
        .line("norm", series(&|update| update.measured.grad_norm));
    let loss = chart("loss", "loss")
        .titled("Losses.", "Means over an update's steps.")
        .line("policy", series(&|update| update.measured.loss_policy))
        .line("value", series(&|update| update.measured.loss_value));
    html! {
        p { b { (health(state)) } }
        div.grid { @for chart in [entropy, critic, moved, clipped, gradient, loss] { (chart.figure()) } }
    }
}

pub(super) fn speed(state: &ViewState) -> Markup {
    let rounds = rounds(state);
    let perf = |of: &dyn Fn(&PerfRound) -> f64| by_round(&rounds, |round| of(&round.data.perf));
    let speed = over(&rounds, "speed", "env-steps/s")
        .titled("Env-steps a second.", "A step of an env is one epoch of its host.")
        .line("env-steps/s", perf(&|perf| perf.env_steps_per_s.0));
    let mut phases = over(&rounds, "phases", "share, %").titled("Where the time goes.", "Of each round.");
    let named = rounds.first().map(|round| round.data.perf.phases_ms.named());
    for (place, (name, _)) in named.into_iter().flatten().enumerate() {
        let shares = perf(&|perf| {
            let times = perf.phases_ms.named().map(|(_, time)| time.0);
            100.0 * times[place] / times.iter().sum::<f64>().max(1e-9)
        });
        // A share that never reaches a hundredth can't be seen.
        if shares.iter().any(|share| *share >= 1.0) {
            phases = phases.stacked(name, shares);
        }
    }
    let copy_ms: f64 = perf(&|perf| perf.copy_ms.0).iter().sum();
    let steps: f64 = perf(&|perf| perf.env_steps_per_s.0 * perf.round_wall_s.0).iter().sum();
    html! {
        @if let (Some(steps), Some(samples)) = (state.live.env_steps_per_s(), state.live.samples_per_s()) {
            p { (format!("{steps:.1} env-steps and {samples:.0} training samples a second.")) }
        }
        @for (place, bytes) in results::memory(&state.live.rounds) { p { (format!("Memory of {place}: up to {}.", run::size(bytes.into()))) } }
        @if steps > 0.0 {
            p { (format!("Copying batches to where they are trained on takes {:.2} ms per env-step.", copy_ms / steps)) }
        }
        div.grid { (speed.figure()) (phases.figure()) }
    }
}
