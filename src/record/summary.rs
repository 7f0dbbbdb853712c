//! The summary of a run: what grew, what it was worth, and beside it a host that never grew. Plain text,
//! at most 100 characters wide, drawn from the live state alone.

use std::fmt::Write;
use std::path::Path;

use super::table::Table;
use crate::telemetry::{BaselineMeasured, CommittedSeed, EpisodeResult, LiveState, Num, RoundResult};

/// Rounds shown in full; of a longer run the first and the last ones.
const ROUNDS_SHOWN: usize = 20;
/// Committed seeds shown, those that contribute most.
const SEEDS_SHOWN: usize = 16;
/// Characters of a line.
const WIDTH: usize = 100;
/// What was not measured.
const ABSENT: &str = "—";

/// The summary table of a run whose files are in `directory`.
pub fn summary(live: &LiveState, directory: &Path) -> String {
    [
        headline(live),
        rounds_table(&live.rounds),
        learning(live),
        seeds_table(&live.committed),
        comparison(live.best_episode.as_ref(), live.baseline.as_ref()),
        footer(live, directory),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>()
    .join("\n")
}

fn headline(live: &LiveState) -> Option<String> {
    let run = live.started.as_ref()?;
    Some(format!(
        "{}: {} envs, {} steps a round, controller {}\n",
        run.task, run.n_envs, run.max_steps, run.controller
    ))
}

fn rounds_table(rounds: &[RoundResult]) -> Option<String> {
    if rounds.is_empty() {
        return None;
    }
    let is_paid = rounds.iter().any(|round| round.told.paid.is_some());
    let mut columns = vec!["round", "mean acc %", "best acc %"];
    columns.extend(is_paid.then_some("reward"));
    columns.extend(["germinated", "fossilized", "pruned", "rollbacks", "env-steps/s"]);
    let mut table = Table::new(&[], &columns);
    let skipped = rounds.len().saturating_sub(ROUNDS_SHOWN);
    let head = if skipped > 0 { ROUNDS_SHOWN / 2 } else { 0 };
    let row = |round: &RoundResult| {
        let mut cells = vec![
            (round.round + 1).to_string(),
            format!("{:.2}", round.told.accuracy_mean.0),
            format!("{:.2}", round.told.accuracy_best.0),
        ];
        cells.extend(is_paid.then(|| signed(round.reward_mean())));
        cells.extend([
            round.told.growth.germinated.to_string(),
            round.told.growth.fossilized.to_string(),
            round.told.growth.pruned.to_string(),
            round.rollbacks.to_string(),
            format!("{:.1}", round.told.perf.env_steps_per_s.0),
        ]);
        cells
    };
    rounds[..head].iter().for_each(|round| table.push(row(round)));
    if skipped > 0 {
        table.push(vec!["…".into()]);
    }
    rounds[head + skipped..].iter().for_each(|round| table.push(row(round)));
    Some(table.render())
}

/// What the last round was paid for, and the health of the policy that was trained on it.
fn learning(live: &LiveState) -> Option<String> {
    let lines: Vec<String> = [reward_terms(live), policy_health(live)]
        .into_iter()
        .flatten()
        .collect();
    (!lines.is_empty()).then(|| lines.concat())
}

/// `reward terms   attribution +8.10, pbrs +2.00, 3 others -0.20`: those that weigh most, as many as fit in a line.
fn reward_terms(live: &LiveState) -> Option<String> {
    let terms = live.reward_terms()?.iter();
    let mut terms: Vec<(&str, f64)> = terms.map(|(name, mean)| (name.as_str(), mean.0)).collect();
    terms.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let mut line = String::from("reward terms   ");
    let mut shown = 0;
    for (name, mean) in &terms {
        let separator = if shown == 0 { "" } else { ", " };
        let entry = format!("{separator}{name} {mean:+.2}");
        let is_last = shown + 1 == terms.len();
        if shown > 0 && line.len() + entry.len() + if is_last { 0 } else { REST_WIDTH } > WIDTH {
            break;
        }
        line.push_str(&entry);
        shown += 1;
    }
    let rest = &terms[shown..];
    if !rest.is_empty() {
        let sum: f64 = rest.iter().map(|(_, mean)| mean).sum();
        _ = write!(line, ", {} others {sum:+.2}", rest.len());
    }
    line.push('\n');
    (!terms.is_empty()).then_some(line)
}

/// Room for the terms that are not named.
const REST_WIDTH: usize = ", 99 others -1000.00".len();

/// How learning went, in two lines.
fn policy_health(live: &LiveState) -> Option<String> {
    let update = live.latest_update()?;
    let skipped = match live.skipped_updates {
        0 => String::new(),
        count => format!(" ({count} skipped)"),
    };
    let doubt = match update.data {
        Some(data) if data.ev_low_return_variance => " (returns hardly vary)",
        _ => "",
    };
    let mut text = format!(
        "policy         {} updates{skipped}{}\n",
        live.updates(),
        learning_curve(&live.rounds).unwrap_or_default()
    );
    _ = writeln!(
        text,
        "last update    entropy {}, KL {}, clip fraction {}, explained variance {}{doubt}",
        number(update.entropy.entropy_mean, 2),
        number(update.trust.approx_kl, 4),
        number(update.trust.clip_fraction, 2),
        number(update.critic.explained_variance, 2),
    );
    if !update.update_performed {
        _ = writeln!(text, "               not performed: {}", update.skip_reason.describe());
    }
    Some(text)
}

/// Both ends of the curve. Rounds differ much from one to the next: in longer runs each end is a mean of several.
fn learning_curve(rounds: &[RoundResult]) -> Option<String> {
    let paid: Vec<(f64, f64)> = rounds
        .iter()
        .filter_map(|round| Some((round.reward_mean()?, round.told.accuracy_mean.0)))
        .collect();
    let width = (paid.len() / 4).clamp(1, 10);
    let (first, last) = (paid.get(..width)?, paid.get(paid.len() - width..)?);
    let mean = |rounds: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| rounds.iter().map(of).sum::<f64>() / width as f64;
    let (reward, accuracy) = (
        |rounds| mean(rounds, |round| round.0),
        |rounds| mean(rounds, |round| round.1),
    );
    let rewards = format!("reward {:+.2} -> {:+.2}", reward(first), reward(last));
    Some(if width == 1 {
        format!(", {rewards}")
    } else {
        format!(
            ", first to last {width} rounds: {rewards}, accuracy {:.1} -> {:.1} %",
            accuracy(first),
            accuracy(last)
        )
    })
}

fn number(value: Option<Num>, decimals: usize) -> String {
    value.map_or_else(|| ABSENT.into(), |value| format!("{:.decimals$}", value.0))
}

fn signed(value: Option<f64>) -> String {
    value.map_or_else(|| ABSENT.into(), |value| format!("{value:+.2}"))
}

fn seeds_table(seeds: &[CommittedSeed]) -> Option<String> {
    if seeds.is_empty() {
        return Some("No seed was committed.\n".into());
    }
    let mut by_contribution: Vec<&CommittedSeed> = seeds.iter().collect();
    by_contribution.sort_by(|a, b| points(b).total_cmp(&points(a)));
    let mut table = Table::new(
        &["committed seed", "blueprint"],
        &["env", "round", "step", "params", "contributes", "Shapley"],
    );
    for seed in by_contribution.iter().take(SEEDS_SHOWN) {
        table.push(vec![
            seed.seed_id.clone(),
            seed.told.blueprint.clone(),
            seed.at.env.to_string(),
            (seed.at.round + 1).to_string(),
            seed.at.step.to_string(),
            seed.told.params_added.to_string(),
            contribution(seed),
            signed(seed.worth.shapley),
        ]);
    }
    let mut text = table.render();
    if seeds.len() > SEEDS_SHOWN {
        let hidden = seeds.len() - SEEDS_SHOWN;
        _ = writeln!(text, "  … and {hidden} more (see events.jsonl)");
    }
    text.push_str("  contributes: points of validation accuracy lost without the seed, ± standard error\n");
    Some(text)
}

fn points(seed: &CommittedSeed) -> f64 {
    let contribution = seed.worth.contribution;
    contribution.map_or(f64::NEG_INFINITY, |contribution| contribution.points)
}

/// `+2.25 ± 0.40`
fn contribution(seed: &CommittedSeed) -> String {
    seed.worth.contribution.map_or_else(
        || ABSENT.into(),
        |contribution| {
            let error = contribution
                .standard_error
                .map_or_else(|| ABSENT.into(), |error| format!("{error:.2}"));
            format!("{:+.2} ± {error}", contribution.points)
        },
    )
}

/// The best grown host, with its committed seeds alone, beside the one that never grew.
fn comparison(best: Option<&EpisodeResult>, baseline: Option<&BaselineMeasured>) -> Option<String> {
    if best.is_none() && baseline.is_none() {
        return None;
    }
    let accuracy = |value: Option<Num>| number(value, 2);
    let mut table = Table::new(&["with committed seeds alone"], &["test acc %", "val acc %", "params"]);
    if let Some(best) = best {
        table.push(vec![
            format!("best grown host (env {}, round {})", best.at.env, best.at.round + 1),
            accuracy(best.told.test_accuracy),
            accuracy(Some(Num(best.committed_accuracy()))),
            format!("{:.2}x", best.told.param_ratio.0),
        ]);
    }
    if let Some(baseline) = baseline {
        table.push(vec![
            "host that never grew".into(),
            accuracy(baseline.test_accuracy),
            accuracy(Some(baseline.val_accuracy)),
            "1.00x".into(),
        ]);
    }
    if let (Some(best), Some(baseline)) = (best, baseline) {
        let gain = |grown: Option<Num>, still: Option<Num>| signed(grown.zip(still).map(|(a, b)| a.0 - b.0));
        table.push(vec![
            "growth gains".into(),
            gain(best.told.test_accuracy, baseline.test_accuracy),
            gain(Some(Num(best.committed_accuracy())), Some(baseline.val_accuracy)),
            String::new(),
        ]);
    }
    Some(table.render())
}

fn footer(live: &LiveState, directory: &Path) -> Option<String> {
    let mut text = String::new();
    if let (Some(steps), Some(samples)) = (live.env_steps_per_s(), live.samples_per_s()) {
        let wall = live
            .finished
            .as_ref()
            .map_or_else(String::new, |run| format!(" in {:.1} s", run.wall_s.0));
        _ = writeln!(
            text,
            "throughput     {steps:.1} env-steps/s, {samples:.0} training samples/s{wall}"
        );
    }
    if let Some(error) = live.finished.as_ref().and_then(|run| run.error.as_ref()) {
        _ = writeln!(text, "stopped by     {error}");
    }
    _ = writeln!(text, "run directory  {}", directory.display());
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::SlotId;
    use crate::telemetry::{Event, UpdateSkip, examples};

    fn finished_run(n_rounds: u32) -> LiveState {
        let mut live = LiveState::default();
        live.apply(&Event::run(examples::run_started()));
        live.apply(&Event::run(examples::baseline()));
        for round in 0..n_rounds {
            let context = examples::context_at(0, round, 18);
            live.apply(&Event::env(context, examples::matrix()));
            for (slot, seed_id, blueprint) in [
                (SlotId::new(0, 0), "e0.r0c0.0", "norm"),
                (SlotId::new(0, 1), "e0.r0c1.0", "conv_light"),
                (SlotId::new(0, 1), "e1.r0c1.0", "depthwise"),
            ] {
                let mut seed = examples::fossilized();
                seed.blueprint = blueprint.into();
                if seed_id.starts_with("e1") {
                    seed.contribution = None;
                }
                live.apply(&Event::seed(context, slot, seed_id, seed));
            }
            live.apply(&Event::env(context, examples::shapley()));
            live.apply(&Event::env(context, examples::episode_finished()));
            let mut result = examples::round_finished();
            result.accuracy_mean = Num(54.3 + f64::from(round));
            live.apply(&Event::round(round, result));
        }
        live.apply(&Event::run(examples::run_finished()));
        live
    }

    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or_default()
    }

    #[test]
    fn a_finished_run_is_summed_up_in_aligned_columns() {
        let text = summary(&finished_run(2), Path::new("runs/20260101-000000-test-abcd"));

        insta::assert_snapshot!(text);
        assert!(widest(&text) <= 100);
    }

    fn learning_run() -> LiveState {
        let mut live = LiveState::default();
        let mut started = examples::run_started();
        started.controller = "policy".into();
        live.apply(&Event::run(started));
        for round in 0..3 {
            live.apply(&Event::env(examples::context_at(0, round, 3), examples::rollback()));
            let mut update = examples::learner_update();
            update.updates = u64::from(round) + 1;
            live.apply(&Event::round(round, update));
            let mut result = examples::round_finished();
            result.paid = result.paid.map(|mut paid| {
                paid.reward_mean = Num(3.25 + 4.0 * f64::from(round));
                paid.reward_terms_mean = [
                    ("attribution", 8.0),
                    ("compute_rent", -1.5),
                    ("pbrs", 2.25),
                    ("synergy", 0.5),
                    ("intervention", -0.125),
                    ("fossilize_legitimacy", 1.75),
                    ("prune_penalty", -0.25),
                    ("occupancy_rent", -0.375),
                ]
                .map(|(name, mean)| (name.into(), Num(mean)))
                .into();
                paid
            });
            live.apply(&Event::round(round, result));
        }
        live.apply(&Event::run(examples::run_finished()));
        live
    }

    #[test]
    fn a_run_that_learnt_says_what_it_was_paid_for_and_how_the_policy_is() {
        let text = summary(&learning_run(), Path::new("runs/learnt"));

        insta::assert_snapshot!(text);
        assert!(widest(&text) <= 100);
    }

    #[test]
    fn the_ends_of_a_longer_learning_curve_are_means_of_several_rounds() {
        let round = |round: u32| {
            let mut told = examples::round_finished();
            told.accuracy_mean = Num(20.0 + f64::from(round));
            told.paid = told.paid.filter(|_| round != 3).map(|mut paid| {
                paid.reward_mean = Num(10.0 * f64::from(round));
                paid
            });
            let rollbacks = 0;
            RoundResult { round, rollbacks, told }
        };
        let rounds: Vec<RoundResult> = (0..9).map(round).collect();

        assert_eq!(learning_curve(&[]), None);
        assert_eq!(
            learning_curve(&rounds[..3]).as_deref(),
            Some(", reward +0.00 -> +20.00")
        );
        assert_eq!(
            learning_curve(&rounds).as_deref(),
            Some(", first to last 2 rounds: reward +5.00 -> +75.00, accuracy 20.5 -> 27.5 %")
        );
    }

    #[test]
    fn an_update_that_was_not_performed_says_why_and_what_is_unknown() {
        let mut live = learning_run();
        let mut update = examples::learner_update();
        (update.update_performed, update.skip_reason) = (false, UpdateSkip::Mismatch);
        update.trust.approx_kl = None;
        live.apply(&Event::round(2, update));

        let text = summary(&live, Path::new("runs/learnt"));

        assert!(text.contains("3 updates (1 skipped)"), "{text}");
        assert!(text.contains("KL —"), "{text}");
        assert!(text.contains("not performed: rollout and update disagree"), "{text}");
    }

    #[test]
    fn a_run_that_nobody_pays_has_no_reward_column() {
        let mut live = LiveState::default();
        let mut round = examples::round_finished();
        round.paid = None;
        live.apply(&Event::round(0, round));

        let text = summary(&live, Path::new("runs/unpaid"));

        assert!(!text.contains("reward") && !text.contains("policy"), "{text}");
    }

    #[test]
    fn a_long_run_shows_its_first_and_last_rounds_and_its_best_seeds() {
        let text = summary(&finished_run(50), Path::new("runs/long"));

        assert!(text.contains("\n      …\n"), "{text}");
        assert!(text.contains("… and 134 more"), "{text}");
        assert!(text.contains("103.30"), "the last round is shown: {text}");
        assert!(text.lines().count() < 60);
    }

    #[test]
    fn a_run_that_failed_at_once_still_says_why_and_where() {
        let mut live = LiveState::default();
        let mut finished = examples::run_finished();
        finished.error = Some("out of memory".into());
        live.apply(&Event::run(finished));

        assert_eq!(
            summary(&live, Path::new("runs/short")),
            "No seed was committed.\n\nstopped by     out of memory\nrun directory  runs/short\n"
        );
    }
}
