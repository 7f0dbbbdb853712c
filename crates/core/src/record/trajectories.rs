//! Collecting trajectories: each step of each env as it is decided and paid, its end, and a shard a round.

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use serde::{Deserialize, Serialize};

use super::directory::RunDirectory;
use crate::actions::{HEADS, Head, MaskSet};
use crate::clock::RunClock;
use crate::controller::{
    ActiveController, Chosen, CommandOutcome, EnvRow, Feedback, Masks, Observation, ObservationInput,
    ObservationSchema, ObserveAll, Signals,
};
use crate::env::{EnvId, EpisodeStats, Experiment, KeepInRounds, SeedSlots, StepStatus, round_is_complete};
use crate::growth::LifecycleOp;
use crate::hash::sha256;
use crate::health::{Failure, InEnv};
use crate::reward::{EpisodeReward, RewardHorizon, Term};
use crate::scenario::{resolved_ron, ron_text};
use crate::schedule::{Act, AddWork, RoundEnd, Startup, StepEnd, Work};
use crate::seed::BlueprintRegistry;
use crate::telemetry::{BigInteger, EpisodeEnd};
use crate::trajectory::{CHARGED, FOLDER, FORCED, Manifest, Segment, SegmentFinish, TrajectorySet};

/// Records trajectories of a run that has a folder; added where the scenario asks for them (`telemetry.trajectories`).
#[derive(Clone)]
pub struct TrajectoryPlugin;

impl Plugin for TrajectoryPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<Recorder>()
            .init_resource::<ObserveAll>()
            .register_required_components::<EnvId, EnvTrajectory>();
        app.add_work(Startup, Work::BeginTrajectories, begin_set)
            .add_work(Act, Work::RecordTrajectories, record_steps)
            .add_work(StepEnd, Work::EndTrajectories, end_trajectories)
            .add_work_if(RoundEnd, Work::WriteTrajectories, write_trajectories, round_is_complete)
            .keep_in_rounds::<EnvTrajectory>("trajectory");
    }
}

/// Where trajectories go; nothing until the run has a folder.
#[derive(Resource, Debug, Default)]
pub struct Recorder {
    set: Option<TrajectorySet>,
    /// Why some of them are not on disk; `None` if all are.
    pub failure: Option<String>,
}

/// What an env has recorded of its episode.
#[derive(Component, Debug, Default, Serialize, Deserialize)]
pub(crate) struct EnvTrajectory(Vec<Segment>);

impl EnvTrajectory {
    /// The newest segment, if steps can still be added to it.
    fn open(&mut self) -> Option<&mut Segment> {
        let newest = self.0.last_mut();
        newest.filter(|segment| segment.finish == [SegmentFinish::Open as i64])
    }

    fn close(&mut self, finish: SegmentFinish, behind: Option<&Observation>) {
        let Some(segment) = self.open() else { return };
        segment.finish = vec![finish as i64];
        if let Some(Observation { raw, blueprints, .. }) = behind {
            segment.final_observation.clone_from(raw);
            segment.final_blueprints = indices(blueprints);
        }
    }
}

fn indices(blueprints: &[i64]) -> Vec<i32> {
    blueprints.iter().map(|&index| index as i32).collect()
}

/// Begins the set of the run, or continues it behind the rounds that it keeps.
pub(crate) fn begin_set(
    mut recorder: ResMut<Recorder>,
    (experiment, horizon): (Res<Experiment>, Res<RewardHorizon>),
    (schema, blueprints): (Option<Res<ObservationSchema>>, Res<BlueprintRegistry>),
    directory: Option<Res<RunDirectory>>,
) -> Result<(), Failure> {
    let (Some(directory), Some(schema)) = (directory, schema) else {
        return Ok(());
    };
    let (scenario, task) = (&experiment.scenario, &experiment.task);
    let slots: Vec<String> = schema.slots().iter().map(ToString::to_string).collect();
    let names: Vec<String> = blueprints.names().map(String::from).collect();
    let heads = Head::ALL.map(|head| (head.name().to_owned(), head.size(slots.len(), names.len())));
    let resolved = resolved_ron(scenario)?;
    let (format, parts) = Manifest::format();
    let manifest = Manifest {
        format,
        engine: env!("CARGO_PKG_VERSION").into(),
        scenario: scenario.name.clone(),
        scenario_sha256: sha256(resolved.as_bytes()),
        task: task.name.clone(),
        host: ron_text(&task.host),
        controller: scenario.policy.controller.clone(),
        seed: BigInteger(scenario.run.seed),
        max_steps: task.max_steps,
        gamma: horizon.gamma,
        reward: ron_text(&scenario.reward),
        price: experiment.reward.price,
        observation: schema.names().to_vec(),
        masks: MaskSet::row_width(slots.len(), names.len()),
        slots,
        blueprints: names,
        operations: LifecycleOp::ALL.map(|op| op.name().to_owned()).into(),
        heads: heads.into(),
        parts,
        shards: Vec::new(),
    };
    let set = TrajectorySet::begin(directory.path().join(FOLDER), manifest, experiment.rounds.start);
    recorder.set = Some(set?);
    Ok(())
}

/// What is recorded of an env's step.
#[derive(QueryData)]
#[query_data(mutable)]
pub(crate) struct SteppingEnv {
    id: &'static EnvId,
    status: &'static StepStatus,
    observation: &'static Observation,
    chosen: &'static Chosen,
    masks: &'static Masks,
    outcome: &'static CommandOutcome,
    trajectory: &'static mut EnvTrajectory,
}

/// Adds the step of every env that has decided; a rollback ends what came before it.
pub(crate) fn record_steps(
    mut envs: Query<SteppingEnv>,
    recorder: Res<Recorder>,
    clock: Res<RunClock>,
    mut controller: ResMut<ActiveController>,
) {
    let Some(set) = &recorder.set else { return };
    let sizes = set.manifest.sizes();
    let version = controller.0.get().learned().map_or(0, |policy| policy.updates());
    for mut env in &mut envs {
        if *env.status == StepStatus::RolledBack {
            env.trajectory.close(SegmentFinish::RolledBack, None);
        }
        let (Some(decision), Some(masks)) = (&env.chosen.0, &env.masks.0) else {
            continue;
        };
        if env.trajectory.open().is_none() {
            env.trajectory.0.push(Segment {
                round: vec![clock.round().into()],
                env: vec![env.id.index as i64],
                policy_version: vec![version as i64],
                finish: vec![SegmentFinish::Open as i64],
                final_observation: vec![f32::NAN; sizes.observation],
                final_blueprints: vec![-1; sizes.slots],
                ..Segment::default()
            });
        }
        let Some(segment) = env.trajectory.open() else { continue };
        let mut row = vec![false; sizes.masks];
        masks.write_row(set.manifest.blueprints.len(), &mut row);
        let log_probs = decision.sample.as_ref().map(|sample| sample.log_probs);
        segment.step.push(clock.step() as i32);
        segment.observation.extend(&env.observation.raw);
        segment.blueprints.extend(indices(&env.observation.blueprints));
        segment.actions.extend(decision.indices.map(i32::from));
        segment.effective_op.push(env.outcome.effective_op.code() as i32);
        segment.log_probs.extend(log_probs.unwrap_or([f32::NAN; HEADS]));
        segment.masks.extend(row.into_iter().map(u8::from));
        segment.flags.push(if masks.is_forced() { FORCED } else { 0 });
    }
}

/// What an env is in when its episode ends.
#[derive(QueryData)]
#[query_data(mutable)]
pub(crate) struct EndedEnv {
    id: &'static EnvId,
    stats: &'static EpisodeStats,
    slots: &'static SeedSlots,
    signals: &'static Signals,
    feedback: &'static Feedback,
    trajectory: &'static mut EnvTrajectory,
}

/// Ends the segments of episodes that ended in this step, with what is seen behind their last one: the state after the tick.
pub(crate) fn end_trajectories(
    mut envs: Query<EndedEnv>,
    (schema, blueprints): (Option<Res<ObservationSchema>>, Res<BlueprintRegistry>),
    (experiment, clock): (Res<Experiment>, Res<RunClock>),
) -> Result<(), Failure> {
    let Some(schema) = schema else { return Ok(()) };
    for mut env in &mut envs {
        let Some(end) = env.stats.end.filter(|end| end.step == clock.step()) else {
            continue;
        };
        if end.reason == EpisodeEnd::Failed {
            env.trajectory.close(SegmentFinish::Failed, None);
            continue;
        }
        let reports = env.slots.reports(&blueprints, &experiment.scenario.lifecycle.gates);
        let mut observation = Observation::default();
        let input = ObservationInput {
            at: EnvRow::of(env.id, &experiment, &clock).at(clock.step()),
            signals: &env.signals.0,
            feedback: env.feedback.0,
            reports: &reports,
        };
        schema.observe(&input, &mut observation).in_env(env.id.index)?;
        env.trajectory.close(SegmentFinish::Ended, Some(&observation));
    }
    Ok(())
}

/// Writes the round's segments, with what their steps were paid in the end; a failure is a gap of the record.
pub(crate) fn write_trajectories(
    mut envs: Query<(&EnvId, &EpisodeReward, &mut EnvTrajectory)>,
    mut recorder: ResMut<Recorder>,
    clock: Res<RunClock>,
) {
    let mut segments = Vec::new();
    for (_, paid, mut trajectory) in envs.iter_mut().sort_unstable::<&EnvId>() {
        let mut recorded = std::mem::take(&mut trajectory.0);
        recorded.iter_mut().for_each(|segment| pay(segment, paid));
        segments.append(&mut recorded);
    }
    let Recorder { set, failure } = &mut *recorder;
    if let Some(set) = set
        && let Err(error) = set.put(clock.round(), &segments)
    {
        tracing::warn!(%error, "trajectories are not on disk");
        *failure = Some(error.to_string());
    }
}

/// Charges of a rollback reach back, so rewards are known once the episode is over.
fn pay(segment: &mut Segment, paid: &EpisodeReward) {
    for (index, &step) in segment.step.iter().enumerate() {
        let rewarded = paid.steps.iter().find(|rewarded| rewarded.step == step as u32);
        let rewarded = rewarded.copied().unwrap_or_default();
        segment.reward.push(rewarded.breakdown.total());
        segment.parts.extend(rewarded.parts);
        if rewarded.breakdown.get(Term::Governor) != 0.0 {
            segment.flags[index] |= CHARGED;
        }
    }
}
