//! What a sweep has found, in tables: `trials.csv` (a row a trial), `curves.csv` (a row a trial and round), `sweep.json`
//! (both, and the trainings that they were made from).

use std::path::PathBuf;

use serde::Serialize;

use super::folder::{SweepFolder, replace_shared};
use super::outcome::{Results, TrialEnd, TrialResult, read_sound};
use super::plan::{Plan, Trial};
use crate::compare::statistics::Criteria;
use crate::compare::{ComparisonPlan, MethodComparison, MethodTraining, Metric, TrainingRecord};
use crate::health::{AtPath, FileError};

/// Rows of a trial that has not ended have these columns empty.
const NOTHING: &str = "";

/// A trial and how it ended, if it has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CollectedTrial {
    /// What was planned.
    #[serde(flatten)]
    pub trial: Trial,
    /// `None` until it ends.
    pub result: Option<TrialResult>,
}

/// All of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Collected {
    /// Name of the sweep.
    pub name: String,
    /// Whether every trial has ended.
    pub is_complete: bool,
    /// In the order of the plan.
    pub trials: Vec<CollectedTrial>,
    /// What the sweep's judge says: see [`Self::judged`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judgement: Option<MethodComparison>,
}

impl CollectedTrial {
    /// What came of it; complete only if the trial was played to its end within its limits.
    pub fn training(&self) -> Option<TrainingRecord> {
        let result = self.result.as_ref()?;
        let mut training = result.training.clone()?;
        training.is_complete &= result.end == TrialEnd::Done && !result.timed_out;
        Some(training)
    }
}

impl Collected {
    /// Reads all results.
    ///
    /// # Errors
    /// A result that cannot be read.
    pub fn read(folder: &SweepFolder, plan: &Plan) -> Result<Self, FileError> {
        let results = Results::read(folder)?;
        let mut trials = Vec::with_capacity(plan.trials.len());
        for trial in &plan.trials {
            let end = results.end(&trial.id);
            trials.push(CollectedTrial {
                trial: trial.clone(),
                result: end.map(|end| read_sound(folder, &trial.id, end)).transpose()?.flatten(),
            });
        }
        Ok(Self {
            name: plan.name.clone(),
            is_complete: trials.iter().all(|trial| trial.result.is_some()),
            trials,
            judgement: None,
        })
    }

    /// With the verdict of the plan's judge, if it has one.
    pub fn judged(mut self, plan: &Plan) -> Self {
        self.judgement = plan.sweep.judge.as_ref().map(|judge| {
            let trainings: Vec<MethodTraining> = self
                .trials
                .iter()
                .filter_map(|trial| {
                    let (method, record) = (trial.trial.label(), trial.training()?);
                    Some(MethodTraining { method, record })
                })
                .collect();
            let plan = ComparisonPlan {
                metric: judge.metric,
                criteria: Criteria {
                    test: judge.test,
                    alpha: judge.alpha,
                    min_effect: judge.min_effect,
                },
                control: judge.control.clone(),
                outstanding: self.trials.iter().filter(|trial| trial.result.is_none()).count(),
                side_by_side: true,
            };
            MethodComparison::new(&trainings, &plan)
        });
        self
    }

    /// Writes the tables into the sweep's folder; their paths.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, folder: &SweepFolder) -> Result<Vec<PathBuf>, FileError> {
        let json = |path: &std::path::Path| serde_json::to_vec_pretty(self).at(path);
        let path = folder.file("sweep.json");
        let files = [
            (folder.file("trials.csv"), self.trials_csv().into_bytes()),
            (folder.file("curves.csv"), self.curves_csv().into_bytes()),
            (path.clone(), json(&path)?),
        ];
        let mut written = Vec::new();
        for (path, content) in files {
            replace_shared(&path, &content).at(&path)?;
            written.push(path);
        }
        Ok(written)
    }

    /// Paths that the settings of trials have, in the order in which they come.
    fn axes(&self) -> Vec<&str> {
        let mut axes = Vec::new();
        for setting in self.trials.iter().flat_map(|trial| &trial.trial.settings) {
            if !axes.contains(&setting.path.as_str()) {
                axes.push(setting.path.as_str());
            }
        }
        axes
    }

    /// `trials.csv`: a row a trial.
    pub fn trials_csv(&self) -> String {
        let axes = self.axes();
        let mut columns = self.head_columns(&axes);
        columns.extend(["state", "reason", "timed_out", "rounds", "env_steps", "evaluated"]);
        columns.extend(Metric::ALL.map(|metric| metric.name()));
        columns.extend(["train_s", "wall_s", "attempts", "engine", "commit"]);
        let mut csv = Csv::new(&columns);
        for CollectedTrial { trial, result } in &self.trials {
            let mut row = self.head(trial, &axes);
            let training = result.as_ref().and_then(|result| result.training.as_ref());
            let of_result = |of: fn(&TrialResult) -> String| result.as_ref().map_or_else(String::new, of);
            row.push(result.as_ref().map_or("waiting", |result| end_name(result.end)).into());
            row.push(of_result(|result| result.reason.clone().unwrap_or_default()));
            row.push(of_result(|result| result.timed_out.to_string()));
            row.push(training.map_or_else(String::new, |training| training.curve.len().to_string()));
            row.push(training.map_or_else(String::new, |training| training.env_steps().to_string()));
            row.push(training.map_or_else(String::new, |training| training.is_evaluated.to_string()));
            for metric in Metric::ALL {
                row.push(number(training.and_then(|training| training.score(metric))));
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

    /// `curves.csv`: a row a trial and round.
    pub fn curves_csv(&self) -> String {
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
        let mut csv = Csv::new(&columns);
        for CollectedTrial { trial, result } in &self.trials {
            let training = result.as_ref().and_then(|result| result.training.as_ref());
            for point in training.iter().flat_map(|training| &training.curve) {
                let mut row = self.head(trial, &axes);
                row.extend([
                    (point.round + 1).to_string(),
                    point.env_steps.to_string(),
                    format!("{:.3}", point.seconds),
                    number(Some(point.accuracy)),
                    number(point.accuracy_minus_rent),
                    number(Some(point.param_ratio)),
                ]);
                csv.push(&row);
            }
        }
        csv.0
    }

    /// Whether the sweep names its points.
    fn has_names(&self) -> bool {
        self.trials.iter().any(|trial| trial.trial.name.is_some())
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
            setting
                .map_or(NOTHING, |setting| setting.value.0.trim_matches('"'))
                .to_owned()
        }));
        row
    }
}

/// As in tables and files.
pub const fn end_name(end: TrialEnd) -> &'static str {
    match end {
        TrialEnd::Done => "done",
        TrialEnd::GivenUp => "given_up",
        TrialEnd::Failed => "failed",
    }
}

/// All digits: what is read back is the same number.
fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Comma-separated values as of RFC 4180, with the line ends of Unix.
pub struct Csv(pub String);

impl Csv {
    /// A table of these columns.
    pub fn new(columns: &[&str]) -> Self {
        let mut csv = Self(String::new());
        let columns: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
        csv.push(&columns);
        csv
    }

    /// Adds a row.
    pub fn push(&mut self, row: &[String]) {
        for (index, field) in row.iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            if field.contains([',', '"', '\n', '\r']) {
                self.0.push('"');
                self.0.push_str(&field.replace('"', "\"\""));
                self.0.push('"');
            } else {
                self.0.push_str(field);
            }
        }
        self.0.push('\n');
    }
}

#[cfg(test)]
mod tests;
