//! All hosts that a scenario may choose: the engine's families, and what is registered by name.

use std::sync::Arc;

use super::families::presets;
use super::{HostDesign, HostError};
use crate::scenario::{Entry, HostChoice, HostName, HostOutline, KnownHosts};
use crate::schema::{Registry, Settings, registry};

registry! {
    /// Hosts by name: those of the literature, and what plugins add.
    pub struct HostRegistry(dyn HostDesign);
}

impl HostRegistry {
    /// The design that a scenario chooses.
    ///
    /// # Errors
    /// [`HostError::Name`] for a name that is not registered, or settings that the host does not have.
    pub fn of(&self, choice: &HostChoice) -> Result<Arc<dyn HostDesign>, HostError> {
        Ok(match choice {
            HostChoice::Cnn(spec) => Arc::new(spec.clone()),
            HostChoice::Resnet(spec) => Arc::new(spec.clone()),
            HostChoice::Vgg(spec) => Arc::new(spec.clone()),
            HostChoice::Transformer(spec) => Arc::new(spec.clone()),
            HostChoice::Named(HostName(name)) => self.get(name, &Settings::default())?.1,
            HostChoice::Custom { name, settings } => self.get(&name.0, settings)?.1,
        })
    }
}

impl Default for HostRegistry {
    /// The hosts of the literature.
    fn default() -> Self {
        let mut hosts = Self(Registry::new("host"));
        for (name, summary, design) in presets() {
            hosts.register(name, summary, design);
        }
        hosts
    }
}

impl KnownHosts for HostRegistry {
    fn entries(&self) -> Vec<Entry> {
        self.iter().map(|(name, summary)| Entry::new(name, summary)).collect()
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
