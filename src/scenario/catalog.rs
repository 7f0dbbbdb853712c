//! The names that a scenario may use beyond the schema's own: tasks, hosts, blueprints, controllers,
//! rewards.
//!
//! Blueprints, controllers and rewards have their names from where they are registered: [`crate::engine::catalog`] reads them.

use serde::Serialize;

use super::SeedInit;
use super::presets::TaskPreset;

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
    /// Index of the action that chooses it.
    pub index: usize,
    /// As a scenario writes it.
    pub name: String,
    /// One line.
    pub summary: String,
    /// Whether scenarios and controllers may choose it.
    pub selectable: bool,
    /// What its seeds can be born with.
    pub inits: Vec<SeedInit>,
}

/// Everything that this build, plugins included, knows by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalog {
    /// Tasks that `task: preset("..")` may name.
    pub tasks: Vec<TaskPreset>,
    /// Kinds of host networks.
    pub hosts: Vec<Entry>,
    /// Recipes of seeds, in the order of their indices.
    pub blueprints: Vec<BlueprintEntry>,
    /// Controllers that `policy.controller` may name.
    pub controllers: Vec<Entry>,
    /// Networks of the learned controller.
    pub nets: Vec<Entry>,
    /// Rewards that `reward: custom("..")` may name.
    pub rewards: Vec<Entry>,
}

impl Catalog {
    /// Whether the blueprint of that name grows nothing and only serves as a control.
    pub(super) fn is_placebo(&self, blueprint: &str) -> bool {
        self.blueprints
            .iter()
            .any(|known| known.name == blueprint && !known.selectable)
    }
}
