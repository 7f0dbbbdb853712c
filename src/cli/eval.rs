//! `eval`: play a frozen policy against opponents on the same episodes, and say how it did.

use std::path::Path;

use super::console::Progress;
use super::prepare::{explain_if_moved, prepare_file};
use super::rejection::Rejection;
use super::{Context, EvalOptions, Outcome, report};
use crate::checkpoint::FrozenPolicy;
use crate::compare::{Episodes, TrainingRecord};
use crate::eval::{Evaluation, Opponent, PlayedCheckpoint, Search, Spent, Study, StudyError, Subject};
use crate::files::counted;
use crate::policy::DecideMode;
use crate::record::find_run;
use crate::report::{evaluation_page, evaluation_text};
use crate::run::StopSignal;

/// Plays all episodes with the policy and its opponents; the tables go to stdout. A stop prints the results so far.
pub fn eval(options: &EvalOptions, context: &Context) -> Result<Outcome, Rejection> {
    let stop = context.heeded_stop()?;
    let (study, subject) = study(options, &stop, context)?;
    let blind = match study.take_blind() {
        Ok(blind) => blind,
        Err(error) => return Ok(unplayed(&error, &study, context)),
    };
    context.terminal.say(&amount(&study));
    let mut progress = Progress::new(&context.terminal);
    let played = study.play(blind.as_ref(), &mut |event| progress.show(event));
    progress.clear();
    let rows = match played {
        Ok(rows) => rows,
        Err(error) => return Ok(unplayed(&error, &study, context)),
    };
    let stopped = stop.requested().filter(|_| !study.is_complete(&rows));
    if rows.is_empty() {
        context
            .printer
            .note("stopped before anything had played all episodes of a seed: there is nothing to compare");
        return Ok(stopped.map_or(Outcome::Done, Outcome::Stopped));
    }
    let evaluation = Evaluation::new(&study, subject, rows, blind);
    if let Some(place) = &options.save {
        let saved = evaluation.save(place);
        saved.map_err(|error| Rejection::failed(format_args!("--save: {error}")))?;
    }
    if let Some(file) = &options.report {
        report::write(file, &evaluation_page(&evaluation))?;
    }
    let printer = context.printer;
    let shown = printer.show_either(&evaluation, || evaluation_text(&evaluation, printer.width()));
    Ok(stopped.map_or(shown, Outcome::Stopped))
}

/// Episodes of an env unless a number is asked for.
const EPISODES_PER_ENV: u32 = 2;

/// A policy with the scenario that it decides in, episodes that are new to it and all its opponents; and its description.
///
/// # Errors
/// No such run, checkpoint or policy; a scenario with problems; opponents that there are not.
fn study<'a>(
    options: &EvalOptions,
    stop: &'a StopSignal,
    context: &Context<'a>,
) -> Result<(Study<'a>, Subject), Rejection> {
    let place = find_run(&options.run, options.out.as_deref())?;
    let FrozenPolicy { saved, origin } = FrozenPolicy::find(&place, options.from)?;
    let (origin, catalog) = (origin.as_ref(), &context.names.catalog);
    let alone = |remedy: &str| Rejection::Usage(format!("{} is a policy without its run: {remedy}", place.display()));
    let own = origin.map(|origin| origin.scenario.as_path());
    let scenario = options.scenario.as_deref().or(own);
    let scenario = scenario.ok_or_else(|| alone("name the scenario that it decides in by --scenario FILE"))?;
    let prepared = prepare_file(scenario, &options.sets, context)?;
    let experiment = prepared.experiment(context.threads());
    let against = Opponent::named(options.against.as_deref(), saved.is_some(), catalog)?;
    if origin.is_none() && options.schedules.is_none() && against.contains(&Opponent::Schedules) {
        return Err(alone(
            "the cost of its training isn't known; give the number of schedules to try by --schedules M",
        ));
    }
    let modes = match (options.greedy, options.sample) {
        (true, false) => vec![DecideMode::Greedy],
        (false, true) => vec![DecideMode::Sample],
        _ => vec![DecideMode::Greedy, DecideMode::Sample],
    };
    let run = &experiment.scenario.run;
    let seeds = match options.seeds.is_empty() {
        true => vec![run.seed],
        false => options.seeds.clone(),
    };
    // Rounds that no policy of the run was trained in: the same, whichever is played.
    let first = run.rounds.max(origin.map_or(0, |origin| origin.rounds_played));
    let envs = u32::try_from(run.n_envs).unwrap_or(u32::MAX);
    let count = options.episodes.unwrap_or(envs.saturating_mul(EPISODES_PER_ENV));
    let episodes = seeds
        .iter()
        .map(|&seed| Episodes::at_least(count, seed, first, run.n_envs));
    let subject = Subject {
        policy: saved
            .as_ref()
            .map_or_else(|| place.clone(), |saved| saved.path().into()),
        checkpoint: origin.map(|origin| PlayedCheckpoint {
            from: options.from.to_string(),
            rounds: origin.rounds,
        }),
        trained_on: origin.map(|origin| origin.data_hash.clone()),
    };
    let study = Study {
        extension: context.extension,
        policy: saved,
        modes,
        against,
        episodes: episodes.collect(),
        search: Search::new(&experiment, &seeds, options.schedules, &catalog.blueprints),
        training: origin.and_then(|origin| spent(&place, origin.rounds)),
        training_rounds: origin.map_or(0, |origin| origin.rounds),
        stop,
        experiment,
    };
    Ok((study, subject))
}

/// Compute and time of the first `rounds` rounds of the run at `place`; `None` where its record does not say.
fn spent(place: &Path, rounds: u32) -> Option<Spent> {
    let record = TrainingRecord::of_run(place).ok()?;
    let trained = record.curve.iter().rfind(|point| point.round < rounds)?;
    Some(Spent {
        gmacs: trained.gmacs,
        seconds: trained.seconds,
    })
}

/// The amount to play.
fn amount(study: &Study) -> String {
    let (rows, seeds, steps) = (study.rows(), study.episodes.len(), study.experiment.task.max_steps);
    // As many under every seed.
    let episodes = study.episodes.first().map_or(0, Episodes::count);
    let env_steps = counted((rows * seeds * episodes) as u64 * u64::from(steps), "env-step");
    let (rows, seeds) = (counted(rows, "player"), counted(seeds, "seed"));
    let (episodes, steps) = (counted(episodes, "episode"), counted(steps, "step"));
    format!("{rows} x {seeds} x {episodes} x {steps}: {env_steps}")
}

/// Says why something could not play.
fn unplayed(error: &StudyError, study: &Study, context: &Context) -> Outcome {
    if error.error.position.round.is_some() {
        context.printer.error(error);
        return Outcome::Failed;
    }
    context.printer.refuse(error);
    explain_if_moved(study.experiment.folder.as_deref(), context.printer);
    Outcome::Rejected
}
