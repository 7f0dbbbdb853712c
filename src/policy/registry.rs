//! What a scenario chooses by name, plugins' own included: controllers and networks.

use std::collections::BTreeMap;

use bevy_ecs::resource::Resource;

use crate::actions::PolicyError;

/// Factories by name.
#[derive(Resource, Clone, Debug)]
pub struct Registry<F: Send + Sync + 'static> {
    /// What is built, in error messages.
    kind: &'static str,
    /// By name: the line in lists, and the factory.
    entries: BTreeMap<String, (String, F)>,
}

impl<F: Copy + Send + Sync + 'static> Registry<F> {
    /// With the given names, summaries and factories.
    pub(crate) fn with<const N: usize>(kind: &'static str, builtin: [(&str, &str, F); N]) -> Self {
        let entry = |(name, summary, build): (&str, &str, F)| (name.to_owned(), (summary.to_owned(), build));
        Self {
            kind,
            entries: builtin.into_iter().map(entry).collect(),
        }
    }

    /// Adds a factory; `summary` is its line in lists.
    ///
    /// # Errors
    /// The name is taken.
    pub fn register(
        &mut self,
        name: impl Into<String>,
        summary: impl Into<String>,
        build: F,
    ) -> Result<(), PolicyError> {
        let name = name.into();
        if self.entries.contains_key(&name) {
            return Err(PolicyError::DuplicateRegistration { kind: self.kind, name });
        }
        self.entries.insert(name, (summary.into(), build));
        Ok(())
    }

    /// Names with their summaries, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries
            .iter()
            .map(|(name, (summary, _))| (name.as_str(), summary.as_str()))
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The factory of that name.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn get(&self, name: &str) -> Result<F, PolicyError> {
        self.entries
            .get(name)
            .map(|(_, build)| *build)
            .ok_or_else(|| PolicyError::UnknownName {
                kind: self.kind,
                name: name.to_owned(),
                available: self.names().map(String::from).collect(),
            })
    }
}
