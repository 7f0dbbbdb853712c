//! Sources of an update: the envs' newest steps, those and the steps of the rounds before, or recordings; and filling the
//! rollout with steps that the current policy has not just played.
//!
//! Recordings have an index of their segments, made at start-up: their shards are read when they are drawn, so that sets may be
//! larger than memory.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bevy_ecs::resource::Resource;
use safetensors::{SafeTensorError, SafeTensors};
use tch::Tensor;

use super::algorithm::{
    BufferError, BufferShape, DecidedStep, Learner, LearnerError, RolloutBuffer, SegmentEnd, StepOutcome,
};
use super::{LearnerContext, PolicyLearner, begin_steps};
use crate::actions::{HEADS, MaskSet};
use crate::controller::{LearningPolicy, Observation};
use crate::env::Experiment;
use crate::health::Failure;
use crate::policy::{PolicyInput, RecurrentState};
use crate::random::{Domain, Draw, RunRng};
use crate::reward::{PARTS, committed_of_parts};
use crate::scenario::{ContributionMode, EpisodeEnd, RewardConfig, ron_text};
use crate::seed::BlueprintRegistry;
use crate::torch::{TorchError, catch};
use crate::trajectory::{CHARGED, Manifest, Misfit, Segment, SegmentFinish, Sizes, TrajectoryError, TrajectorySet};

/// The source of an update's steps.
#[derive(Resource)]
pub(crate) enum RolloutSource {
    /// The envs' steps since the last update.
    Newest,
    /// The same, and those of the rounds before.
    Kept(KeptRollouts),
    /// Steps that others played.
    Recordings(Recordings),
}

impl RolloutSource {
    /// The rollouts that a checkpoint has to hold.
    pub fn kept(&mut self) -> Option<&mut KeptRollouts> {
        match self {
            Self::Kept(kept) => Some(kept),
            Self::Newest | Self::Recordings(_) => None,
        }
    }
}

/// The envs' steps of the last rounds.
pub struct KeptRollouts {
    segments: Vec<Segment>,
    sizes: Sizes,
    /// Number of rounds that are kept.
    rounds: u32,
}

impl KeptRollouts {
    /// None yet, of at most `rounds` rounds.
    pub(super) const fn new(sizes: Sizes, rounds: u32) -> Self {
        Self {
            segments: Vec::new(),
            sizes,
            rounds,
        }
    }

    /// All of them, each with the env that played it.
    pub(super) fn by_env(&self) -> impl Iterator<Item = (usize, &Segment)> {
        self.segments.iter().map(|kept| (kept.env[0] as usize, kept))
    }

    /// Takes in the envs' steps of this round, and lets go of those that are too long ago.
    pub(super) fn take_in(&mut self, round: u32, played: impl Iterator<Item = Segment>) {
        let whole = played.filter(|segment| segment.finish != [SegmentFinish::Failed as i64]);
        self.segments.extend(whole);
        let is_recent = |segment: &Segment| segment.round[0] + i64::from(self.rounds) > round.into();
        self.segments.retain(is_recent);
    }

    /// Observations since `round`, one row per step.
    pub(super) fn seen_since(&self, round: u32) -> Vec<f32> {
        let new = self.segments.iter().filter(|kept| kept.round[0] >= round.into());
        new.flat_map(|kept| kept.observation.iter().copied()).collect()
    }

    /// As a file of tensors.
    ///
    /// # Errors
    /// More than the format can describe.
    pub fn encode(&self) -> Result<Vec<u8>, SafeTensorError> {
        Segment::encode(&self.segments, self.sizes)
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

/// Share of the episodes that are never learnt from: the policy is measured on them.
const HELD_OUT: f64 = 0.1;

/// Sets of recorded trajectories, and which of their segments are learnt from.
#[derive(Default)]
pub(crate) struct Recordings {
    sets: Vec<(PathBuf, TrajectorySet)>,
    learnt: Vec<Place>,
    held_out: Vec<Place>,
}

/// The place of a segment, and its return.
#[derive(Clone, Copy, Debug)]
struct Place {
    set: usize,
    shard: usize,
    segment: usize,
    returned: f64,
}

impl Recordings {
    /// At most `count` of the segments that are learnt from, in an order of the round's own.
    ///
    /// # Errors
    /// A shard that has changed.
    pub fn drawn(&self, count: usize, round: u32, experiment: &Experiment) -> Result<Vec<Segment>, RecordingsError> {
        let mut drawn = self.learnt.clone();
        let pass = [0, u64::from(round)];
        RunRng::new(experiment.scenario.run.seed, Domain::ReplaySampling, &pass).shuffle(&mut drawn);
        drawn.truncate(count);
        self.read(&drawn, experiment)
    }

    /// At most `count` of the segments that are never learnt from, the same each time.
    ///
    /// # Errors
    /// As of [`drawn`](Self::drawn).
    pub fn held_out(&self, count: usize, experiment: &Experiment) -> Result<Vec<Segment>, RecordingsError> {
        self.read(&self.held_out[..count.min(self.held_out.len())], experiment)
    }

    /// Reads each shard once. The segments' rewards are those of the scenario.
    fn read(&self, places: &[Place], experiment: &Experiment) -> Result<Vec<Segment>, RecordingsError> {
        let shard = |at: &usize| (places[*at].set, places[*at].shard);
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(shard);
        let mut found = vec![Segment::default(); places.len()];
        for alike in order.chunk_by(|one, other| shard(one) == shard(other)) {
            let (path, set) = &self.sets[places[alike[0]].set];
            let segments = set.read(&set.manifest.shards[places[alike[0]].shard])?;
            for &at in alike {
                let segment = &segments[places[at].segment];
                found[at] = Segment {
                    reward: rewards(segment, path, &set.manifest, experiment)?,
                    ..segment.clone()
                };
            }
        }
        Ok(found)
    }
}

/// The reason why recordings cannot be learnt from.
#[derive(Debug, thiserror::Error)]
pub enum RecordingsError {
    /// A set that cannot be read.
    #[error("learner.recordings: {0}")]
    Set(#[from] TrajectoryError),
    /// Steps in a form that doesn't fit the run's policy.
    #[error("learner.recordings: {}: {misfit}, as in this run", path.display())]
    Misfit {
        /// Path of the set.
        path: PathBuf,
        /// The difference.
        misfit: Misfit,
    },
    /// The reward was another one, and its parts don't determine the scenario's.
    #[error(
        "learner.recordings: {}: its reward is {found}, and this run's reward does not follow from its parts; only \
         `contribution(committed())` does", path.display()
    )]
    Reward {
        /// Path of the set.
        path: PathBuf,
        /// Reward of the set.
        found: String,
    },
    /// Episodes that do not fit into a rollout.
    #[error(
        "learner.recordings: {}: its episodes have up to {found} steps, but run.max_steps is {most}; raise it",
        path.display()
    )]
    Long {
        /// Path of the set.
        path: PathBuf,
        /// Steps in the set.
        found: u32,
        /// Most steps of the run.
        most: u32,
    },
    /// The probability of each choice isn't recorded.
    #[error(
        "learner.recordings: {}: `{controller}` did not sample its choices, so there is no ratio to it; imitate it \
         with learner.algorithm: clone(())", path.display()
    )]
    Behaviour {
        /// Path of the set.
        path: PathBuf,
        /// The controller that decided.
        controller: String,
    },
    /// Nothing would be trained.
    #[error("learner.recordings: the controller `{0}` does not learn; write policy: (controller: \"actor_critic\")")]
    NoLearner(String),
    /// No segment is left.
    #[error("learner.recordings: there is nothing to learn from in {0}")]
    Empty(String),
}

/// Reads the sets that the scenario names, and fits the normaliser of observations to them.
pub(super) fn open_recordings(
    policy: &mut dyn LearningPolicy,
    experiment: &Experiment,
    blueprints: &BlueprintRegistry,
) -> Result<Recordings, Failure> {
    let learner = &experiment.scenario.learner;
    let names: Vec<String> = blueprints.names().map(String::from).collect();
    let width = policy.schema().len();
    let folder = experiment.folder.as_deref().unwrap_or(Path::new(""));
    let mut recordings = Recordings::default();
    for (index, name) in learner.recordings.sets.iter().enumerate() {
        let path = folder.join(name);
        let set = TrajectorySet::open(&path).map_err(RecordingsError::from)?;
        if let Some(misfit) = misfit(&set.manifest, policy, &names) {
            return Err(RecordingsError::Misfit { path, misfit }.into());
        }
        let (found, most) = (set.manifest.max_steps, experiment.task.max_steps);
        if found > most {
            return Err(RecordingsError::Long { path, found, most }.into());
        }
        for (number, shard) in set.manifest.shards.iter().enumerate() {
            let segments = set.read(shard).map_err(RecordingsError::from)?;
            let is_whole = |segment: &&Segment| segment.finish != [SegmentFinish::Failed as i64];
            let whole = segments.iter().filter(is_whole);
            let rows = whole.flat_map(|segment| segment.observation.chunks_exact(width));
            policy.normaliser_mut().take_in(rows)?;
            for (segment, recorded) in segments.iter().enumerate().filter(|(_, segment)| is_whole(segment)) {
                if learner.algorithm.needs_behaviour() && recorded.log_probs.iter().any(|log_prob| log_prob.is_nan()) {
                    let controller = set.manifest.controller.clone();
                    return Err(RecordingsError::Behaviour { path, controller }.into());
                }
                let rewards = rewards(recorded, &path, &set.manifest, experiment)?;
                let place = Place {
                    set: index,
                    shard: number,
                    segment,
                    returned: rewards
                        .iter()
                        .rev()
                        .fold(0.0, |later, reward| reward + learner.gamma * later),
                };
                let episode = [1, recorded.round[0] as u64, recorded.env[0] as u64];
                let mut own = RunRng::new(set.manifest.seed.0, Domain::ReplaySampling, &episode);
                match own.uniform_f64() < HELD_OUT {
                    true => recordings.held_out.push(place),
                    false => recordings.learnt.push(place),
                }
            }
        }
        recordings.sets.push((path, set));
    }
    for places in [&mut recordings.learnt, &mut recordings.held_out] {
        keep_best(places, learner.recordings.best);
    }
    if recordings.learnt.is_empty() {
        return Err(RecordingsError::Empty(learner.recordings.sets.join(", ")).into());
    }
    Ok(recordings)
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

/// Rewards of a segment's steps under the scenario's reward: as recorded where that was the same, else from their parts.
fn rewards(
    segment: &Segment,
    path: &Path,
    manifest: &Manifest,
    experiment: &Experiment,
) -> Result<Vec<f64>, RecordingsError> {
    let (reward, learner) = (&experiment.scenario.reward, &experiment.scenario.learner);
    if manifest.reward == ron_text(reward) && manifest.gamma == learner.gamma {
        return Ok(segment.reward.clone());
    }
    let does_not_follow = || RecordingsError::Reward {
        path: path.into(),
        found: manifest.reward.clone(),
    };
    let RewardConfig::Contribution(ContributionMode::Committed(reward)) = reward else {
        return Err(does_not_follow());
    };
    let parts: Vec<[f64; PARTS.len()]> = segment.parts.as_chunks().0.to_vec();
    let last_step = segment.step.last().map(|&step| step as u32);
    let is_terminal = learner.episode_end == EpisodeEnd::Terminal && last_step == Some(manifest.max_steps);
    let horizon = (manifest.max_steps, learner.gamma);
    let mut rewards = committed_of_parts(reward, &parts, horizon, is_terminal).ok_or_else(does_not_follow)?;
    if segment.finish == [SegmentFinish::RolledBack as i64] {
        // The charges of a rollback, and its refunds, stay.
        let paid = segment.reward.iter().zip(&segment.flags);
        for (own, (&paid, flags)) in rewards.iter_mut().zip(paid) {
            if flags & CHARGED != 0 || paid == 0.0 {
                *own = paid;
            }
        }
    }
    Ok(rewards)
}

/// Leaves the share with the largest returns, in their order.
fn keep_best(places: &mut Vec<Place>, best: f64) {
    let mut returns: Vec<f64> = places.iter().map(|place| place.returned).collect();
    let kept = (best * returns.len() as f64).ceil() as usize;
    returns.sort_by(|a, b| b.total_cmp(a));
    if let Some(&least) = kept.checked_sub(1).and_then(|last| returns.get(last)) {
        places.retain(|place| place.returned >= least);
    }
}

/// Replaces the rollout's segments with these, each in its row. Values and probabilities are those of the current policy.
/// Returns the time that their copy to the device took.
pub(super) fn refill<'a>(
    context: &mut LearnerContext,
    segments: impl Iterator<Item = (usize, &'a Segment)>,
) -> Result<Duration, Failure> {
    let began = Instant::now();
    let scenario = &context.experiment.scenario;
    let mut rows: Vec<Vec<&Segment>> = vec![Vec::new(); scenario.run.n_envs];
    segments.for_each(|(row, segment)| rows[row].push(segment));
    let Some(policy) = context.controller.0.get().learned() else {
        return Ok(Duration::ZERO);
    };
    let PolicyLearner { learner, buffer, .. } = &mut *context.policy;
    let (learner, buffer, config) = (learner.get(), buffer.get(), &scenario.learner);
    buffer.clear()?;
    for place in 0..rows.iter().map(Vec::len).max().unwrap_or(0) {
        let side_by_side = rows.iter().enumerate();
        let side_by_side = side_by_side.filter_map(|(row, segments)| Some((row, *segments.get(place)?)));
        let side_by_side: Vec<_> = side_by_side.collect();
        write(learner, buffer, policy, &side_by_side, config.episode_end)?;
    }
    let copied = began.elapsed();
    let segments = rows.concat();
    let after = |state: &RecurrentState| value_after(policy, &segments, state);
    buffer.reevaluate(policy, (config, learner.value_units()), &context.reads, after)?;
    Ok(copied)
}

/// Writes segments side by side, each into its row.
fn write(
    learner: &Learner,
    buffer: &mut RolloutBuffer,
    policy: &dyn LearningPolicy,
    segments: &[(usize, &Segment)],
    episode_end: EpisodeEnd,
) -> Result<(), LearnerError> {
    let (width, slots) = (policy.schema().len(), buffer.shape().slots);
    let longest = segments.iter().map(|(_, segment)| segment.len()).max();
    for step in 0..longest.unwrap_or(0) {
        let live = || segments.iter().filter(move |(_, segment)| step < segment.len());
        let choices: Vec<_> = live().map(|(_, segment)| segment.choice(step)).collect();
        let masks = live().map(|(row, segment)| masks_of(*row, segment, step, buffer.shape()));
        let masks = masks.collect::<Result<Vec<_>, _>>()?;
        let decided = live().zip(&choices).zip(&masks);
        let decided = decided.map(|(((row, segment), &(indices, _)), masks)| DecidedStep {
            env: *row,
            round: segment.round[0] as u32,
            step: segment.step[step] as u32,
            indices,
            // Those of the acting policy. Those of a rule are unknown and not needed.
            log_probs: std::array::from_fn(|head| {
                let log_prob = segment.log_probs[step * HEADS + head];
                if log_prob.is_nan() { 0.0 } else { log_prob }
            }),
            // The current policy's value, set once all are written.
            value: 0.0,
            masks,
        });
        let seen = live().map(|(_, segment)| {
            let blueprints = &segment.blueprints[step * slots..][..slots];
            observation(policy, &segment.observation[step * width..][..width], blueprints)
        });
        let (decided, seen): (Vec<_>, Vec<_>) = (decided.collect(), seen.collect());
        begin_steps(buffer, &decided, &seen.iter().collect::<Vec<_>>())?;
        let outcomes = live().zip(&choices);
        let outcomes = outcomes.map(|((row, segment), &(_, effective_op))| StepOutcome {
            env: *row,
            reward: segment.reward[step] as f32,
            effective_op,
        });
        buffer.complete_steps(&outcomes.collect::<Vec<_>>())?;
    }
    let mut ends = Vec::new();
    for (row, segment) in segments {
        let is_charged = segment.flags.last().is_some_and(|flags| flags & CHARGED != 0);
        let is_over = segment.finish == [SegmentFinish::RolledBack as i64] || episode_end == EpisodeEnd::Terminal;
        match segment.reward.last() {
            Some(&charged) if is_charged => {
                buffer.rollback(*row, learner.clamp_penalty(charged), u32::MAX)?;
            }
            _ if is_over => ends.push((*row, SegmentEnd::Terminal)),
            _ => ends.push((*row, SegmentEnd::Truncated { bootstrap: 0.0 })),
        }
    }
    Ok(buffer.end_segments(&ends)?)
}

fn masks_of(row: usize, segment: &Segment, step: usize, shape: &BufferShape) -> Result<MaskSet, BufferError> {
    let width = shape.mask_width();
    let valid = segment.masks[step * width..][..width].iter().map(|&valid| valid != 0);
    let masks = MaskSet::of_row(shape.slots, shape.blueprints, &valid.collect::<Vec<_>>());
    masks.ok_or_else(|| BufferError::ShapeMismatch {
        field: "masks",
        expected: width.to_string(),
        found: format!("those of row {row}"),
    })
}

/// A recorded observation, as the policy sees it.
fn observation(policy: &dyn LearningPolicy, raw: &[f32], blueprints: &[i32]) -> Observation {
    let mut seen = Observation {
        raw: raw.to_vec(),
        blueprints: blueprints.iter().map(|&index| index.into()).collect(),
        ..Observation::default()
    };
    policy.normaliser().normalise(raw, &mut seen.normalised);
    seen
}

/// The policy's value of the observation after each segment, in normalised units. 0 if there was no observation.
fn value_after(
    policy: &dyn LearningPolicy,
    segments: &[&Segment],
    state: &RecurrentState,
) -> Result<Tensor, LearnerError> {
    let known = |value: &f32| if value.is_nan() { 0.0 } else { *value };
    let seen = segments.iter().map(|segment| {
        let raw: Vec<f32> = segment.final_observation.iter().map(known).collect();
        observation(policy, &raw, &segment.final_blueprints)
    });
    let seen: Vec<Observation> = seen.collect();
    let observations: Vec<f32> = seen.iter().flat_map(|seen| seen.normalised.iter().copied()).collect();
    let blueprints: Vec<i64> = seen.iter().flat_map(|seen| seen.blueprints.iter().copied()).collect();
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
