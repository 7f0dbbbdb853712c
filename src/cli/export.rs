//! `export`: a grown network, or a policy, as a folder of plain PyTorch; `export-tables`: a run or a sweep as Parquet tables.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::named::{Named, check_apart, held_run};
use super::rejection::Rejection;
use super::{Context, ExportOptions, ExportTablesOptions, Outcome};
use crate::checkpoint::{CheckpointName, FrozenPolicy};
use crate::controller::SavedPolicy;
use crate::export::{check_place, export_network, export_policy, write};
use crate::files::counted;
use crate::health::AtPath;
use crate::keep::{KeptFile, NetworkShelf};
use crate::network::GrownNetwork;
use crate::record::find_run;
use crate::sweep::Collected;
use crate::tables::{ExportedTable, export_run, export_sweep};

/// Writes the network that is asked for, and says which it is.
pub fn export(options: &ExportOptions, context: &Context) -> Result<Outcome, Rejection> {
    check_place(&options.to, options.force)?;
    if options.policy {
        return policy(options, context);
    }
    let (from, network) = find(options)?;
    // An export may be written again from its own copy, which has been read.
    if from != options.to.join("kept.safetensors") {
        check_apart(&options.to, [&from])?;
    }
    let kept = network.to_bytes().at(&from)?;
    let files = export_network(&network, kept, None)?;
    write(&options.to, &files)?;
    let (measures, seeds) = (&network.measures, network.graph.seeds().count());
    let (round, env) = (u64::from(network.origin.round) + 1, network.origin.env);
    let accuracies = [measures.validation, measures.test].map(|part| part.map(|part| part.accuracy));
    let exported = json!({
        "folder": options.to.display().to_string(),
        "from": from.display().to_string(),
        "round": round,
        "env": env,
        "parameters": measures.parameters,
        "seeds": seeds,
        // Percent of the parts.
        "validation_accuracy": accuracies[0],
        "test_accuracy": accuracies[1],
    });
    Ok(context.printer.show_either(&exported, || {
        let percent = |accuracy: Option<f64>| accuracy.map_or_else(|| "-".into(), |accuracy| format!("{accuracy:.2} %"));
        let ([validation, test], folder) = (accuracies.map(percent), options.to.display());
        let (parameters, seeds) = (measures.parameters, counted(seeds, "seed"));
        format!(
            "{folder}: the network of round {round}, env {env}: {parameters} parameters, {seeds}, accuracy {validation} \
             (validation), {test} (test)\n"
        )
    }))
}

/// The policy of a run's newest checkpoint, or that of a folder.
fn policy(options: &ExportOptions, context: &Context) -> Result<Outcome, Rejection> {
    let place = find_run(&options.from, options.out.as_deref())?;
    let saved = FrozenPolicy::find(&place, CheckpointName::Last)?.saved;
    let saved = saved.ok_or_else(|| {
        format!(
            "the run {} has no policy, because its controller doesn't learn",
            place.display()
        )
    })?;
    let policy = SavedPolicy::read(&saved)?;
    check_apart(&options.to, [&saved.path().to_path_buf()])?;
    write(&options.to, &export_policy(&policy)?)?;
    let (folder, from, updates) = (&options.to, saved.path(), policy.updates);
    let [folder, from] = [folder.as_path(), from].map(|path| path.display().to_string());
    let exported = json!({ "folder": folder, "from": from, "updates": updates });
    Ok(context.printer.show_either(&exported, || {
        let updates = counted(updates, "update");
        format!("{folder}: the policy after {updates}, from {from}\n")
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
            return Err(message.into());
        }
        let network = GrownNetwork::load(&options.from)?;
        return Ok((options.from.clone(), network));
    }
    let run = held_run(find_run(&options.from, options.out.as_deref())?)?;
    let kept = NetworkShelf::of(&run).list()?;
    let is_meant = |file: &&KeptFile| {
        let round = options.round.is_none_or(|round| round - 1 == file.round);
        round && options.env.is_none_or(|env| env == file.env)
    };
    let best = NetworkShelf::best_of(kept.iter().filter(is_meant).cloned().collect())?;
    best.ok_or_else(|| none_of(&run, &kept).into())
}

/// The reason why a run doesn't have the requested network.
fn none_of(run: &Path, kept: &[KeptFile]) -> String {
    let run = run.display();
    if kept.is_empty() {
        return format!(
            "{run} kept no networks: run.keep says which are kept at the end of a round; play it with --set run.keep=best, \
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
    format!("{run} didn't keep that network, only those of {}", there.join("; "))
}

/// Writes the tables, and prints their names and sizes.
pub fn export_tables(options: &ExportTablesOptions, context: &Context) -> Result<Outcome, Rejection> {
    let tables = match Named::find(&options.run, options.out.as_deref())? {
        Named::Sweep(folder, plan) => export_sweep(&Collected::read(&folder, &plan)?, &options.output)?,
        Named::Run(place) => export_run(&held_run(place)?, &options.output)?,
    };
    let line = |table: &ExportedTable| format!("{}: {}\n", table.file.display(), counted(table.rows, "row"));
    let lines = || tables.iter().map(line).collect::<String>();
    Ok(context.printer.show_either(&tables, lines))
}
