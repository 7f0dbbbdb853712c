//! Plan of a sweep: a list of trials that follows from the sweep file and its scenario alone, checked whole before anything
//! runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::file::{Judge, Setting, SweepFile};
use super::space::{Findings, Point, points};
use crate::engine::{MemoryEstimate, Prepared, SetupError, read_scenario, read_text};
use crate::files::counted;
use crate::record::{Machine, ScenarioFile};
use crate::run::{Room, RoomSource};
use crate::scenario::{Catalog, Loaded, Override, Report, Severity, read_declared, resolved_ron};
use crate::schema::Written;
use crate::seed::BlueprintRegistry;
use crate::telemetry::BigInteger;

/// The built-in scenario of a sweep without one.
pub const QUICKSTART: &str = include_str!("../../scenarios/quickstart.ron");
/// The field that replicates differ in.
const SEED: &str = "run.seed";
/// The field that is the file's name where it is left out.
const NAME: &str = "name";
/// Version of `plan.json`.
const FORMAT: u32 = 1;
/// Digits of a trial's hash that make its id.
const ID_DIGITS: usize = 16;
/// Differences, or broken trials, that are shown; the others are counted.
const SHOWN: usize = 10;

/// A sweep that can be played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of this structure.
    format: u32,
    /// Name of the sweep.
    pub name: String,
    /// The file, with all defaults.
    pub sweep: SweepFile,
    /// Relative paths of the scenario start here; absolute.
    pub folder: Option<PathBuf>,
    /// Point by point; they are begun replicate by replicate.
    pub trials: Vec<Trial>,
}

/// One training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Beginning of `hash`; the name of the trial's folder.
    pub id: String,
    /// blake3 of the resolved scenario, which the seed is part of.
    pub hash: String,
    /// Index of the combination of settings, from 0.
    pub point: usize,
    /// Index of the training of that combination, from 0.
    pub replicate: u32,
    /// `run.seed`.
    pub seed: BigInteger,
    /// Rounds to be played.
    pub rounds: u32,
    /// Name of the point, where the sweep names its points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Settings that distinguish it from the others, except the seed.
    pub settings: Vec<Setting>,
    /// All that the scenario is overridden with, the seed among it.
    pub overrides: Vec<Setting>,
}

impl Setting {
    /// `learner.lr=0.001`
    pub(super) fn label(&self) -> String {
        format!("{}={}", self.path, self.value.0.trim_matches('"'))
    }
}

impl Trial {
    /// The point's name; else `policy.controller=heuristic learner.lr=0.001`.
    pub fn label(&self) -> String {
        let settings = || self.settings.iter().map(Setting::label).collect::<Vec<_>>().join(" ");
        self.name.clone().unwrap_or_else(settings)
    }
}

/// A plan with the texts that it was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Trials to play.
    pub plan: Plan,
    /// The sweep file, verbatim.
    pub text: String,
    /// The scenario, verbatim.
    pub scenario: String,
    /// CUDA devices that a trial uses, at most.
    pub gpus: usize,
    /// Steps of the envs in all trainings.
    pub env_steps: u64,
}

/// A trial, and its share of a machine.
struct Resolved {
    trial: Trial,
    gpus: usize,
    env_steps: u64,
}

/// The reason why a sweep cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Problems with the sweep file or the scenario, or a file that cannot be read.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// Problems with single trials.
    #[error("{0}")]
    Trials(String),
}

/// Reads a sweep file and its scenario, and checks every trial. `overrides` is laid over all trials.
///
/// # Errors
/// Everything that is wrong with the file, the scenario or any trial.
pub fn plan(path: &Path, overrides: &[Override], catalog: &Catalog) -> Result<Planned, PlanError> {
    let text = read_text(path)?;
    let file = read_declared::<SweepFile>(&path.display().to_string(), &text, catalog).map_err(SetupError::Scenario)?;
    let refused = |findings| PlanError::from(SetupError::Scenario(file.report(findings)));
    let points = points(&file).map_err(refused)?;
    let sweep = &file.value;
    let mut findings = check_sweep(sweep);
    findings.extend(check_judge(sweep, &points));
    if !findings.is_empty() {
        return Err(refused(findings));
    }
    let (label, scenario) = match sweep.scenario.as_str() {
        "" => ("quickstart.ron".into(), ScenarioFile::of_text(QUICKSTART)),
        name => {
            let path = path.parent().unwrap_or(Path::new("")).join(name);
            (path.display().to_string(), read_scenario(&path)?)
        }
    };
    let shared = sweep.set.iter().enumerate();
    let shared = shared.map(|(index, setting)| placed(setting, &file.place(&format!("set[{index}].value"))));
    let shared: Vec<Override> = shared.chain(overrides.iter().cloned()).collect();
    let common = Prepared::new(&label, scenario.clone(), &shared, catalog)?;
    let base = Base {
        label,
        seed: common.loaded.scenario.run.seed,
        scenario,
        shared,
        sweep,
        catalog,
    };
    let replicates = |place| (0..sweep.replicates).map(move |replicate| (place, replicate));
    let drafts: Vec<(usize, u32)> = (0..points.len()).flat_map(replicates).collect();
    let resolve = |&(place, replicate): &(usize, u32)| base.trial(place, &points[place], replicate);
    let resolved = sound(drafts.par_iter().map(resolve).collect())?;
    let gpus = resolved.iter().map(|resolved| resolved.gpus).max().unwrap_or(0);
    let env_steps = resolved.iter().map(|resolved| resolved.env_steps).sum();
    let trials: Vec<Trial> = resolved.into_iter().map(|resolved| resolved.trial).collect();
    let findings = repetitions(&trials, &points);
    if !findings.is_empty() {
        return Err(PlanError::Trials(findings));
    }
    let name = match sweep.name.as_str() {
        "" => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        name => name.to_owned(),
    };
    Ok(Planned {
        plan: Plan {
            folder: base.scenario.folder,
            ..Plan::of_trials(&name, file.value.clone(), trials)
        },
        text,
        scenario: base.scenario.text,
        gpus,
        env_steps,
    })
}

/// Starting point of all trials.
struct Base<'a> {
    /// Name of the scenario in messages.
    label: String,
    scenario: ScenarioFile,
    /// Overrides that all of them share.
    shared: Vec<Override>,
    /// The seed, unless one of them sets another.
    seed: u64,
    sweep: &'a SweepFile,
    catalog: &'a Catalog,
}

/// A setting, with the place that it was written in.
fn placed(Setting { path, value }: &Setting, place: &str) -> Override {
    Override::argument(format!("{place}: {path}={}", value.0), path, value.0.clone())
}

impl Base<'_> {
    /// The training `replicate` of the point at a place.
    fn trial(&self, place: usize, point: &Point, replicate: u32) -> Result<Resolved, Vec<String>> {
        let (sweep, seed) = (self.sweep, self.seed.wrapping_add(replicate.into()));
        let mut overrides = self.shared.clone();
        let own = point.settings.iter().zip(&point.places);
        overrides.extend(own.map(|(setting, place)| placed(setting, place)));
        let shown = format!("replicate {replicate}: {SEED}={seed}");
        overrides.push(Override::argument(shown, SEED, seed.to_string()));
        let prepared = Prepared::new(&self.label, self.scenario.clone(), &overrides, self.catalog);
        let prepared = prepared.map_err(problems_of)?;
        check_budget(&prepared, sweep.budget.memory_mib, sweep.budget.parallel).map_err(problems_of)?;
        if let Some(judge) = &sweep.judge {
            check_judged(&prepared, judge).map_err(|message| vec![message])?;
        }
        let (scenario, mut overrides) = (&prepared.loaded.scenario, prepared.overrides.clone());
        if overrides.iter().all(|over| over.path != NAME) {
            // The sweep's copy of the scenario has another file name.
            overrides.push(Override::flag("--set", NAME, format!("{:?}", scenario.name)));
        }
        let settings = overrides.into_iter().map(|over| Setting {
            path: over.path,
            value: Written(over.value),
        });
        let hash = blake3::hash(resolved_ron(scenario).unwrap_or_default().as_bytes()).to_hex();
        let trial = Trial {
            id: hash[..ID_DIGITS].into(),
            hash: hash.to_string(),
            point: place,
            replicate,
            seed: BigInteger(seed),
            rounds: scenario.run.rounds,
            name: point.name.clone(),
            settings: point.settings.clone(),
            overrides: settings.collect(),
        };
        let (run, steps) = (&scenario.run, prepared.loaded.task.max_steps);
        Ok(Resolved {
            trial,
            gpus: scenario.cuda_devices().len(),
            env_steps: u64::from(run.rounds) * run.n_envs as u64 * u64::from(steps),
        })
    }
}

/// Checks that as many trials as are in memory `together` fit into the machine, and each into its share.
fn check_budget(prepared: &Prepared, limit_mib: Option<u64>, together: usize) -> Result<(), SetupError> {
    const MIB: u64 = 1 << 20;
    let at_once = Machine::ram_bytes().map(|bytes| bytes / together as u64);
    let limit = limit_mib.map(|mib| mib.saturating_mul(MIB));
    let Some(bytes) = [at_once, limit].into_iter().flatten().min() else {
        return Ok(());
    };
    let source = RoomSource::Machine;
    let (blueprints, room) = (BlueprintRegistry::default(), Room { bytes, source });
    MemoryEstimate::check(&prepared.loaded, &blueprints, 1, room).map_err(|shortage| SetupError::Memory {
        label: format!("with {} at once", counted(together, "trial")),
        shortage,
    })
}

/// Checks across values of the sweep file.
fn check_sweep(sweep: &SweepFile) -> Findings {
    let mut findings = Findings::new();
    let set = sweep.set.iter().enumerate();
    let set = set.map(|(index, set)| ("set", index, &set.path));
    let axes = sweep.axes.iter().enumerate();
    let axes = axes.map(|(index, axis)| ("axes", index, &axis.path));
    let mut known = BTreeSet::new();
    for (list, index, path) in set.chain(axes) {
        let place = format!("{list}[{index}].path");
        if path == SEED {
            let message =
                "a sweep takes its seeds from replicates; write replicates: N, and `run.seed` in the scenario";
            findings.push((place, message.into()));
        } else if !known.insert(path) {
            findings.push((place, format!("`{path}` is set twice; give it once")));
        }
    }
    if let Some(evaluation) = &sweep.evaluation
        && evaluation.seeds.is_empty()
    {
        findings.push((
            "evaluation.seeds".into(),
            "no seed to evaluate under; write at least one".into(),
        ));
    }
    findings
}

/// Checks what a judge requires of the sweep.
fn check_judge(sweep: &SweepFile, points: &[Point]) -> Findings {
    let mut findings = Findings::new();
    let Some(judge) = &sweep.judge else {
        return findings;
    };
    let mut object = |path: &str, message: String| findings.push((path.into(), message));
    let names: Vec<&str> = points.iter().filter_map(|point| point.name.as_deref()).collect();
    if names.len() < 2 {
        object(
            "judge",
            "a judge compares named points; write at least two in points".into(),
        );
    } else if let Some(control) = judge.control.as_deref().filter(|control| !names.contains(control)) {
        let message = format!("no point is called \"{control}\"; there are: {}", names.join(", "));
        object("judge.control", message);
    }
    if sweep.evaluation.is_none() {
        let message = "a judge scores episodes that nothing was trained on; write evaluation: (episodes: .., seeds: [..], \
                       mode: sample)";
        object("judge", message.into());
    }
    if sweep.early_stop.is_some() {
        object(
            "early_stop",
            "judged points have equal budgets; leave early_stop or judge out".into(),
        );
    }
    findings
}

/// Checks what a judge requires of every trial: equal budgets for all results.
fn check_judged(prepared: &Prepared, judge: &Judge) -> Result<(), String> {
    let Loaded { scenario, task, .. } = &prepared.loaded;
    let run = &scenario.run;
    let sizes = task.data.part_sizes(&task.split);
    if run.early_stop.is_some() || run.run_early_stop.is_some() {
        return Err("judged points have equal budgets; leave run.early_stop and run.run_early_stop out".into());
    }
    if judge.metric.reads_test_part() && sizes.is_some_and(|sizes| sizes.test == 0) {
        let metric = judge.metric.name();
        return Err(format!(
            "judge.metric: {metric}: the task {} has no test part",
            task.name
        ));
    }
    Ok(())
}

/// The trials, or everything that is wrong with them: each problem once, with how many trials have it.
fn sound<T>(trials: Vec<Result<T, Vec<String>>>) -> Result<Vec<T>, PlanError> {
    let count = trials.len();
    let mut found = Vec::new();
    let trials = trials.into_iter();
    let sound = trials.filter_map(|trial| trial.map_err(|problems| found.extend(problems)).ok());
    let sound = sound.collect();
    let mut problems: Vec<(String, usize)> = Vec::new();
    for problem in found {
        match problems.iter_mut().find(|(known, _)| *known == problem) {
            Some((_, trials)) => *trials += 1,
            None => problems.push((problem, 1)),
        }
    }
    if problems.is_empty() {
        return Ok(sound);
    }
    let more = problems.len().saturating_sub(SHOWN);
    let shown = problems.iter().take(SHOWN);
    let shown = shown.map(|(problem, trials)| format!("{problem}\n({trials} of {})", counted(count, "trial")));
    let mut lines: Vec<String> = shown.collect();
    lines.extend((more > 0).then(|| format!("and {more} more problems")));
    Err(PlanError::Trials(lines.join("\n\n")))
}

/// Problems with a trial, one text a problem.
fn problems_of(error: SetupError) -> Vec<String> {
    let SetupError::Scenario(report) = error else {
        return vec![error.to_string()];
    };
    let problems = report.problems.iter();
    let errors = problems.filter(|problem| problem.severity == Severity::Error);
    let alone = errors.map(|problem| Report {
        sources: report.sources.clone(),
        problems: vec![problem.clone()],
    });
    let texts = alone.map(|report| report.to_string().trim_end_matches("\n\n1 problem").to_owned());
    texts.collect()
}

/// Trials that would be the same training.
fn repetitions(trials: &[Trial], points: &[Point]) -> String {
    let mut first: BTreeMap<&str, &Trial> = BTreeMap::new();
    let mut text = String::new();
    for trial in trials {
        if let Some(same) = first.insert(&trial.hash, trial) {
            let places = points[trial.point].places.join(", ");
            _ = writeln!(
                text,
                "{places}: trial {} (seed {}) is the same training as trial {} (seed {}); list each point once",
                trial.label(),
                trial.seed.0,
                same.label(),
                same.seed.0,
            );
        }
    }
    text.trim_end().into()
}

impl Plan {
    /// Time without a sign of life after which a worker counts as gone.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.sweep.budget.lease_s)
    }

    /// Changes if `other` is played instead of this plan, in lines; empty if none.
    pub fn difference(&self, other: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        let describe = |plan: &Self| -> BTreeMap<String, String> {
            let trials = plan.trials.iter();
            let described = |trial: &Trial| format!("{} seed {} ({})", trial.label(), trial.seed.0, trial.id);
            trials.map(|trial| (trial.hash.clone(), described(trial))).collect()
        };
        let (old, new) = (describe(self), describe(other));
        for (sign, these, those) in [("-", &old, &new), ("+", &new, &old)] {
            let changed = these.iter().filter(|(hash, _)| !those.contains_key(*hash));
            let changed: Vec<&String> = changed.map(|(_, trial)| trial).collect();
            lines.extend(changed.iter().take(SHOWN).map(|trial| format!("{sign} {trial}")));
            if changed.len() > SHOWN {
                lines.push(format!("{sign} and {} more trials", changed.len() - SHOWN));
            }
        }
        let (old, new) = (&self.sweep, &other.sweep);
        let mut changed = |what: &str, old: &dyn fmt::Debug, new: &dyn fmt::Debug| {
            let (old, new) = (format!("{old:?}"), format!("{new:?}"));
            if old != new {
                lines.push(format!("~ {what}: {old} -> {new}"));
            }
        };
        changed("early_stop", &old.early_stop, &new.early_stop);
        changed("evaluation", &old.evaluation, &new.evaluation);
        changed("judge", &old.judge, &new.judge);
        changed("budget", &old.budget, &new.budget);
        changed("tags", &old.tags, &new.tags);
        lines
    }

    /// Returns whether `other` plays all trials of this plan in the same way, and perhaps more.
    pub fn is_extended_by(&self, other: &Self) -> bool {
        let theirs: BTreeSet<&str> = other.trials.iter().map(|trial| trial.hash.as_str()).collect();
        self.sweep.early_stop == other.sweep.early_stop
            && self.sweep.evaluation == other.sweep.evaluation
            && self.sweep.judge == other.sweep.judge
            && (self.sweep.early_stop.is_none() || self.trials.len() == other.trials.len())
            && self.trials.iter().all(|trial| theirs.contains(trial.hash.as_str()))
    }

    /// A plan of these trials.
    pub fn of_trials(name: &str, sweep: SweepFile, trials: Vec<Trial>) -> Self {
        Self {
            format: FORMAT,
            name: name.into(),
            sweep,
            folder: None,
            trials,
        }
    }

    /// Returns whether this version can read it.
    pub(super) fn is_known(&self) -> bool {
        self.format == FORMAT
    }

    /// The first trial with an invalid id or that of another trial: folders are named after ids.
    pub(super) fn misnamed(&self) -> Option<&Trial> {
        let mut seen = BTreeSet::new();
        let is_id = |trial: &Trial| {
            trial.id.len() == ID_DIGITS
                && trial.hash.starts_with(&trial.id)
                && trial.id.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        };
        self.trials
            .iter()
            .find(|trial| !is_id(trial) || !seen.insert(&trial.id))
    }

    /// The trial of that id.
    pub fn trial(&self, id: &str) -> Option<&Trial> {
        self.trials.iter().find(|trial| trial.id == id)
    }
}

#[cfg(test)]
mod tests;
