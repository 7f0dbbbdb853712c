//! The last rollouts of a run's envs, where updates learn from them beside the newest.

use bevy_ecs::prelude::*;
use safetensors::{SafeTensorError, SafeTensors};

use super::refill::Rewarded;
use crate::trajectory::{Segment, SegmentFinish, Sizes};

/// What envs did in the last rounds.
#[derive(Resource)]
pub struct KeptRollouts {
    segments: Vec<Rewarded>,
    sizes: Sizes,
    /// Of how many rounds they are.
    rounds: u32,
}

impl KeptRollouts {
    /// None yet, of at most that number of rounds.
    pub(super) const fn new(sizes: Sizes, rounds: u32) -> Self {
        Self {
            segments: Vec::new(),
            sizes,
            rounds,
        }
    }

    /// All of them, each with the env that played it.
    pub(super) fn by_env(&self) -> impl Iterator<Item = (usize, &Rewarded)> {
        self.segments.iter().map(|kept| (kept.0.env[0] as usize, kept))
    }

    /// Takes in what envs did in this round, and lets go of what is too long ago.
    pub(super) fn take_in(&mut self, round: u32, played: impl Iterator<Item = Segment>) {
        let played = played.filter(|segment| segment.finish != [SegmentFinish::Failed as i64]);
        self.segments.extend(played.map(|segment| {
            let rewards = segment.reward.clone();
            (segment, rewards)
        }));
        let is_recent = |of: i64| of + i64::from(self.rounds) > round.into();
        self.segments.retain(|(segment, _)| is_recent(segment.round[0]));
    }

    /// What was seen since `round`, a row a step.
    pub(super) fn seen_since(&self, round: u32) -> Vec<f32> {
        let new = self
            .segments
            .iter()
            .filter(|(segment, _)| segment.round[0] >= round.into());
        new.flat_map(|(segment, _)| segment.observation.clone()).collect()
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
