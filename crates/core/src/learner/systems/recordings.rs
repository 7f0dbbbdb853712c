//! Recorded trajectories as updates learn from them: at start-up an index of their segments, whose shards are read when they are drawn,
//! so that sets may be larger than memory.

use std::path::{Path, PathBuf};

use crate::controller::LearningPolicy;
use crate::env::Experiment;
use crate::health::Failure;
use crate::random::{Domain, Draw, RunRng};
use crate::reward::{PARTS, committed_of_parts};
use crate::scenario::{ContributionMode, EpisodeEnd, RewardConfig, ron_text};
use crate::seed::BlueprintRegistry;
use crate::trajectory::{CHARGED, Manifest, Misfit, Segment, SegmentFinish, TrajectoryError, TrajectorySet};

/// Share of the episodes that are never learnt from: the policy is measured on them.
const HELD_OUT: f64 = 0.1;

/// Sets of recorded trajectories, and which of their segments are learnt from.
pub(crate) struct Recordings {
    sets: Vec<(PathBuf, TrajectorySet)>,
    learnt: Vec<Place>,
    held_out: Vec<Place>,
}

/// Where a segment lies, and what it has returned.
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
    /// A shard that is no longer what it was.
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

    /// Reads each shard once; the segments' rewards are those of the scenario.
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

/// Reads the sets that the scenario names, and fits the normaliser of observations to them.
pub(super) fn open_recordings(
    policy: &mut dyn LearningPolicy,
    experiment: &Experiment,
    blueprints: &BlueprintRegistry,
) -> Result<Recordings, Failure> {
    let learner = &experiment.scenario.learner;
    let names: Vec<String> = blueprints.names().map(String::from).collect();
    let width = policy.schema().len();
    let mut recordings = Recordings {
        sets: Vec::new(),
        learnt: Vec::new(),
        held_out: Vec::new(),
    };
    for (index, name) in learner.recordings.sets.iter().enumerate() {
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

/// What the steps of a segment are paid by the scenario's reward: as recorded where that was the same, else from their parts.
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
        // What a rollback has charged, and what it took back, stays.
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

#[cfg(test)]
mod tests;
