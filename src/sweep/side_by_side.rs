//! The points of one replicate, played side by side in one process: each is a trial with a run of its own, and all of them have
//! the same seed. They share hosts, the order of data, augmentation and fresh weights, so that differences between them come from
//! what the points set.
//!
//! A replicate that was interrupted continues from the newest round that all of its points have a checkpoint before; without one
//! it begins again, and what there is of it is set aside.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::child::set_aside;
use super::folder::SweepFolder;
use super::plan::{Plan, Trial};
use super::together::{Turns, play_together};
use crate::checkpoint::{CheckpointName, Checkpoints, PastRun, ResumeError};
use crate::engine::{Engine, Extension, Prepared, RunReport, SetupError};
use crate::health::{AtPath, FileError};
use crate::record::{Labels, LogFile, Recording, ScenarioFile};
use crate::run::StopSignal;
use crate::scenario::{Catalog, Override};

/// Why a replicate cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ReplicateError {
    /// The sweep does not have it, or plays its trials one by one.
    #[error("replicate {0}: the sweep has none that is played side by side; `sweep status --all` lists its trials")]
    None(u32),
    /// A file of the sweep.
    #[error(transparent)]
    File(#[from] FileError),
    /// A trial whose engine cannot be made.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A trial that cannot be resumed.
    #[error("trial {id} ({point}) cannot be resumed: {error}")]
    Resume {
        /// Of the trial.
        id: String,
        /// Of the trial.
        point: String,
        /// Why.
        error: ResumeError,
    },
}

/// What plays a replicate.
pub struct SideBySide<'a> {
    /// Of the sweep.
    pub folder: &'a SweepFolder,
    /// Of the sweep.
    pub plan: &'a Plan,
    /// The names that scenarios may use.
    pub catalog: &'a Catalog,
    /// What the application adds to the engine.
    pub extension: &'a Extension,
    /// Worker threads of a trial, which has all of them while it is its turn.
    pub threads: usize,
    /// Where the log goes.
    pub log: LogFile,
    /// Once this file is there another worker plays the replicate.
    pub ends_at: Option<PathBuf>,
}

/// A point of a replicate that has been played.
pub struct PlayedPoint<'a> {
    /// What was played.
    pub trial: &'a Trial,
    /// How it ended; `None` if nothing was left to play.
    pub report: Option<RunReport>,
    /// Whether gaps in its record make it fail.
    pub requires_record: bool,
}

impl<'a> SideBySide<'a> {
    /// Plays a replicate to its end, or until `stop` is asked for or one of its points fails.
    ///
    /// # Errors
    /// A sweep without a judge, or without that replicate; a trial that can be neither begun nor resumed.
    pub fn play(&self, replicate: u32, stop: &StopSignal) -> Result<Vec<PlayedPoint<'a>>, ReplicateError> {
        let of_replicate = |trials: &Vec<&Trial>| trials.iter().all(|trial| trial.replicate == replicate);
        let group = self
            .plan
            .sweep
            .judge
            .as_ref()
            .and_then(|_| self.plan.groups().into_iter().find(of_replicate));
        let group = group.ok_or(ReplicateError::None(replicate))?;
        let prepared: Vec<Prepared> = group
            .iter()
            .map(|trial| self.prepare(trial))
            .collect::<Result<_, _>>()?;
        let first_round = self.common_round(&group)?;
        let mut engines = Vec::with_capacity(group.len());
        for (trial, prepared) in group.iter().zip(&prepared) {
            engines.push(match first_round {
                Some(round) => self.resumed(trial, prepared, round)?,
                None => Some(self.fresh(trial, prepared)?),
            });
        }
        let turns = Turns {
            seed: group.first().map_or(0, |trial| trial.seed.0),
            first_round: first_round.unwrap_or(0),
        };
        let reports = play_together(&mut engines, turns, stop);
        let played = group.into_iter().zip(prepared).zip(reports);
        Ok(played
            .map(|((trial, prepared), report)| PlayedPoint {
                trial,
                report,
                requires_record: prepared.loaded.scenario.telemetry.require,
            })
            .collect())
    }

    fn prepare(&self, trial: &Trial) -> Result<Prepared, ReplicateError> {
        let path = self.folder.scenario();
        let file = ScenarioFile {
            text: std::fs::read_to_string(&path).at(&path)?,
            folder: self.plan.folder.clone(),
            path: Some(path.clone()),
        };
        let overrides = trial.overrides.iter();
        let overrides: Vec<Override> = overrides
            .map(|setting| Override::flag("--set", &setting.path, &setting.value.0))
            .collect();
        Ok(Prepared::new(
            &path.display().to_string(),
            file,
            &overrides,
            self.catalog,
        )?)
    }

    /// The newest round that every trial has a checkpoint before; `None` if there is none.
    fn common_round(&self, group: &[&Trial]) -> Result<Option<u32>, FileError> {
        let mut common: Option<BTreeSet<u32>> = None;
        for trial in group {
            let ids = Checkpoints::of(&self.folder.trial(&trial.id)).list()?;
            let between = ids.iter().filter(|id| !id.is_inside_round());
            let rounds: BTreeSet<u32> = between.map(|id| id.round).collect();
            common = Some(common.map_or_else(|| rounds.clone(), |common| &common & &rounds));
        }
        Ok(common.and_then(|common| common.last().copied()))
    }

    fn fresh(&self, trial: &Trial, prepared: &Prepared) -> Result<Engine, ReplicateError> {
        let directory = self.folder.trial(&trial.id);
        if directory.try_exists().at(&directory)? {
            set_aside(&self.folder.trials(), &trial.id)?;
        }
        let recording = Recording {
            id: Some(trial.id.clone()),
            labels: Labels {
                tags: self.plan.sweep.tags.clone(),
                ..Labels::default()
            },
            ..self.recording()
        };
        let builder = Engine::builder().with(self.extension.clone()).threads(self.threads);
        Ok(builder.recording(recording).build(prepared)?)
    }

    /// The trial as it was before `round`; `None` if it has played all of its rounds and closed its record.
    fn resumed(&self, trial: &Trial, prepared: &Prepared, round: u32) -> Result<Option<Engine>, ReplicateError> {
        let refused = |error| ReplicateError::Resume {
            id: trial.id.clone(),
            point: trial.label(),
            error,
        };
        let past = PastRun::open(&self.folder.trial(&trial.id), CheckpointName::Round(round)).map_err(refused)?;
        let scenario = &prepared.loaded.scenario;
        if past.is_finished(scenario.run.rounds).map_err(refused)? {
            return Ok(None);
        }
        let point = past.resume(scenario, &prepared.loaded, &[], &[]).map_err(refused)?;
        let builder = Engine::builder().with(self.extension.clone()).threads(self.threads);
        let builder = builder.recording(self.recording()).resumed(point);
        Ok(Some(builder.build(prepared)?))
    }

    fn recording(&self) -> Recording {
        Recording {
            log: self.log.clone(),
            ends_at: self.ends_at.clone(),
            ..Recording::under(self.folder.trials())
        }
    }
}
