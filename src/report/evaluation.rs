//! A policy and its opponents on the same episodes, as tables.

use std::cmp::Reverse;
use std::fmt::Write;

use super::comparison::{interval, verdict_words};
use super::table::Table;
use super::words::{ABSENT, cell, number, wrapped};
use crate::compare::{ControllerSummary, DecisionSummary, Difference, Paired, SlotCommits, Summary};
use crate::eval::{Blind, Cost, Evaluation, PlayedCheckpoint, PolicyCommits};
use crate::files::counted;

/// Seeds that the head of the tables names.
const SEEDS_SHOWN: usize = 8;
/// Explanations below the tables.
const LEGEND: [&str; 6] = [
    "intervals: over the episodes of this one training; to see how others would end, train several (`sweep`, then \
     `compare`)",
    "p: sign flips of episodes, corrected by Holm's method for all opponents; verdict: of the policy, by accuracy",
    "committed, test %: the host with its committed seeds alone, on images that nothing else reads",
    "GMAC: billions of multiply-accumulates of training and validation",
    "lost: seeds removed without an order: held for too long, not finite, rolled back",
    "no commit, %: of the episodes; at step: mean over those in which it happened",
];
const COSTS_LEGEND: &str = "from scratch: in each episode, the architecture that the policy grew in it, from the first step; \
                            found by: GMAC of the training or search; by net: the best schedule by J, or by accuracy minus rent \
                            if the scenario has no such price";
/// Indent of the numbers of a slot.
const INDENT: &str = "        ";

/// An evaluation, in lines of at most `width` characters.
pub fn evaluation_text(evaluation: &Evaluation, width: usize) -> String {
    let mut seeds: Vec<String> = evaluation.seeds.iter().map(|seed| seed.0.to_string()).collect();
    if seeds.len() > SEEDS_SHOWN {
        seeds.truncate(SEEDS_SHOWN);
        seeds.push(format!("… ({} seeds)", evaluation.seeds.len()));
    }
    let mut text = format!(
        "{} on {}: {} of {} x {} for every controller,\nfrom round {} on, seed {}\npolicy {}\n",
        evaluation.scenario,
        evaluation.task,
        counted(evaluation.rounds, "round"),
        counted(evaluation.envs, "env"),
        counted(evaluation.steps, "step"),
        evaluation.first_round + 1,
        seeds.join(", "),
        evaluation.subject.policy.display()
    );
    if let Some(PlayedCheckpoint { from, rounds }) = &evaluation.subject.checkpoint {
        let doubt = match rounds {
            0 => ": the run has taught the policy nothing yet",
            _ => "",
        };
        _ = writeln!(text, "checkpoint {from}: after {}{doubt}", counted(rounds, "round"));
    }
    for note in &evaluation.notes {
        _ = writeln!(text, "note: {note}");
    }
    for table in score_tables(evaluation).into_iter().chain(seed_tables(evaluation)) {
        _ = write!(text, "\n{}", table.render_within(width, &[]));
    }
    for commits in &evaluation.commits {
        _ = write!(text, "\n{}", commits_text(commits, width));
    }
    for table in difference_tables(evaluation).into_iter().chain(cost_table(evaluation)) {
        _ = write!(text, "\n{}", table.render_within(width, &[]));
    }
    let lines = legend(evaluation).into_iter();
    let lines: Vec<String> = lines.map(|line| wrapped(&line, width)).collect();
    _ = writeln!(text, "\n{}", lines.join("\n"));
    if evaluation.comparison.unmeasured > 0 {
        _ = writeln!(
            text,
            "\n{} left out: a network was rolled back before it was measured",
            counted(evaluation.comparison.unmeasured, "episode")
        );
    }
    text
}

/// Scores of each player.
pub(super) fn score_tables(evaluation: &Evaluation) -> [Table; 3] {
    [
        estimates(evaluation, "final validation accuracy, %", |player| &player.accuracy),
        estimates(evaluation, "accuracy minus rent, points", |player| {
            &player.accuracy_minus_rent
        }),
        others(evaluation),
    ]
}

/// The ends and the steps of an episode's seeds, player by player.
pub(super) fn seed_tables(evaluation: &Evaluation) -> [Table; 2] {
    let players = &evaluation.comparison.players;
    let heads = ["germinated", "committed", "pruned", "lost", "no commit, %"];
    let seeds = table("seeds of an episode", &heads, players, |decisions| {
        let counts = [
            decisions.germinated,
            decisions.committed,
            decisions.pruned,
            decisions.lost,
        ];
        let counts = counts.map(|count| format!("{count:.2}"));
        let share = format!("{:.1}", 100.0 * decisions.without_commit);
        counts.into_iter().chain([share]).collect()
    });
    let heads = ["first seed", "first commit", "last commit"];
    let steps = table("at step", &heads, players, |decisions| {
        let steps = [
            decisions.first_germination,
            decisions.first_commit,
            decisions.last_commit,
        ];
        steps.map(|step| number(step, 1)).into()
    });
    [seeds, steps]
}

/// The policy less each opponent, by accuracy with the verdict, then by the measures that count its size.
pub(super) fn difference_tables(evaluation: &Evaluation) -> Vec<Table> {
    let rent = |pair: &Difference| Some(pair.accuracy_minus_rent);
    let price = |_: &f64| differences(evaluation, "J, paired", |pair| pair.accuracy_minus_price);
    let tables = [
        verdicts(evaluation),
        differences(evaluation, "accuracy minus rent, paired", rent),
    ];
    tables.into_iter().chain(evaluation.price.as_ref().map(price)).collect()
}

/// The explanation of the tables, line by line.
pub(super) fn legend(evaluation: &Evaluation) -> Vec<String> {
    let price = evaluation
        .price
        .map(|price| format!("J: accuracy - {price:?} (params - 1)"));
    let blind = evaluation.blind.as_ref().map(|Blind { seed, hosts, schedule }| {
        format!(
            "blind: at each step what the greedy policy decided most often on {hosts} other hosts (seed {}), without \
             looking: {} orders; policy - blind is the value of feedback",
            seed.0,
            schedule.entries.len()
        )
    });
    let costs = has_costs(evaluation).then(|| COSTS_LEGEND.to_owned());
    let legend = LEGEND.map(String::from).into_iter();
    legend.chain(price).chain(blind).chain(costs).collect()
}

fn estimates(evaluation: &Evaluation, title: &str, of: fn(&ControllerSummary) -> &Summary) -> Table {
    let rows = evaluation.comparison.players.iter().map(|player| {
        let mut row = vec![player.name.clone()];
        for estimate in [&of(player).mean, &of(player).iqm] {
            row.extend([format!("{:.2}", estimate.value), interval(estimate, 2)]);
        }
        row
    });
    Table::of(&[title], &["mean", "95 % interval", "IQM", "95 % interval"], rows)
}

fn others(evaluation: &Evaluation) -> Table {
    let numbers = ["committed, test %", "reward", "params", "J", "GMAC"];
    let rows = evaluation.comparison.players.iter().map(|player| {
        vec![
            player.name.clone(),
            number(player.test_accuracy, 2),
            format!("{:.2}", player.reward.mean.value),
            format!("{:.2}x", player.param_ratio.mean.value),
            number(player.accuracy_minus_price.map(|net| net.mean.value), 2),
            number(player.gmacs, 3),
        ]
    });
    Table::of(&["mean of an episode"], &numbers, rows)
}

/// Returns whether players differ in cost. Controllers on the scenario's hosts don't.
fn has_costs(evaluation: &Evaluation) -> bool {
    let is_shown = |cost: &Cost| cost.schedules.is_some() || cost.steps != evaluation.steps;
    evaluation.costs.iter().any(is_shown)
}

/// Costs of each player. `None` where all are alike.
pub(super) fn cost_table(evaluation: &Evaluation) -> Option<Table> {
    let rows = evaluation.costs.iter().map(|cost| {
        vec![
            cost.name.clone(),
            cost.steps.to_string(),
            format!("{:.2}", cost.seconds),
            cell(cost.schedules, |tried| tried.to_string()),
            number(cost.found_by.and_then(|spent| spent.gmacs), 2),
        ]
    });
    let numbers = ["steps", "s", "schedules", "found by"];
    has_costs(evaluation).then(|| Table::of(&["what it took"], &numbers, rows))
}

/// The differences by accuracy, with the verdicts.
fn verdicts(evaluation: &Evaluation) -> Table {
    let rows = evaluation.comparison.differences.iter().map(|difference| {
        let [name, mean, interval, _] = cells(difference, &difference.accuracy);
        let p = format!("{:.3}", difference.adjusted_p);
        vec![name, mean, interval, p, verdict_words(Some(difference.verdict)).into()]
    });
    let numbers = ["mean", "95 % interval", "p", "verdict"];
    Table::of(&["accuracy, paired difference"], &numbers, rows)
}

fn differences(evaluation: &Evaluation, title: &str, of: fn(&Difference) -> Option<Paired>) -> Table {
    let differences = evaluation.comparison.differences.iter();
    let rows = differences.filter_map(|difference| Some(cells(difference, &of(difference)?).into()));
    Table::of(&[title], &["mean", "95 % interval", "wins"], rows)
}

/// The compared players, the mean difference, its interval, and the number of pairs in which the policy was better.
fn cells(difference: &Difference, paired: &Paired) -> [String; 4] {
    let mean = &paired.difference.mean;
    let pairs = paired.wins + paired.ties + paired.losses;
    [
        format!("{} - {}", difference.policy, difference.baseline),
        format!("{:+.2}", mean.value),
        interval(mean, 2),
        format!("{} of {pairs}", paired.wins),
    ]
}

fn table(
    title: &str,
    heads: &[&str],
    players: &[ControllerSummary],
    cells: fn(&DecisionSummary) -> Vec<String>,
) -> Table {
    let row = |player: &ControllerSummary| {
        let absent = || vec![ABSENT.into(); heads.len()];
        let cells = player.decisions.as_ref().map_or_else(absent, cells);
        std::iter::once(player.name.clone()).chain(cells).collect()
    };
    Table::of(&[title], heads, players.iter().map(row))
}

/// A head, and a line per slot. Text without room continues in the next line.
fn commits_text(commits: &PolicyCommits, width: usize) -> String {
    let room = width.saturating_sub(INDENT.len());
    let lines = commits.slots.iter().map(|slot| {
        let data = wrapped(&in_words(slot), room).replace('\n', &format!("\n{INDENT}"));
        format!("  {:<4}  {data}\n", slot.slot.to_string())
    });
    let lines: String = lines.collect();
    format!("  {}: episodes with a commit of\n{lines}", commits.name)
}

/// `conv_heavy 31, conv_light 9, nothing 8`: the most frequent first, equals by name.
pub(super) fn in_words(commits: &SlotCommits) -> String {
    let mut blueprints: Vec<_> = commits.blueprints.iter().collect();
    blueprints.sort_by_key(|&(_, &episodes)| Reverse(episodes));
    let nothing = (commits.nothing > 0).then(|| format!("nothing {}", commits.nothing));
    let counted = blueprints.into_iter();
    let counted = counted.map(|(blueprint, episodes)| format!("{blueprint} {episodes}"));
    counted.chain(nothing).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
