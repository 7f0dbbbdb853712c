//! Names, order and scales of an observation's features, the contract between a run and a saved policy, and how measurements become
//! its numbers, index by index: by functions that know neither the ECS nor tensors.

use bevy_ecs::resource::Resource;

use super::envs::Observation;
use super::features::{
    BASE, Extract, ObservationFeature, ObservationFeatures, ObservationInput, SLOT, Treatment, UNKNOWN, reward_parts,
};
use super::signals::SHOWN_HISTORY;
use crate::actions::{OPS, PolicyError};
use crate::growth::{SeedStage, SlotId};
use crate::hash::sha256;
use crate::scenario::FeatureGroup;
use crate::seed::SeedReport;

/// The layout of an observation: features of the env (23, or 27 with `reward_parts`), then those of each slot (31, or 36),
/// plugins' features at the end of either block.
#[derive(Resource, Clone, Debug)]
pub struct ObservationSchema {
    slots: Vec<SlotId>,
    /// Beyond those that each observation has.
    env_features: Vec<ObservationFeature>,
    slot_features: Vec<ObservationFeature>,
    /// Steps of an episode: the unit of time.
    max_steps: u32,
    names: Vec<String>,
}

/// The treatment of one element of an observation by a normaliser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    pub treatment: Treatment,
    /// Elements that share this number share one statistic: a feature of all slots.
    pub feature: usize,
    /// Index of the element that is 1 if the slot is occupied. `None` for a feature of the env.
    pub occupied_by: Option<usize>,
}

impl ObservationSchema {
    /// Makes the schema. `slots` are in policy order, `max_steps` is the steps of an episode, and `groups` are built-in features
    /// beyond those that each schema has.
    pub fn new(slots: &[SlotId], max_steps: u32, groups: &[FeatureGroup], custom: &ObservationFeatures) -> Self {
        let builtin = match groups.contains(&FeatureGroup::RewardParts) {
            true => reward_parts(),
            false => Vec::new(),
        };
        let features = builtin.into_iter().chain(custom.iter().cloned());
        let (env_features, slot_features): (Vec<_>, Vec<_>) =
            features.partition(|feature| matches!(feature.extract, Extract::Env(_)));
        let mut names: Vec<String> = table(&BASE, &env_features).map(|(name, _)| name.into()).collect();
        for slot in slots {
            names.extend(table(&SLOT, &slot_features).map(|(name, _)| format!("{slot}.{name}")));
        }
        Self {
            slots: slots.to_vec(),
            env_features,
            slot_features,
            max_steps: max_steps.max(1),
            names,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Never: the env's features are always there.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// In policy order.
    pub fn slots(&self) -> &[SlotId] {
        &self.slots
    }

    /// Names of all elements, e.g. `val_loss` and `r0c1.alpha`.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// SHA-256 of the names, one per line, in lower-case hexadecimal.
    pub fn hash(&self) -> String {
        sha256(self.names.join("\n").as_bytes())
    }

    /// Elements before the first slot.
    fn base_len(&self) -> usize {
        BASE.len() + self.env_features.len()
    }

    /// Elements of one slot.
    fn slot_len(&self) -> usize {
        SLOT.len() + self.slot_features.len()
    }

    /// The elements that a normaliser treats, in order.
    pub fn elements(&self) -> Vec<Element> {
        let base = self.base_len();
        let env = table(&BASE, &self.env_features).enumerate();
        let env = env.map(|(feature, (_, treatment))| Element {
            treatment,
            feature,
            occupied_by: None,
        });
        let slots = (0..self.slots.len()).flat_map(|slot| {
            let first = base + slot * self.slot_len();
            let of_slot = table(&SLOT, &self.slot_features).enumerate();
            of_slot.map(move |(k, (_, treatment))| Element {
                treatment,
                feature: base + k,
                occupied_by: Some(first),
            })
        });
        env.chain(slots).collect()
    }
}

/// Name and treatment of the built-in features of an env or a slot, then of those that plugins add.
fn table<'a>(
    builtin: &'static [(&'static str, Treatment)],
    custom: &'a [ObservationFeature],
) -> impl Iterator<Item = (&'a str, Treatment)> {
    let custom = custom.iter().map(|feature| (feature.name.as_str(), feature.treatment));
    builtin.iter().copied().chain(custom)
}

/// Percentage points that count as one unit of contribution, velocity and interaction.
const POINTS: f64 = 10.0;
/// Steps that count as one unit of tempo.
const TEMPO_UNIT: f64 = 12.0;
/// Factor per step on the freshness of a measured contribution.
const FRESHNESS_DECAY: f64 = 0.995;

/// `sign(x)·ln(1 + |x|) / 7`, in [-2, 2].
fn squashed(value: f64) -> f64 {
    (value.signum() * value.abs().ln_1p() / 7.0).clamp(-2.0, 2.0)
}

impl ObservationSchema {
    /// Writes the raw row and the blueprints of an env, reusing storage. To look at an env once more after its slots ticked, as a
    /// truncated episode's bootstrap does, call it with fresh reports and the step's unchanged signals, then
    /// [`ObservationNormaliser::normalise`](super::ObservationNormaliser::normalise).
    ///
    /// # Errors
    /// `WrongSlotCount`, or `NonFiniteFeature` with the name of a feature that isn't finite.
    pub fn observe(&self, input: &ObservationInput, observation: &mut Observation) -> Result<(), PolicyError> {
        if input.reports.len() != self.slots().len() {
            return Err(PolicyError::WrongSlotCount {
                at: input.at,
                reports: input.reports.len(),
                slots: self.slots().len(),
            });
        }
        observation.raw.resize(self.len(), 0.0);
        self.encode(input, &mut observation.raw)?;
        observation.blueprints.clear();
        let blueprint = |report: &Option<SeedReport>| report.as_ref().map_or(-1, |seed| seed.blueprint_index as i64);
        observation.blueprints.extend(input.reports.iter().map(blueprint));
        Ok(())
    }

    /// Encodes into `row`, which has [`len`](Self::len) elements.
    fn encode(&self, input: &ObservationInput, row: &mut [f32]) -> Result<(), PolicyError> {
        let (base, slots) = row.split_at_mut(self.base_len());
        self.encode_env(input, base);
        for (report, block) in input.reports.iter().zip(slots.chunks_exact_mut(self.slot_len())) {
            match report {
                None => block.fill(0.0),
                Some(seed) => self.encode_slot(seed, block),
            }
        }
        match row.iter().position(|value| !value.is_finite()) {
            None => Ok(()),
            Some(index) => Err(PolicyError::NonFiniteFeature {
                at: input.at,
                index,
                feature: self.names()[index].clone(),
            }),
        }
    }

    fn encode_env(&self, input: &ObservationInput, row: &mut [f32]) {
        let signals = input.signals;
        let mut row = Cursor { row, next: 0 };
        row.push(self.share_of_episode(signals.step));
        row.push(squashed(signals.val_loss));
        row.push(signals.val_accuracy / 100.0);
        row.push_history(&signals.loss_history, squashed);
        row.push_history(&signals.accuracy_history, |accuracy| accuracy / 100.0);
        for stages in [
            &[SeedStage::Training][..],
            &[SeedStage::Blending],
            &[SeedStage::Holding, SeedStage::Committed],
        ] {
            let seeds = input.reports.iter().flatten();
            let count = seeds.filter(|seed| stages.contains(&seed.stage)).count();
            row.push(count as f64 / input.reports.len() as f64);
        }
        row.push_flag(input.feedback.last_ok);
        row.push_one_hot(input.feedback.last_op.code(), OPS);
        for feature in &self.env_features {
            if let Extract::Env(extract) = &feature.extract {
                row.push(in_range(feature, extract(input)));
            }
        }
    }

    fn encode_slot(&self, seed: &SeedReport, row: &mut [f32]) {
        let points = |value: f64| (value / POINTS).clamp(-1.0, 1.0);
        let unknown = f64::from(UNKNOWN);
        let mut row = Cursor { row, next: 0 };
        row.push_flag(true);
        row.push_one_hot(seed.stage.code(), SeedStage::ALL.len());
        row.push(seed.alpha);
        row.push(points(seed.contribution.unwrap_or(0.0)));
        row.push(points(seed.contribution_velocity));
        row.push(f64::from(seed.tempo.ticks()) / TEMPO_UNIT);
        row.push(seed.alpha_target);
        row.push(seed.alpha_mode.code() as f64 / 2.0);
        row.push(self.share_of_episode(seed.alpha_steps_total));
        row.push(self.share_of_episode(seed.alpha_steps_done));
        row.push(self.share_of_episode(seed.time_to_target));
        row.push(seed.alpha_velocity.clamp(-1.0, 1.0));
        row.push((seed.algorithm.code() - 1) as f64 / 2.0);
        row.push(points(seed.interaction_sum));
        row.push(seed.gradient.norm.map_or(unknown, |norm| {
            // An exploded gradient is the largest there is, not an error.
            if norm.is_finite() { squashed(norm) } else { 2.0 }
        }));
        // A health of NaN is a mistake of its producer. The check at the end finds it.
        let health = |health: f64| {
            if health.is_finite() {
                health.clamp(0.0, 1.0)
            } else {
                f64::NAN
            }
        };
        row.push(seed.gradient.health.map_or(unknown, health));
        row.push_flag(seed.gradient.has_vanishing.unwrap_or(false));
        row.push_flag(seed.gradient.has_exploding.unwrap_or(false));
        row.push(seed.gradient.previous_health.map_or(unknown, health));
        row.push(self.share_of_episode(seed.steps_in_stage));
        let freshness = |age: u32| FRESHNESS_DECAY.powi(age.try_into().unwrap_or(i32::MAX));
        row.push(seed.contribution_age.map_or(unknown, freshness));
        row.push(self.share_of_episode(seed.age_steps));
        debug_assert_eq!(row.next, SLOT.len());
        for feature in &self.slot_features {
            if let Extract::Slot(extract) = &feature.extract {
                row.push(in_range(feature, extract(seed)));
            }
        }
    }

    /// `min(steps, T)/T`.
    fn share_of_episode(&self, steps: u32) -> f64 {
        f64::from(steps.min(self.max_steps)) / f64::from(self.max_steps)
    }
}

/// A plugin's value within its declared range. NaN stays, and the check at the end finds it.
fn in_range(feature: &ObservationFeature, value: Option<f64>) -> f64 {
    value.map_or(f64::from(UNKNOWN), |value| {
        value.clamp(*feature.range.start(), *feature.range.end())
    })
}

/// Fills a row from the left.
struct Cursor<'a> {
    row: &'a mut [f32],
    next: usize,
}

impl Cursor<'_> {
    fn push(&mut self, value: f64) {
        self.row[self.next] = value as f32;
        self.next += 1;
    }

    fn push_flag(&mut self, flag: bool) {
        self.push(f64::from(u8::from(flag)));
    }

    fn push_one_hot(&mut self, code: usize, size: usize) {
        for member in 0..size {
            self.push_flag(member == code);
        }
    }

    /// Short histories are filled up on the left: absence is not zero.
    fn push_history(&mut self, values: &[f64], scale: impl Fn(f64) -> f64) {
        for _ in values.len()..SHOWN_HISTORY {
            self.push(f64::from(UNKNOWN));
        }
        for &value in values {
            self.push(scale(value));
        }
    }
}

#[cfg(test)]
mod tests;
