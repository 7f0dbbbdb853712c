//! Steps that the present policy has not just played, in the place of a rollout: recorded trajectories, which are read at start-up, or
//! the last rollouts of the run's envs. Before an update the buffer is filled from them.

use std::path::PathBuf;

use bevy_ecs::prelude::*;
use safetensors::{SafeTensorError, SafeTensors};
use tch::Tensor;

use super::context::{LearnerContext, PolicyLearner};
use crate::actions::{HEADS, MaskSet};
use crate::controller::LearningPolicy;
use crate::env::Experiment;
use crate::growth::LifecycleOp;
use crate::health::Failure;
use crate::learner::algorithm::{
    BufferError, DecidedStep, Learner, LearnerError, RolloutBuffer, SegmentEnd, StepOutcome, StepTensors,
};
use crate::policy::{PolicyInput, RecurrentState};
use crate::random::{Domain, Draw, RunRng};
use crate::reward::{PARTS, committed_of_parts};
use crate::scenario::{Algorithm, ContributionMode, EpisodeEnd, RecordingsConfig, RewardConfig, ron_text};
use crate::seed::BlueprintRegistry;
use crate::torch::{TorchError, catch};
use crate::trajectory::{CHARGED, Manifest, Misfit, Segment, SegmentFinish, Sizes, TrajectoryError, TrajectorySet};

/// A segment, with its rewards under the scenario's.
type Rewarded = (Segment, Vec<f64>);

/// Segments that are learnt from.
#[derive(Resource)]
pub struct Recordings {
    segments: Vec<Rewarded>,
    sizes: Sizes,
    /// Of how many rounds they are, where envs play; `None` of recordings.
    rounds: Option<u32>,
}

impl Recordings {
    /// Takes in what envs did in this round, and lets go of what is too long ago.
    pub(super) fn take_in(&mut self, round: u32, played: impl Iterator<Item = Segment>) {
        let Some(rounds) = self.rounds else { return };
        let played = played.filter(|segment| segment.finish != [SegmentFinish::Failed as i64]);
        self.segments.extend(played.map(|segment| {
            let rewards = segment.reward.clone();
            (segment, rewards)
        }));
        let is_recent = |of: i64| of + i64::from(rounds) > round.into();
        self.segments.retain(|(segment, _)| is_recent(segment.round[0]));
    }

    /// What was seen since `round`, a row a step; `None` of recordings, whose statistics do not move.
    pub(super) fn seen_since(&self, round: u32) -> Option<Vec<f32>> {
        self.rounds?;
        let new = self
            .segments
            .iter()
            .filter(|(segment, _)| segment.round[0] >= round.into());
        Some(new.flat_map(|(segment, _)| segment.observation.clone()).collect())
    }

    /// They are what envs of this run did: else they are on disk.
    pub const fn are_rollouts(&self) -> bool {
        self.rounds.is_some()
    }

    /// As a file of tensors.
    ///
    /// # Errors
    /// More than the format can describe.
    pub fn encode(&self) -> Result<Vec<u8>, SafeTensorError> {
        let segments = self.segments.iter().map(|(segment, _)| segment.clone());
        Segment::encode(&segments.collect::<Vec<_>>(), self.sizes)
    }

    /// Takes back what [`encode`](Self::encode) has written.
    ///
    /// # Errors
    /// The tensor that is not as it should be, and why.
    pub fn decode(&mut self, file: &[u8]) -> Result<(), String> {
        let file = SafeTensors::deserialize(file).map_err(|error| error.to_string())?;
        let segments = Segment::decode(&file, self.sizes).map_err(|(tensor, why)| format!("`{tensor}` {why}"))?;
        self.segments.clear();
        self.take_in(0, segments.into_iter());
        Ok(())
    }
}

/// Why recordings cannot be learnt from.
#[derive(Debug, thiserror::Error)]
pub enum RecordingsError {
    /// A set that cannot be read.
    #[error("learner.recordings: {0}")]
    Set(#[from] TrajectoryError),
    /// Steps of another form than the run's policy has them.
    #[error("learner.recordings: {}: {misfit} as in this run", path.display())]
    Misfit {
        /// Of the set.
        path: PathBuf,
        /// What differs.
        misfit: Misfit,
    },
    /// The reward was another one, and its parts do not say what the scenario's would be.
    #[error(
        "learner.recordings: {}: it was paid by {found}, and this run's reward does not follow from its parts; only \
         `contribution(committed())` does", path.display()
    )]
    Reward {
        /// Of the set.
        path: PathBuf,
        /// Of the set.
        found: String,
    },
    /// Episodes that do not fit into a rollout.
    #[error("learner.recordings: {}: its episodes have up to {found} steps; set run.max_steps, {most}, to that", path.display())]
    Long {
        /// Of the set.
        path: PathBuf,
        /// Of the set.
        found: u32,
        /// Of the run.
        most: u32,
    },
    /// How likely each choice was is not recorded.
    #[error(
        "learner.recordings: {}: `{controller}` has not drawn its choices, so that no ratio to it exists; imitate it with \
         learner.algorithm: clone(())", path.display()
    )]
    Behaviour {
        /// Of the set.
        path: PathBuf,
        /// Who decided.
        controller: String,
    },
    /// Nothing would be trained.
    #[error("learner.recordings: the controller `{0}` does not learn; write policy: (controller: \"actor_critic\")")]
    NoLearner(String),
    /// No segment is left.
    #[error("learner.recordings: there is nothing to learn from in {0}")]
    Empty(String),
}

/// Reads the sets that the scenario names, and fits the normaliser of observations to them; where it names none, a place for
/// the last rollouts, or `None` where the newest alone is learnt from.
pub(super) fn load_recordings(
    policy: Option<&mut dyn LearningPolicy>,
    experiment: &Experiment,
    blueprints: &BlueprintRegistry,
    gamma: f64,
) -> Result<Option<Recordings>, Failure> {
    let learner = &experiment.scenario.learner;
    let config = &learner.recordings;
    let rounds = learner.kept_rollouts().map(|_| learner.episodes_learnt_from());
    let policy = match policy {
        Some(policy) if learner.is_offline() || rounds.is_some() => policy,
        None if learner.is_offline() => {
            return Err(RecordingsError::NoLearner(experiment.scenario.policy.controller.clone()).into());
        }
        _ => return Ok(None),
    };
    let sizes = Sizes::of(policy.schema(), blueprints);
    if rounds.is_some() {
        return Ok(Some(Recordings {
            segments: Vec::new(),
            sizes,
            rounds,
        }));
    }
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
                if learner.algorithm.needs_behaviour() && segment.log_probs.iter().any(|log_prob| log_prob.is_nan()) {
                    let controller = set.manifest.controller.clone();
                    return Err(RecordingsError::Behaviour { path, controller }.into());
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
    Ok(Some(Recordings {
        segments: recorded,
        sizes,
        rounds,
    }))
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
fn keep_best(recorded: &mut Vec<Rewarded>, config: &RecordingsConfig, gamma: f64) {
    let returned = |rewards: &[f64]| rewards.iter().rev().fold(0.0, |later, reward| reward + gamma * later);
    let mut returns: Vec<f64> = recorded.iter().map(|(_, rewards)| returned(rewards)).collect();
    let kept = (config.best * returns.len() as f64).ceil() as usize;
    returns.sort_by(|a, b| b.total_cmp(a));
    let Some(&least) = kept.checked_sub(1).and_then(|last| returns.get(last)) else {
        return;
    };
    recorded.retain(|(_, rewards)| returned(rewards) >= least);
}

/// Fills the rollout of this round: with recordings, each segment at most once, in an order of the round's own, or with the last
/// rollouts. Values and probabilities are those of the policy as it is.
pub(super) fn fill_rollout(recordings: &Recordings, context: &mut LearnerContext) -> Result<(), Failure> {
    let scenario = &context.experiment.scenario;
    let (config, envs) = (&scenario.learner, scenario.run.n_envs);
    let mut order: Vec<usize> = (0..recordings.segments.len()).collect();
    if config.is_offline() {
        let pass = [0, u64::from(context.clock.round())];
        RunRng::new(scenario.run.seed, Domain::ReplaySampling, &pass).shuffle(&mut order);
        order.truncate(envs * config.episodes_per_update as usize);
    }
    let mut rows: Vec<Vec<&Rewarded>> = vec![Vec::new(); envs];
    for (place, index) in order.into_iter().enumerate() {
        let segment = &recordings.segments[index];
        // What an env did fits into its row.
        let row = if config.is_offline() {
            place % envs
        } else {
            segment.0.env[0] as usize
        };
        rows[row].push(segment);
    }
    let Some(policy) = context.controller.0.get().learned() else {
        return Ok(());
    };
    let PolicyLearner { learner, buffer, .. } = &mut *context.policy;
    let (learner, buffer) = (learner.get(), buffer.get());
    buffer.clear()?;
    for place in 0..rows.iter().map(Vec::len).max().unwrap_or(0) {
        let side_by_side = rows
            .iter()
            .enumerate()
            .filter_map(|(row, segments)| Some((row, *segments.get(place)?)));
        write(
            (learner, buffer),
            policy,
            &side_by_side.collect::<Vec<_>>(),
            config.episode_end,
        )?;
    }
    let segments: Vec<&Segment> = rows.iter().flatten().map(|(segment, _)| segment).collect();
    let behind = |state: &RecurrentState| value_behind(policy, &segments, state);
    buffer.reevaluate(policy, (config, learner.value_units()), &context.reads, behind)?;
    if config.is_offline() && config.algorithm == Algorithm::Ppo {
        buffer.leave_out_stale();
    }
    Ok(())
}

/// Writes segments side by side, each into its row.
fn write(
    (learner, buffer): (&Learner, &mut RolloutBuffer),
    policy: &dyn LearningPolicy,
    segments: &[(usize, &Rewarded)],
    episode_end: EpisodeEnd,
) -> Result<(), LearnerError> {
    let (width, shape) = (policy.schema().len(), buffer.shape().clone());
    let longest = segments
        .iter()
        .map(|(_, (segment, _))| segment.len())
        .max()
        .unwrap_or(0);
    for step in 0..longest {
        let live = segments.iter().filter(|(_, (segment, _))| step < segment.len());
        let live: Vec<(usize, &Segment, &[f64])> = live
            .map(|(row, (segment, rewards))| (*row, segment, rewards.as_slice()))
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
                // Of who acted; those of a rule are not known, nor asked for.
                log_probs: std::array::from_fn(|head| {
                    let log_prob = segment.log_probs[step * HEADS + head];
                    if log_prob.is_nan() { 0.0 } else { log_prob }
                }),
                // Of the present policy, once all are written.
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
    let mut ends = Vec::new();
    for (row, (segment, rewards)) in segments {
        let is_charged = segment.flags.last().is_some_and(|flags| flags & CHARGED != 0);
        let is_over = segment.finish == [SegmentFinish::RolledBack as i64] || episode_end == EpisodeEnd::Terminal;
        match rewards.last() {
            Some(&charged) if is_charged => {
                buffer.rollback(*row, learner.clamp_penalty(charged), u32::MAX)?;
            }
            _ if is_over => ends.push((*row, SegmentEnd::Terminal)),
            _ => ends.push((*row, SegmentEnd::Truncated { bootstrap: 0.0 })),
        }
    }
    Ok(buffer.end_segments(&ends)?)
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
