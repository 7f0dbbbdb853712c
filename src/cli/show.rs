//! `runs`: what was run, how far it came and what it reached; `show`: the summary of one again.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::named::{Named, held_run, way_on};
use super::rejection::Rejection;
use super::{Context, Outcome, RunsOptions, ShowOptions, sweep};
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
    /// How it ended, if it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished: Option<RunFinished>,
    results: Value,
    networks: Networks,
}

/// The networks that a run has kept.
#[derive(Serialize)]
struct Networks {
    kept: usize,
    bytes: u64,
    /// The one that `export` takes away.
    best: Option<BestNetwork>,
}

#[derive(Serialize)]
struct BestNetwork {
    /// From 1.
    round: u64,
    env: u32,
    parameters: u64,
    /// Percent.
    validation_accuracy: Option<f64>,
    /// What its seeds are worth to it, by slot.
    seeds: BTreeMap<String, SeedMeasures>,
}

impl Networks {
    /// None of a folder or of files that cannot be read; `check` says why.
    fn of(place: &Path) -> Self {
        let files = NetworkShelf::of(place).list().unwrap_or_default();
        let (kept, bytes) = (files.len(), files.iter().map(|file| file.bytes).sum());
        let best = NetworkShelf::best_of(files).ok().flatten();
        let worth = |seed: &SeedHistory| Some((seed.slot.to_string(), seed.measures?));
        let best = best.map(|(_, network)| BestNetwork {
            round: u64::from(network.origin.round) + 1,
            env: network.origin.env,
            parameters: network.measures.parameters,
            validation_accuracy: network.measures.validation.map(|part| part.accuracy),
            seeds: network.growth.iter().filter_map(worth).collect(),
        });
        Self { kept, bytes, best }
    }

    fn line(&self) -> String {
        let (kept, kib) = (self.kept, self.bytes.div_ceil(1 << 10));
        let best = match &self.best {
            None if kept == 0 => return String::new(),
            None => "none can be read: simic-engine check says why".into(),
            Some(best) => {
                let (round, env, size) = (best.round, best.env, best.parameters);
                let accuracy = best.validation_accuracy.unwrap_or(f64::NAN);
                let seed = |(slot, worth): (&String, &SeedMeasures)| format!("\n               {slot} {worth}");
                let seeds: String = best.seeds.iter().map(seed).collect();
                let took = format!("round {round}, env {env}, {accuracy:.2} %, {size} parameters{seeds}");
                format!("{took}\n               simic-engine export RUN -o best")
            }
        };
        format!("\nnetworks       {kept} kept, {kib} KiB\nbest network   {best}\n")
    }
}

/// Sums a run up from its events, whether it has ended or not.
pub fn show_run(options: &ShowOptions, context: &Context) -> Result<Outcome, Rejection> {
    let place = match Named::find(&options.run, options.out.as_deref())? {
        Named::Sweep(folder, plan) => return sweep::show_results(&folder, &plan, context),
        Named::Run(place) => held_run(place)?,
    };
    let mut feed = Feed::new(&place);
    if let Err(error) = feed.poll() {
        let message = format_args!("{error}; what follows is from the events before");
        context.printer.error(message);
    }
    let live = &feed.state.live;
    let entry = RunEntry::read(&place);
    let has_ended = matches!(
        entry.state,
        ListedState::Completed | ListedState::Interrupted | ListedState::Failed
    );
    if context.global.json {
        return Ok(context.printer.show_json(&Shown {
            entry,
            results: run_results(live),
            networks: Networks::of(&place),
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
    let networks = Networks::of(&place).line();
    Ok(context.printer.show(format_args!(
        "{standing}{}{networks}",
        summary(live, &place, context.printer.width())
    )))
}

fn standing(entry: &RunEntry) -> String {
    let rounds = match (entry.rounds, entry.n_rounds) {
        (Some(played), Some(planned)) => format!(", {played} of {planned} rounds are played"),
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
