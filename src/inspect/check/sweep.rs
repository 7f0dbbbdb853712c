//! A sweep: its plan, its trials with their results and runs, and the tables that were made of them.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

use super::{Check, CheckVerdict, Part, Use, run};
use crate::checkpoint::Checkpoints;
use crate::files::counted;
use crate::health::FileError;
use crate::record::RESOLVED_FILE;
use crate::report::sweep_tables;
use crate::scenario::Catalog;
use crate::storage;
use crate::sweep::{Collected, Holder, Leases, Plan, Results, SweepFolder, Trial, TrialEnd, read_result};

pub(super) fn check(path: &Path, catalog: &Catalog) -> Check {
    let (folder, plan) = match SweepFolder::open(path, None) {
        Ok(opened) => opened,
        Err(error) => return Check::of_nothing(path, &error.to_string()),
    };
    let mut part = Part::new("plan");
    part.seen = format!("{}: {}", plan.name, counted(plan.trials.len(), "trial"));
    for file in ["sweep.ron", "scenario.ron"] {
        if let Err(error) = crate::files::read_text(&path.join(file)) {
            part.problem(file, error.to_string());
        }
    }
    let is_resumable = part.findings.is_empty();
    let results = Results::read(&folder).unwrap_or_else(|error| {
        part.problem("results", error.to_string());
        Results::default()
    });
    let (leases, players) = check_leases(&folder, &plan, &results);
    let mut parts = vec![part, leases];
    let mut ended = 0;
    for trial in &plan.trials {
        let is_played = players.contains(&trial.id);
        let (part, has_training) = check_trial(&folder, trial, results.end(&trial.id), is_played, catalog);
        ended += usize::from(has_training);
        parts.extend(part);
    }
    parts.push(check_unknown(&folder, &plan));
    parts.push(check_tables(&folder, &plan, !players.is_empty()));
    let uses = [(Use::Work, is_resumable), (Use::Compare, ended > 0)];
    let good_for = uses.into_iter().filter(|(_, is_good)| *is_good).map(|(good, _)| good);
    Check::new(path, parts, good_for.collect(), !players.is_empty())
}

/// Leases, and the trials that a worker plays.
fn check_leases(folder: &SweepFolder, plan: &Plan, results: &Results) -> (Part, BTreeSet<String>) {
    let mut part = Part::new("leases");
    let mut players = BTreeSet::new();
    let mut find = || -> Result<(), FileError> {
        let leases = Leases::read(folder, plan.lease(), SystemTime::now())?;
        for trial in plan.trials.iter().filter(|trial| results.end(&trial.id).is_none()) {
            if let Holder::Playing(_) = leases.holder(&trial.id)? {
                players.insert(trial.id.clone());
            }
        }
        Ok(())
    };
    if let Err(error) = find() {
        part.problem("leases", error.to_string());
    }
    part.seen = format!("{} being played", counted(players.len(), "trial"));
    (part, players)
}

/// The findings about a trial, and whether it has a training to compare.
fn check_trial(
    folder: &SweepFolder,
    trial: &Trial,
    end: Option<TrialEnd>,
    is_played: bool,
    catalog: &Catalog,
) -> (Option<Part>, bool) {
    let run = folder.trial(&trial.id);
    let name = format!("trials/{}", trial.id);
    let mut part = Part::new(trial.id.clone());
    let result = end.and_then(|end| {
        let result = read_result(folder, &trial.id, end);
        let problem = |error: &FileError| part.problem(format!("results/{}", trial.id), error.to_string());
        result.inspect_err(problem).ok()
    });
    let has_training = result.is_some_and(|result| result.training.is_some());
    let is_looked_into = match end {
        Some(TrialEnd::Done | TrialEnd::GivenUp) => true,
        // Without a checkpoint, it restarts from nothing.
        None => !is_played && !Checkpoints::of(&run).ids().is_empty(),
        Some(TrialEnd::Failed) => false,
    };
    if run.is_dir() && is_looked_into {
        let found = run::check(&run, catalog);
        for finding in found.parts.into_iter().flat_map(|inner| inner.findings) {
            let file = format!("{name}/{}", finding.file);
            part.add(finding.weight, file, finding.line.zip(finding.byte), finding.what);
        }
        // One that cannot be read was reported already.
        if let Ok(resolved) = crate::files::read(&run.join(RESOLVED_FILE))
            && blake3::hash(&resolved).to_hex().as_str() != trial.hash
        {
            part.problem(format!("{name}/{RESOLVED_FILE}"), "it isn't the planned scenario");
        }
        if found.verdict == CheckVerdict::Useless {
            part.problem(&name, "its run is unusable");
        }
    } else if end == Some(TrialEnd::Done) {
        part.problem(&name, "the trial is done, but its run is missing");
    }
    part.seen = end.map_or("waiting", TrialEnd::name).into();
    let is_worth_a_line = end.is_some() || !part.findings.is_empty();
    (is_worth_a_line.then_some(part), has_training)
}

/// Runs and results of no trial of the plan.
fn check_unknown(folder: &SweepFolder, plan: &Plan) -> Part {
    let mut part = Part::new("files");
    for inner in ["trials", "results", "logs"] {
        for name in storage::read_dir(&folder.path().join(inner)).unwrap_or_default() {
            let name = name.to_string_lossy();
            let id = name.split('.').next().unwrap_or_default();
            if plan.trial(id).is_none() && name != "latest" {
                part.note(format!("{inner}/{name}"), "it doesn't belong to a trial of the plan");
            }
        }
    }
    part.seen = "no leftovers".into();
    part
}

/// The tables against what would be collected now.
fn check_tables(folder: &SweepFolder, plan: &Plan, is_played: bool) -> Part {
    let mut part = Part::new("tables");
    let collected = match Collected::read(folder, plan) {
        Ok(collected) => collected,
        Err(error) => {
            part.problem("results", error.to_string());
            return part;
        }
    };
    for (file, expected) in sweep_tables(&collected) {
        let what = match crate::files::read_text(&folder.path().join(file)) {
            Ok(kept) if kept == expected => continue,
            Ok(kept) => {
                let lines = kept.lines().zip(expected.lines());
                let line = lines.take_while(|(kept, expected)| kept == expected).count() + 1;
                format!("line {line} differs from the results; `sweep collect` writes it again")
            }
            Err(error) => format!("{error}; `sweep collect` writes it"),
        };
        // Of a sweep that is not over, it may not have been collected since.
        if collected.is_complete && !is_played {
            part.problem(file, what);
        } else {
            part.note(file, what);
        }
    }
    part.seen = "trials.csv, curves.csv".into();
    part
}
