//! `traj`: what sets of trajectories hold, whether they are whole, and sets of runs that recorded none.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::named::held_run;
use super::options::{SetOptions, TrajCommand};
use super::rejection::Rejection;
use super::{Context, Outcome};
use crate::engine::{Prepared, read_scenario};
use crate::health::AtPath;
use crate::inspect::{DiffKind, Extent, diff};
use crate::record::{ListedState, RESOLVED_FILE, Recording, RunDirectory, RunEntry, TrajectoryPlugin, find_run};
use crate::run::{StopRequest, StopSignal};
use crate::storage::{self, sync_folder_of};
use crate::trajectory::{FOLDER, FORCED, MANIFEST_FILE, Manifest, SegmentFinish, TrajectorySet};

/// The run that is played once more.
const AGAIN: &str = "again";

/// Does what the subcommand says.
pub fn traj(command: &TrajCommand, context: &Context) -> Result<Outcome, Rejection> {
    match command {
        TrajCommand::Info(options) => {
            let set = find(&options.run, options.out.as_deref())?;
            let info = Info::of(&set)?;
            Ok(context.printer.show_either(&info, || info.text()))
        }
        TrajCommand::Check { sources, out } => check(sources, out.as_deref(), context),
        TrajCommand::FromRun { source, output } => from_run(source, output, context),
    }
}

/// A set by its folder, or that of a run by its folder or name.
fn find(name: &Path, out: Option<&Path>) -> Result<TrajectorySet, Rejection> {
    if name.join(MANIFEST_FILE).is_file() && !name.join(RESOLVED_FILE).is_file() {
        return Ok(TrajectorySet::open(name)?);
    }
    Ok(TrajectorySet::open(&find_run(name, out)?)?)
}

/// What a set holds.
#[derive(Serialize)]
struct Info<'a> {
    #[serde(flatten)]
    manifest: &'a Manifest,
    rounds: usize,
    segments: usize,
    steps: usize,
    /// Segments by what follows them.
    rolled_back: usize,
    failed: usize,
    /// Steps with one possible action.
    forced: usize,
    /// Steps of which the behaviour's probabilities are known.
    with_probabilities: usize,
}

impl<'a> Info<'a> {
    /// Reads, and with that verifies, every shard.
    fn of(set: &'a TrajectorySet) -> Result<Self, Rejection> {
        let manifest = &set.manifest;
        let mut info = Self {
            manifest,
            rounds: manifest.shards.len(),
            segments: 0,
            steps: 0,
            rolled_back: 0,
            failed: 0,
            forced: 0,
            with_probabilities: 0,
        };
        for shard in &manifest.shards {
            for segment in set.read(shard)? {
                let finish = segment.finish[0];
                info.segments += 1;
                info.steps += segment.len();
                info.rolled_back += usize::from(finish == SegmentFinish::RolledBack as i64);
                info.failed += usize::from(finish == SegmentFinish::Failed as i64);
                info.forced += segment.flags.iter().filter(|flags| **flags & FORCED != 0).count();
                let known = segment.log_probs.chunks(manifest.heads.len());
                info.with_probabilities += known.filter(|heads| heads.iter().all(|log| log.is_finite())).count();
            }
        }
        Ok(info)
    }

    fn text(&self) -> String {
        let Manifest {
            scenario,
            task,
            controller,
            seed,
            observation,
            slots,
            blueprints,
            ..
        } = self.manifest;
        let known = blueprints.iter().filter(|name| !name.is_empty()).count();
        format!(
            "scenario       {scenario}, {task}, seed {}\ncontroller     {controller}\n\
             recorded       {} steps in {} segments of {} rounds\n\
             segments       {} ended by a rollback, {} by a failure\n\
             steps          {} with one possible action, {} with known probabilities\n\
             of a step      {} numbers seen, {} slots, {known} blueprints\n",
            seed.0,
            self.steps,
            self.segments,
            self.rounds,
            self.rolled_back,
            self.failed,
            self.forced,
            self.with_probabilities,
            observation.len(),
            slots.len(),
        )
    }
}

/// Every set whole, and all of one form.
fn check(names: &[PathBuf], out: Option<&Path>, context: &Context) -> Result<Outcome, Rejection> {
    let sets: Vec<TrajectorySet> = names.iter().map(|name| find(name, out)).collect::<Result<_, _>>()?;
    let infos: Vec<Info> = sets.iter().map(Info::of).collect::<Result<_, _>>()?;
    for (set, name) in sets.iter().zip(names).skip(1) {
        if let Some(misfit) = set.manifest.misfit(&sets[0].manifest) {
            let (name, first) = (name.display(), names[0].display());
            return Err(format!("{name} cannot be learnt from together with {first}: {misfit}").into());
        }
    }
    let (steps, segments) = infos.iter().fold((0, 0), |(steps, segments), info| {
        (steps + info.steps, segments + info.segments)
    });
    Ok(context.printer.show_either(&infos, || {
        format!("ok: {steps} steps in {segments} segments of {} sets\n", infos.len())
    }))
}

/// Plays a run once more, in a folder beside the output that is taken away again, and keeps its trajectories if all events came
/// again.
fn from_run(options: &SetOptions, output: &Path, context: &Context) -> Result<Outcome, Rejection> {
    let run = held_run(find_run(&options.run, options.out.as_deref())?)?;
    if RunEntry::read(&run).state != ListedState::Completed {
        let run = run.display();
        return Err(format!("{run} has not ended: resume it, so that there is a whole to compare with").into());
    }
    if TrajectorySet::open(&run).is_ok() {
        return Err(format!("{} has recorded its trajectories: they are in {FOLDER}", run.display()).into());
    }
    if output.try_exists().at(output)? {
        return Err(format!("{} is there already", output.display()).into());
    }
    let resolved = run.join(RESOLVED_FILE);
    let file = read_scenario(&resolved)?;
    let prepared = Prepared::past(&resolved.display().to_string(), file, &[], &context.catalog)?;
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(".playing");
    let beside = output.with_file_name(name);
    match RunDirectory::is_claimed(&beside.join(AGAIN)) {
        // What a process has left that was killed.
        Some(false) => std::fs::remove_dir_all(&beside).at(&beside)?,
        Some(true) => return Err(format!("another process plays the run, in {}", beside.display()).into()),
        None => {}
    }
    // Another process may have begun just now: it has what it creates.
    if let Some(parent) = beside.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        storage::create_dir_all(parent).at(parent)?;
    }
    storage::create_dir(&beside).at(&beside)?;
    let kept = played_once_more(&run, &prepared, &beside, output, context);
    let removed = std::fs::remove_dir_all(&beside).at(&beside);
    if let Some(request) = kept? {
        return Ok(Outcome::Stopped(request));
    }
    removed?;
    Ok(context.printer.show(format_args!("written to {}\n", output.display())))
}

/// Plays what `run` played, in a folder of `beside`, and moves the trajectories to `output`; gives why it was stopped, if it was.
fn played_once_more(
    run: &Path,
    prepared: &Prepared,
    beside: &Path,
    output: &Path,
    context: &Context,
) -> Result<Option<StopRequest>, Rejection> {
    let stop = context.heeded_stop()?;
    let recording = Recording {
        log: context.log.clone(),
        id: Some(AGAIN.into()),
        ..Recording::under(beside.to_path_buf())
    };
    // Beside the scenario, so that all events may be the same.
    let engine = context.engine().with(TrajectoryPlugin).recording(recording);
    let mut engine = engine.build(prepared)?;
    engine.world_mut().insert_resource::<StopSignal>(stop.clone());
    let report = engine.play();
    drop(engine);
    if let Some(request) = stop.requested() {
        return Ok(Some(request));
    }
    report.into_result().map_err(Rejection::failed)?;
    let again = beside.join(AGAIN);
    let found = diff(run, &again, &[DiffKind::Events], Extent::First)?;
    if let Some(difference) = found.differences.first() {
        return Err(Rejection::failed(format_args!(
            "this build does not repeat the run, so nothing is written\n{difference}"
        )));
    }
    storage::rename(&again.join(FOLDER), output).at(output)?;
    sync_folder_of(output).at(output)?;
    Ok(None)
}
