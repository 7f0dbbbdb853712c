//! `runs`: the recorded runs, their progress and their results; `show`: the summary of one again.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use super::named::{Named, held_run, way_on};
use super::rejection::Rejection;
use super::{Context, Outcome, RunsOptions, ShowOptions, sweep};
use crate::files::counted;
use crate::keep::NetworkShelf;
use crate::network::{SeedHistory, SeedMeasures};
use crate::record::{ListedState, RunEntry, list_runs, runs_root};
use crate::report::{Feed, run_results, runs_table, summary};
use crate::telemetry::{RunFinished, Timestamp};

/// A run for programs to read.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    entry: RunEntry,
    /// Its end, if it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished: Option<RunFinished>,
    results: Value,
    networks: Value,
}

/// The networks that a run has kept, and the best of them, which `export` takes away: for programs, and in lines. None of a folder or
/// of files that cannot be read; `check` says why.
fn networks(place: &Path) -> (Value, String) {
    let files = NetworkShelf::of(place).list().unwrap_or_default();
    let (kept, bytes) = (files.len(), files.iter().map(|file| file.bytes).sum::<u64>());
    let best = NetworkShelf::best_of(files).ok().flatten();
    let best = best.map(|(_, network)| {
        let (round, env) = (u64::from(network.origin.round) + 1, network.origin.env);
        let (size, validation) = (network.measures.parameters, network.measures.validation);
        let accuracy = validation.map(|part| part.accuracy);
        let worth = |seed: &SeedHistory| Some((seed.slot.to_string(), seed.measures?));
        let seeds: BTreeMap<String, SeedMeasures> = network.growth.iter().filter_map(worth).collect();
        let worths = seeds
            .iter()
            .map(|(slot, worth)| format!("\n               {slot} {worth}"));
        let line = format!(
            "round {round}, env {env}, {:.2} %, {size} parameters{}\n               simic-engine export RUN -o best",
            accuracy.unwrap_or(f64::NAN),
            worths.collect::<String>()
        );
        let value = json!({
            "round": round, "env": env, "parameters": size, "validation_accuracy": accuracy, "seeds": seeds,
        });
        (value, line)
    });
    let (best, line) = best.unzip();
    let line = line.unwrap_or_else(|| "none can be read: simic-engine check says why".into());
    let lines = match kept {
        0 => String::new(),
        _ => format!(
            "\nnetworks       {kept} kept, {} KiB\nbest network   {line}\n",
            bytes.div_ceil(1 << 10)
        ),
    };
    (json!({ "kept": kept, "bytes": bytes, "best": best }), lines)
}

/// Sums a run up from its events, whether it has ended or not.
pub fn show_run(options: &ShowOptions, context: &Context) -> Result<Outcome, Rejection> {
    let place = match Named::find(&options.run, options.out.as_deref())? {
        Named::Sweep(folder, plan) => return sweep::show_results(&folder, &plan, context),
        Named::Run(place) => held_run(place)?,
    };
    let mut feed = Feed::new(&place);
    if let Err(error) = feed.poll() {
        let message = format_args!("{error}; the summary covers the events before it");
        context.printer.error(message);
    }
    let live = &feed.state.live;
    let entry = RunEntry::read(&place);
    let has_ended = matches!(entry.state, ListedState::Known(_)) && !entry.state.is_played();
    if context.global.json {
        return Ok(context.printer.show_json(&Shown {
            entry,
            results: run_results(live),
            networks: networks(&place).0,
            finished: live.finished.clone().filter(|_| has_ended),
        }));
    }
    let standing = match has_ended {
        false => standing(&entry),
        // It failed before its first event.
        true if live.finished.is_none() => match &entry.error {
            Some(error) => format!("the run could not begin: {error}\n\n"),
            None => String::new(),
        },
        true => String::new(),
    };
    let (_, networks) = networks(&place);
    Ok(context.printer.show(format_args!(
        "{standing}{}{networks}",
        summary(live, &place, context.printer.width())
    )))
}

fn standing(entry: &RunEntry) -> String {
    let rounds = match (entry.rounds, entry.n_rounds) {
        (Some(played), Some(planned)) => format!(", {played} of {} are played", counted(planned, "round")),
        _ => String::new(),
    };
    let state = match entry.state {
        ListedState::Stale => format!("its process is gone{rounds}; {}", way_on(&entry.directory)),
        ListedState::Unreadable => entry.problem.clone().unwrap_or_default(),
        state => format!("it is {}{rounds}", state.name()),
    };
    format!("the run has not ended: {state}\n\n")
}

/// Lists the runs of a folder, the newest first.
pub fn runs(options: &RunsOptions, context: &Context) -> Result<Outcome, Rejection> {
    let root = runs_root(options.out.as_deref());
    let mut runs = match list_runs(&root) {
        Ok(runs) => runs,
        // Nothing was run yet.
        Err(_) if options.out.is_none() && !root.exists() => Vec::new(),
        Err(error) => return Err(format!("cannot list the runs in {error}").into()),
    };
    runs.retain(|run| options.tags.iter().all(|tag| run.tags.contains(tag)));
    let printer = context.printer;
    if context.global.json {
        return Ok(printer.show_json(&runs));
    }
    if runs.is_empty() {
        let tagged = match &options.tags[..] {
            [] => String::new(),
            tags => format!(" tagged {}", tags.join(" and ")),
        };
        printer.note(format_args!("there is no run{tagged} in {}", root.display()));
        return Ok(Outcome::Done);
    }
    Ok(printer.show(runs_table(&runs, printer.width(), Timestamp::now())))
}
