//! The names that a scenario may use beyond the schema's own: tasks, hosts, blueprints, controllers.
//!
//! Blueprints and controllers have their names from where they are registered: [`crate::run::catalog`] reads them.

use serde::Serialize;

use super::presets::TaskPreset;

/// A name and one line about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    pub name: String,
    pub summary: String,
}

impl Entry {
    pub fn new(name: impl Into<String>, summary: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            summary: summary.into(),
        }
    }
}

/// A recipe of seeds; `index` is its fixed action index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlueprintEntry {
    pub index: usize,
    pub name: String,
    pub summary: String,
    /// Whether scenarios and controllers may choose it.
    pub selectable: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Catalog {
    pub tasks: Vec<TaskPreset>,
    pub hosts: Vec<Entry>,
    pub blueprints: Vec<BlueprintEntry>,
    pub controllers: Vec<Entry>,
    /// Networks of the learned controller.
    pub nets: Vec<Entry>,
}

impl Catalog {
    /// Whether the blueprint of that name grows nothing and only serves as a control.
    pub(super) fn is_placebo(&self, blueprint: &str) -> bool {
        self.blueprints
            .iter()
            .any(|known| known.name == blueprint && !known.selectable)
    }
}
