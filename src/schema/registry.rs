//! What scenarios choose by name: the engine's own parts, and those that plugins of an application add.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bevy_ecs::resource::Resource;

/// Parts of one kind by their names. A plugin registers its own when it is built; a name that it cannot have is reported
/// before anything runs.
#[derive(Resource)]
pub struct Registry<T: ?Sized + Send + Sync + 'static> {
    /// What one of them is called in messages.
    noun: &'static str,
    entries: BTreeMap<String, Registered<T>>,
    refused: Option<NameError>,
}

/// A part and its line in lists.
struct Registered<T: ?Sized> {
    summary: String,
    part: Arc<T>,
}

/// A name that cannot be registered, or that names nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Two parts of one name.
    #[error("the {noun} name `{name}` is taken; register yours under another")]
    Taken {
        /// What it would have been.
        noun: &'static str,
        /// The name.
        name: String,
    },
    /// A part that scenarios, observations or action masks cannot refer to.
    #[error("the {noun} {name:?} cannot be registered: {why}")]
    Refused {
        /// What it would have been.
        noun: &'static str,
        /// The name.
        name: String,
        /// What is wrong, and what would be valid.
        why: String,
    },
    /// Nothing is registered under the name.
    #[error("no {noun} is called `{name}`; there are: {}", listed(.available))]
    Unknown {
        /// What it should be.
        noun: &'static str,
        /// The name.
        name: String,
        /// All names, sorted.
        available: Vec<String>,
    },
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "none".into();
    }
    names.join(", ")
}

impl NameError {
    /// That a part can have this name, as far as its letters go.
    ///
    /// # Errors
    /// [`NameError::Refused`].
    pub fn check(noun: &'static str, name: &str) -> Result<(), Self> {
        let is_part = |c: char| c.is_alphanumeric() || "_-".contains(c);
        if !name.is_empty() && name.chars().all(is_part) {
            return Ok(());
        }
        Err(Self::Refused {
            noun,
            name: name.into(),
            why: "a name has at least one letter or digit, and beside these `_` and `-` alone".into(),
        })
    }
}

impl<T: ?Sized + Send + Sync + 'static> Registry<T> {
    /// Without a part; `noun` is what one is called in messages.
    pub(crate) const fn new(noun: &'static str) -> Self {
        Self {
            noun,
            entries: BTreeMap::new(),
            refused: None,
        }
    }

    /// Adds a part; `summary` is its line in lists. A name that is taken or cannot be one is refused when the engine is built.
    pub fn register(&mut self, name: impl Into<String>, summary: impl Into<String>, part: Arc<T>) {
        let (noun, name, summary) = (self.noun, name.into(), summary.into());
        let checked = match self.find(&name) {
            Some(_) => Err(NameError::Taken {
                noun,
                name: name.clone(),
            }),
            None => NameError::check(noun, &name),
        };
        match checked {
            Ok(()) => _ = self.entries.insert(name, Registered { summary, part }),
            Err(error) => _ = self.refused.get_or_insert(error),
        }
    }

    /// Names with their summaries, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.entries.iter();
        entries.map(|(name, entry)| (name.as_str(), entry.summary.as_str()))
    }

    /// All parts with their names, sorted.
    pub fn parts(&self) -> impl Iterator<Item = (&str, &T)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), &*entry.part))
    }

    /// The part of that name, in either case, with the name that it was registered under.
    ///
    /// # Errors
    /// [`NameError::Unknown`].
    pub fn get(&self, name: &str) -> Result<(&str, &T), NameError> {
        self.find(name).ok_or_else(|| NameError::Unknown {
            noun: self.noun,
            name: name.into(),
            available: self.entries.keys().cloned().collect(),
        })
    }

    /// The first registration that was refused.
    pub const fn refused(&self) -> Option<&NameError> {
        self.refused.as_ref()
    }

    fn find(&self, name: &str) -> Option<(&str, &T)> {
        self.parts().find(|(known, _)| known.eq_ignore_ascii_case(name))
    }
}

impl<T: ?Sized + Send + Sync + 'static> Clone for Registry<T> {
    fn clone(&self) -> Self {
        let shared = |(name, entry): (&String, &Registered<T>)| {
            let (summary, part) = (entry.summary.clone(), entry.part.clone());
            (name.clone(), Registered { summary, part })
        };
        Self {
            noun: self.noun,
            entries: self.entries.iter().map(shared).collect(),
            refused: self.refused.clone(),
        }
    }
}

impl<T: ?Sized + Send + Sync + 'static> fmt::Debug for Registry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.entries.keys()).finish()
    }
}

#[cfg(test)]
mod tests;
