//! `resume`: continues a run from one of its checkpoints, in its own directory.

use std::path::Path;

use super::named::Named;
use super::rejection::Rejection;
use super::run::{limit_rounds, play};
use super::watch::show_while_playing;
use super::{Context, Outcome, ResumeOptions};
use crate::checkpoint::{PastRun, ResumePoint};
use crate::engine::Prepared;
use crate::record::ScenarioFile;
use crate::scenario::{Catalog, Override};
use crate::training::with_environment;

/// Finds the run, checks whether it can be resumed, and plays what is left of it.
pub fn resume(options: &ResumeOptions, context: &Context) -> Result<Outcome, Rejection> {
    let path = match Named::find(&options.run, options.out.as_deref())? {
        Named::Sweep(folder, _) => {
            let sweep = folder.path().display();
            return Err(format!("{sweep} is a sweep: simic-engine sweep work {sweep} plays what is left of it").into());
        }
        Named::Run(path) => path,
    };
    let Some((prepared, point)) = prepare(options, &path, &context.names.catalog)? else {
        return Ok(context.printer.show(format_args!(
            "{} has played all of its rounds: nothing is left to do (--extend N gives it more)\n",
            path.display()
        )));
    };
    let mut engine = context
        .engine()
        .recording(context.recording(None))
        .resumed(point)
        .build(&prepared)?;
    limit_rounds(&mut engine, options.until);
    show_while_playing(&mut engine, options.progress, context);
    Ok(play(engine, &Default::default(), context))
}

/// What is left and where it begins; `None` if nothing is.
fn prepare(
    options: &ResumeOptions,
    path: &Path,
    catalog: &Catalog,
) -> Result<Option<(Prepared, ResumePoint)>, Rejection> {
    let past = PastRun::open(path, options.from)?;
    let load = |overrides: &[Override]| -> Result<Prepared, Rejection> {
        let label = path.join("resolved.ron").display().to_string();
        let file = ScenarioFile {
            text: past.resolved.clone(),
            ..past.file.clone()
        };
        let mut prepared = Prepared::past(&label, file, overrides, &catalog.without_images())?;
        if !overrides.iter().any(|change| change.path == "run.rounds") {
            // The run may have been given more rounds when it was resumed before.
            prepared.loaded.scenario.run.rounds = past.point.progress.rounds;
        }
        prepared.file = past.file.clone();
        Ok(prepared)
    };
    let earlier = past.earlier_changes()?;
    let before = load(&earlier)?.loaded.scenario;
    let asked = options.overrides(before.run.rounds)?;
    let stands = |change: &&Override| !asked.iter().any(|asked| asked.overlaps(change));
    let changes: Vec<Override> = earlier.iter().filter(stands).chain(&asked).cloned().collect();
    let changes = with_environment(&changes)?;
    let now = load(&changes)?;
    let point = past.resume(&before, &now.loaded, &changes, &options.allowed)?;
    let run = &now.loaded.scenario.run;
    if past.is_finished(run.rounds)? {
        past.tidy();
        return Ok(None);
    }
    Ok(Some((now, point)))
}
