//! `traj`: the content of sets of trajectories, and whether they are whole.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::options::TrajCommand;
use super::rejection::Rejection;
use super::{Context, Outcome};
use crate::files::counted;
use crate::record::{RESOLVED_FILE, find_run};
use crate::trajectory::{FORCED, MANIFEST_FILE, Manifest, SegmentFinish, TrajectorySet};

/// Runs the subcommand.
pub fn traj(command: &TrajCommand, context: &Context) -> Result<Outcome, Rejection> {
    match command {
        TrajCommand::Info { run, out } => {
            let set = find(run, out.as_deref())?;
            let info = Info::of(&set)?;
            Ok(context.printer.show_either(&info, || info.text()))
        }
        TrajCommand::Check { sources, out } => check(sources, out.as_deref(), context),
    }
}

/// A set by its folder, or that of a run by its folder or name.
fn find(name: &Path, out: Option<&Path>) -> Result<TrajectorySet, Rejection> {
    if name.join(MANIFEST_FILE).is_file() && !name.join(RESOLVED_FILE).is_file() {
        return Ok(TrajectorySet::open(name)?);
    }
    Ok(TrajectorySet::open(&find_run(name, out)?)?)
}

/// Contents of a set.
#[derive(Serialize)]
struct Info<'a> {
    #[serde(flatten)]
    manifest: &'a Manifest,
    rounds: usize,
    segments: usize,
    steps: usize,
    /// Segments by the event that follows them.
    rolled_back: usize,
    failed: usize,
    /// Steps with one possible action.
    forced: usize,
    /// Steps with known probabilities of the behaviour.
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
             recorded       {} in {} of {}\n\
             segments       {} ended by a rollback, {} by a failure\n\
             steps          {} with one possible action, {} with known probabilities\n\
             each step      {} numbers seen, {} slots, {known} blueprints\n",
            seed.0,
            counted(self.steps, "step"),
            counted(self.segments, "segment"),
            counted(self.rounds, "round"),
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
        let (steps, segments) = (counted(steps, "step"), counted(segments, "segment"));
        format!("ok: {steps} in {segments} of {}\n", counted(infos.len(), "set"))
    }))
}
