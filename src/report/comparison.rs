//! Methods against each other, over their trainings.

use std::fmt::Write;

use super::csv::{Csv, exact};
use super::table::Table;
use super::words::{ABSENT, cell, number, wrapped};
use crate::compare::statistics::{Arm, Criteria, DecisionTest, Verdict};
use crate::compare::{Estimate, MethodComparison, MethodDifference, MethodSummary};

/// Columns of a method's scores.
const SCORES: [&str; 5] = ["n", "mean", "IQM", "95 % interval", "worst tenth"];
/// Columns of a difference.
const DIFFERENCES: [&str; 5] = ["", "95 % interval", "p", "P(better)", "verdict"];

/// Methods and their differences, in lines of at most `width` characters.
pub fn comparison_text(comparison: &MethodComparison, width: usize) -> String {
    let mut lines = vec![
        comparison.metric.words().to_owned(),
        "intervals: 95 %, over trainings of a method (and, inside each, its evaluation seeds and episodes)".to_owned(),
    ];
    let objections = comparison.objections.iter();
    lines.extend(objections.map(|why| format!("no valid comparison: {why}")));
    lines.extend(comparison.notes.iter().map(|note| format!("note: {note}")));
    let left_out = comparison.left_out.iter();
    lines.extend(left_out.map(|left| format!("left out: {} ({}): {}", left.run_id, left.method, left.reason)));
    let mut text: String = lines.iter().map(|line| wrapped(line, width) + "\n").collect();
    for (scope, scores, differences) in scoped_tables(comparison) {
        _ = write!(text, "\n{scope}\n{}", scores.render_within(width, &[]));
        if let Some(differences) = differences {
            _ = write!(text, "\n{}", differences.render_within(width, &[]));
        }
    }
    let test = match comparison.criteria.test {
        DecisionTest::MannWhitney => "Mann-Whitney",
        DecisionTest::PairedSignFlip => "sign flips of pairs",
    };
    let differences = comparison.differences.iter();
    let tests = differences.filter(|difference| difference.adjusted_p.is_some()).count();
    let Criteria { alpha, min_effect, .. } = comparison.criteria;
    let legend = format!(
        "p: {test}, two-sided, corrected by Holm's method (tests: {tests}); alpha {alpha}, a difference of {min_effect} \
         matters"
    );
    _ = writeln!(text, "\n{}", wrapped(&legend, width));
    text
}

/// The tables of each task, and of all: its name, the scores of methods, and their differences.
pub(super) fn scoped_tables(comparison: &MethodComparison) -> Vec<(String, Table, Option<Table>)> {
    let decimals = comparison.metric.decimals();
    let scores = |method: &MethodSummary| {
        vec![
            method.method.clone(),
            method.trainings.to_string(),
            format!("{:.decimals$}", method.mean.value),
            format!("{:.decimals$}", method.iqm.value),
            interval(&method.iqm, decimals),
            format!("{:.decimals$}", method.worst_tenth.value),
        ]
    };
    let difference = |difference: &MethodDifference| {
        vec![
            pair(difference),
            format!("{:+.decimals$}", difference.iqm.value),
            interval(&difference.iqm, decimals),
            number(difference.adjusted_p, 3),
            number(difference.probability_of_improvement.map(|better| better.value), 2),
            verdict_words(difference.verdict).into(),
        ]
    };
    let scopes = comparison.methods.chunk_by(|one, next| one.task == next.task);
    let tables = scopes.map(|methods| {
        let task = &methods[0].task;
        let name = task.as_ref().map(|task| format!("task {task}"));
        let of_scope = comparison.differences.iter();
        let of_scope = of_scope.filter(|difference| difference.task == *task);
        let rows: Vec<_> = of_scope.map(difference).collect();
        let differences = (!rows.is_empty()).then(|| Table::of(&["difference of IQMs"], &DIFFERENCES, rows));
        let scores = Table::of(&["method"], &SCORES, methods.iter().map(scores));
        (name.unwrap_or_else(|| "all tasks".into()), scores, differences)
    });
    tables.collect()
}

/// The compared methods, the second subtracted from the first.
pub(super) fn pair(difference: &MethodDifference) -> String {
    format!("{} - {}", difference.first, difference.second)
}

/// `12.3 … 14.5`
pub fn interval(estimate: &Estimate, decimals: usize) -> String {
    cell(estimate.interval, |interval| {
        format!("{:.decimals$} … {:.decimals$}", interval.low, interval.high)
    })
}

/// A verdict in a table, from the view of the first of two.
pub const fn verdict_words(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        None => ABSENT,
        Some(Verdict::InsufficientData) => "too few",
        Some(Verdict::Better(Arm::First)) => "better",
        Some(Verdict::Better(Arm::Second)) => "worse",
        Some(Verdict::Equivalent) => "no difference",
        Some(Verdict::Inconclusive) => "undecided",
    }
}

/// Scores and differences of methods as CSV, by file name.
pub fn comparison_tables(comparison: &MethodComparison) -> [(&'static str, String); 2] {
    let mut scores = Csv::new(&["method", "task", "run", "seed", comparison.metric.name()]);
    for method in &comparison.methods {
        for training in &method.scores {
            scores.push(&[
                method.method.clone(),
                method.task.clone().unwrap_or_default(),
                training.run_id.clone(),
                training.seed.0.to_string(),
                training.score.to_string(),
            ]);
        }
    }
    let mut differences = Csv::new(&[
        "first",
        "second",
        "task",
        "iqm_difference",
        "low",
        "high",
        "mann_whitney_p",
        "sign_flip_p",
        "adjusted_p",
        "probability_of_improvement",
        "verdict",
    ]);
    for difference in &comparison.differences {
        let interval = difference.iqm.interval;
        differences.push(&[
            difference.first.clone(),
            difference.second.clone(),
            difference.task.clone().unwrap_or_default(),
            difference.iqm.value.to_string(),
            exact(interval.map(|interval| interval.low)),
            exact(interval.map(|interval| interval.high)),
            exact(difference.mann_whitney_p),
            exact(difference.sign_flip_p),
            exact(difference.adjusted_p),
            exact(difference.probability_of_improvement.map(|better| better.value)),
            verdict_words(difference.verdict).into(),
        ]);
    }
    [("scores.csv", scores.0), ("differences.csv", differences.0)]
}
