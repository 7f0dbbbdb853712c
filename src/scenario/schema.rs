//! The language in which scenario fields are described, and questions to the description.
//!
//! One table ([`super::fields::SCENARIO`]) drives checking, `--set`, `explain` and error messages. A test holds it equal
//! to the serde types.

use std::fmt;
use std::ops::RangeInclusive;

use super::catalog::Catalog;
use super::problem::nearest;
use crate::growth::{AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, LifecycleOp, Tempo};

/// A key of a record.
pub struct Field {
    pub name: &'static str,
    pub doc: &'static str,
    pub kind: Kind,
    pub has_default: bool,
}

impl Field {
    /// Has neither a default nor `None` to fall back to.
    pub const fn must_be_written(&self) -> bool {
        !self.has_default && !matches!(self.kind, Kind::Optional(_))
    }
}

/// One member of a choice.
pub struct Variant {
    pub name: &'static str,
    pub doc: &'static str,
    pub content: Content,
}

pub enum Content {
    Nothing,
    /// `name(item, …)`.
    Items(&'static [Item]),
    /// `name(key: …)`.
    Fields(&'static [Field]),
}

/// A value inside `name(…)`. An unnamed item shares the path of the choice itself.
pub struct Item {
    pub name: &'static str,
    pub doc: &'static str,
    pub kind: Kind,
    /// May be left out; it then is the empty record.
    pub optional: bool,
}

/// What a value may be.
pub enum Kind {
    Bool,
    Integer(RangeInclusive<i128>),
    Float(FloatRange),
    Text(Names),
    /// `None` or a value.
    Optional(&'static Kind),
    List(&'static Kind),
    Pair(&'static Kind),
    Record(&'static [Field]),
    Choice(&'static [Variant]),
}

/// An interval of finite numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatRange {
    pub min: f64,
    pub max: f64,
    pub min_excluded: bool,
    pub max_excluded: bool,
}

impl FloatRange {
    pub fn contains(&self, value: f64) -> bool {
        let above = value > self.min || (value == self.min && !self.min_excluded);
        let below = value < self.max || (value == self.max && !self.max_excluded);
        value.is_finite() && above && below
    }
}

impl fmt::Display for FloatRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.min_excluded { "more than" } else { "at least" };
        let less = if self.max_excluded { "less than" } else { "at most" };
        match (self.min.is_finite(), self.max.is_finite()) {
            (true, true) => write!(f, "{more} {}, {less} {}", self.min, self.max),
            (true, false) => write!(f, "{more} {}", self.min),
            (false, true) => write!(f, "{less} {}", self.max),
            (false, false) => f.write_str("any finite number"),
        }
    }
}

/// Which names a text may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Anything.
    Free,
    /// The name of a run: it becomes part of a folder's name.
    Run,
    TrainingPreset,
    PolicyPreset,
    Net,
    Task,
    Controller,
    Blueprint,
    /// Form only; whether the host has the slot depends on the task.
    Slot,
    Device,
    Schedule,
    Op,
    Style,
    Tempo,
    Target,
    Speed,
    Curve,
}

impl Names {
    /// The valid names, where they can be listed; they match in either case.
    pub fn choices(self, catalog: &Catalog) -> Option<Vec<String>> {
        fn lower<T: Copy + fmt::Display>(members: &[T]) -> Vec<String> {
            members
                .iter()
                .map(|member| member.to_string().to_ascii_lowercase())
                .collect()
        }
        let names = match self {
            Self::Free | Self::Run | Self::Slot | Self::Device => return None,
            Self::TrainingPreset => super::presets::TRAINING_PRESETS
                .iter()
                .map(|preset| preset.name.to_string())
                .collect(),
            Self::PolicyPreset => super::presets::POLICY_PRESETS
                .iter()
                .map(|preset| preset.name.to_string())
                .collect(),
            Self::Net => catalog.nets.iter().map(|net| net.name.clone()).collect(),
            Self::Task => catalog.tasks.iter().map(|t| t.spec.name.clone()).collect(),
            Self::Controller => catalog.controllers.iter().map(|c| c.name.clone()).collect(),
            Self::Blueprint => catalog.blueprints.iter().map(|b| b.name.clone()).collect(),
            Self::Schedule => super::presets::BUILTIN_SCHEDULES.map(String::from).to_vec(),
            Self::Op => lower(LifecycleOp::ALL),
            Self::Style => lower(GerminationStyle::ALL),
            Self::Tempo => lower(Tempo::ALL),
            Self::Target => lower(AlphaTarget::ALL),
            Self::Speed => lower(AlphaSpeed::ALL),
            Self::Curve => lower(AlphaCurveAction::ALL),
        };
        Some(names)
    }

    /// What a listed name stands for.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Free => "text",
            Self::Run => "run name",
            Self::TrainingPreset => "training preset",
            Self::PolicyPreset => "policy preset",
            Self::Net => "network",
            Self::Task => "task",
            Self::Controller => "controller",
            Self::Blueprint => "blueprint",
            Self::Slot => "slot",
            Self::Device => "device",
            Self::Schedule => "built-in schedule",
            Self::Op => "lifecycle operation",
            Self::Style => "blend style",
            Self::Tempo => "tempo",
            Self::Target => "alpha target",
            Self::Speed => "alpha speed",
            Self::Curve => "alpha curve",
        }
    }

    /// What an unlisted name looks like.
    pub const fn form(self) -> &'static str {
        match self {
            Self::Run => "1 to 64 letters, digits, `.`, `_` or `-`, starting with a letter or digit",
            Self::Slot => "r<row>c<column>, e.g. \"r0c1\"",
            Self::Device => "\"cpu\", \"cuda:<index>\" or \"mps\"",
            _ => "any text",
        }
    }
}

impl Kind {
    /// The type in words, e.g. `a whole number`.
    pub fn noun(&self) -> String {
        match self {
            Self::Bool => "true or false".into(),
            Self::Integer(_) => "a whole number".into(),
            Self::Float(_) => "a number".into(),
            Self::Text(Names::Free) => "text in quotes".into(),
            Self::Text(names) => format!("a {} in quotes", names.noun()),
            Self::Optional(inner) => format!("None or {}", inner.noun()),
            Self::List(inner) => format!("a list [..] of {}", inner.noun()),
            Self::Pair(inner) => format!("a pair (a, b), each {}", inner.noun()),
            Self::Record(_) => "a section (key: value, ..)".into(),
            Self::Choice(_) => "a choice".into(),
        }
    }

    /// What is valid, in words; `None` where the type says it all.
    pub fn valid(&self, catalog: &Catalog) -> Option<String> {
        match self {
            Self::Bool | Self::Record(_) => None,
            Self::Integer(range) => Some(integer_range(range)),
            Self::Float(range) => Some(range.to_string()),
            Self::Text(Names::Free) => None,
            Self::Text(names) => Some(match names.choices(catalog) {
                Some(choices) => choices.join(", "),
                None => names.form().into(),
            }),
            Self::Optional(inner) => inner.valid(catalog).map(|valid| format!("None; {valid}")),
            Self::List(inner) | Self::Pair(inner) => inner.valid(catalog).map(|valid| format!("each {valid}")),
            Self::Choice(variants) => Some(variant_list(variants)),
        }
    }

    /// The fields that can be written below a path of this kind.
    pub fn children(&self) -> Vec<&'static Field> {
        match self {
            Self::Optional(inner) | Self::List(inner) => inner.children(),
            Self::Record(fields) => fields.iter().collect(),
            Self::Choice(variants) => {
                let mut children: Vec<&'static Field> = Vec::new();
                for variant in variants.iter() {
                    let below = match variant.content {
                        Content::Nothing => Vec::new(),
                        Content::Fields(fields) => fields.iter().collect(),
                        Content::Items(items) => items
                            .iter()
                            .filter(|item| item.name.is_empty())
                            .flat_map(|item| item.kind.children())
                            .collect(),
                    };
                    for field in below {
                        if children.iter().all(|known| known.name != field.name) {
                            children.push(field);
                        }
                    }
                }
                children
            }
            _ => Vec::new(),
        }
    }

    /// Named items of a choice's members, e.g. `task.preset`.
    fn item(&self, name: &str) -> Option<&'static Item> {
        let Self::Choice(variants) = self else {
            return None;
        };
        variants
            .iter()
            .filter_map(|variant| match variant.content {
                Content::Items(items) => Some(items),
                _ => None,
            })
            .flatten()
            .find(|item| item.name == name)
    }
}

/// `1..=4096`, or `at least 1` where the upper end is only the type's.
pub fn integer_range(range: &RangeInclusive<i128>) -> String {
    if *range.end() >= u32::MAX.into() {
        format!("at least {}", range.start())
    } else {
        format!("{}..={}", range.start(), range.end())
    }
}

pub fn variant_list(variants: &[Variant]) -> String {
    let names: Vec<String> = variants
        .iter()
        .map(|variant| match variant.content {
            Content::Nothing => variant.name.to_string(),
            _ => format!("{}(..)", variant.name),
        })
        .collect();
    names.join(", ")
}

/// A described path.
pub struct Found {
    pub doc: &'static str,
    pub kind: &'static Kind,
    pub required: bool,
}

/// A path that the schema lacks: the part up to the unknown segment, and what may have been meant.
#[derive(Clone, Debug, PartialEq)]
pub struct UnknownPath {
    pub below: String,
    pub segment: String,
    pub suggestion: Option<String>,
    pub available: Vec<&'static str>,
}

/// Splits `a.b[0].c` and `a.b.0.c` alike.
pub fn segments(path: &str) -> Vec<&str> {
    path.split(['.', '['])
        .map(|segment| segment.trim_end_matches(']'))
        .filter(|segment| !segment.is_empty())
        .collect()
}

/// Finds a dotted path; indices of list entries may be left out.
pub fn lookup(root: &'static Kind, path: &str) -> Result<Found, UnknownPath> {
    let mut found = Found {
        doc: "The experiment.",
        kind: root,
        required: false,
    };
    let mut below = Vec::new();
    for segment in segments(path) {
        let is_index = segment.bytes().all(|b| b.is_ascii_digit());
        let kind = match found.kind {
            Kind::Optional(inner) => inner,
            kind => kind,
        };
        if let (Kind::List(inner), true) = (kind, is_index) {
            found.kind = inner;
        } else if let Some(field) = kind.children().into_iter().find(|f| f.name == segment) {
            found = Found {
                doc: field.doc,
                kind: &field.kind,
                required: field.must_be_written(),
            };
        } else if let Some(item) = kind.item(segment) {
            found = Found {
                doc: item.doc,
                kind: &item.kind,
                required: false,
            };
        } else {
            let available: Vec<_> = kind.children().iter().map(|field| field.name).collect();
            return Err(UnknownPath {
                suggestion: suggest(root, &below, segment, &available),
                below: below.join("."),
                segment: segment.into(),
                available,
            });
        }
        below.push(segment);
    }
    Ok(found)
}

/// A field of that very name elsewhere, else a sibling that is spelled alike.
fn suggest(root: &'static Kind, below: &[&str], segment: &str, siblings: &[&'static str]) -> Option<String> {
    path_ending_in(root, segment).or_else(|| {
        let near = nearest(segment, siblings.iter().copied())?;
        Some([below, &[near]].concat().join("."))
    })
}

/// The first path whose last segment is `name`.
pub fn path_ending_in(root: &'static Kind, name: &str) -> Option<String> {
    paths(root)
        .into_iter()
        .find(|path| path.rsplit('.').next() == Some(name))
}

/// Every path of the schema, indices of lists left out, sections before their fields.
pub fn paths(root: &'static Kind) -> Vec<String> {
    fn collect(kind: &'static Kind, below: &str, all: &mut Vec<String>) {
        for field in kind.children() {
            let path = if below.is_empty() {
                field.name.into()
            } else {
                format!("{below}.{}", field.name)
            };
            all.push(path.clone());
            collect(&field.kind, &path, all);
        }
    }
    let mut all = Vec::new();
    collect(root, "", &mut all);
    all
}
