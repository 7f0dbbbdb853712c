//! `controls`: play the control experiments of a trained policy, and write down how it stands against them.

use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

use super::evaluated::{Evaluated, PlayedCheckpoint, Request, note_on_data};
use super::output::{refuse, show_either, tell, tell_error, width};
use super::prepare::explain_if_moved;
use super::rejection::Rejection;
use super::{Context, ControlsOptions, Outcome};
use crate::compare::statistics::{Arm, Verdict};
use crate::compare::{Estimate, TrainingRecord};
use crate::controls::{Control, ControlReport, ControlRow, PlayedRow, Search, Spent, Study, Told};
use crate::env::Experiment;
use crate::health::{AtPath, FileError};
use crate::policy::DecideMode;
use crate::report::{ABSENT, Csv, Table, wrapped};
use crate::run::{StopSignal, stop_on_signals};
use crate::scenario::BlueprintEntry;
use crate::storage::replace_synced;
use crate::telemetry::BigInteger;
use crate::telemetry::sinks::short_duration;

/// Files in the run directory.
const CSV_FILE: &str = "controls.csv";
const JSON_FILE: &str = "controls.json";

/// Plays everybody; the table goes to stdout and into the run directory. Whoever stops it sees what is complete.
pub fn controls(options: &ControlsOptions, context: &Context) -> Result<Outcome, Rejection> {
    let found = Evaluated::find(
        &Request {
            run: &options.run,
            out: options.out.as_deref(),
            scenario: None,
            sets: &options.sets,
            from: options.from,
            episodes: options.episodes,
            seeds: &options.seeds,
        },
        context,
    )?;
    let stop = StopSignal::default();
    stop_on_signals(stop.clone()).map_err(|error| Rejection::Usage(format!("no handlers for signals: {error}")))?;
    let study = study(options, &found, &stop, context)?;
    let mut progress = Progress::begin(&study, context.global.quiet);
    let rows = match study.play(&mut |told| progress.tell(told)) {
        Ok(rows) => rows,
        Err(error) if error.position.round.is_some() => {
            tell_error(context.global, error);
            return Ok(Outcome::Failed);
        }
        Err(error) => {
            refuse(context.global, error);
            explain_if_moved(found.experiment.folder.as_deref());
            return Ok(Outcome::Rejected);
        }
    };
    let stopped = stop.requested().filter(|_| rows.len() < study.rows());
    if !rows.iter().any(|row| row.is_reference) {
        tell("stopped before the policy had played all episodes: there is nothing to compare");
        return Ok(stopped.map_or(Outcome::Done, Outcome::Stopped));
    }
    let result = Controls::new(&study, &found, rows);
    if let Err(error) = result.save(&found.place) {
        tell_error(context.global, error);
        return Ok(Outcome::Failed);
    }
    let shown = show_either(context.global, &result, || result.to_text(width()));
    Ok(stopped.map_or(shown, Outcome::Stopped))
}

fn study<'a>(
    options: &ControlsOptions,
    found: &Evaluated,
    stop: &'a StopSignal,
    context: &Context,
) -> Result<Study<'a>, Rejection> {
    let Some(origin) = &found.policy.origin else {
        let message = format!(
            "{} is a policy without its run: controls are compared with what its training took",
            found.place.display()
        );
        return Err(Rejection::Usage(message));
    };
    let record = TrainingRecord::of_run(&found.place).map_err(|error| Rejection::Usage(error.to_string()))?;
    let trained = record.curve.iter().rfind(|point| point.round < origin.rounds);
    let own = found.experiment.scenario.run.seed;
    let evaluated: Vec<u64> = found.episodes.iter().map(|episodes| episodes.seed).collect();
    Ok(Study {
        extend: context.extension.clone(),
        policy: found.policy.saved.clone(),
        reference: match options.greedy {
            true => DecideMode::Greedy,
            false => DecideMode::Sample,
        },
        controls: Control::wanted(&options.only),
        search: Search {
            seed: Search::seed_beside(own, &evaluated),
            schedules: options.schedules,
            blueprints: growable(&found.experiment, &context.catalog.blueprints),
        },
        training: Spent {
            gmacs: trained.and_then(|point| point.gmacs),
            seconds: trained.map_or(0.0, |point| point.seconds),
        },
        training_rounds: origin.rounds,
        episodes: found.episodes.clone(),
        experiment: found.experiment.clone(),
        stop,
    })
}

/// Blueprints that the scenario leaves to its controllers.
fn growable(experiment: &Experiment, known: &[BlueprintEntry]) -> Vec<String> {
    let allowed = experiment.scenario.policy.masks.action_space.blueprint.as_ref();
    let is_allowed = |name: &String| allowed.is_none_or(|allowed| allowed.contains(name));
    let topology = experiment.task.data.topology();
    let selectable = known
        .iter()
        .filter(|blueprint| blueprint.selectable && blueprint.inits_in(topology).is_some());
    selectable
        .map(|blueprint| blueprint.name.clone())
        .filter(is_allowed)
        .collect()
}

/// A line for every row and seed.
struct Progress {
    is_quiet: bool,
}

impl Progress {
    /// Says how much there is to do.
    fn begin(study: &Study, is_quiet: bool) -> Self {
        if !is_quiet {
            let episodes: usize = study.episodes.iter().map(|episodes| episodes.count()).sum();
            let rows = study.rows();
            tell(format_args!("{rows} rows of {episodes} episodes each"));
        }
        Self { is_quiet }
    }

    fn tell(&mut self, told: &Told) {
        if self.is_quiet {
            return;
        }
        let accuracy = told.played.mean_accuracy();
        let accuracy = accuracy.map_or_else(|| "not measured".into(), |accuracy| format!("accuracy {accuracy:.1} %"));
        tell(format_args!(
            "{}, seed {}: {accuracy}, {}",
            told.name,
            told.seed,
            short_duration(told.played.seconds)
        ));
    }
}

/// Everything that is printed.
#[derive(Serialize)]
struct Controls<'a> {
    scenario: &'a str,
    task: &'a str,
    checkpoint: Option<PlayedCheckpoint>,
    /// False if somebody stopped it before all rows were played.
    is_complete: bool,
    /// What readers of the numbers should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    first_round: u32,
    rounds: usize,
    envs: usize,
    seeds: Vec<BigInteger>,
    /// Of the episodes that schedules were chosen by.
    search_seed: BigInteger,
    #[serde(flatten)]
    report: ControlReport,
}

impl<'a> Controls<'a> {
    fn new(study: &'a Study, found: &Evaluated, rows: Vec<PlayedRow>) -> Self {
        let is_complete = rows.len() == study.rows();
        let trained_on = found.policy.origin.as_ref().map(|origin| &origin.data_hash);
        let played_on = rows
            .iter()
            .flat_map(|row| &row.played)
            .map(|played| &played.data_hash)
            .next();
        let other_data = trained_on
            .zip(played_on)
            .and_then(|(trained_on, played_on)| note_on_data(trained_on, played_on));
        let gap = (!is_complete).then(|| format!("incomplete: stopped after {} of {} rows", rows.len(), study.rows()));
        let first = &study.episodes[0];
        Self {
            scenario: &study.experiment.scenario.name,
            task: &study.experiment.task.name,
            checkpoint: found.checkpoint(),
            is_complete,
            notes: gap.into_iter().chain(other_data).collect(),
            first_round: first.rounds.start,
            rounds: first.rounds.len(),
            envs: first.envs,
            seeds: study
                .episodes
                .iter()
                .map(|episodes| BigInteger(episodes.seed))
                .collect(),
            search_seed: BigInteger(study.search.seed),
            report: ControlReport::new(rows, first.seed, study.experiment.scenario.reward.price()),
        }
    }

    fn save(&self, run: &Path) -> Result<(), FileError> {
        let (json, csv) = (run.join(JSON_FILE), run.join(CSV_FILE));
        let text = serde_json::to_vec_pretty(self).at(&json)?;
        replace_synced(&json, &text).at(&json)?;
        replace_synced(&csv, self.to_csv().as_bytes()).at(&csv)
    }

    fn to_text(&self, width: usize) -> String {
        let seeds: Vec<String> = self.seeds.iter().map(|seed| seed.0.to_string()).collect();
        let mut text = format!(
            "{} on {}: {} rounds of {} envs for everybody, from round {} on, seed {}\n",
            self.scenario,
            self.task,
            self.rounds,
            self.envs,
            self.first_round + 1,
            seeds.join(", ")
        );
        if let Some(PlayedCheckpoint { from, rounds }) = &self.checkpoint {
            _ = writeln!(text, "checkpoint {from}: after {rounds} rounds");
        }
        for note in &self.notes {
            _ = writeln!(text, "note: {note}");
        }
        _ = write!(text, "\n{}", self.table().render());
        let search = format!("schedules were chosen by episodes of seed {}", self.search_seed.0);
        let legend = [
            "final: in each episode the architecture that the policy grew in it, from its first step on; GMAC and s: billions of \
             multiply-accumulates and seconds of an episode; found by: what training or search took; J: accuracy less the \
             scenario's price for every time the host's size beyond itself; by net: of the schedules the best by J, or by \
             accuracy minus rent where the scenario has no such price",
            "policy - it: accuracy, episode by episode; verdict: of the policy, by the interval and a sign-flip test after \
             Holm, over the episodes of this one training",
            &search,
        ];
        let legend = legend.map(|line| wrapped(line, width));
        _ = writeln!(text, "\n{}", legend.join("\n"));
        if self.report.unmeasured > 0 {
            _ = writeln!(
                text,
                "\n{} episodes are left out: a network was rolled back before it was measured",
                self.report.unmeasured
            );
        }
        text
    }

    fn table(&self) -> Table {
        let mut table = Table::new(
            &[""],
            &[
                "steps",
                "accuracy, %",
                "params",
                "J",
                "GMAC",
                "s",
                "found by",
                "policy - it",
                "verdict",
            ],
        );
        for row in &self.report.rows {
            let found_by = row.found_by.and_then(|spent| spent.gmacs);
            table.push(vec![
                row.name.clone(),
                row.steps.to_string(),
                with_interval(&row.accuracy.mean),
                format!("{:.2}x", row.param_ratio),
                row.accuracy_minus_price
                    .map_or_else(|| ABSENT.into(), |net| format!("{net:.1}")),
                decimals(row.gmacs),
                format!("{:.2}", row.seconds),
                decimals(found_by),
                row.against.map_or_else(
                    || ABSENT.into(),
                    |against| with_interval(&against.accuracy.difference.mean),
                ),
                row.against.map_or(ABSENT, |against| words(against.verdict)).into(),
            ]);
        }
        table
    }

    fn to_csv(&self) -> String {
        let mut csv = Csv::new(&[
            "row",
            "steps",
            "schedules",
            "accuracy",
            "accuracy_low",
            "accuracy_high",
            "test_accuracy",
            "param_ratio",
            "gmacs",
            "seconds",
            "found_by_gmacs",
            "found_by_seconds",
            "policy_less_it",
            "low",
            "high",
            "adjusted_p",
            "verdict",
            "accuracy_minus_price",
        ]);
        for row in &self.report.rows {
            csv.push(&csv_row(row));
        }
        csv.0
    }
}

fn csv_row(row: &ControlRow) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let estimate = |estimate: Option<Estimate>| {
        let interval = estimate.and_then(|estimate| estimate.interval);
        [
            number(estimate.map(|estimate| estimate.value)),
            number(interval.map(|interval| interval.low)),
            number(interval.map(|interval| interval.high)),
        ]
    };
    let schedules = row.schedules.map_or_else(String::new, |count| count.to_string());
    let mut cells = vec![row.name.clone(), row.steps.to_string(), schedules];
    cells.extend(estimate(Some(row.accuracy.mean)));
    cells.extend([
        number(row.test_accuracy),
        row.param_ratio.to_string(),
        number(row.gmacs),
        row.seconds.to_string(),
        number(row.found_by.and_then(|spent| spent.gmacs)),
        number(row.found_by.map(|spent| spent.seconds)),
    ]);
    cells.extend(estimate(row.against.map(|against| against.accuracy.difference.mean)));
    cells.push(number(row.against.map(|against| against.adjusted_p)));
    cells.push(row.against.map_or("", |against| words(against.verdict)).into());
    cells.push(number(row.accuracy_minus_price));
    cells
}

/// `70.7 68.1…73.2`
fn with_interval(estimate: &Estimate) -> String {
    let value = estimate.value;
    match estimate.interval {
        Some(interval) => format!("{value:.1} {:.1}…{:.1}", interval.low, interval.high),
        None => format!("{value:.1}"),
    }
}

fn decimals(value: Option<f64>) -> String {
    value.map_or_else(|| ABSENT.into(), |value| format!("{value:.2}"))
}

/// Of the policy.
fn words(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        None => ABSENT,
        Some(Verdict::InsufficientData) => "too few",
        Some(Verdict::Better(Arm::First)) => "better",
        Some(Verdict::Better(Arm::Second)) => "worse",
        Some(Verdict::Equivalent) => "no difference",
        Some(Verdict::Inconclusive) => "undecided",
    }
}
