//! `resume`: a run goes on from its newest checkpoint, in its own directory.

use std::path::{Path, PathBuf};

use super::output::show;
use super::prepare::Rejection;
use super::run::{Surroundings, console, play};
use super::{GlobalOptions, Outcome, ResumeOptions};
use crate::run::{PastRun, ResumeError, RunPlan, runs_root};
use crate::scenario::{self, Catalog, Input, Loaded, Override};

/// Finds the run, sees whether it can go on, and plays what is left of it.
pub fn resume(options: &ResumeOptions, catalog: &Catalog, global: &GlobalOptions, around: &Surroundings) -> Outcome {
    let path = locate(&options.run, options.out.as_deref());
    match prepare(options, &path, catalog) {
        Ok(Some(mut plan)) => {
            if let Some(threads) = global.threads {
                plan.threads = threads.into();
            }
            plan.console = console(options.progress, global, around);
            play(plan, &Default::default(), global, around)
        }
        Ok(None) => {
            show(format_args!(
                "{} has played all of its rounds: nothing is left to do (--rounds N gives it more)\n",
                path.display()
            ));
            Outcome::Done
        }
        Err(refusal) => {
            refusal.print(global);
            eprintln!("nothing was changed");
            Outcome::Rejected
        }
    }
}

/// A directory, or the id of a run in the folder of runs.
fn locate(run: &Path, out: Option<&Path>) -> PathBuf {
    let in_root = runs_root(out).join(run);
    if !run.exists() && in_root.exists() {
        in_root
    } else {
        run.into()
    }
}

/// Why a run does not go on.
enum Refusal {
    Run(ResumeError),
    Scenario(Rejection),
}

impl Refusal {
    fn print(&self, global: &GlobalOptions) {
        match self {
            Self::Run(error) => eprintln!("error: {error}"),
            Self::Scenario(rejection) => rejection.print(global),
        }
    }
}

impl From<ResumeError> for Refusal {
    fn from(error: ResumeError) -> Self {
        Self::Run(error)
    }
}

/// The plan of what is left; `None` if that is nothing.
fn prepare(options: &ResumeOptions, path: &Path, catalog: &Catalog) -> Result<Option<RunPlan>, Refusal> {
    let past = PastRun::open(path)?;
    let load = |overrides: &[Override]| -> Result<Loaded, Refusal> {
        let label = path.join("resolved.ron").display().to_string();
        let input = Input {
            label: &label,
            text: &past.resolved,
            overrides,
        };
        scenario::load(&input, catalog).map_err(|report| Refusal::Scenario(Rejection::Scenario(report)))
    };
    let overrides = options
        .overrides()
        .map_err(|usage| Refusal::Scenario(Rejection::Usage(usage)))?;
    let (before, mut now) = (load(&[])?, load(&overrides)?);
    if now.scenario.run.rounds == before.scenario.run.rounds {
        // The run may have been given more rounds when it was resumed before.
        now.scenario.run.rounds = past.point.progress.rounds;
    }
    let rounds = now.scenario.run.rounds;
    let plan = past.plan(&before.scenario, now)?;
    Ok((!past.is_finished(rounds)?).then_some(plan))
}
