//! Methods against each other, over their trainings.

use std::fmt::Write;

use super::csv::{Csv, exact};
use super::table::Table;
use super::words::{ABSENT, cell, number, wrapped};
use crate::compare::statistics::{Arm, Criteria, DecisionTest, Verdict};
use crate::compare::{Estimate, MethodComparison};

/// Methods and their differences, in lines of at most `width` characters.
pub fn comparison_text(comparison: &MethodComparison, width: usize) -> String {
    let decimals = comparison.metric.decimals();
    let mut lines = vec![
        comparison.metric.words().to_owned(),
        "intervals: 95 %, over trainings of a method (and, inside each, its evaluation seeds and episodes)".to_owned(),
    ];
    lines.extend(
        comparison
            .objections
            .iter()
            .map(|why| format!("no valid comparison: {why}")),
    );
    lines.extend(comparison.notes.iter().map(|note| format!("note: {note}")));
    let left_out = comparison.left_out.iter();
    lines.extend(left_out.map(|left| format!("left out: {} ({}): {}", left.run_id, left.method, left.reason)));
    let mut text: String = lines.iter().map(|line| wrapped(line, width) + "\n").collect();
    let mut scopes: Vec<Option<&str>> = Vec::new();
    for method in &comparison.methods {
        if !scopes.contains(&method.task.as_deref()) {
            scopes.push(method.task.as_deref());
        }
    }
    for scope in scopes {
        _ = write!(
            text,
            "\n{}",
            scope.map_or("all tasks".to_owned(), |task| format!("task {task}"))
        );
        let mut table = Table::new(&["method"], &["n", "mean", "IQM", "95 % interval", "worst tenth"]);
        for method in comparison
            .methods
            .iter()
            .filter(|method| method.task.as_deref() == scope)
        {
            table.push(vec![
                method.method.clone(),
                method.trainings.to_string(),
                format!("{:.decimals$}", method.mean.value),
                format!("{:.decimals$}", method.iqm.value),
                interval(&method.iqm, decimals),
                format!("{:.decimals$}", method.worst_tenth.value),
            ]);
        }
        _ = write!(text, "\n{}", table.render_within(width, &[]));
        let mut table = Table::new(
            &["difference of IQMs"],
            &["", "95 % interval", "p", "P(better)", "verdict"],
        );
        let differences = comparison
            .differences
            .iter()
            .filter(|difference| difference.task.as_deref() == scope);
        for difference in differences.clone() {
            table.push(vec![
                format!("{} - {}", difference.first, difference.second),
                format!("{:+.decimals$}", difference.iqm.value),
                interval(&difference.iqm, decimals),
                number(difference.adjusted_p, 3),
                number(difference.probability_of_improvement.map(|better| better.value), 2),
                verdict_words(difference.verdict).into(),
            ]);
        }
        if differences.count() > 0 {
            _ = write!(text, "\n{}", table.render_within(width, &[]));
        }
    }
    let test = match comparison.criteria.test {
        DecisionTest::MannWhitney => "Mann-Whitney",
        DecisionTest::PairedSignFlip => "sign flips of pairs",
    };
    let tests = comparison
        .differences
        .iter()
        .filter(|difference| difference.adjusted_p.is_some())
        .count();
    let Criteria { alpha, min_effect, .. } = comparison.criteria;
    let legend = format!(
        "p: {test}, two-sided, corrected by Holm's method (tests: {tests}); alpha {alpha}, a difference of {min_effect} \
         matters"
    );
    _ = writeln!(text, "\n{}", wrapped(&legend, width));
    text
}

/// `12.3 … 14.5`
pub fn interval(estimate: &Estimate, decimals: usize) -> String {
    cell(estimate.interval, |interval| {
        format!("{:.decimals$} … {:.decimals$}", interval.low, interval.high)
    })
}

/// A verdict in a table, of the first of two.
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
        "hodges_lehmann",
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
            exact(difference.hodges_lehmann),
            verdict_words(difference.verdict).into(),
        ]);
    }
    [("scores.csv", scores.0), ("differences.csv", differences.0)]
}
