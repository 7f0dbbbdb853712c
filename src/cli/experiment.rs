//! Experiments on the command line: `run` and `resume` play them through here, `ab-report` reads them.

use std::path::Path;

use serde::Serialize;

use super::options::AbReportOptions;
use super::output::{show, show_either, show_json, tell, tell_error};
use super::rejection::Rejection;
use super::{Context, GlobalOptions, Outcome, ResumeOptions, RunOptions};
use crate::compare::Episodes;
use crate::engine::Prepared;
use crate::experiment::{Design, ExperimentError, ExperimentFolder, Plan, Player, Report, Told};
use crate::record::{Labels, Recording, find_run, runs_root};
use crate::run::{StopSignal, stop_on_signals};
use crate::scenario::{Scenario, resolved_ron};
use crate::telemetry::sinks::ProgressStyle;

impl From<ExperimentError> for Rejection {
    fn from(error: ExperimentError) -> Self {
        match error {
            ExperimentError::Setup(error) => Self::Setup(error),
            other => Self::Usage(other.to_string()),
        }
    }
}

/// Plays the experiment of a scenario, or says what would be played.
pub fn begin(
    options: &RunOptions,
    prepared: &Prepared,
    labels: Labels,
    context: &Context,
) -> Result<Outcome, Rejection> {
    let Some(plan) = Plan::new(prepared, labels) else {
        return Err(Rejection::Usage("the scenario has no experiment".into()));
    };
    if options.dry_run {
        return Ok(dry_run(&plan.design, &prepared.loaded.scenario, context.global));
    }
    if options.until.is_some() {
        let message = "--until is for a single run; stop an experiment by Ctrl-C, `resume` goes on with it";
        return Err(Rejection::Usage(message.into()));
    }
    let root = runs_root(options.out.as_deref());
    let folder = ExperimentFolder::create(&root, options.id.as_deref(), &plan)?;
    play(&folder, &plan, options.progress, context)
}

/// Goes on with the experiment at `path`.
pub fn resume(options: &ResumeOptions, path: &Path, context: &Context) -> Result<Outcome, Rejection> {
    let changes = !options.sets.is_empty() || !options.allowed.is_empty();
    if changes || options.extend.is_some() || options.until.is_some() || options.from != Default::default() {
        let message = "an experiment goes on as it was declared: resume it without --from, --extend, --until, --set and \
                       --allow";
        return Err(Rejection::Usage(message.into()));
    }
    let folder = ExperimentFolder::open(path)?;
    let plan = folder.plan(&context.catalog)?;
    play(&folder, &plan, options.progress, context)
}

fn play(
    folder: &ExperimentFolder,
    plan: &Plan,
    progress: ProgressStyle,
    context: &Context,
) -> Result<Outcome, Rejection> {
    let _claim = folder.claim().map_err(ExperimentError::from)?;
    let stop = StopSignal::default();
    stop_on_signals(stop.clone()).map_err(|error| Rejection::Usage(format!("no handlers for signals: {error}")))?;
    if let Err(error) = context.log.move_into(folder.path()) {
        return Err(Rejection::Usage(format!("{}: {error}", folder.path().display())));
    }
    let player = Player {
        folder,
        plan,
        extend: context.extension.clone(),
        threads: context.threads(),
        recording: Recording {
            log: context.log.clone(),
            ..Recording::under(folder.path())
        },
        stop: &stop,
    };
    let view = View {
        design: &plan.design,
        global: context.global,
        shows_rounds: progress != ProgressStyle::None,
    };
    view.tell(format_args!(
        "{} in {}",
        headline(&plan.design),
        folder.path().display()
    ));
    let stopped = player.play(&|told| {
        view.told(&told);
        if let Told::Ended(_) = told
            && let Err(error) = report(folder)
        {
            tell_error(context.global, format_args!("the report was not written: {error}"));
        }
    });
    let directory = folder.path().display();
    match stopped {
        Ok(None) => {}
        Ok(Some(request)) => {
            tell(format_args!(
                "stopped as asked; go on with: simic-engine resume {directory}"
            ));
            return Ok(Outcome::Stopped(request));
        }
        // What stands in the way of one arm stands in the way of its replicates; what has ended is kept.
        Err(error) => {
            tell_error(context.global, &error);
            tell(format_args!(
                "remove the cause, then go on with: simic-engine resume {directory}"
            ));
            return Ok(match error {
                ExperimentError::Setup(_) | ExperimentError::Resume { .. } | ExperimentError::Start { .. } => {
                    Outcome::Rejected
                }
                _ => Outcome::Failed,
            });
        }
    }
    let report = report(folder)?;
    let is_whole = report.is_whole();
    let shown = print(&report, context.global);
    Ok(if is_whole { Outcome::Done } else { Outcome::Failed }.unless_done(shown))
}

/// Computes and keeps what is known so far.
fn report(folder: &ExperimentFolder) -> Result<Report, ExperimentError> {
    let report = Report::from(folder.record()?);
    folder.write_report(&report)?;
    Ok(report)
}

fn print(report: &Report, global: &GlobalOptions) -> Outcome {
    show_either(global, report, || report.to_text())
}

/// Computes the statistics of an experiment anew from its raw values.
pub fn ab_report(options: &AbReportOptions, context: &Context) -> Result<Outcome, Rejection> {
    let AbReportOptions { experiment, out } = options;
    let place = match experiment.is_file() {
        true => experiment.clone(),
        false => find_run(experiment, out.as_deref())?,
    };
    let record = ExperimentFolder::read_record(&place)?;
    Ok(print(&Report::from(record), context.global))
}

/// What is told of an experiment while it is played.
struct View<'a> {
    design: &'a Design,
    global: &'a GlobalOptions,
    shows_rounds: bool,
}

impl View<'_> {
    fn tell(&self, text: impl std::fmt::Display) {
        if !self.global.quiet {
            tell(text);
        }
    }

    fn told(&self, told: &Told) {
        let all = self.design.replicates;
        match told {
            Told::Begins { replicate, round: 0 } => {
                self.tell(format_args!("replicate {} of {all} begins", replicate + 1));
            }
            Told::Begins { replicate, round } => {
                self.tell(format_args!(
                    "replicate {} of {all} goes on with round {}",
                    replicate + 1,
                    round + 1
                ));
            }
            Told::Round {
                replicate,
                round,
                accuracies,
            } if self.shows_rounds => {
                let arms = self.design.arms.iter().zip(accuracies);
                let known = arms.filter_map(|(arm, accuracy)| Some(format!("{} {:.1} %", arm.id, (*accuracy)?)));
                self.tell(format_args!(
                    "replicate {} of {all}, round {} of {}: {}",
                    replicate + 1,
                    round + 1,
                    self.design.rounds,
                    known.collect::<Vec<_>>().join(", ")
                ));
            }
            Told::Round { .. } => {}
            Told::Scores { replicate, arm } => {
                self.tell(format_args!("replicate {} of {all}: {arm} is scored", replicate + 1));
            }
            Told::Ended(result) => {
                if let Some(failure) = &result.failure {
                    let number = result.replicate + 1;
                    tell_error(
                        self.global,
                        format_args!("replicate {number} of {all} failed: {failure}"),
                    );
                }
            }
        }
    }
}

/// `ab_rewards: 2 arms x 10 replicates, each 20 rounds of 4 envs x 60 steps`
fn headline(design: &Design) -> String {
    format!(
        "{}: {} arms x {} replicates, each {} rounds of {} envs x {} steps",
        design.name,
        design.arms.len(),
        design.replicates,
        design.rounds,
        design.envs,
        design.steps
    )
}

/// What would be played, for programs to read.
#[derive(Serialize)]
struct Preview<'a> {
    design: &'a Design,
    /// To train on, of all arms and replicates.
    env_steps: u128,
    /// To score by, of all arms and replicates.
    eval_episodes: u128,
    scenario: &'a Scenario,
}

fn dry_run(design: &Design, scenario: &Scenario, global: &GlobalOptions) -> Outcome {
    let trainings = design.arms.len() as u128 * u128::from(design.replicates);
    let steps_of_a_round = design.envs as u128 * u128::from(design.steps);
    let env_steps = trainings
        .saturating_mul(u128::from(design.rounds))
        .saturating_mul(steps_of_a_round);
    let episodes: usize = design.episodes().iter().map(Episodes::count).sum();
    let eval_episodes = trainings.saturating_mul(episodes as u128);
    if global.json {
        return show_json(&Preview {
            design,
            env_steps,
            eval_episodes,
            scenario,
        });
    }
    let mut text = format!(
        "// {}\n// {env_steps} env-steps to train on, {eval_episodes} episodes of {} steps to score by\n",
        headline(design),
        design.steps
    );
    for arm in &design.arms {
        text.push_str(&format!(
            "//   {}: {}, paid by {}\n",
            arm.id, arm.controller, arm.reward
        ));
    }
    match resolved_ron(scenario) {
        Ok(resolved) => show(format_args!("{text}{resolved}\n")),
        Err(error) => {
            tell_error(global, format_args!("the scenario cannot be written: {error}"));
            Outcome::Failed
        }
    }
}
