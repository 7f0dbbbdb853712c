//! `compare`: methods against each other, over the trainings of runs and sweeps.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::named::Named;
use super::options::CompareOptions;
use super::output::Printer;
use super::rejection::Rejection;
use super::{Context, Outcome, report};
use crate::compare::statistics::Criteria;
use crate::compare::{ComparisonPlan, MethodComparison, MethodTraining, Metric, TrainingRecord};
use crate::health::{AtPath, FileError};
use crate::report::{ListedTraining, Table, comparison_page, comparison_tables, comparison_text};
use crate::scenario::written_values;
use crate::storage::{self, replace_synced};
use crate::sweep::{Collected, TrialEnd};

/// Fields in which runs differ without being another method.
const NO_METHOD: [&str; 2] = ["run.seed", "name"];
const TASK: &str = "task.name";

/// Reads all trainings, groups them into methods, and compares these.
pub fn compare(options: &CompareOptions, context: &Context) -> Result<Outcome, Rejection> {
    let printer = context.printer;
    if options.list_metrics {
        let row = |metric: &Metric| {
            let better = if metric.is_gain() { "more" } else { "less" };
            vec![metric.name().into(), metric.words().into(), better.into()]
        };
        let rows = Metric::value_variants().iter().map(row);
        let table = Table::of(&["metric", "description", "better"], &[], rows);
        return Ok(printer.show(table.render_within(printer.width(), &[])));
    }
    let mut found = Found::default();
    for source in &options.sources {
        found.add(source, options.out.as_deref(), printer)?;
    }
    let trainings = found.by_method(&options.by)?;
    let methods: BTreeSet<&str> = trainings.iter().map(|training| training.method.as_str()).collect();
    if let Some(control) = options.control.as_deref().filter(|control| !methods.contains(control)) {
        let known = Vec::from_iter(methods).join("; ");
        return Err(format!("--control {control}: there is no such method; valid: {known}").into());
    }
    let comparison = MethodComparison::new(
        &trainings,
        &ComparisonPlan {
            metric: options.metric,
            criteria: Criteria {
                test: options.test,
                alpha: options.alpha,
                min_effect: options.min_effect.unwrap_or(options.metric.usual_effect()),
            },
            control: options.control.clone(),
            outstanding: found.outstanding,
            is_judged: false,
        },
    );
    if let Some(folder) = &options.csv {
        write_tables(&comparison, folder).map_err(|error| Rejection::failed(format_args!("--csv: {error}")))?;
    }
    if let Some(file) = &options.report {
        let listed = trainings.iter().zip(&found.trainings);
        let listed = listed.map(|(training, (.., folder))| ListedTraining {
            name: training.method.clone(),
            state: ["not ended", "done"][usize::from(training.record.is_complete)].into(),
            folder: folder.clone(),
            record: Some(&training.record),
        });
        let page = comparison_page("comparison", &comparison, &trainings, &listed.collect::<Vec<_>>());
        report::write(file, &page)?;
    }
    Ok(printer.show_either(&comparison, || comparison_text(&comparison, printer.width())))
}

/// Trainings with their scenarios and their folders.
#[derive(Default)]
struct Found {
    trainings: Vec<(TrainingRecord, BTreeMap<String, String>, PathBuf)>,
    /// Declared and not ended.
    outstanding: usize,
}

impl Found {
    fn add(&mut self, source: &Path, out: Option<&Path>, printer: &Printer) -> Result<(), Rejection> {
        let (folder, plan) = match Named::find(source, out)? {
            Named::Sweep(folder, plan) => (folder, plan),
            Named::Run(run) => return self.add_training(TrainingRecord::of_run(&run)?, &run),
        };
        for trial in Collected::read(&folder, &plan)?.trials {
            match &trial.result {
                None => self.outstanding += 1,
                Some(result) if result.end == TrialEnd::GivenUp => printer.note(format_args!(
                    "trial {} was given up early and is left out",
                    trial.trial.id
                )),
                Some(result) => match trial.training() {
                    Some(record) => self.add_training(record, &folder.trial(&trial.trial.id))?,
                    None => printer.note(format_args!(
                        "trial {} failed before its first round ended and is left out: {}",
                        trial.trial.id,
                        result.reason.as_deref().unwrap_or_default()
                    )),
                },
            }
        }
        Ok(())
    }

    fn add_training(&mut self, record: TrainingRecord, run: &Path) -> Result<(), Rejection> {
        let path = run.join("resolved.ron");
        let text = crate::files::read_text(&path).at(&path)?;
        let values = written_values(&text).ok_or_else(|| format!("{}: this isn't a scenario", path.display()))?;
        self.trainings.push((record, values, run.into()));
        Ok(())
    }

    /// Trainings under the names of their methods, in the order in which they came.
    fn by_method(&self, by: &[String]) -> Result<Vec<MethodTraining>, Rejection> {
        let paths: Vec<&str> = if by.is_empty() {
            self.differing()
        } else {
            for path in by {
                if let Some((record, ..)) = self.trainings.iter().find(|(_, values, _)| !values.contains_key(path)) {
                    let run = &record.run_id;
                    let message = format!(
                        "--by {path}: the scenario of {run} has no such field; `simic-engine explain` lists the fields"
                    );
                    return Err(message.into());
                }
            }
            by.iter().map(String::as_str).collect()
        };
        let name = |values: &BTreeMap<String, String>| {
            let words = paths.iter().map(|path| match (values.get(*path), paths.len()) {
                (Some(value), 1) => value.trim_matches('"').to_owned(),
                (Some(value), _) => format!(
                    "{}={}",
                    path.rsplit('.').next().unwrap_or(path),
                    value.trim_matches('"')
                ),
                (None, _) => format!("{path} absent"),
            });
            match words.collect::<Vec<_>>().join(" ") {
                name if name.is_empty() => "all".into(),
                name => name,
            }
        };
        Ok(self
            .trainings
            .iter()
            .map(|(record, values, _)| MethodTraining {
                method: name(values),
                record: record.clone(),
            })
            .collect())
    }

    /// Fields in which the scenarios differ.
    fn differing(&self) -> Vec<&str> {
        let paths: BTreeSet<&str> = self
            .trainings
            .iter()
            .flat_map(|(_, values, _)| values.keys().map(String::as_str))
            .collect();
        let differs = |path: &&str| {
            let mut values = self.trainings.iter().map(|(_, values, _)| values.get(*path));
            let first = values.next();
            values.any(|value| Some(value) != first)
        };
        // Another task is identified by its name, not by all fields in which it differs.
        let is_shown = |path: &&str| *path == TASK || !path.starts_with("task.") || !differs(&TASK);
        paths
            .into_iter()
            .filter(|path| !NO_METHOD.contains(path) && is_shown(path))
            .filter(differs)
            .collect()
    }
}

fn write_tables(comparison: &MethodComparison, folder: &Path) -> Result<(), FileError> {
    storage::create_dir_all(folder).at(folder)?;
    for (name, table) in comparison_tables(comparison) {
        let path = folder.join(name);
        replace_synced(&path, table.as_bytes()).at(&path)?;
    }
    Ok(())
}
