//! The names that a scenario may use beyond the schema's own: tasks, hosts, blueprints, controllers,
//! rewards.
//!
//! Parts have their names from where they are registered: `engine::Extension::names` reads them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::host::{HostChoice, HostOutline};
use super::needs::RewardProfile;
use super::presets::TaskPreset;
use super::reward::RewardConfig;
use super::task::{BatchesPerStep, DataSource, SplitSpec};
use crate::growth::Topology;
use crate::schema::{Content, Declared, Described, Field, Kind, Names, Subject, Variant};

/// A name and one line about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// As a scenario writes it.
    pub name: String,
    /// One line.
    pub summary: String,
}

impl Entry {
    /// An entry of the catalog.
    pub fn new(name: impl Into<String>, summary: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            summary: summary.into(),
        }
    }
}

/// A recipe of seeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlueprintEntry {
    /// Index of the action that chooses it; `None` where a run has it only if its scenario names it.
    pub index: Option<usize>,
    /// As a scenario writes it.
    pub name: String,
    /// One line.
    pub summary: String,
    /// True if scenarios and controllers may choose it.
    pub selectable: bool,
    /// The features that it grows in.
    pub grows_in: Vec<Topology>,
}

/// The knowledge of hosts that scenarios are checked against: `network::HostRegistry`.
pub trait KnownHosts: fmt::Debug + Send + Sync {
    /// Hosts that `named("..")` may name, sorted.
    fn entries(&self) -> Vec<Entry>;

    /// The outline of a host with this number of classes; relative paths begin in `folder`.
    ///
    /// # Errors
    /// The reason why there isn't one, in words: a name that isn't registered, a file that isn't a network.
    fn outline(&self, host: &HostChoice, classes: i64, folder: Option<&Path>) -> Result<HostOutline, String>;
}

/// Reader of the user's images: `data::ImagesOnDisk`.
pub trait KnownImages: fmt::Debug + Send + Sync {
    /// The values that the images determine, for a host of that family; relative paths begin in `folder`.
    ///
    /// # Errors
    /// The fault of the data, in words.
    fn settle(&self, source: &DataSource, folder: Option<&Path>, family: &str) -> Result<OwnImages, String>;
}

/// Fields of a task that the user's images determine, except the normalisation, which is as measured.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnImages {
    /// The images, at the size at which they are read.
    pub data: DataSource,
    /// Labels.
    pub classes: i64,
    /// A host of the family; `None` if it doesn't say what it reads.
    pub host: Option<HostChoice>,
    /// Parts that the files don't contain.
    pub split: SplitSpec,
    /// Images per batch.
    pub batch_size: usize,
    /// Batches per step.
    pub batches_per_step: BatchesPerStep,
}

/// The known rewards: `reward::RewardModes`, which the section `attribution` is checked against.
pub trait KnownRewards: fmt::Debug + Send + Sync {
    /// Declarations of a mode, with the settings that the scenario gives it; empty for one that is not registered.
    fn profile(&self, reward: &RewardConfig) -> RewardProfile;
}

/// All names that this build knows, including those of plugins.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// Tasks that `task: preset("..")` may name.
    pub tasks: Vec<TaskPreset>,
    /// Data sets that `custom(name: "..")` may name.
    pub data: Vec<Entry>,
    /// The user's images; `None` if no data is to be looked at.
    pub images: Option<Arc<dyn KnownImages>>,
    /// Host networks, by family and by name.
    pub hosts: Arc<dyn KnownHosts>,
    /// Recipes of seeds, in the order of their indices.
    pub blueprints: Vec<BlueprintEntry>,
    /// Controllers that `policy.controller` may name.
    pub controllers: Vec<Entry>,
    /// Networks of the learned controller.
    pub nets: Vec<Entry>,
    /// Rewards that `reward: custom(name: "..")` may name.
    pub rewards: Vec<Entry>,
    /// Profiles of all rewards.
    pub profiles: Arc<dyn KnownRewards>,
    /// Settings of the parts that plugins have registered, by their names.
    pub settings: BTreeMap<(Subject, String), Declared>,
}

impl Catalog {
    /// The same names for scenarios whose data are not to be looked at: what a task leaves to them is the preset's.
    pub fn without_images(&self) -> Self {
        Self {
            images: None,
            ..self.clone()
        }
    }

    /// The settings of what `name` chooses in the field `of` of a record; `None` of a name that is not registered.
    pub(super) fn settings_of(&self, fields: &[Field], of: &str, name: &str) -> Option<&Declared> {
        let subject = fields.iter().find_map(|field| match field.kind {
            Kind::Text(Names::Registered(subject)) if field.name == of => Some(subject),
            _ => None,
        })?;
        self.settings.get(&(subject, name.to_ascii_lowercase()))
    }

    /// Returns whether the blueprint of that name, one that there is, grows in hosts with other features only.
    pub(super) fn is_for_others(&self, blueprint: &str, topology: Topology) -> bool {
        let mut namesakes = self
            .blueprints
            .iter()
            .filter(|known| known.name.eq_ignore_ascii_case(blueprint));
        namesakes.any(|known| !known.grows_in.contains(&topology))
    }

    /// Names of the blueprints that grow in hosts with such features.
    pub(super) fn growing_in(&self, topology: Topology) -> Vec<&str> {
        let growing = self
            .blueprints
            .iter()
            .filter(|known| known.selectable && known.grows_in.contains(&topology));
        growing.map(|known| known.name.as_str()).collect()
    }

    /// Returns whether the blueprint of that name grows nothing and only serves as a control.
    pub(super) fn is_placebo(&self, blueprint: &str) -> bool {
        self.blueprints
            .iter()
            .any(|known| known.name == blueprint && !known.selectable)
    }
}

/// Families of hosts, as a scenario names them.
pub fn host_families() -> Vec<Entry> {
    let Kind::Choice(variants) = HostChoice::KIND else {
        return Vec::new();
    };
    let has_fields =
        |variant: &&Variant| matches!(variant.content, Content::Items([item]) if matches!(item.kind, Kind::Record(_)));
    let families = variants.iter().filter(has_fields);
    families.map(|family| Entry::new(family.name, family.doc)).collect()
}
