//! One replicate: all of its arms are trained together, then each is scored on its own.

use std::path::Path;

use serde_json::Value;

use super::folder::{ExperimentError, ExperimentFolder};
use super::outcome::{ArmResult, Budget, ReplicateResult};
use super::plan::Plan;
use super::together::{Turns, launch_order, play_together};
use crate::checkpoint::{CheckpointName, FrozenPolicy, PastRun};
use crate::compare::{Candidate, TrainingRecord, play_until};
use crate::engine::{Engine, Extension, RunReport, SetupError};
use crate::health::{AtPath, FileError};
use crate::policy::DecideMode;
use crate::record::{Recording, RoundHistory};
use crate::run::{StopRequest, StopSignal};
use crate::scenario::EvaluationMode;
use crate::telemetry::{BigInteger, RunState, record_end};

/// What of a manifest numbers depend on.
const FINGERPRINT: [&str; 4] = ["build", "libraries", "machine", "resolved"];
const MANIFEST: &str = "manifest.json";

/// What happens while an experiment is played. Replicates and rounds count from 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Told<'a> {
    /// A replicate begins, or goes on with this round.
    Begins {
        /// Which one.
        replicate: u32,
        /// The round that is played next.
        round: u32,
    },
    /// All arms have played a round.
    Round {
        /// Which replicate.
        replicate: u32,
        /// Which round.
        round: u32,
        /// Mean final accuracy of each arm, percent; `None` where it is not known.
        accuracies: Vec<Option<f64>>,
    },
    /// A trained arm plays the episodes that it is scored by.
    Scores {
        /// Which replicate.
        replicate: u32,
        /// Id of the arm.
        arm: &'a str,
    },
    /// A replicate has ended.
    Ended(&'a ReplicateResult),
}

/// Plays what is left of an experiment.
pub struct Player<'a> {
    /// Where it is kept.
    pub folder: &'a ExperimentFolder,
    /// What is played.
    pub plan: &'a Plan,
    /// What the application adds to the engine.
    pub extend: Extension,
    /// Worker threads of an arm, which has all of them while it is its turn.
    pub threads: usize,
    /// How runs are recorded; folder and name are each arm's own.
    pub recording: Recording,
    /// Whoever asks for a stop.
    pub stop: &'a StopSignal,
}

/// How a part of a replicate ended that was not asked to stop.
enum Part<T> {
    Done(T),
    Failed(String),
    Stopped(StopRequest),
}

impl Player<'_> {
    /// Plays all replicates that have not ended; the stop that was asked for, if one was.
    ///
    /// # Errors
    /// An experiment that cannot be begun or gone on with, or whose results cannot be kept. Of a replicate that fails
    /// while it is played the failure is kept instead, and the experiment goes on.
    pub fn play(&self, tell: &dyn Fn(Told)) -> Result<Option<StopRequest>, ExperimentError> {
        for replicate in 0..self.plan.design.replicates {
            if self.folder.has_result(replicate) {
                continue;
            }
            let result = match self.replicate(replicate, tell)? {
                Part::Done(arms) => self.result(replicate, arms, None)?,
                Part::Failed(failure) => self.result(replicate, Vec::new(), Some(failure))?,
                Part::Stopped(request) => return Ok(Some(request)),
            };
            self.folder.write_result(&result)?;
            tell(Told::Ended(&result));
        }
        Ok(None)
    }

    fn replicate(&self, replicate: u32, tell: &dyn Fn(Told)) -> Result<Part<Vec<ArmResult>>, ExperimentError> {
        match self.train(replicate, tell)? {
            Part::Done(()) => {}
            Part::Failed(failure) => return Ok(Part::Failed(failure)),
            Part::Stopped(request) => return Ok(Part::Stopped(request)),
        }
        let mut arms = Vec::new();
        for arm in 0..self.plan.arms.len() {
            if let Some(request) = self.stop.requested() {
                return Ok(Part::Stopped(request));
            }
            let id = &self.plan.design.arms[arm].id;
            tell(Told::Scores { replicate, arm: id });
            match self.score(replicate, arm)? {
                Part::Done(result) => arms.push(result),
                Part::Failed(failure) => return Ok(Part::Failed(format!("{id}: {failure}"))),
                Part::Stopped(request) => return Ok(Part::Stopped(request)),
            }
        }
        Ok(Part::Done(arms))
    }

    fn train(&self, replicate: u32, tell: &dyn Fn(Told)) -> Result<Part<()>, ExperimentError> {
        let design = &self.plan.design;
        let ids: Vec<&str> = design.arms.iter().map(|arm| arm.id.as_str()).collect();
        let first_round = self.folder.common_round(replicate, &ids)?;
        let mut engines = match first_round {
            Some(round) => self.resumed(replicate, round)?,
            None => {
                self.folder.set_aside(replicate)?;
                self.fresh(replicate)?
            }
        };
        let round = first_round.unwrap_or(0);
        tell(Told::Begins { replicate, round });
        let turns = Turns {
            interleave: design.interleave,
            seed: design.replicate_seed(replicate),
            first_round: round,
        };
        let mut after_round = |round, engines: &[Option<Engine>]| {
            tell(Told::Round {
                replicate,
                round,
                accuracies: engines.iter().map(latest_accuracy).collect(),
            });
        };
        let reports = play_together(&mut engines, &turns, self.stop, &mut after_round);
        self.judge(reports)
    }

    fn fresh(&self, replicate: u32) -> Result<Vec<Option<Engine>>, ExperimentError> {
        let folder = self.folder.replicate(replicate);
        let arms = 0..self.plan.arms.len();
        arms.map(|arm| {
            let recording = Recording {
                root: folder.clone(),
                id: Some(self.plan.design.arms[arm].id.clone()),
                labels: self.plan.labels.clone(),
                ..self.recording.clone()
            };
            let prepared = self.plan.arm(replicate, arm);
            let builder = Engine::builder().with(self.extend.clone()).threads(self.threads);
            Ok(Some(builder.recording(recording).build(&prepared)?))
        })
        .collect()
    }

    /// The arms as they were before `round`; `None` for those that have played all rounds and closed their records.
    fn resumed(&self, replicate: u32, round: u32) -> Result<Vec<Option<Engine>>, ExperimentError> {
        let folder = self.folder.replicate(replicate);
        let arms = 0..self.plan.arms.len();
        arms.map(|arm| {
            let id = &self.plan.design.arms[arm].id;
            let refused = |error| ExperimentError::Resume { arm: id.clone(), error };
            let past = PastRun::open(&folder.join(id), CheckpointName::Round(round)).map_err(refused)?;
            let prepared = self.plan.arm(replicate, arm);
            let scenario = &prepared.loaded.scenario;
            if past.is_finished(scenario.run.rounds).map_err(refused)? {
                return Ok(None);
            }
            let point = past.resume(scenario, &prepared.loaded, &[], &[]).map_err(refused)?;
            let builder = Engine::builder().with(self.extend.clone()).threads(self.threads);
            let builder = builder.recording(self.recording.clone()).resumed(point);
            Ok(Some(builder.build(&prepared)?))
        })
        .collect()
    }

    /// What the ends of the runs come to.
    fn judge(&self, reports: Vec<Option<RunReport>>) -> Result<Part<()>, ExperimentError> {
        let mut failures = Vec::new();
        for (arm, report) in self.plan.design.arms.iter().zip(reports) {
            let Some(report) = report else { continue };
            match report.failure {
                Some(error) if report.record.is_none() => {
                    let arm = arm.id.clone();
                    return Err(ExperimentError::Start { arm, error });
                }
                Some(error) => failures.push(format!("{}: {error}", arm.id)),
                None => {}
            }
            let requires_records = self.plan.arms.iter().any(|arm| arm.loaded.scenario.telemetry.require);
            if requires_records {
                let gaps = report.gaps.iter();
                failures.extend(gaps.map(|gap| format!("{}: the record is incomplete: {gap}", arm.id)));
            }
        }
        Ok(match self.stop.requested() {
            // What comes of a stop is no failure of the method.
            Some(request) if failures.is_empty() => Part::Stopped(request),
            _ if failures.is_empty() => Part::Done(()),
            _ => Part::Failed(failures.join("; ")),
        })
    }

    /// Plays the episodes of every evaluation seed with the policy as it was left by the training.
    fn score(&self, replicate: u32, arm: usize) -> Result<Part<ArmResult>, ExperimentError> {
        let design = &self.plan.design;
        let directory = self.folder.replicate(replicate).join(&design.arms[arm].id);
        // A controller that does not learn has left none.
        let policy = match FrozenPolicy::find(&directory, CheckpointName::Last) {
            Ok(policy) => policy.saved,
            Err(error) => return Ok(Part::Failed(error.to_string())),
        };
        let prepared = self.plan.arm(replicate, arm);
        let candidate = Candidate {
            controller: prepared.loaded.scenario.policy.controller.clone(),
            policy,
            mode: match design.eval_mode {
                EvaluationMode::Greedy => DecideMode::Greedy,
                EvaluationMode::Sample => DecideMode::Sample,
            },
            seeds: None,
        };
        let (mut outcomes, mut data_hash) = (Vec::new(), String::new());
        for episodes in design.episodes() {
            let experiment = prepared.experiment(self.threads).map_err(SetupError::from)?;
            match play_until(experiment, &self.extend, &candidate, &episodes, self.stop, |_| ()) {
                Ok(played) => {
                    outcomes.extend(played.outcomes);
                    data_hash = played.data_hash;
                }
                Err(error) => return Ok(Part::Failed(error.to_string())),
            }
            if let Some(request) = self.stop.requested() {
                return Ok(Part::Stopped(request));
            }
        }
        let mut training = TrainingRecord::of_run(&directory)?;
        training.evaluated(outcomes);
        let Some((updates, episodes)) = totals(&directory)? else {
            return Ok(Part::Failed("its run has not played all of its rounds".into()));
        };
        Ok(Part::Done(ArmResult {
            id: design.arms[arm].id.clone(),
            seed: BigInteger(design.arm_seed(replicate, arm)),
            devices: design.arm_devices(replicate, arm),
            learns: candidate.policy.is_some(),
            budget: Budget {
                episodes,
                env_steps: training.env_steps(),
                updates,
            },
            data_hash,
            training,
        }))
    }

    fn result(
        &self,
        replicate: u32,
        arms: Vec<ArmResult>,
        failure: Option<String>,
    ) -> Result<ReplicateResult, FileError> {
        let design = &self.plan.design;
        let seed = design.replicate_seed(replicate);
        let fingerprint = match arms.first() {
            Some(arm) => fingerprint(&self.folder.replicate(replicate).join(&arm.id))?,
            None => Value::Null,
        };
        let orders = (0..design.rounds).map(|round| launch_order(seed, round, design.arms.len()));
        Ok(ReplicateResult {
            replicate,
            orders: if failure.is_none() {
                orders.collect()
            } else {
                Vec::new()
            },
            failure,
            arms,
            fingerprint,
        })
    }
}

/// Of the last round, percent.
fn latest_accuracy(engine: &Option<Engine>) -> Option<f64> {
    let history = engine.as_ref()?.world().get_resource::<RoundHistory>()?;
    history.0.last().copied()
}

/// Updates and episodes of a run that was played to its end.
fn totals(directory: &Path) -> Result<Option<(u64, u64)>, FileError> {
    let finished = record_end(directory)?.and_then(|end| end.finished);
    let completed = finished.filter(|run| run.status == RunState::Completed);
    Ok(completed.map(|run| (run.updates, run.episodes_done)))
}

fn fingerprint(directory: &Path) -> Result<Value, FileError> {
    let path = directory.join(MANIFEST);
    let manifest: Value = serde_json::from_slice(&std::fs::read(&path).at(&path)?).at(&path)?;
    let kept = FINGERPRINT.map(|key| (key.to_owned(), manifest[key].clone()));
    Ok(Value::Object(kept.into_iter().collect()))
}
