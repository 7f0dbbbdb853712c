//! All hosts that a scenario may choose: the engine's families, and what is registered by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bevy_ecs::resource::Resource;

use super::families::presets;
use super::{HostDesign, HostError};
use crate::scenario::{Entry, HostChoice, HostName, HostOutline, KnownHosts};

/// Hosts by name: those of the literature, and what plugins add.
#[derive(Resource, Clone)]
pub struct HostRegistry {
    /// The line in lists, and the design.
    entries: BTreeMap<String, (String, Arc<dyn HostDesign>)>,
}

impl HostRegistry {
    /// Adds a host; `summary` is its line in lists.
    ///
    /// # Errors
    /// [`HostError::Taken`] if there is a host of this name.
    pub fn register(
        &mut self,
        name: impl Into<String>,
        summary: impl Into<String>,
        design: impl HostDesign + 'static,
    ) -> Result<(), HostError> {
        let name = name.into();
        if self.get(&name).is_some() {
            return Err(HostError::Taken(name));
        }
        self.entries.insert(name, (summary.into(), Arc::new(design)));
        Ok(())
    }

    /// The design that a scenario chooses.
    ///
    /// # Errors
    /// [`HostError::Unknown`] for a name that nobody has registered.
    pub fn of<'a>(&'a self, choice: &'a HostChoice) -> Result<&'a dyn HostDesign, HostError> {
        Ok(match choice {
            HostChoice::Cnn(spec) => spec,
            HostChoice::Resnet(spec) => spec,
            HostChoice::Vgg(spec) => spec,
            HostChoice::Transformer(spec) => spec,
            HostChoice::Named(HostName(name)) => self.get(name).ok_or_else(|| HostError::Unknown {
                name: name.clone(),
                available: self.entries.keys().cloned().collect(),
            })?,
        })
    }

    /// Names match in either case, as all names of a scenario.
    fn get(&self, name: &str) -> Option<&dyn HostDesign> {
        let mut entries = self.entries.iter();
        let (_, (_, design)) = entries.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(&**design)
    }
}

impl Default for HostRegistry {
    /// The hosts of the literature.
    fn default() -> Self {
        let entry = |(name, summary, design): (&str, &str, _)| (name.to_owned(), (summary.to_owned(), design));
        Self {
            entries: presets().into_iter().map(entry).collect(),
        }
    }
}

impl fmt::Debug for HostRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.entries.keys()).finish()
    }
}

impl KnownHosts for HostRegistry {
    fn entries(&self) -> Vec<Entry> {
        let entries = self.entries.iter();
        entries.map(|(name, (summary, _))| Entry::new(name, summary)).collect()
    }

    fn outline(&self, host: &HostChoice, classes: i64) -> Option<HostOutline> {
        let design = self.of(host).ok()?;
        let mut outline = design.plan(classes).outline();
        let problems = design.problems();
        if !problems.is_empty() {
            outline.problems = problems;
        }
        Some(outline)
    }
}
