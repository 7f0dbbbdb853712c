//! A sweep: its plan against the trials, their results and runs, and the tables that were made of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{Check, CheckVerdict, Part, Use, check_run};
use crate::checkpoint::Checkpoints;
use crate::compare::TrainingRecord;
use crate::report::sweep_tables;
use crate::scenario::Catalog;
use crate::sweep::{Collected, Holder, Leases, Plan, Results, SweepFolder, Trial, TrialEnd, TrialResult, read_result};

pub(super) fn check(path: &Path, catalog: &Catalog) -> Check {
    let (folder, plan) = match SweepFolder::open(path, None) {
        Ok(opened) => opened,
        Err(error) => return Check::of_nothing(path, &error.to_string()),
    };
    let mut part = Part::new("plan");
    part.seen = format!("{}: {} trials", plan.name, plan.trials.len());
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
    let leases = match Leases::look(folder, plan.lease()) {
        Ok(leases) => leases,
        Err(error) => {
            part.problem("leases", error.to_string());
            return (part, players);
        }
    };
    for trial in plan.trials.iter().filter(|trial| results.end(&trial.id).is_none()) {
        match leases.holder(&trial.id) {
            Ok(Holder::Playing(_)) => _ = players.insert(trial.id.clone()),
            Ok(Holder::None | Holder::Lost(_)) => {}
            Err(error) => part.problem("leases", error.to_string()),
        }
    }
    for name in leases.names() {
        let (id, attempt) = name.rsplit_once('.').unwrap_or((name, ""));
        let attempt: Option<u32> = attempt.parse().ok().filter(|&attempt| attempt > 0);
        match attempt.filter(|_| plan.trial(id).is_some()) {
            None => part.note(format!("leases/{name}"), "it is no lease of a trial of the plan"),
            Some(attempt) if attempt > 1 && !leases.has(id, attempt - 1) => {
                part.problem(
                    format!("leases/{name}"),
                    format!("that of attempt {} is gone", attempt - 1),
                );
            }
            Some(_) => {}
        }
    }
    part.seen = format!("{} trials are played", players.len());
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
    let result = end.map(|end| read_result(folder, &trial.id, end));
    let result = match result.transpose() {
        Ok(result) => result,
        Err(error) => {
            part.problem(format!("results/{}", trial.id), error.to_string());
            None
        }
    };
    let has_training = result.as_ref().is_some_and(|result| result.training.is_some());
    let is_looked_into = match end {
        Some(TrialEnd::Done | TrialEnd::GivenUp) => true,
        // Without a checkpoint, it restarts from nothing.
        None => !is_played && !Checkpoints::of(&run).ids().is_empty(),
        Some(TrialEnd::Failed) => false,
    };
    if run.is_dir() && is_looked_into {
        let found = check_run(&run, catalog);
        for inner in found.parts {
            for finding in inner.findings {
                let file = format!("{name}/{}", finding.file);
                part.add(finding.weight, file, finding.line.zip(finding.byte), finding.what);
            }
        }
        if found.verdict == CheckVerdict::Useless {
            part.problem(&name, "its run is unusable");
        }
    } else if end == Some(TrialEnd::Done) {
        part.problem(&name, "the trial is done, but its run is not there");
    }
    if let Some(result) = result {
        check_result(&mut part, &name, &run, trial, &result);
    }
    part.seen = end.map_or("waiting", TrialEnd::name).into();
    (
        Some(part).filter(|part| end.is_some() || !part.findings.is_empty()),
        has_training,
    )
}

/// A result against the plan and the run that it is of.
fn check_result(part: &mut Part, name: &str, run: &Path, trial: &Trial, result: &TrialResult) {
    let file = format!("results/{}", trial.id);
    let Some(training) = &result.training else {
        if result.end == TrialEnd::Done {
            part.problem(file, "the trial is done, but its result holds no training");
        }
        return;
    };
    let asked = trial.rounds;
    if result.end == TrialEnd::Done && training.rounds != asked {
        part.problem(
            &file,
            format!(
                "{} rounds were to be played; the plan asks for {asked}",
                training.rounds
            ),
        );
    }
    if training.seed != trial.seed {
        part.problem(
            &file,
            format!("seed {}; the plan says {}", training.seed.0, trial.seed.0),
        );
    }
    // What cannot be read has been reported for the run.
    let Ok(mut record) = TrainingRecord::of_run(run) else {
        return;
    };
    if training.is_evaluated {
        // By episodes that the run knows nothing of.
        (record.is_evaluated, record.episodes) = (true, training.episodes.clone());
    }
    // As in JSON, where numbers that are not finite are equal.
    let [data, kept] = [&record, training].map(|record| serde_json::to_value(record).ok());
    if data != kept {
        part.problem(&file, format!("it does not match the events of {name}"));
    }
}

/// Runs and results of no trial of the plan.
fn check_unknown(folder: &SweepFolder, plan: &Plan) -> Part {
    let mut part = Part::new("files");
    for inner in ["trials", "results", "logs"] {
        for entry in fs::read_dir(folder.path().join(inner)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let id = name.split('.').next().unwrap_or_default();
            if plan.trial(id).is_none() && name != "latest" {
                part.note(format!("{inner}/{name}"), "it belongs to no trial of the plan");
            } else if inner == "results" && !name.ends_with(".json") {
                part.note(
                    format!("{inner}/{name}"),
                    "left half written by a process that was killed",
                );
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
                let line = kept
                    .lines()
                    .zip(expected.lines())
                    .take_while(|(kept, expected)| kept == expected)
                    .count();
                format!(
                    "line {} is not what the results say; `sweep collect` writes it again",
                    line + 1
                )
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
