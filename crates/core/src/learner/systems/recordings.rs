//! Recorded trajectories in the place of rollouts: they are read at start-up, and each round fills the buffer from them.

use std::path::PathBuf;

use bevy_ecs::prelude::*;
use tch::Tensor;

use super::context::LearnerContext;
use crate::actions::{HEADS, MaskSet};
use crate::controller::LearningPolicy;
use crate::env::Experiment;
use crate::growth::LifecycleOp;
use crate::health::Failure;
use crate::learner::algorithm::{
    BufferError, DecidedStep, LearnerError, RolloutBuffer, SegmentEnd, StepOutcome, StepTensors,
};
use crate::policy::{PolicyInput, RecurrentState};
use crate::random::{Domain, Draw, RunRng};
use crate::reward::{PARTS, committed_of_parts};
use crate::scenario::{CloneConfig, ContributionMode, EpisodeEnd, RewardConfig, ron_text};
use crate::seed::BlueprintRegistry;
use crate::torch::{TorchError, catch};
use crate::trajectory::{CHARGED, Manifest, Misfit, Segment, SegmentFinish, TrajectoryError, TrajectorySet};

/// Segments that are learnt from, each with its rewards under the scenario's.
#[derive(Resource)]
pub(crate) struct Recordings(Vec<(Segment, Vec<f64>)>);

/// Why recordings cannot be learnt from.
#[derive(Debug, thiserror::Error)]
pub enum RecordingsError {
    /// A set that cannot be read.
    #[error("learner.algorithm: {0}")]
    Set(#[from] TrajectoryError),
    /// Steps of another form than the run's policy has them.
    #[error("learner.algorithm: {}: {misfit} as in this run", path.display())]
    Misfit {
        /// Of the set.
        path: PathBuf,
        /// What differs.
        misfit: Misfit,
    },
    /// The reward was another one, and its parts do not say what the scenario's would be.
    #[error(
        "learner.algorithm: {}: it was paid by {found}, and this run's reward does not follow from its parts; only \
         `contribution(committed())` does", path.display()
    )]
    Reward {
        /// Of the set.
        path: PathBuf,
        /// Of the set.
        found: String,
    },
    /// Episodes that do not fit into a rollout.
    #[error("learner.algorithm: {}: its episodes have up to {found} steps; set run.max_steps, {most}, to that", path.display())]
    Long {
        /// Of the set.
        path: PathBuf,
        /// Of the set.
        found: u32,
        /// Of the run.
        most: u32,
    },
    /// Nothing would be trained.
    #[error("learner.algorithm: the controller `{0}` does not learn; write policy: (controller: \"actor_critic\")")]
    NoLearner(String),
    /// No segment is left.
    #[error("learner.algorithm: there is nothing to learn from in {0}")]
    Empty(String),
}

/// Reads the sets that the scenario names, and fits the normaliser of observations to them; `None` where it names none.
pub(super) fn load_recordings(
    policy: Option<&mut dyn LearningPolicy>,
    experiment: &Experiment,
    blueprints: &BlueprintRegistry,
    gamma: f64,
) -> Result<Option<Recordings>, Failure> {
    let Some(config) = experiment.scenario.learner.recordings() else {
        return Ok(None);
    };
    let Some(policy) = policy else {
        return Err(RecordingsError::NoLearner(experiment.scenario.policy.controller.clone()).into());
    };
    let names: Vec<String> = blueprints.names().map(String::from).collect();
    let mut recorded = Vec::new();
    for name in &config.sets {
        let path = experiment
            .folder
            .as_ref()
            .map_or_else(|| name.into(), |folder| folder.join(name));
        let set = TrajectorySet::open(&path).map_err(RecordingsError::from)?;
        if let Some(misfit) = misfit(&set.manifest, policy, &names) {
            return Err(RecordingsError::Misfit { path, misfit }.into());
        }
        let (found, most) = (set.manifest.max_steps, experiment.task.max_steps);
        if found > most {
            return Err(RecordingsError::Long { path, found, most }.into());
        }
        for shard in &set.manifest.shards {
            for segment in set.read(shard).map_err(RecordingsError::from)? {
                if segment.finish == [SegmentFinish::Failed as i64] {
                    continue;
                }
                let rewards = rewards(&segment, &set.manifest, experiment, gamma);
                let rewards = rewards.ok_or_else(|| RecordingsError::Reward {
                    path: path.clone(),
                    found: set.manifest.reward.clone(),
                })?;
                recorded.push((segment, rewards));
            }
        }
    }
    keep_best(&mut recorded, config, gamma);
    if recorded.is_empty() {
        return Err(RecordingsError::Empty(config.sets.join(", ")).into());
    }
    let width = policy.schema().len();
    let rows = recorded
        .iter()
        .flat_map(|(segment, _)| segment.observation.chunks_exact(width));
    policy.normaliser_mut().commit(rows)?;
    Ok(Some(Recordings(recorded)))
}

/// The first name that the set has otherwise than the run.
fn misfit(manifest: &Manifest, policy: &dyn LearningPolicy, blueprints: &[String]) -> Option<Misfit> {
    let slots: Vec<String> = policy.schema().slots().iter().map(ToString::to_string).collect();
    Misfit::of([
        ("slots", &manifest.slots, &slots),
        ("blueprints", &manifest.blueprints, blueprints),
        ("observation", &manifest.observation, policy.schema().names()),
    ])
}

/// What the steps of a segment are paid by the scenario's reward: as recorded where that was the same, else from their parts.
fn rewards(segment: &Segment, manifest: &Manifest, experiment: &Experiment, gamma: f64) -> Option<Vec<f64>> {
    let reward = &experiment.scenario.reward;
    if manifest.reward == ron_text(reward) && manifest.gamma == gamma {
        return Some(segment.reward.clone());
    }
    let RewardConfig::Contribution(ContributionMode::Committed(reward)) = reward else {
        return None;
    };
    let parts: Vec<[f64; PARTS.len()]> = segment.parts.as_chunks().0.to_vec();
    let is_terminal = experiment.scenario.learner.episode_end == EpisodeEnd::Terminal
        && segment
            .step
            .last()
            .is_some_and(|&step| step as u32 == manifest.max_steps);
    let mut rewards = committed_of_parts(reward, &parts, (manifest.max_steps, gamma), is_terminal)?;
    if segment.finish == [SegmentFinish::RolledBack as i64] {
        // What a rollback has charged, and what it took back, stays.
        let paid = segment.reward.iter().zip(&segment.flags);
        for (own, (&paid, flags)) in rewards.iter_mut().zip(paid) {
            if flags & CHARGED != 0 || paid == 0.0 {
                *own = paid;
            }
        }
    }
    Some(rewards)
}

/// Leaves the share with the largest discounted returns, in their order.
fn keep_best(recorded: &mut Vec<(Segment, Vec<f64>)>, config: &CloneConfig, gamma: f64) {
    let returned = |rewards: &[f64]| rewards.iter().rev().fold(0.0, |later, reward| reward + gamma * later);
    let mut returns: Vec<f64> = recorded.iter().map(|(_, rewards)| returned(rewards)).collect();
    let kept = (config.best * returns.len() as f64).ceil() as usize;
    returns.sort_by(|a, b| b.total_cmp(a));
    let Some(&least) = kept.checked_sub(1).and_then(|last| returns.get(last)) else {
        return;
    };
    recorded.retain(|(_, rewards)| returned(rewards) >= least);
}

/// Fills the rollout of this round from the recordings, each segment at most once, in an order of the round's own; values and
/// probabilities are those of the policy as it is.
pub(super) fn fill_rollout(recordings: &Recordings, context: &mut LearnerContext) -> Result<(), Failure> {
    let scenario = &context.experiment.scenario;
    let (config, envs) = (&scenario.learner, scenario.run.n_envs);
    let mut order: Vec<usize> = (0..recordings.0.len()).collect();
    let pass = [0, u64::from(context.clock.round())];
    RunRng::new(scenario.run.seed, Domain::ReplaySampling, &pass).shuffle(&mut order);
    order.truncate(envs * config.episodes_per_update as usize);
    let Some(policy) = context.controller.0.get().learned() else {
        return Ok(());
    };
    let buffer = context.policy.buffer.get();
    for segments in order.chunks(envs) {
        let segments: Vec<&(Segment, Vec<f64>)> = segments.iter().map(|&index| &recordings.0[index]).collect();
        write(buffer, policy, &segments, config.episode_end)?;
    }
    // In the order of the buffer: row by row, in each as they were written.
    let rows = (0..envs).flat_map(|row| order.iter().skip(row).step_by(envs));
    let last: Vec<&Segment> = rows.map(|&index| &recordings.0[index].0).collect();
    let units = context.policy.learner.get().value_units();
    let behind = |state: &RecurrentState| value_behind(policy, &last, state);
    let buffer = context.policy.buffer.get();
    Ok(buffer.reevaluate(policy, (config, units), &context.reads, behind)?)
}

/// Writes segments side by side, one a row.
fn write(
    buffer: &mut RolloutBuffer,
    policy: &dyn LearningPolicy,
    segments: &[&(Segment, Vec<f64>)],
    episode_end: EpisodeEnd,
) -> Result<(), LearnerError> {
    let (width, shape) = (policy.schema().len(), buffer.shape().clone());
    let longest = segments.iter().map(|(segment, _)| segment.len()).max().unwrap_or(0);
    for step in 0..longest {
        let live = segments
            .iter()
            .enumerate()
            .filter(|(_, (segment, _))| step < segment.len());
        let live: Vec<(usize, &Segment, &[f64])> = live
            .map(|(row, (segment, rewards))| (row, segment, rewards.as_slice()))
            .collect();
        let masks: Vec<MaskSet> = live
            .iter()
            .map(|(env, segment, _)| {
                let row = &segment.masks[step * shape.mask_width()..][..shape.mask_width()];
                let row: Vec<bool> = row.iter().map(|&valid| valid != 0).collect();
                MaskSet::of_row(shape.slots, shape.blueprints, &row).ok_or(BufferError::ShapeMismatch {
                    field: "masks",
                    expected: shape.mask_width().to_string(),
                    found: format!("those of row {env}"),
                })
            })
            .collect::<Result<_, _>>()?;
        let decided: Vec<DecidedStep> = live
            .iter()
            .zip(&masks)
            .map(|((env, segment, _), masks)| DecidedStep {
                env: *env,
                round: segment.round[0] as u32,
                step: segment.step[step] as u32,
                indices: std::array::from_fn(|head| segment.actions[step * HEADS + head] as u8),
                // Of the present policy, once all are written.
                log_probs: [0.0; HEADS],
                value: 0.0,
                masks,
            })
            .collect();
        let raw: Vec<&[f32]> = live
            .iter()
            .map(|(_, segment, _)| &segment.observation[step * width..][..width])
            .collect();
        let blueprints: Vec<i64> = live
            .iter()
            .flat_map(|(_, segment, _)| &segment.blueprints[step * shape.slots..][..shape.slots])
            .map(|&index| index.into())
            .collect();
        let (normalised, raw) = uploaded(buffer, policy, &raw)?;
        let tensors = StepTensors {
            observations: &normalised,
            raw_observations: &raw,
            blueprints: &catch(|| {
                Tensor::from_slice(&blueprints)
                    .view([live.len() as i64, -1])
                    .to_device(buffer.device())
            })?,
            state: &catch(|| policy.net().zero_state(live.len() as i64))?,
        };
        buffer.begin_steps(&decided, &tensors)?;
        let outcomes = live.iter().map(|(env, segment, rewards)| StepOutcome {
            env: *env,
            reward: rewards[step] as f32,
            effective_op: LifecycleOp::from_code(segment.effective_op[step] as usize).unwrap_or(LifecycleOp::Wait),
        });
        buffer.complete_steps(&outcomes.collect::<Vec<_>>())?;
    }
    let ends = segments.iter().enumerate().map(|(row, (segment, _))| {
        let is_over = segment.finish == [SegmentFinish::RolledBack as i64] || episode_end == EpisodeEnd::Terminal;
        let end = match is_over {
            true => SegmentEnd::Terminal,
            false => SegmentEnd::Truncated { bootstrap: 0.0 },
        };
        (row, end)
    });
    Ok(buffer.end_segments(&ends.collect::<Vec<_>>())?)
}

/// Rows of observations on the buffer's device, as the policy sees them and as they were measured.
fn uploaded(
    buffer: &RolloutBuffer,
    policy: &dyn LearningPolicy,
    raw: &[&[f32]],
) -> Result<(Tensor, Tensor), TorchError> {
    let (mut normalised, mut row) = (Vec::new(), Vec::new());
    for raw in raw {
        policy.normaliser().normalise(raw, &mut row);
        normalised.extend_from_slice(&row);
    }
    let upload = |values: &[f32]| {
        Tensor::from_slice(values)
            .view([raw.len() as i64, -1])
            .to_device(buffer.device())
    };
    catch(|| (upload(&normalised), upload(&raw.concat())))
}

/// The policy's value of what was seen behind each segment, in normalised units; 0 where nothing was.
fn value_behind(
    policy: &dyn LearningPolicy,
    segments: &[&Segment],
    state: &RecurrentState,
) -> Result<Tensor, LearnerError> {
    let (mut observations, mut row) = (Vec::new(), Vec::new());
    for segment in segments {
        let raw: Vec<f32> = segment
            .final_observation
            .iter()
            .map(|value| if value.is_nan() { 0.0 } else { *value })
            .collect();
        policy.normaliser().normalise(&raw, &mut row);
        observations.extend_from_slice(&row);
    }
    let blueprints = segments.iter().flat_map(|segment| &segment.final_blueprints);
    let blueprints: Vec<i64> = blueprints.map(|&index| index.into()).collect();
    let device = policy.net().params().device();
    let rows = segments.len() as i64;
    let input = catch(|| PolicyInput {
        observations: Tensor::from_slice(&observations).view([rows, -1]).to_device(device),
        blueprints: Tensor::from_slice(&blueprints).view([rows, -1]).to_device(device),
    })?;
    let output = policy.net().step(&input, state).map_err(TorchError::from)?;
    Ok(output.value)
}

#[cfg(test)]
mod tests;
