//! The page of a comparison, or of a sweep: methods as curves with bands over their trainings, their intervals and verdicts, and
//! the cost of accuracy in parameters and compute. Its numbers are those of `compare`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use maud::{Markup, html};

use super::chart::Chart;
use super::page::{Page, shown, table, tile};
use super::pictures::{Point, Spread, forest, scatter};
use crate::compare::statistics::{Arm, Verdict, common_grid, interpolate, mean, mean_and_interval};
use crate::compare::{MethodComparison, MethodTraining, RoundPoint, TrainingRecord};
use crate::files::name_of;
use crate::report::comparison::{pair, scoped_tables, verdict_words};
use crate::report::table::Table;
use crate::report::words::number;

/// Places of a curve.
const GRID: usize = 60;
/// With fewer trainings a band shows the least and the largest.
const FEW: usize = 3;

/// A training with its folder, which a page links to.
pub struct ListedTraining<'a> {
    /// Its name in the table.
    pub name: String,
    /// State of the training.
    pub state: String,
    /// Folder of the run, relative to the page if that is possible.
    pub folder: PathBuf,
    /// Its record. `None` where it has no results.
    pub record: Option<&'a TrainingRecord>,
}

/// The whole page. `trainings` are the compared ones, `listed` all.
pub fn comparison_page(
    title: &str,
    comparison: &MethodComparison,
    trainings: &[MethodTraining],
    listed: &[ListedTraining],
) -> String {
    let mut page = Page::new(format!("{title}: simic-engine"));
    page.head = Some(head(title, comparison, trainings, listed));
    let mut methods: Vec<&str> = Vec::new();
    for training in trainings {
        if !methods.contains(&training.method.as_str()) {
            methods.push(&training.method);
        }
    }
    page.section("learning", "How do they learn?", curves(&methods, trainings));
    let (mut reached, mut differ) = (Vec::new(), Vec::new());
    for (scope, scores, differences) in scoped_tables(comparison) {
        differ.extend(differences.map(|table| (scope.clone(), table)));
        reached.push((scope, scores));
    }
    page.section("methods", "How good are they?", scores(reached));
    page.section("differences", "Which is better?", differences(comparison, differ));
    let body = html! {
        div.grid {
            (costs(&methods, trainings, "parameters over the host's", |point| Some(point.param_ratio)))
            (costs(&methods, trainings, "multiply-accumulates, billions", |point| point.gmacs))
        }
    };
    page.section("costs", "What does it cost?", body);
    page.section("trainings", "Which trainings are these?", list(listed));
    page.render(None)
}

fn head(title: &str, comparison: &MethodComparison, trainings: &[MethodTraining], listed: &[ListedTraining]) -> Markup {
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    for training in listed {
        *states.entry(&training.state).or_default() += 1;
    }
    html! {
        p.name { (title) }
        h1 { (verdict(comparison)) }
        p.note { (comparison.metric.words()) "; intervals: 95 %, over trainings" }
        @for why in &comparison.objections { p.problem { "no valid comparison: " (why) } }
        @for note in &comparison.notes { p.note { "note: " (note) } }
        @for left in &comparison.left_out { p.problem { "left out: " (left.run_id) " (" (left.method) "): " (left.reason) } }
        div.tiles {
            (tile(&trainings.len().to_string(), "trainings with results"))
            @for (state, count) in &states { (tile(&count.to_string(), state)) }
            (tile(&comparison.differences.len().to_string(), "differences"))
        }
    }
}

/// The conclusion, in a sentence.
fn verdict(comparison: &MethodComparison) -> String {
    let better: Vec<String> = comparison
        .differences
        .iter()
        .filter_map(|difference| {
            let (winner, loser) = match difference.verdict? {
                Verdict::Better(Arm::First) => (&difference.first, &difference.second),
                Verdict::Better(Arm::Second) => (&difference.second, &difference.first),
                _ => return None,
            };
            let task = difference.task.as_ref();
            let task = task.map_or_else(String::new, |task| format!(" on {task}"));
            Some(format!("{winner} is better than {loser}{task}"))
        })
        .collect();
    match () {
        () if comparison.interim => "Trainings are outstanding: nothing is concluded yet.".into(),
        () if comparison.differences.is_empty() => "One method: there is nothing to compare it with.".into(),
        () if better.is_empty() => "These trainings do not show that any method is better.".into(),
        () => format!("{}.", better.join("; ")),
    }
}

fn curves(methods: &[&str], trainings: &[MethodTraining]) -> Markup {
    let charts = [
        (
            "by_steps",
            "By env-steps.",
            "env-steps",
            (|point: &RoundPoint| point.env_steps as f64) as fn(&RoundPoint) -> f64,
        ),
        ("by_seconds", "By time.", "seconds", |point| point.seconds),
    ];
    let charts = charts.map(|(id, title, label, of)| {
        let all = trainings.iter().map(|training| curve(&training.record, of)).collect::<Vec<_>>();
        let grid = common_grid(&all, GRID);
        let about = "Mean validation accuracy of a round. Line: mean over trainings. Band: its 95 % interval (t), or the range \
                     of fewer than three.";
        let mut chart = Chart::new(id, (label, "accuracy, %"), grid.clone()).titled(title, about);
        for method in methods {
            let of_method: Vec<_> = trainings.iter().zip(&all).filter(|(training, _)| training.method == *method).map(|(_, curve)| curve).collect();
            let places = grid.iter().map(|&x| band(&of_method.iter().filter_map(|curve| interpolate(curve, x)).collect::<Vec<_>>()));
            let places: Vec<[f64; 3]> = places.collect();
            let ends = |end: usize| places.iter().map(|place| place[end]).collect::<Vec<f64>>();
            chart = chart.band(&format!("{method}, band"), ends(0), ends(2)).line(method, ends(1));
        }
        chart.figure()
    });
    html! { @for chart in charts { (chart) } }
}

fn curve(record: &TrainingRecord, of: fn(&RoundPoint) -> f64) -> Vec<(f64, f64)> {
    record.curve.iter().map(|point| (of(point), point.accuracy)).collect()
}

/// Lower end, mean, upper end.
fn band(values: &[f64]) -> [f64; 3] {
    let ends = |fold: fn(f64, f64) -> f64| values.iter().copied().reduce(fold).unwrap_or(f64::NAN);
    match mean_and_interval(values) {
        Some((mean, half)) if values.len() >= FEW => [mean - half, mean, mean + half],
        _ => [ends(f64::min), mean(values), ends(f64::max)],
    }
}

fn scores(tables: Vec<(String, Table)>) -> Markup {
    html! {
        (scoped(tables))
        p.note {
            "IQM: mean of the middle half of the trainings. "
            "P(better), below: how often a training of the first method beats one of the second."
        }
    }
}

fn differences(comparison: &MethodComparison, tables: Vec<(String, Table)>) -> Markup {
    let spreads = comparison.differences.iter().map(|difference| Spread {
        name: format!("{}: {}", pair(difference), verdict_words(difference.verdict)),
        estimate: difference.iqm,
    });
    html! {
        @if comparison.differences.is_empty() { p { "There is one method." } } @else {
            (forest("Differences with their intervals.", "95 %, over trainings.", "difference of IQMs", spreads))
            (scoped(tables))
        }
    }
}

/// Tables, each below its subject.
fn scoped(tables: Vec<(String, Table)>) -> Markup {
    html! { @for (scope, table) in tables { h3 { (scope) } (shown(table)) } }
}

/// Each training as a point: its result in the last round against its cost.
fn costs(
    methods: &[&str],
    trainings: &[MethodTraining],
    label: &str,
    of: impl Fn(&RoundPoint) -> Option<f64>,
) -> Markup {
    let points = trainings.iter().filter_map(|training| {
        let last = training.record.curve.last()?;
        let cost = of(last).filter(|cost| cost.is_finite())?;
        last.accuracy.is_finite().then(|| Point {
            group: &training.method,
            name: format!("{}, {}", training.method, training.record.run_id),
            cost,
            accuracy: last.accuracy,
        })
    });
    let about = "A point for each training, its last round.";
    scatter(label, about, methods, points)
}

fn list(listed: &[ListedTraining]) -> Markup {
    let rows = listed.iter().map(|training| {
        let last = training.record.and_then(|record| record.curve.last());
        vec![
            html! { (training.name) },
            html! { (training.state) },
            html! { a href=(training.folder.display()) { (name_of(&training.folder)) } },
            html! { (last.map_or(0, |last| last.round + 1)) },
            html! { (number(last.map(|last| last.accuracy), 2)) },
            html! { (number(last.map(|last| last.param_ratio), 2)) "x" },
            html! { (number(last.and_then(|last| last.gmacs), 1)) },
            html! { (number(last.map(|last| last.seconds), 1)) },
        ]
    });
    let numbers = ["rounds", "accuracy, %", "parameters", "GMAC", "seconds"];
    table(&["training", "state", "run"], &numbers, rows)
}

#[cfg(test)]
mod tests;
