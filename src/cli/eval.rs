//! `eval`: play a frozen policy against opponents on the same episodes, and say how it did.

use std::path::Path;

use super::evaluated::Evaluated;
use super::prepare::explain_if_moved;
use super::progress::Progress;
use super::rejection::Rejection;
use super::{Context, EvalOptions, Outcome, report};
use crate::compare::{Episodes, TrainingRecord};
use crate::eval::{Evaluation, Opponent, Search, Spent, Study, StudyError};
use crate::policy::DecideMode;
use crate::report::{evaluation_page, evaluation_text};
use crate::run::StopSignal;

/// Plays all episodes with the policy and its opponents; the tables go to stdout. A stop prints the results so far.
pub fn eval(options: &EvalOptions, context: &Context) -> Result<Outcome, Rejection> {
    let found = Evaluated::find(options, context)?;
    let stop = context.heeded_stop()?;
    let study = study(options, &found, &stop, context)?;
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
    let evaluation = Evaluation::new(&study, found.subject(), rows, blind);
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

fn study<'a>(
    options: &EvalOptions,
    found: &Evaluated,
    stop: &'a StopSignal,
    context: &Context<'a>,
) -> Result<Study<'a>, Rejection> {
    let saved = &found.policy.saved;
    let against = Opponent::named(options.against.as_deref(), saved.is_some(), &context.catalog)?;
    let origin = found.policy.origin.as_ref();
    if origin.is_none() && options.schedules.is_none() && against.contains(&Opponent::Schedules) {
        return Err(format!(
            "{} is a policy without its run: what its training took is not known; say by --schedules M how many are tried",
            found.place.display()
        )
        .into());
    }
    let modes = match (options.greedy, options.sample) {
        (true, false) => vec![DecideMode::Greedy],
        (false, true) => vec![DecideMode::Sample],
        _ => vec![DecideMode::Greedy, DecideMode::Sample],
    };
    let evaluated: Vec<u64> = found.episodes.iter().map(|episodes| episodes.seed).collect();
    Ok(Study {
        extension: context.extension,
        policy: saved.clone(),
        modes,
        against,
        search: Search::new(
            &found.experiment,
            &evaluated,
            options.schedules,
            &context.catalog.blueprints,
        ),
        training: origin.and_then(|origin| spent(&found.place, origin.rounds)),
        training_rounds: origin.map_or(0, |origin| origin.rounds),
        episodes: found.episodes.clone(),
        experiment: found.experiment.clone(),
        stop,
    })
}

/// What the run at `place` took for its first `rounds` rounds; `None` where its record does not say.
fn spent(place: &Path, rounds: u32) -> Option<Spent> {
    let record = TrainingRecord::of_run(place).ok()?;
    let trained = record.curve.iter().rfind(|point| point.round < rounds)?;
    Some(Spent {
        gmacs: trained.gmacs,
        seconds: trained.seconds,
    })
}

/// How much there is to play.
fn amount(study: &Study) -> String {
    let (rows, seeds, steps) = (study.rows(), study.episodes.len(), study.experiment.task.max_steps);
    // As many under every seed.
    let episodes = study.episodes.first().map_or(0, Episodes::count);
    let env_steps = (rows * seeds * episodes) as u64 * u64::from(steps);
    let plural = if seeds == 1 { "" } else { "s" };
    format!("{rows} players x {seeds} seed{plural} x {episodes} episodes x {steps} steps: {env_steps} env-steps")
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
