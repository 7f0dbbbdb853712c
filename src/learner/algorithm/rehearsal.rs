//! Rollouts that the critic learns from more than once: sequences of observations with raw rewards, so that targets can be
//! estimated again in later units by a later critic. What outlasts an update goes into checkpoints tensor by tensor.

use tch::{Device, Kind, Tensor};

use super::buffer::RolloutBuffer;
use super::segments::SegmentEnd;
use super::sequences::{Sequence, cell, entering_states, sequences, value_weight};
use crate::controller::{RecurrentState, ValueSequence};
use crate::scenario::LearnerConfig;
use crate::torch::{HostSyncCounter, TorchError, catch, read_f32, read_f64, read_i64};

/// Names of saved rollouts' tensors begin with it.
pub(super) const REHEARSAL: &str = "critic_rollout.";

/// What follows the last step of a sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ChunkEnd {
    /// The next sequence: both are parts of one segment.
    GoesOn,
    /// Nothing.
    Terminal,
    /// One more observation, which stands behind the last step.
    Observed,
    /// Something whose raw value was estimated when it came.
    Estimated(f32),
}

/// The sequences `[B, T]` of a rollout as the critic needs them. T has room for the observation behind a last step.
#[derive(Debug)]
pub(super) struct CriticRollout {
    /// `f32 [B, T, D]`, as they were normalised then.
    pub observations: Tensor,
    /// `i64 [B, T, S]`.
    pub blueprints: Tensor,
    /// States that enter the sequences: zeros, or those of the policy that acted.
    pub initial: RecurrentState,
    /// `f32 [B, T]`; 0 where there is no step.
    pub weights: Tensor,
    /// Observations of each sequence.
    pub lengths: Vec<i64>,
    pub ends: Vec<ChunkEnd>,
    /// What its rewards were divided by when estimated values were stored.
    pub reward_scale: f64,
    /// `[B × T]`, raw.
    rewards: Vec<f32>,
    /// `[B × T]`: the reward is a penalty that is not scaled.
    fixed: Vec<bool>,
}

impl CriticRollout {
    /// Of the valid segments of a finished rollout whose rewards are divided by `reward_scale`.
    ///
    /// # Errors
    /// A device error.
    pub fn gather(buffer: &RolloutBuffer, reward_scale: f64, config: &LearnerConfig) -> Result<Self, TorchError> {
        let sequences = sequences(buffer);
        let ends: Vec<ChunkEnd> = sequences.iter().map(|sequence| end_of(buffer, sequence)).collect();
        let lengths: Vec<i64> = sequences
            .iter()
            .zip(&ends)
            .map(|(sequence, end)| sequence.len as i64 + i64::from(*end == ChunkEnd::Observed))
            .collect();
        let steps = lengths.iter().copied().max().unwrap_or(0) as usize;
        let places: Vec<Option<(usize, usize)>> = sequences
            .iter()
            .flat_map(|s| (0..steps).map(move |at| (at < s.len).then_some((s.env, s.start + at))))
            .collect();
        let record = |&place: &Option<(usize, usize)>| place.map(|(env, step)| &buffer.rows[env].steps[step]);
        let cells: Vec<i64> = places.iter().map(|&place| cell(buffer, place) as i64).collect();
        let weights: Vec<f32> = places.iter().map(|place| value_weight(record(place), config)).collect();
        let device = buffer.device();
        catch(|| {
            let (rows, columns) = (sequences.len() as i64, steps as i64);
            let cells = Tensor::from_slice(&cells).to_device(device);
            let gathered = |field: &Tensor| field.index_select(0, &cells).reshape([rows, columns, field.size()[1]]);
            let rollout = Self {
                observations: gathered(&buffer.cells.observations),
                blueprints: gathered(&buffer.cells.blueprints),
                initial: entering_states(buffer, &sequences),
                weights: Tensor::from_slice(&weights).reshape([rows, columns]).to_device(device),
                rewards: places
                    .iter()
                    .map(|place| record(place).map_or(0.0, |r| r.reward_raw))
                    .collect(),
                fixed: places
                    .iter()
                    .map(|place| record(place).is_some_and(|r| r.fixed_reward))
                    .collect(),
                lengths,
                ends,
                reward_scale,
            };
            for (row, sequence) in sequences.iter().enumerate() {
                rollout.write_following(buffer, row, sequence);
            }
            rollout
        })
    }

    /// Puts the observation behind a sequence's last step there, if one was kept. Panics on a device error.
    fn write_following(&self, buffer: &RolloutBuffer, row: usize, sequence: &Sequence) {
        let following = buffer
            .segment_of(sequence.env, sequence.start)
            .and_then(|s| s.following.as_ref());
        if let (ChunkEnd::Observed, Some(following)) = (self.ends[row], following) {
            let at = |tensor: &Tensor| tensor.select(0, row as i64).select(0, sequence.len as i64);
            at(&self.observations).copy_(&Tensor::from_slice(&following.observation));
            at(&self.blueprints).copy_(&Tensor::from_slice(&following.blueprints));
        }
    }

    /// What the critic evaluates.
    pub fn input(&self) -> ValueSequence<'_> {
        ValueSequence {
            observations: &self.observations,
            blueprints: &self.blueprints,
            lengths: &self.lengths,
            initial: &self.initial,
        }
    }

    /// Number of sequences.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Steps that each sequence has room for.
    pub fn steps(&self) -> usize {
        self.weights.size()[1] as usize
    }

    /// Steps of a sequence.
    pub fn real_steps(&self, row: usize) -> usize {
        self.lengths[row] as usize - usize::from(self.ends[row] == ChunkEnd::Observed)
    }

    /// Raw reward of a step, and whether it is a penalty that is not scaled.
    pub fn reward(&self, row: usize, step: usize) -> (f32, bool) {
        let at = row * self.steps() + step;
        (self.rewards[at], self.fixed[at])
    }

    /// Some of the sequences, by index, without what only targets are made of. Panics on a device error.
    pub fn select(&self, rows: &[i64]) -> Self {
        let index = Tensor::from_slice(rows).to_device(self.observations.device());
        Self {
            observations: self.observations.index_select(0, &index),
            blueprints: self.blueprints.index_select(0, &index),
            initial: self.initial.select(&index),
            weights: self.weights.index_select(0, &index),
            lengths: rows.iter().map(|&row| self.lengths[row as usize]).collect(),
            ends: rows.iter().map(|&row| self.ends[row as usize]).collect(),
            reward_scale: self.reward_scale,
            rewards: Vec::new(),
            fixed: Vec::new(),
        }
    }

    /// All of it as tensors, by name.
    ///
    /// # Errors
    /// A device error.
    pub fn named(&self) -> Result<Vec<(String, Tensor)>, TorchError> {
        let ends: Vec<f64> = self.ends.iter().flat_map(|&end| end.numbers()).collect();
        let fixed: Vec<f32> = self.fixed.iter().map(|&is| f32::from(u8::from(is))).collect();
        catch(|| {
            let table = |values: &[f32]| Tensor::from_slice(values).reshape(self.weights.size());
            let mut named = vec![
                ("observations".to_string(), self.observations.shallow_clone()),
                ("blueprints".into(), self.blueprints.shallow_clone()),
                ("weights".into(), self.weights.shallow_clone()),
                ("rewards".into(), table(&self.rewards)),
                ("fixed".into(), table(&fixed)),
                ("lengths".into(), Tensor::from_slice(&self.lengths)),
                ("ends".into(), Tensor::from_slice(&ends).reshape([-1, 2])),
                ("reward_scale".into(), Tensor::from_slice(&[self.reward_scale])),
            ];
            let states = self.initial.0.iter().enumerate();
            named.extend(states.map(|(index, state)| (format!("state.{index}"), state.shallow_clone())));
            named
        })
    }

    /// From what [`named`](Self::named) saved. `Ok(Err)` says what is wrong with it.
    ///
    /// # Errors
    /// A device error.
    pub fn from_named(named: &[(&str, &Tensor)], device: Device) -> Result<Result<Self, String>, TorchError> {
        let find = |name: &str| {
            named
                .iter()
                .find(|(known, _)| *known == name)
                .map(|&(_, tensor)| tensor)
        };
        let expected = [
            "observations",
            "blueprints",
            "weights",
            "rewards",
            "fixed",
            "lengths",
            "ends",
            "reward_scale",
        ];
        let found: Vec<&Tensor> = expected.iter().filter_map(|name| find(name)).collect();
        let [observations, blueprints, weights, rewards, fixed, lengths, ends, scale] = found[..] else {
            return Ok(Err("it is incomplete".into()));
        };
        let [rows, steps] = weights.size()[..] else {
            return Ok(Err("its weights are no table".into()));
        };
        let begins_with = |tensor: &Tensor| tensor.dim() == 3 && tensor.size()[..2] == [rows, steps];
        let is_table = |tensor: &Tensor| tensor.size() == [rows, steps];
        let fits = begins_with(observations) && begins_with(blueprints) && is_table(rewards) && is_table(fixed);
        if !fits || lengths.size() != [rows] || ends.size() != [rows, 2] || scale.numel() != 1 {
            return Ok(Err("its tensors do not fit each other".into()));
        }
        let reads = HostSyncCounter::default();
        let lengths = read_i64(lengths, &reads)?;
        let ends = read_f32(ends, &reads)?;
        let ends: Option<Vec<ChunkEnd>> = ends.as_chunks::<2>().0.iter().map(|&end| ChunkEnd::of(end)).collect();
        let Some(ends) = ends.filter(|_| lengths.iter().all(|length| (1..=steps).contains(length))) else {
            return Ok(Err("its sequences have no such lengths or ends".into()));
        };
        let states: Vec<&Tensor> = (0..).map_while(|index| find(&format!("state.{index}"))).collect();
        let fixed = read_f32(fixed, &reads)?;
        let (rewards, scale) = (read_f32(rewards, &reads)?, read_f64(scale, &reads)?[0]);
        catch(|| {
            let here = |tensor: &Tensor, kind: Kind| tensor.to_kind(kind).to_device(device);
            Ok(Self {
                observations: here(observations, Kind::Float),
                blueprints: here(blueprints, Kind::Int64),
                initial: RecurrentState(states.iter().map(|state| here(state, Kind::Float)).collect()),
                weights: here(weights, Kind::Float),
                lengths,
                ends,
                reward_scale: scale,
                rewards,
                fixed: fixed.iter().map(|&is| is > 0.0).collect(),
            })
        })
    }
}

/// All tensors of several rollouts, oldest first, by names that begin with [`REHEARSAL`].
///
/// # Errors
/// A device error.
pub(super) fn named_rollouts(rollouts: &[CriticRollout]) -> Result<Vec<(String, Tensor)>, TorchError> {
    let mut all = Vec::new();
    for (index, rollout) in rollouts.iter().enumerate() {
        let named = rollout.named()?.into_iter();
        all.extend(named.map(|(name, tensor)| (format!("{REHEARSAL}{index}.{name}"), tensor)));
    }
    Ok(all)
}

/// The rollouts that [`named_rollouts`] saved. `Ok(Err)` says what is wrong with them.
///
/// # Errors
/// A device error.
pub(super) fn rollouts_of(
    named: &[(String, Tensor)],
    device: Device,
) -> Result<Result<Vec<CriticRollout>, String>, TorchError> {
    let mut rollouts = Vec::new();
    loop {
        let prefix = format!("{REHEARSAL}{}.", rollouts.len());
        let members: Vec<(&str, &Tensor)> = named
            .iter()
            .filter_map(|(name, tensor)| Some((name.strip_prefix(&prefix)?, tensor)))
            .collect();
        if members.is_empty() {
            return Ok(Ok(rollouts));
        }
        match CriticRollout::from_named(&members, device)? {
            Ok(rollout) => rollouts.push(rollout),
            Err(why) => return Ok(Err(format!("`{prefix}..`: {why}"))),
        }
    }
}

impl ChunkEnd {
    /// Its kind and its value.
    fn numbers(self) -> [f64; 2] {
        match self {
            Self::GoesOn => [0.0, 0.0],
            Self::Terminal => [1.0, 0.0],
            Self::Observed => [2.0, 0.0],
            Self::Estimated(value) => [3.0, value.into()],
        }
    }

    fn of([kind, value]: [f32; 2]) -> Option<Self> {
        [Self::GoesOn, Self::Terminal, Self::Observed, Self::Estimated(value)]
            .into_iter()
            .find(|end| end.numbers()[0] == f64::from(kind))
    }
}

fn end_of(buffer: &RolloutBuffer, sequence: &Sequence) -> ChunkEnd {
    let Some(segment) = buffer.segment_of(sequence.env, sequence.start) else {
        return ChunkEnd::Terminal;
    };
    match segment.closed {
        _ if sequence.start + sequence.len < segment.end => ChunkEnd::GoesOn,
        None | Some(SegmentEnd::Terminal) => ChunkEnd::Terminal,
        Some(SegmentEnd::Truncated { .. }) if segment.following.is_some() => ChunkEnd::Observed,
        Some(SegmentEnd::Truncated { bootstrap }) => ChunkEnd::Estimated(bootstrap),
    }
}
