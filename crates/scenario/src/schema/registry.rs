//! Parts that scenarios choose by name: the engine's, and those that plugins of an application add.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ron::error::SpannedError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::described::{Described, Settings};
use super::kind::Kind;
use crate::files::ron_options;

/// Parts of one kind by their names. A plugin registers its own when it is built; a name that it cannot have is reported
/// before anything runs.
pub struct Registry<T: ?Sized + Send + Sync + 'static> {
    /// Noun for one of them in messages.
    noun: &'static str,
    entries: BTreeMap<String, Arc<Registered<T>>>,
    refused: Option<NameError>,
}

/// A part, its line in lists, and its settings.
struct Registered<T: ?Sized> {
    summary: String,
    settings: Declared,
    make: MakePart<T>,
}

type MakePart<T> = Box<dyn Fn(&Settings) -> Result<Arc<T>, SpannedError> + Send + Sync>;

/// The settings that a part declares.
#[derive(Clone, Debug)]
pub struct Declared {
    /// A record. Each of its fields may be left out.
    pub kind: &'static Kind,
    /// Its defaults in RON.
    pub defaults: String,
}

impl Default for Declared {
    /// None.
    fn default() -> Self {
        Self {
            kind: &Kind::Record(&[]),
            defaults: "()".into(),
        }
    }
}

/// A name that cannot be registered, or that names nothing. The message says which names there are, or why this one cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Two parts of one name: register one of them under another.
    #[error("the {noun} name `{name}` is taken; register yours under another")]
    Taken {
        /// Noun for the part.
        noun: &'static str,
        /// The name.
        name: String,
    },
    /// A part that scenarios, observations or action masks cannot refer to.
    #[error("the {noun} {name:?} cannot be registered: {why}")]
    Refused {
        /// Noun for the part.
        noun: &'static str,
        /// The name.
        name: String,
        /// The fault, and what would be valid.
        why: String,
    },
    /// Settings that the part cannot have; scenarios that were checked have none.
    #[error("the settings of the {noun} `{name}` cannot be read: {why}")]
    Settings {
        /// Noun for the part.
        noun: &'static str,
        /// The name.
        name: String,
        /// The fault.
        why: String,
    },
    /// Nothing is registered under the name: correct it, or add the plugin that registers it.
    #[error("no {noun} is called `{name}`; there are: {}", listed(.available))]
    Unknown {
        /// Noun for the part.
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
    /// Checks that a part can have this name, as far as its letters go.
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
            why: "a name consists of letters, digits, `_` and `-`".into(),
        })
    }
}

impl<T: ?Sized + Send + Sync + 'static> Registry<T> {
    /// Without a part; `noun` is what one is called in messages.
    pub const fn new(noun: &'static str) -> Self {
        Self {
            noun,
            entries: BTreeMap::new(),
            refused: None,
        }
    }

    /// Adds a part; `summary` is its line in lists. A name that is taken or cannot be one is refused when the engine is built.
    pub fn register(&mut self, name: impl Into<String>, summary: impl Into<String>, part: Arc<T>) {
        self.insert(
            name.into(),
            summary.into(),
            Declared::default(),
            Box::new(move |_| Ok(part.clone())),
        );
    }

    /// As [`Self::register`], for a part that is made from settings. `S` declares them with [`section!`](crate::section): a
    /// scenario writes them with the name, and they are checked, explained and given defaults like any field.
    pub fn register_with<S>(
        &mut self,
        name: impl Into<String>,
        summary: impl Into<String>,
        make: impl Fn(S) -> Arc<T> + Send + Sync + 'static,
    ) where
        S: Described + Default + Serialize + DeserializeOwned,
    {
        let settings = Declared {
            kind: const { &S::KIND },
            // RON refuses nothing that a declared struct holds.
            defaults: ron_options().to_string(&S::default()).unwrap_or_default(),
        };
        let make = Box::new(move |settings: &Settings| settings.read().map(&make));
        self.insert(name.into(), summary.into(), settings, make);
    }

    fn insert(&mut self, name: String, summary: String, settings: Declared, make: MakePart<T>) {
        let noun = self.noun;
        let checked = match self.find(&name) {
            Some(_) => Err(NameError::Taken {
                noun,
                name: name.clone(),
            }),
            None => NameError::check(noun, &name),
        };
        let entry = Arc::new(Registered {
            summary,
            settings,
            make,
        });
        match checked {
            Ok(()) => _ = self.entries.insert(name, entry),
            Err(error) => _ = self.refused.get_or_insert(error),
        }
    }

    /// Names with their summaries, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.entries.iter();
        entries.map(|(name, entry)| (name.as_str(), entry.summary.as_str()))
    }

    /// All parts with their names, sorted, made from the defaults of their settings.
    pub fn parts(&self) -> impl Iterator<Item = (&str, Arc<T>)> {
        let names = self.entries.keys();
        names.filter_map(|name| self.get(name, &Settings::default()).ok())
    }

    /// Settings of each part, by its name.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &Declared)> {
        self.entries
            .iter()
            .map(|(name, entry)| (name.as_str(), &entry.settings))
    }

    /// The part of that name, in either case, made from these settings; with the name that it was registered under.
    ///
    /// # Errors
    /// [`NameError::Unknown`], or [`NameError::Settings`].
    pub fn get(&self, name: &str, settings: &Settings) -> Result<(&str, Arc<T>), NameError> {
        let noun = self.noun;
        let (known, entry) = self.find(name).ok_or_else(|| NameError::Unknown {
            noun,
            name: name.into(),
            available: self.entries.keys().cloned().collect(),
        })?;
        let part = (entry.make)(settings).map_err(|error| NameError::Settings {
            noun,
            name: known.into(),
            why: error.to_string(),
        })?;
        Ok((known, part))
    }

    /// The first registration that was refused.
    pub const fn refused(&self) -> Option<&NameError> {
        self.refused.as_ref()
    }

    fn find(&self, name: &str) -> Option<(&str, &Registered<T>)> {
        let mut entries = self.entries.iter();
        let (known, entry) = entries.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some((known, entry))
    }
}

/// A registry of one kind of parts as a resource of its own.
#[doc(hidden)]
#[macro_export]
macro_rules! registry {
    ($(#[$meta:meta])* pub struct $name:ident($part:ty);) => {
        $(#[$meta])*
        #[derive(Clone, Debug, bevy_ecs::resource::Resource)]
        pub struct $name($crate::schema::Registry<$part>);

        impl std::ops::Deref for $name {
            type Target = $crate::schema::Registry<$part>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl std::ops::DerefMut for $name {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }
    };
}
pub use registry;

impl<T: ?Sized + Send + Sync + 'static> Clone for Registry<T> {
    fn clone(&self) -> Self {
        Self {
            noun: self.noun,
            entries: self.entries.clone(),
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
