//! The last word of a run (spec 07 §13): what grew, what it was worth, and beside it a host that never grew. Plain text,
//! at most 100 characters wide, drawn from the live state alone.

use std::cmp::Reverse;
use std::fmt::Write;
use std::path::Path;

use super::table::{Align, Table};
use crate::telemetry::{BaselineMeasured, CommittedSeed, EpisodeResult, LiveState, RoundResult};

/// Rounds shown in full; of a longer run the first and the last ones.
const ROUNDS_SHOWN: usize = 20;
/// Committed seeds shown, those that contribute most.
const SEEDS_SHOWN: usize = 16;
/// What was not measured.
const ABSENT: &str = "—";

/// The summary table of a run whose files are in `directory`.
pub fn summary(live: &LiveState, directory: &Path) -> String {
    [
        headline(live),
        rounds_table(live.rounds()),
        seeds_table(live.committed()),
        comparison(live.best_episode(), live.baseline()),
        footer(live, directory),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>()
    .join("\n")
}

fn headline(live: &LiveState) -> Option<String> {
    let run = live.started()?;
    Some(format!(
        "{}: {} envs, {} steps a round, controller {}\n",
        run.task, run.n_envs, run.max_steps, run.controller
    ))
}

fn rounds_table(rounds: &[RoundResult]) -> Option<String> {
    if rounds.is_empty() {
        return None;
    }
    let mut table = Table::new(&[
        ("round", Align::Right),
        ("mean acc %", Align::Right),
        ("best acc %", Align::Right),
        ("germinated", Align::Right),
        ("fossilized", Align::Right),
        ("pruned", Align::Right),
        ("env-steps/s", Align::Right),
    ]);
    let skipped = rounds.len().saturating_sub(ROUNDS_SHOWN);
    let head = if skipped > 0 { ROUNDS_SHOWN / 2 } else { 0 };
    let row = |round: &RoundResult| {
        vec![
            (round.round + 1).to_string(),
            format!("{:.2}", round.accuracy_mean),
            format!("{:.2}", round.accuracy_best),
            round.growth.germinated.to_string(),
            round.growth.fossilized.to_string(),
            round.growth.pruned.to_string(),
            format!("{:.1}", round.env_steps_per_s),
        ]
    };
    rounds[..head].iter().for_each(|round| table.push(row(round)));
    if skipped > 0 {
        table.push(vec!["…".into()]);
    }
    rounds[head + skipped..].iter().for_each(|round| table.push(row(round)));
    Some(table.render())
}

fn seeds_table(seeds: &[CommittedSeed]) -> Option<String> {
    if seeds.is_empty() {
        return Some("No seed was committed.\n".into());
    }
    let mut by_contribution: Vec<&CommittedSeed> = seeds.iter().collect();
    by_contribution.sort_by_key(|seed| Reverse(Ranked(points(seed))));
    let mut table = Table::new(&[
        ("committed seed", Align::Left),
        ("blueprint", Align::Left),
        ("env", Align::Right),
        ("round", Align::Right),
        ("step", Align::Right),
        ("params", Align::Right),
        ("contributes", Align::Right),
        ("Shapley", Align::Right),
    ]);
    for seed in by_contribution.iter().take(SEEDS_SHOWN) {
        table.push(vec![
            seed.seed_id.clone(),
            seed.blueprint.clone(),
            seed.env.to_string(),
            (seed.round + 1).to_string(),
            seed.step.to_string(),
            seed.params.to_string(),
            contribution(seed),
            seed.shapley
                .map_or_else(|| ABSENT.into(), |value| format!("{value:+.2}")),
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
    seed.contribution
        .map_or(f64::NEG_INFINITY, |contribution| contribution.points)
}

/// `+2.25 ± 0.40`
fn contribution(seed: &CommittedSeed) -> String {
    seed.contribution.map_or_else(
        || ABSENT.into(),
        |contribution| {
            let error = contribution
                .standard_error
                .map_or_else(|| ABSENT.into(), |error| format!("{error:.2}"));
            format!("{:+.2} ± {error}", contribution.points)
        },
    )
}

/// A total order for sorting; NaN comes before every number.
#[derive(PartialEq)]
struct Ranked(f64);

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The best grown host beside the one that never grew.
fn comparison(best: Option<&EpisodeResult>, baseline: Option<&BaselineMeasured>) -> Option<String> {
    if best.is_none() && baseline.is_none() {
        return None;
    }
    let accuracy = |value: Option<f64>| value.map_or_else(|| ABSENT.into(), |percent| format!("{percent:.2}"));
    let mut table = Table::new(&[
        ("", Align::Left),
        ("test acc %", Align::Right),
        ("val acc %", Align::Right),
        ("params", Align::Right),
    ]);
    if let Some(best) = best {
        table.push(vec![
            format!("best grown host (env {}, round {})", best.env, best.round + 1),
            accuracy(best.test_accuracy),
            accuracy(Some(best.final_accuracy)),
            format!("{:.2}x", best.param_ratio),
        ]);
    }
    if let Some(baseline) = baseline {
        table.push(vec![
            "host that never grew".into(),
            accuracy(baseline.test_accuracy.map(|value| value.0)),
            accuracy(Some(baseline.val_accuracy.0)),
            "1.00x".into(),
        ]);
    }
    if let (Some(best), Some(baseline)) = (best, baseline) {
        let gain = |grown: Option<f64>, still: Option<f64>| match (grown, still) {
            (Some(grown), Some(still)) => format!("{:+.2}", grown - still),
            _ => ABSENT.into(),
        };
        table.push(vec![
            "growth gains".into(),
            gain(best.test_accuracy, baseline.test_accuracy.map(|value| value.0)),
            gain(Some(best.final_accuracy), Some(baseline.val_accuracy.0)),
            String::new(),
        ]);
    }
    Some(table.render())
}

fn footer(live: &LiveState, directory: &Path) -> Option<String> {
    let mut text = String::new();
    if let (Some(steps), Some(samples)) = (live.env_steps_per_s(), live.samples_per_s()) {
        let wall = live
            .finished()
            .map_or_else(String::new, |run| format!(" in {:.1} s", run.wall_s.0));
        _ = writeln!(
            text,
            "throughput     {steps:.1} env-steps/s, {samples:.0} training samples/s{wall}"
        );
    }
    if let Some(error) = live.finished().and_then(|run| run.error.as_ref()) {
        _ = writeln!(text, "stopped by     {error}");
    }
    _ = writeln!(text, "run directory  {}", directory.display());
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::SlotId;
    use crate::telemetry::{Event, Num, examples};

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
