//! The trials of a sweep: as people read them, and in files for programs: `trials.csv` (one row per trial), `curves.csv` (one
//! row per trial and round), `sweep.json` (both, and the trainings that they were made from).

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::ValueEnum;

use super::comparison::comparison_text;
use super::csv::{Csv, exact};
use super::table::Table;
use super::words::{cell, number};
use crate::compare::{Metric, TrainingRecord};
use crate::health::{AtPath, FileError};
use crate::sweep::{Collected, CollectedTrial, Plan, SweepFolder, Trial, TrialResult, replace_shared};

/// Files of CSV in a sweep's folder, by name.
pub fn sweep_tables(collected: &Collected) -> [(&'static str, String); 2] {
    let tables = Tables(collected);
    [("trials.csv", tables.trials()), ("curves.csv", tables.curves())]
}

/// Writes the tables into the sweep's folder; their paths.
///
/// # Errors
/// A file that cannot be written.
pub fn write_sweep(collected: &Collected, folder: &SweepFolder) -> Result<Vec<PathBuf>, FileError> {
    let json = serde_json::to_vec_pretty(collected).at(&folder.path().join("sweep.json"))?;
    let tables = sweep_tables(collected).map(|(name, table)| (name, table.into_bytes()));
    let files = tables.into_iter().chain([("sweep.json", json)]);
    let written = files.map(|(name, content)| {
        let path = folder.path().join(name);
        replace_shared(&path, &content).at(&path).map(|()| path)
    });
    written.collect()
}

struct Tables<'a>(&'a Collected);

impl Tables<'_> {
    /// Paths that the settings of trials have, in the order in which they come.
    fn axes(&self) -> Vec<&str> {
        let mut axes = Vec::new();
        for setting in self.0.trials.iter().flat_map(|trial| &trial.trial.settings) {
            if !axes.contains(&setting.path.as_str()) {
                axes.push(setting.path.as_str());
            }
        }
        axes
    }

    /// `trials.csv`: one row per trial.
    fn trials(&self) -> String {
        let axes = self.axes();
        let mut columns = self.head_columns(&axes);
        columns.extend(["state", "reason", "timed_out", "rounds", "env_steps", "evaluated"]);
        columns.extend(Metric::value_variants().iter().map(|metric| metric.name()));
        columns.extend(["train_s", "wall_s", "attempts", "engine", "commit"]);
        let mut csv = Csv::new(&columns);
        for CollectedTrial { trial, result, scores } in &self.0.trials {
            let mut row = self.head(trial, &axes);
            let training = result.as_ref().and_then(|result| result.training.as_ref());
            let of_result = |of: fn(&TrialResult) -> String| result.as_ref().map_or_else(String::new, of);
            row.push(result.as_ref().map_or("waiting", |result| result.end.name()).into());
            row.push(of_result(|result| result.reason.clone().unwrap_or_default()));
            row.push(of_result(|result| result.timed_out.to_string()));
            row.push(training.map_or_else(String::new, |training| training.curve.len().to_string()));
            row.push(training.map_or_else(String::new, |training| training.env_steps().to_string()));
            row.push(training.map_or_else(String::new, |training| training.is_evaluated.to_string()));
            for metric in Metric::value_variants() {
                row.push(exact(scores.get(metric.name()).copied()));
            }
            row.push(training.map_or_else(String::new, |training| format!("{:.3}", training.seconds())));
            row.push(of_result(|result| format!("{:.3}", result.wall_s)));
            row.push(of_result(|result| result.attempts.to_string()));
            row.push(of_result(|result| result.engine.clone()));
            row.push(of_result(|result| result.commit.clone().unwrap_or_default()));
            csv.push(&row);
        }
        csv.0
    }

    /// `curves.csv`: one row per trial and round.
    fn curves(&self) -> String {
        let axes = self.axes();
        let mut columns = self.head_columns(&axes);
        columns.extend([
            "round",
            "env_steps",
            "seconds",
            "accuracy",
            "accuracy_minus_rent",
            "param_ratio",
        ]);
        let own = self.metrics();
        columns.extend(&own);
        let mut csv = Csv::new(&columns);
        for CollectedTrial { trial, result, .. } in &self.0.trials {
            let training = result.as_ref().and_then(|result| result.training.as_ref());
            for point in training.iter().flat_map(|training| &training.curve) {
                let mut row = self.head(trial, &axes);
                row.extend([
                    (point.round + 1).to_string(),
                    point.env_steps.to_string(),
                    format!("{:.3}", point.seconds),
                    exact(Some(point.accuracy)),
                    exact(point.accuracy_minus_rent),
                    exact(Some(point.param_ratio)),
                ]);
                row.extend(own.iter().map(|&name| exact(point.metrics.get(name).copied())));
                csv.push(&row);
            }
        }
        csv.0
    }

    /// Names of the metrics that plugins measured.
    fn metrics(&self) -> BTreeSet<&str> {
        let trials = self.0.trials.iter();
        let trainings = trials.filter_map(|trial| trial.result.as_ref()?.training.as_ref());
        let points = trainings.flat_map(|training| &training.curve);
        points
            .flat_map(|point| point.metrics.keys().map(String::as_str))
            .collect()
    }

    /// Returns whether the sweep names its points.
    fn has_names(&self) -> bool {
        self.0.trials.iter().any(|trial| trial.trial.name.is_some())
    }

    fn head_columns<'a>(&self, axes: &[&'a str]) -> Vec<&'a str> {
        let mut columns = vec!["trial", "point", "replicate", "seed"];
        columns.extend(self.has_names().then_some("name"));
        columns.extend(axes);
        columns
    }

    fn head(&self, trial: &Trial, axes: &[&str]) -> Vec<String> {
        let mut row = vec![
            trial.id.clone(),
            trial.point.to_string(),
            trial.replicate.to_string(),
            trial.seed.0.to_string(),
        ];
        row.extend(self.has_names().then(|| trial.name.clone().unwrap_or_default()));
        row.extend(axes.iter().map(|axis| {
            let setting = trial.settings.iter().find(|setting| setting.path == *axis);
            let value = setting.map_or("", |setting| setting.value.0.as_str());
            value.trim_matches('"').to_owned()
        }));
        row
    }
}

/// The trials that are planned, in lines of at most `width` characters.
pub fn plan_table(plan: &Plan, width: usize) -> String {
    let row = |trial: &Trial| {
        let (seed, rounds) = (trial.seed.0.to_string(), trial.rounds.to_string());
        vec![trial.id.clone(), trial.label(), seed, rounds]
    };
    let rows = plan.trials.iter().map(row);
    Table::of(&["trial", "settings"], &["seed", "rounds"], rows).render_within(width, &[])
}

/// The trials, and what the judge says about their points.
pub fn sweep_text(collected: &Collected, width: usize) -> String {
    let trials = results_table(collected).render_within(width, &["minus rent"]);
    let judgement = collected.judgement.as_ref();
    let judgement = judgement.map(|judgement| comparison_text(judgement, width));
    [trials].into_iter().chain(judgement).collect::<Vec<_>>().join("\n")
}

fn results_table(collected: &Collected) -> Table {
    let row = |trial: &CollectedTrial| {
        let result = trial.result.as_ref();
        let training = result.and_then(|result| result.training.as_ref());
        let score = |metric: Metric| trial.scores.get(metric.name()).copied();
        vec![
            short_id(&trial.trial.id),
            trial.trial.label(),
            result.map_or_else(|| "waiting".into(), end_text),
            trial.trial.seed.0.to_string(),
            cell(training, |training| training.curve.len().to_string()),
            number(score(Metric::Accuracy), 2),
            number(score(Metric::AccuracyMinusRent), 2),
            number(training.map(TrainingRecord::seconds), 0),
        ]
    };
    Table::of(
        &["trial", "settings", "state"],
        &["seed", "rounds", "accuracy", "minus rent", "s"],
        collected.trials.iter().map(row),
    )
}

/// `failed: the reason`
pub fn end_text(result: &TrialResult) -> String {
    let end = result.end.name();
    match &result.reason {
        Some(reason) => format!("{end}: {}", reason.lines().next().unwrap_or_default()),
        None => end.into(),
    }
}

/// Enough of an id to distinguish trials by eye.
pub fn short_id(id: &str) -> String {
    id[..id.len().min(8)].into()
}
