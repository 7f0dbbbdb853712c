//! `export`: a grown network, or a policy, as a folder of plain PyTorch.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::output::show_either;
use super::rejection::Rejection;
use super::{Context, ExportOptions, Outcome};
use crate::checkpoint::{CheckpointName, FrozenPolicy, ResumeError};
use crate::controller::SavedPolicy;
use crate::export::{ExportError, check_place, export_network, export_policy, write};
use crate::health::AtPath;
use crate::keep::{KeptFile, NetworkShelf};
use crate::network::GrownNetwork;
use crate::record::{RunDirectory, find_run};

/// What was exported, for programs to read.
#[derive(Serialize)]
struct Exported<'a> {
    /// What was written.
    folder: &'a Path,
    /// The file that it was made from.
    from: PathBuf,
    /// From 1.
    round: u64,
    /// Index in the run.
    env: u32,
    parameters: u64,
    seeds: usize,
    /// Percent of the validation and the test part.
    validation_accuracy: Option<f64>,
    test_accuracy: Option<f64>,
}

/// Writes the network that is asked for, and says which it is.
pub fn export(options: &ExportOptions, context: &Context) -> Result<Outcome, Rejection> {
    check_place(&options.to, options.force)?;
    if options.policy {
        return policy(options, context);
    }
    let (from, network) = find(options)?;
    let kept = std::fs::read(&from).at(&from).map_err(ExportError::from)?;
    let files = export_network(&network, kept, None)?;
    write(&options.to, &files)?;
    let measures = &network.measures;
    let exported = Exported {
        folder: &options.to,
        from,
        round: u64::from(network.origin.round) + 1,
        env: network.origin.env,
        parameters: measures.parameters,
        seeds: network.graph.seeds().count(),
        validation_accuracy: measures.validation.map(|part| part.accuracy),
        test_accuracy: measures.test.map(|part| part.accuracy),
    };
    Ok(show_either(context.global, &exported, || text(&exported)))
}

fn text(exported: &Exported) -> String {
    let percent = |accuracy: Option<f64>| accuracy.map_or_else(|| "-".into(), |accuracy| format!("{accuracy:.2} %"));
    format!(
        "{}: the network of round {}, env {}: {} parameters, {} seeds, accuracy {} (validation), {} (test)\n",
        exported.folder.display(),
        exported.round,
        exported.env,
        exported.parameters,
        exported.seeds,
        percent(exported.validation_accuracy),
        percent(exported.test_accuracy)
    )
}

/// The policy of a run's newest checkpoint, or that of a folder.
fn policy(options: &ExportOptions, context: &Context) -> Result<Outcome, Rejection> {
    #[derive(Serialize)]
    struct Exported<'a> {
        /// What was written.
        folder: &'a Path,
        /// The folder of the saved policy.
        from: &'a Path,
        updates: u64,
    }
    let usage = |error: &dyn std::fmt::Display| Rejection::Usage(error.to_string());
    let place = find_run(&options.from, options.out.as_deref())?;
    let found = FrozenPolicy::find(&place, CheckpointName::Last).map_err(|error| usage(&error))?;
    let Some(saved) = found.saved else {
        let message = format!(
            "the run {} has no policy: its controller does not learn",
            place.display()
        );
        return Err(Rejection::Usage(message));
    };
    let policy = SavedPolicy::read(&saved).map_err(|error| usage(&error))?;
    write(&options.to, &export_policy(&policy)?)?;
    let exported = Exported {
        folder: &options.to,
        from: saved.path(),
        updates: policy.updates,
    };
    Ok(show_either(context.global, &exported, || {
        let (folder, updates) = (exported.folder.display(), exported.updates);
        format!(
            "{folder}: the policy after {updates} updates, from {}\n",
            exported.from.display()
        )
    }))
}

/// The network that is meant, and its file.
fn find(options: &ExportOptions) -> Result<(PathBuf, GrownNetwork), Rejection> {
    let is_file = options.from.extension().is_some_and(|ending| ending == "safetensors");
    if is_file {
        if options.env.is_some() || options.round.is_some() {
            let message = format!(
                "{} is one network; --env and --round choose among those of a run",
                options.from.display()
            );
            return Err(Rejection::Usage(message));
        }
        return load(options.from.clone());
    }
    let run = find_run(&options.from, options.out.as_deref())?;
    if !RunDirectory::is_at(&run) {
        return Err(ResumeError::NoRun(run).into());
    }
    let kept = NetworkShelf::of(&run).list().map_err(ExportError::from)?;
    let is_meant = |file: &&KeptFile| {
        let round = options.round.is_none_or(|round| round - 1 == file.round);
        round && options.env.is_none_or(|env| env == file.env)
    };
    let meant: Vec<KeptFile> = kept.iter().filter(is_meant).cloned().collect();
    if meant.is_empty() {
        return Err(Rejection::Usage(none_of(&run, &kept)));
    }
    best_of(meant)
}

/// The best that can be read; where none can, why the first cannot.
fn best_of(files: Vec<KeptFile>) -> Result<(PathBuf, GrownNetwork), Rejection> {
    let mut best: Option<(PathBuf, GrownNetwork)> = None;
    let mut failure = None;
    for file in files {
        match load(file.path) {
            Ok(found) if best.as_ref().is_none_or(|(_, best)| found.1.is_better_than(best)) => best = Some(found),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!("a kept network is passed over: {error}");
                failure.get_or_insert(error);
            }
        }
    }
    match (best, failure) {
        (Some(best), _) => Ok(best),
        (None, Some(failure)) => Err(failure),
        (None, None) => Err(Rejection::Usage("there is no network to export".into())),
    }
}

fn load(path: PathBuf) -> Result<(PathBuf, GrownNetwork), Rejection> {
    let network = GrownNetwork::load(&path).map_err(ExportError::from)?;
    Ok((path, network))
}

/// Why a run has not the network that is meant.
fn none_of(run: &Path, kept: &[KeptFile]) -> String {
    let run = run.display();
    if kept.is_empty() {
        return format!(
            "{run} has kept no network: run.keep says which are kept at the ends of rounds; play it with --set run.keep=best, \
             last or all"
        );
    }
    let rounds: BTreeSet<u32> = kept.iter().map(|file| file.round).collect();
    let of_round = |round: &u32| {
        let envs = kept
            .iter()
            .filter(|file| file.round == *round)
            .map(|file| file.env.to_string());
        format!("round {}: env {}", round + 1, envs.collect::<Vec<_>>().join(", "))
    };
    let there: Vec<String> = rounds.iter().map(of_round).collect();
    format!("{run} has not kept that network; it has those of {}", there.join("; "))
}
