//! The collection of trajectories: each decided step of each env, and the end of its episode.

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use serde::{Deserialize, Serialize};

use super::segment::{CHARGED, FORCED, Segment, SegmentFinish, Sizes};
use crate::actions::{HEADS, MaskSet};
use crate::clock::RunClock;
use crate::controller::{
    ActiveController, Chosen, CommandOutcome, EnvRow, Feedback, Masks, Observation, ObservationInput,
    ObservationSchema, ObserveAll, Signals,
};
use crate::env::{EnvId, EpisodeStats, Experiment, KeepInRounds, SeedSlots, StepStatus};
use crate::health::{Failure, InEnv};
use crate::reward::{EpisodeReward, Term};
use crate::schedule::{Act, AddWork, StepEnd, Work};
use crate::seed::BlueprintRegistry;
use crate::telemetry::EndReason;

/// Collects trajectories. The plugins that record or learn from them add it.
pub struct CollectorPlugin;

impl CollectorPlugin {
    /// Adds it, unless it is there.
    pub fn ensure(app: &mut App) {
        if !app.is_plugin_added::<Self>() {
            app.add_plugins(Self);
        }
    }
}

impl Plugin for CollectorPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<ObserveAll>()
            .add_work(Act, Work::RecordTrajectories, record_steps)
            .add_work(StepEnd, Work::EndTrajectories, end_trajectories)
            .keep_in_rounds::<EnvTrajectory>("trajectory");
    }
}

impl Sizes {
    /// Sizes of the steps of a run.
    pub fn of(schema: &ObservationSchema, blueprints: &BlueprintRegistry) -> Self {
        let (slots, blueprints) = (schema.slots().len(), blueprints.names().count());
        Self {
            observation: schema.len(),
            slots,
            blueprints,
            masks: MaskSet::row_width(slots, blueprints),
        }
    }
}

/// The segments of an env's newest episode.
#[derive(Component, Debug, Default, Serialize, Deserialize)]
pub struct EnvTrajectory(Vec<Segment>);

impl EnvTrajectory {
    /// The segments of the round, with what their steps were paid in the end.
    pub fn paid(&self, round: u32, paid: &EpisodeReward) -> Vec<Segment> {
        let of_round = self.0.iter().filter(|segment| segment.round == [i64::from(round)]);
        let mut segments: Vec<Segment> = of_round.cloned().collect();
        segments.iter_mut().for_each(|segment| pay(segment, paid));
        segments
    }

    /// The newest segment, if steps can still be added to it.
    fn open(&mut self) -> Option<&mut Segment> {
        let newest = self.0.last_mut();
        newest.filter(|segment| segment.finish == [SegmentFinish::Open as i64])
    }

    fn close(&mut self, finish: SegmentFinish, after: Option<&Observation>) {
        let Some(segment) = self.open() else { return };
        segment.finish = vec![finish as i64];
        if let Some(Observation { raw, blueprints, .. }) = after {
            segment.final_observation.clone_from(raw);
            segment.final_blueprints = indices(blueprints);
        }
    }
}

fn indices(blueprints: &[i64]) -> Vec<i32> {
    blueprints.iter().map(|&index| index as i32).collect()
}

/// State of an env that is recorded of a step.
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
    schema: Option<Res<ObservationSchema>>,
    blueprints: Res<BlueprintRegistry>,
    clock: Res<RunClock>,
    mut controller: ResMut<ActiveController>,
) {
    let Some(schema) = schema else { return };
    let sizes = Sizes::of(&schema, &blueprints);
    let known = blueprints.names().count();
    let version = controller.0.get().learned().map_or(0, |policy| policy.updates());
    for mut env in &mut envs {
        if *env.status == StepStatus::RolledBack {
            env.trajectory.close(SegmentFinish::RolledBack, None);
        }
        let (Some(decision), Some(masks)) = (&env.chosen.0, &env.masks.0) else {
            continue;
        };
        if env.trajectory.open().is_none() {
            let round = i64::from(clock.round());
            env.trajectory.0.retain(|segment| segment.round == [round]);
            env.trajectory.0.push(Segment {
                round: vec![round],
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
        masks.write_row(known, &mut row);
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

/// State of an env at the end of its episode.
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

/// Ends the segments of episodes that ended in this step, with the observation after their last one: the state after the tick.
pub(crate) fn end_trajectories(
    mut envs: Query<EndedEnv>,
    schema: Option<Res<ObservationSchema>>,
    blueprints: Res<BlueprintRegistry>,
    experiment: Res<Experiment>,
    clock: Res<RunClock>,
) -> Result<(), Failure> {
    let Some(schema) = schema else { return Ok(()) };
    for mut env in &mut envs {
        let Some(end) = env.stats.end.filter(|end| end.step == clock.step()) else {
            continue;
        };
        if end.reason == EndReason::Failed {
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
