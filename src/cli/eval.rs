//! `eval`: play a frozen policy against opponents on the same episodes, and say how it did.

use std::path::{Path, PathBuf};

use super::prepare::{explain_if_moved, prepare_file};
use super::progress::Progress;
use super::rejection::Rejection;
use super::{Context, EvalOptions, Outcome, report};
use crate::checkpoint::{CheckpointName, FrozenPolicy};
use crate::compare::{Episodes, TrainingRecord};
use crate::env::Experiment;
use crate::eval::{Evaluation, Opponent, PlayedCheckpoint, Search, Spent, Study, StudyError, Subject};
use crate::policy::DecideMode;
use crate::record::find_run;
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

/// Episodes of an env unless a number is asked for.
const EPISODES_PER_ENV: u32 = 2;

/// A policy, where it is played, and on what.
pub struct Evaluated {
    /// Folder of the run, or of a policy without one.
    pub place: PathBuf,
    from: CheckpointName,
    pub policy: FrozenPolicy,
    pub experiment: Experiment,
    /// One entry per seed, at least one.
    pub episodes: Vec<Episodes>,
}

impl Evaluated {
    /// # Errors
    /// No such run, checkpoint or policy; a scenario with problems.
    pub fn find(options: &EvalOptions, context: &Context) -> Result<Self, Rejection> {
        let place = find_run(&options.run, options.out.as_deref())?;
        let policy = FrozenPolicy::find(&place, options.from)?;
        let origin = policy.origin.as_ref();
        let own = origin.map(|origin| origin.scenario.as_path());
        let Some(scenario) = options.scenario.as_deref().or(own) else {
            let place = place.display();
            return Err(
                format!("{place} is a policy without its run: say by --scenario FILE what it decides in").into(),
            );
        };
        let prepared = prepare_file(scenario, &options.sets, context)?;
        let run = &prepared.loaded.scenario.run;
        // Rounds that no policy of the run was trained in: the same, whichever is played.
        let first_round = run.rounds.max(origin.map_or(0, |origin| origin.rounds_played));
        let envs = run.n_envs;
        let per_env = u32::try_from(envs).unwrap_or(u32::MAX).saturating_mul(EPISODES_PER_ENV);
        let count = options.episodes.unwrap_or(per_env);
        let seeds = if options.seeds.is_empty() {
            vec![run.seed]
        } else {
            options.seeds.clone()
        };
        Ok(Self {
            experiment: prepared.experiment(context.threads()),
            from: options.from,
            place,
            policy,
            episodes: seeds
                .into_iter()
                .map(|seed| Episodes::at_least(count, seed, first_round, envs))
                .collect(),
        })
    }

    /// What is evaluated.
    pub fn subject(&self) -> Subject {
        let (origin, saved) = (self.policy.origin.as_ref(), self.policy.saved.as_ref());
        Subject {
            policy: saved.map_or_else(|| self.place.clone(), |saved| saved.path().into()),
            checkpoint: origin.map(|origin| PlayedCheckpoint {
                from: self.from.to_string(),
                rounds: origin.rounds,
            }),
            trained_on: origin.map(|origin| origin.data_hash.clone()),
        }
    }
}
