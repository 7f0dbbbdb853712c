//! Names, order and scales of an observation's features: the contract between a run and a saved policy.

use bevy_ecs::resource::Resource;

use super::features::{BASE, Extract, ObservationFeature, ObservationFeatures, SLOT, Treatment, reward_parts};
use crate::growth::SlotId;
use crate::hash::sha256;
use crate::scenario::FeatureGroup;

/// The layout of an observation: features of the env (23, or 27 with `reward_parts`), then those of each slot (31, or 36),
/// plugins' features at the end of either block.
#[derive(Resource, Clone, Debug)]
pub struct ObservationSchema {
    slots: Vec<SlotId>,
    /// Beyond those that each observation has.
    pub(super) env_features: Vec<ObservationFeature>,
    pub(super) slot_features: Vec<ObservationFeature>,
    /// Steps of an episode: the unit of time.
    pub(super) max_steps: u32,
    names: Vec<String>,
}

/// How a normaliser treats one element of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    pub treatment: Treatment,
    /// Elements that share this number share one statistic: a feature of all slots.
    pub feature: usize,
    /// Index of the element that says whether the slot is occupied; `None` for a feature of the env.
    pub occupied_by: Option<usize>,
}

impl ObservationSchema {
    /// `slots`: in policy order; `max_steps`: steps of an episode; `groups`: what it has of built-in features beyond those that each
    /// has.
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

    /// SHA-256 of the names, one a line, in lower-case hexadecimal.
    pub fn hash(&self) -> String {
        sha256(self.names.join("\n").as_bytes())
    }

    /// Elements before the first slot.
    pub(super) fn base_len(&self) -> usize {
        BASE.len() + self.env_features.len()
    }

    /// Elements of one slot.
    pub(super) fn slot_len(&self) -> usize {
        SLOT.len() + self.slot_features.len()
    }

    /// What a normaliser has to know, element by element.
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
