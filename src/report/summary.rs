//! The summary of a run: what grew, what it was worth, and beside it a host that never grew. Plain text that fits into a
//! terminal, drawn from the live state alone.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use super::results::{self, Average, Gains, Learning};
use super::table::Table;
use super::words::{cell, filled, number, signed, wrapped};
use crate::run::size;
use crate::telemetry::{CommittedSeed, EpisodeResult, Fallbacks, LiveState, Num, RoundResult};
use uncommitted::uncommitted;

mod uncommitted;

/// Rounds shown in full; of a longer run the first and the last ones.
const ROUNDS_SHOWN: usize = 20;
/// Committed seeds shown, those that contribute most.
const SEEDS_SHOWN: usize = 16;
/// Reward terms shown.
const TERMS_SHOWN: usize = 4;
/// Hosts of the front of accuracy and size that are shown, the best and the smallest among them.
const FRONT_SHOWN: usize = 5;
/// Phases of a round shown, those that take longest.
const PHASES_SHOWN: usize = 5;
/// Before what a line is about.
const LABEL_WIDTH: usize = 15;

/// The summary of a run whose files are in `directory`, in lines of at most `width` characters.
pub fn summary(live: &LiveState, directory: &Path, width: usize) -> String {
    if live.is_offline() {
        let parts = [headline(live), learning(live, width), footer(live, directory, width)];
        return parts.into_iter().flatten().collect::<Vec<_>>().join("\n");
    }
    [
        headline(live),
        rounds_table(&live.rounds, width),
        learning(live, width),
        precision(live, width),
        fallbacks(live, width),
        confounders(live, width),
        Some(seeds_table(live, width)),
        latest_rounds(live, width),
        comparison(live),
        footer(live, directory, width),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>()
    .join("\n")
}

fn headline(live: &LiveState) -> Option<String> {
    let run = live.started.as_ref()?;
    if live.is_offline() {
        let (task, controller) = (&run.task, &run.controller);
        return Some(format!(
            "{task}: a policy learns from recordings, controller {controller}\n"
        ));
    }
    Some(format!(
        "{}: {} envs, {} steps a round, controller {}\n",
        run.task, run.n_envs, run.max_steps, run.controller
    ))
}

/// Lines behind a label, indented below each other.
fn labelled(label: &str, lines: &str) -> String {
    let lines = lines.replace('\n', &format!("\n{:LABEL_WIDTH$}", ""));
    format!("{label:<LABEL_WIDTH$}{lines}\n")
}

/// [`labelled`] with whole entries, separated by commas.
fn listed(label: &str, entries: &[String], width: usize) -> String {
    let mut words: Vec<String> = entries.iter().map(|entry| format!("{entry},")).collect();
    if let Some(last) = words.last_mut() {
        last.pop();
    }
    labelled(label, &filled(words.iter().map(String::as_str), width - LABEL_WIDTH))
}

/// [`labelled`] with a sentence.
fn said(label: &str, sentence: &str, width: usize) -> String {
    labelled(label, &wrapped(sentence, width - LABEL_WIDTH))
}

fn rounds_table(rounds: &[RoundResult], width: usize) -> Option<String> {
    if rounds.is_empty() {
        return None;
    }
    let is_paid = rounds.iter().any(|round| round.data.paid.is_some());
    let mut columns = vec!["round", "mean %", "best %"];
    let is_text = rounds.iter().any(|round| round.data.perplexity.is_some());
    columns.extend(is_text.then_some("perplexity"));
    columns.extend(is_paid.then_some("reward"));
    // In the order of their names; a plugin that was added later has measured the later rounds.
    let own: BTreeSet<&str> = rounds
        .iter()
        .flat_map(|round| round.data.metrics.keys().map(String::as_str))
        .collect();
    columns.extend(&own);
    columns.extend(["germinated", "committed", "pruned", "rollbacks", SPEED]);
    let mut table = Table::new(&[], &columns);
    let skipped = rounds.len().saturating_sub(ROUNDS_SHOWN);
    let head = if skipped > 0 { ROUNDS_SHOWN / 2 } else { 0 };
    let row = |round: &RoundResult| {
        let mut cells = vec![
            (round.round + 1).to_string(),
            format!("{:.2}", round.data.accuracy_mean.0),
            format!("{:.2}", round.data.accuracy_best.0),
        ];
        cells.extend(is_text.then(|| number(round.data.perplexity, 2)));
        cells.extend(is_paid.then(|| signed(round.reward_mean(), 2)));
        cells.extend(own.iter().map(|&name| number(round.data.metrics.get(name).copied(), 2)));
        cells.extend([
            round.data.growth.germinated.to_string(),
            round.data.growth.committed.to_string(),
            round.data.growth.pruned.to_string(),
            round.rollbacks.to_string(),
            format!("{:.1}", round.data.perf.env_steps_per_s.0),
        ]);
        cells
    };
    rounds[..head].iter().for_each(|round| table.push(row(round)));
    if skipped > 0 {
        table.push(vec!["…".into()]);
    }
    rounds[head + skipped..].iter().for_each(|round| table.push(row(round)));
    let text = table.render_within(width, &[SPEED]);
    let meaning = match is_text {
        true => "final and best share of validation tokens that the envs predict; perplexity: exp of their mean loss",
        false => "final and best validation accuracy of the envs",
    };
    Some(format!("{text}  mean, best: {meaning}\n"))
}

/// The column of the rounds that the footer sums up.
const SPEED: &str = "env-steps/s";

/// What the last round was paid for, and the health of the policy that was trained on it.
fn learning(live: &LiveState, width: usize) -> Option<String> {
    let lines: Vec<String> = [reward_terms(live, width), policy_health(live, width)]
        .into_iter()
        .flatten()
        .collect();
    (!lines.is_empty()).then(|| lines.concat())
}

/// What lower precision than f32 hosts were trained in, and what it cost.
fn precision(live: &LiveState, width: usize) -> Option<String> {
    let run = live.started.as_ref()?;
    let mut entries = vec![run.amp_dtype.clone()?];
    let mut scaled = live.rounds.iter().filter_map(|round| round.data.amp.as_ref());
    let skipped: u64 = scaled.clone().flat_map(|scales| &scales.skipped).sum();
    let last = scaled.next_back().into_iter().flat_map(|scales| &scales.scale);
    let range = last.fold(None, |range: Option<(f64, f64)>, scale| {
        let (least, most) = range.unwrap_or((scale.0, scale.0));
        Some((least.min(scale.0), most.max(scale.0)))
    });
    if let Some((least, most)) = range {
        entries.push(format!("{skipped} host updates skipped"));
        entries.push(match least == most {
            true => format!("last loss scale {least}"),
            false => format!("last loss scales {least} to {most}"),
        });
    }
    Some(listed("precision", &entries, width))
}

/// Batches that were not computed as they were meant to be.
fn fallbacks(live: &LiveState, width: usize) -> Option<String> {
    let mut all = Fallbacks::default();
    let data = live.rounds.iter().filter_map(|round| round.data.fallbacks);
    data.for_each(|of_round| all += of_round);
    let Fallbacks {
        kernel,
        autocast,
        graph,
    } = all.any()?;
    let entries = [
        format!("{kernel} batches by libtorch's operators"),
        format!("{autocast} in f32"),
        format!("{graph} not as CUDA graphs"),
    ];
    Some(listed("fallbacks", &entries, width))
}

/// What readers of the numbers should know.
fn confounders(live: &LiveState, width: usize) -> Option<String> {
    let entries = live.confounders.entries();
    (!entries.is_empty()).then(|| listed("to know", &entries, width))
}

/// `reward terms   attribution +8.10, pbrs +2.00, 3 others -0.20`: those that weigh most.
fn reward_terms(live: &LiveState, width: usize) -> Option<String> {
    let terms = live.reward_terms()?.iter();
    let mut terms: Vec<(&str, f64)> = terms.map(|(name, mean)| (name.as_str(), mean.0)).collect();
    terms.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let rest = terms.split_off(TERMS_SHOWN.min(terms.len()));
    let mut entries: Vec<String> = terms.iter().map(|(name, mean)| format!("{name} {mean:+.2}")).collect();
    if !rest.is_empty() {
        let sum: f64 = rest.iter().map(|(_, mean)| mean).sum();
        entries.push(format!("{} others {sum:+.2}", rest.len()));
    }
    (!entries.is_empty()).then(|| listed("reward terms", &entries, width))
}

/// How learning went.
fn policy_health(live: &LiveState, width: usize) -> Option<String> {
    let update = live.latest_update()?;
    let skipped = match live.skipped_updates {
        0 => String::new(),
        count => format!(" ({count} skipped)"),
    };
    let doubt = match update.data {
        Some(data) if data.ev_low_return_variance => " (returns hardly vary)",
        _ => "",
    };
    let mut policy = vec![format!("{} updates{skipped}", live.updates())];
    policy.extend(learning_curve(&live.rounds));
    let mut last = vec![
        format!("entropy {}", number(update.measured.entropy_mean, 2)),
        format!("KL {}", number(update.measured.approx_kl, 4)),
        match live.is_offline() {
            true => format!(
                "loss {}, held out {}",
                number(update.measured.loss_policy, 4),
                number(update.held_out_nll, 4)
            ),
            false => format!("clip fraction {}", number(update.measured.clip_fraction, 2)),
        },
        format!(
            "explained variance where there was a choice {}{doubt}",
            number(update.data.and_then(|data| data.explained_variance_free), 2)
        ),
    ];
    if !update.update_performed {
        last.push(format!("not performed: {}", update.skip_reason.describe()));
    }
    Some(listed("policy", &policy, width) + &listed("last update", &last, width))
}

fn learning_curve(rounds: &[RoundResult]) -> Vec<String> {
    let Some(Learning {
        rounds,
        reward,
        accuracy,
    }) = results::learning(rounds)
    else {
        return Vec::new();
    };
    let rewards = format!("reward {:+.2} -> {:+.2}", reward[0], reward[1]);
    match rounds {
        1 => vec![rewards],
        _ => vec![
            format!("first to last {rounds} rounds: {rewards}"),
            format!("accuracy {:.1} -> {:.1} %", accuracy[0], accuracy[1]),
        ],
    }
}

fn seeds_table(live: &LiveState, width: usize) -> String {
    let seeds = &live.committed;
    if seeds.is_empty() {
        return uncommitted(live, width);
    }
    let mut by_contribution: Vec<&CommittedSeed> = seeds.iter().collect();
    by_contribution.sort_by(|a, b| points(b).total_cmp(&points(a)));
    let rows = by_contribution.iter().take(SEEDS_SHOWN).map(|seed| {
        vec![
            seed.seed_id.clone(),
            seed.data.blueprint.clone(),
            seed.at.env.to_string(),
            (seed.at.round + 1).to_string(),
            seed.at.step.to_string(),
            seed.data.params_added.to_string(),
            contribution(seed),
            signed(seed.worth.shapley, 2),
        ]
    });
    let numbers = ["env", "round", "step", "params", "contributes", "Shapley"];
    let mut text = Table::of(&["committed seed", "blueprint"], &numbers, rows).render_within(width, &[]);
    if seeds.len() > SEEDS_SHOWN {
        let hidden = seeds.len() - SEEDS_SHOWN;
        _ = writeln!(text, "  … and {hidden} more (see events.jsonl)");
    }
    text.push_str("  contributes: validation accuracy lost without it, points ± standard error\n");
    text
}

fn points(seed: &CommittedSeed) -> f64 {
    let contribution = seed.worth.contribution;
    contribution.map_or(f64::NEG_INFINITY, |contribution| contribution.points)
}

/// `+2.25 ± 0.40`
fn contribution(seed: &CommittedSeed) -> String {
    cell(seed.worth.contribution, |contribution| {
        let error = number(contribution.standard_error, 2);
        format!("{:+.2} ± {error}", contribution.points)
    })
}

fn latest_rounds(live: &LiveState, width: usize) -> Option<String> {
    let Average {
        accuracy,
        half_width,
        hosts,
        rounds,
    } = results::average(live)?;
    let sentence = format!(
        "{accuracy:.2} ± {half_width:.2} % with committed seeds alone: validation, mean and its 95 % interval (t) over the {hosts} hosts \
         of {} of this training; another seed may differ by more",
        match rounds {
            1 => "the last round".into(),
            rounds => format!("the last {rounds} rounds"),
        }
    );
    Some(said("on average", &sentence, width))
}

/// The best grown host and smaller ones that none beats in both accuracy and size, with their committed seeds alone, beside
/// the one that never grew.
fn comparison(live: &LiveState) -> Option<String> {
    let (best, baseline) = (live.best_episode(), live.baseline.as_ref());
    if best.is_none() && baseline.is_none() {
        return None;
    }
    let accuracy = |value: Option<Num>| number(value, 2);
    if let Some(best) = best.filter(|best| !best.has_committed()) {
        let still = baseline.map_or_else(String::new, |still| {
            let (test, validation) = (accuracy(still.test_accuracy), accuracy(Some(still.val_accuracy)));
            format!("The host that never grew: {test} % on the test part, {validation} % in validation.\n")
        });
        return Some(format!(
            "No host was better with committed seeds than the best without any:\n{} % on the test part, {} % in validation.\n{still}",
            accuracy(best.data.test_accuracy),
            accuracy(Some(Num(best.committed_accuracy()))),
        ));
    }
    let mut table = Table::new(&["with committed seeds alone"], &["test acc %", "val acc %", "params"]);
    let front: Vec<&EpisodeResult> = live.front.iter().rev().collect();
    let shown = FRONT_SHOWN.min(front.len());
    for place in 0..shown {
        // Evenly, from the best to the smallest.
        let host = front[place * (front.len() - 1) / (shown - 1).max(1)];
        let name = if place == 0 { "best grown host" } else { "smaller" };
        let (at, ratio) = (host.at, host.data.committed_ratio);
        table.push(vec![
            format!("{name} (e{}: env {}, round {})", at.episode, at.env, at.round + 1),
            accuracy(host.data.test_accuracy),
            accuracy(Some(Num(host.committed_accuracy()))),
            cell(ratio, |ratio| format!("{:.2}x", ratio.0)),
        ]);
    }
    if let Some(still) = baseline {
        let [test, validation] = [still.test_accuracy, Some(still.val_accuracy)].map(accuracy);
        table.push(vec!["host that never grew".into(), test, validation, "1.00x".into()]);
    }
    if let Some(Gains { test, validation }) = results::gains(live) {
        table.push(vec![
            "growth gains".into(),
            signed(test, 2),
            signed(Some(validation), 2),
        ]);
    }
    Some(table.render())
}

fn footer(live: &LiveState, directory: &Path, width: usize) -> Option<String> {
    let mut text = String::new();
    if let (Some(steps), Some(samples), false) = (live.env_steps_per_s(), live.samples_per_s(), live.is_offline()) {
        let wall = live
            .finished
            .as_ref()
            .map_or_else(String::new, |run| format!(" in {:.1} s", run.wall_s.0));
        _ = writeln!(
            text,
            "throughput     {steps:.1} env-steps/s, {samples:.0} training samples/s{wall}"
        );
    }
    text.extend(time(&live.rounds, width));
    text.extend(memory(&live.rounds, width));
    if let Some(error) = live.finished.as_ref().and_then(|run| run.error.as_ref()) {
        text += &said("stopped by", error, width);
    }
    _ = writeln!(text, "run directory  {}", directory.display());
    Some(text)
}

/// `train 61 %, validate 22 %, …`: where the time of the rounds went.
fn time(rounds: &[RoundResult], width: usize) -> Option<String> {
    let mut shares = results::time_shares(rounds)?;
    shares.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    // Shares that are not shown as 0 %.
    let shown = shares.iter().take(PHASES_SHOWN).filter(|(_, share)| *share >= 0.005);
    let entries: Vec<String> = shown
        .map(|(name, share)| format!("{name} {:.0} %", 100.0 * share))
        .collect();
    (!entries.is_empty()).then(|| listed("time", &entries, width))
}

/// `process 1.2 GiB, cuda:0 9.3 GiB`: the most of any round.
fn memory(rounds: &[RoundResult], width: usize) -> Option<String> {
    let most = results::memory(rounds).into_iter();
    let entries: Vec<String> = most
        .map(|(place, bytes)| format!("{place} {}", size(bytes.into())))
        .collect();
    (!entries.is_empty()).then(|| listed("memory", &entries, width))
}

#[cfg(test)]
mod tests;
