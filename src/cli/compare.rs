//! `compare`: methods against each other, over the trainings of runs and sweeps.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use super::options::{CompareOptions, Test};
use super::output::{show, show_either, tell, tell_error, width, wrapped};
use super::{Context, Outcome};
use crate::compare::statistics::{Arm, Criteria, DecisionTest, Verdict};
use crate::compare::{ComparisonPlan, Estimate, MethodComparison, MethodTraining, Metric, TrainingRecord};
use crate::record::{Table, find_run};
use crate::scenario::written_values;
use crate::storage::{self, replace_synced};
use crate::sweep::{Collected, Csv, FolderError, SweepFolder, TrialEnd};

/// What tells runs apart without making them another method.
const NO_METHOD: [&str; 2] = ["run.seed", "name"];
const TASK: &str = "task.name";
const ABSENT: &str = "—";

/// Reads all trainings, groups them into methods, and compares these.
pub fn compare(options: &CompareOptions, context: &Context) -> Result<Outcome, String> {
    if options.list_metrics {
        let mut table = Table::new(&["metric", "what it is", "better"], &[]);
        for metric in Metric::ALL {
            let better = if metric.is_gain() { "more" } else { "less" };
            table.push(vec![metric.name().into(), metric.words().into(), better.into()]);
        }
        return Ok(show(table.render_within(width(), &[])));
    }
    let mut found = Found::default();
    for source in &options.sources {
        found.add(source, options.out.as_deref())?;
    }
    let trainings = found.by_method(&options.by)?;
    let methods: BTreeSet<&str> = trainings.iter().map(|training| training.method.as_str()).collect();
    if let Some(control) = options.control.as_deref().filter(|control| !methods.contains(control)) {
        let known: Vec<&str> = methods.into_iter().collect();
        return Err(format!(
            "--control {control}: no method is called so; there are: {}",
            known.join("; ")
        ));
    }
    let comparison = MethodComparison::new(
        &trainings,
        &ComparisonPlan {
            metric: options.metric,
            criteria: Criteria {
                test: match options.test {
                    Test::MannWhitney => DecisionTest::MannWhitney,
                    Test::SignFlip => DecisionTest::PairedSignFlip,
                },
                alpha: options.alpha,
                min_effect: options.min_effect.unwrap_or(options.metric.usual_effect()),
            },
            control: options.control.clone(),
            outstanding: found.outstanding,
            side_by_side: false,
        },
    );
    if let Some(folder) = &options.csv
        && let Err(error) = write_csv(&comparison, folder)
    {
        tell_error(context.global, format_args!("--csv: {error}"));
        return Ok(Outcome::Failed);
    }
    Ok(show_either(context.global, &comparison, || text(&comparison)))
}

/// Trainings with what their scenarios say.
#[derive(Default)]
struct Found {
    trainings: Vec<(TrainingRecord, BTreeMap<String, String>)>,
    /// Declared and not ended.
    outstanding: usize,
}

impl Found {
    fn add(&mut self, source: &Path, out: Option<&Path>) -> Result<(), String> {
        let (folder, plan) = match SweepFolder::open(source, out) {
            Ok(sweep) => sweep,
            Err(FolderError::Missing { .. }) => {
                let run = find_run(source, out).map_err(|error| format!("no sweep is called so, and {error}"))?;
                let record = TrainingRecord::of_run(&run).map_err(|error| error.to_string())?;
                return self.add_training(record, &run);
            }
            Err(error) => return Err(error.to_string()),
        };
        let collected = Collected::read(&folder, &plan).map_err(|error| error.to_string())?;
        for trial in collected.trials {
            match &trial.result {
                None => self.outstanding += 1,
                Some(result) if result.end == TrialEnd::GivenUp => tell(format_args!(
                    "trial {} was given up early and is left out",
                    trial.trial.id
                )),
                Some(result) => match trial.training() {
                    Some(record) => self.add_training(record, &folder.trial(&trial.trial.id))?,
                    None => tell(format_args!(
                        "trial {} failed before its first round ended and is left out: {}",
                        trial.trial.id,
                        result.reason.as_deref().unwrap_or_default()
                    )),
                },
            }
        }
        Ok(())
    }

    fn add_training(&mut self, record: TrainingRecord, run: &Path) -> Result<(), String> {
        let path = run.join("resolved.ron");
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let values = written_values(&text).ok_or_else(|| format!("{}: this is no scenario", path.display()))?;
        self.trainings.push((record, values));
        Ok(())
    }

    /// Trainings under the names of their methods, in the order in which they came.
    fn by_method(&self, by: &[String]) -> Result<Vec<MethodTraining>, String> {
        let paths: Vec<&str> = if by.is_empty() {
            self.differing()
        } else {
            for path in by {
                if let Some((record, _)) = self.trainings.iter().find(|(_, values)| !values.contains_key(path)) {
                    return Err(format!(
                        "--by {path}: the scenario of {} has no such field; `simic-engine explain` lists the fields",
                        record.run_id
                    ));
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
            .map(|(record, values)| MethodTraining {
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
            .flat_map(|(_, values)| values.keys().map(String::as_str))
            .collect();
        let differs = |path: &&str| {
            let mut values = self.trainings.iter().map(|(_, values)| values.get(*path));
            let first = values.next();
            values.any(|value| Some(value) != first)
        };
        // Another task is told by its name, not by all that makes it another.
        let is_told = |path: &&str| *path == TASK || !path.starts_with("task.") || !differs(&TASK);
        paths
            .into_iter()
            .filter(|path| !NO_METHOD.contains(path) && is_told(path))
            .filter(differs)
            .collect()
    }
}

/// Tables for people.
pub(super) fn text(comparison: &MethodComparison) -> String {
    let (width, decimals) = (width(), comparison.metric.decimals());
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
                difference
                    .adjusted_p
                    .map_or_else(|| ABSENT.into(), |p| format!("{p:.3}")),
                difference
                    .probability_of_improvement
                    .as_ref()
                    .map_or_else(|| ABSENT.into(), |better| format!("{:.2}", better.value)),
                words(difference.verdict).into(),
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

fn interval(estimate: &Estimate, decimals: usize) -> String {
    estimate.interval.map_or_else(
        || ABSENT.into(),
        |interval| format!("{:.decimals$} … {:.decimals$}", interval.low, interval.high),
    )
}

/// A verdict in a table, of the first of two.
pub(super) const fn words(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        None => ABSENT,
        Some(Verdict::InsufficientData) => "too few",
        Some(Verdict::Better(Arm::First)) => "better",
        Some(Verdict::Better(Arm::Second)) => "worse",
        Some(Verdict::Equivalent) => "no difference",
        Some(Verdict::Inconclusive) => "undecided",
    }
}

fn write_csv(comparison: &MethodComparison, folder: &Path) -> Result<(), String> {
    storage::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let ends = |estimate: &Estimate| {
        let ends = estimate
            .interval
            .map(|interval| [interval.low, interval.high].map(|end| end.to_string()));
        ends.unwrap_or_default()
    };
    let optional = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
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
        let [low, high] = ends(&difference.iqm);
        differences.push(&[
            difference.first.clone(),
            difference.second.clone(),
            difference.task.clone().unwrap_or_default(),
            difference.iqm.value.to_string(),
            low,
            high,
            optional(difference.mann_whitney_p),
            optional(difference.sign_flip_p),
            optional(difference.adjusted_p),
            optional(
                difference
                    .probability_of_improvement
                    .as_ref()
                    .map(|better| better.value),
            ),
            optional(difference.hodges_lehmann),
            words(difference.verdict).into(),
        ]);
    }
    let mut curves = Csv::new(&["method", "against", "x", "iqm", "low", "high"]);
    let mut profiles = Csv::new(&["method", "threshold", "fraction", "low", "high"]);
    for method in &comparison.curves {
        for (against, bands) in [("env_steps", &method.by_env_steps), ("seconds", &method.by_seconds)] {
            for band in bands {
                let [low, high] = ends(&Estimate {
                    value: band.iqm,
                    interval: band.interval,
                });
                curves.push(&[
                    method.method.clone(),
                    against.into(),
                    band.x.to_string(),
                    band.iqm.to_string(),
                    low,
                    high,
                ]);
            }
        }
        for point in &method.profile {
            let [low, high] = ends(&Estimate {
                value: point.fraction,
                interval: point.interval,
            });
            profiles.push(&[
                method.method.clone(),
                point.tau.to_string(),
                point.fraction.to_string(),
                low,
                high,
            ]);
        }
    }
    let files = [
        ("scores.csv", scores),
        ("differences.csv", differences),
        ("curves.csv", curves),
        ("profiles.csv", profiles),
    ];
    for (name, csv) in files {
        let path = folder.join(name);
        replace_synced(&path, csv.0.as_bytes()).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}
