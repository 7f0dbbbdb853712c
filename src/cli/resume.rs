//! `resume`: a run goes on from one of its checkpoints, in its own directory.

use std::path::Path;

use super::output::show;
use super::prepare::Rejection;
use super::run::{Surroundings, console, play};
use super::{GlobalOptions, Outcome, ResumeOptions};
use crate::run::{PastRun, ResumeError, RunPlan, find_run};
use crate::scenario::{self, Catalog, Input, Loaded, Override};

/// Finds the run, sees whether it can go on, and plays what is left of it.
pub fn resume(options: &ResumeOptions, catalog: &Catalog, global: &GlobalOptions, around: &Surroundings) -> Outcome {
    let path = find_run(&options.run, options.out.as_deref()).unwrap_or_else(|| options.run.clone());
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
                "{} has played all of its rounds: nothing is left to do (--extend N gives it more)\n",
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
    let usage = |message| Refusal::Scenario(Rejection::Usage(message));
    let past = PastRun::open(path, options.from)?;
    let load = |overrides: &[Override]| -> Result<Loaded, Refusal> {
        let label = path.join("resolved.ron").display().to_string();
        let input = Input {
            label: &label,
            text: &past.resolved,
            overrides,
        };
        let mut loaded =
            scenario::load(&input, catalog).map_err(|report| Refusal::Scenario(Rejection::Scenario(report)))?;
        if !overrides.iter().any(|change| change.path == "run.rounds") {
            // The run may have been given more rounds when it was resumed before.
            loaded.scenario.run.rounds = past.point.progress.rounds;
        }
        Ok(loaded)
    };
    let earlier = past.earlier_changes().map_err(usage)?;
    let before = load(&earlier)?;
    let asked = options.overrides(before.scenario.run.rounds).map_err(usage)?;
    let stands = |change: &&Override| !asked.iter().any(|asked| asked.overlaps(change));
    let changes: Vec<Override> = earlier.iter().filter(stands).chain(&asked).cloned().collect();
    let now = load(&changes)?;
    let rounds = now.scenario.run.rounds;
    let plan = past.plan(&before.scenario, now, &changes, &options.allowed)?;
    Ok((!past.is_finished(rounds)?).then_some(plan))
}
