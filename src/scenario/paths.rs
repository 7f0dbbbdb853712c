//! Dotted paths through the description of the scenario: looked up, listed, suggested.

use super::problem::nearest;
use crate::schema::{Content, Field, Kind};

/// The fields that can be written below a path of this kind.
pub fn children(kind: &Kind) -> Vec<&'static Field> {
    match kind {
        Kind::Optional(inner) | Kind::List(inner) => children(inner),
        Kind::Record(fields) => fields.iter().collect(),
        Kind::Choice(variants) => {
            let mut all: Vec<&'static Field> = Vec::new();
            for variant in variants.iter() {
                let below = match variant.content {
                    Content::Nothing => Vec::new(),
                    Content::Fields(fields) => fields.iter().collect(),
                    Content::Items(items) => items
                        .iter()
                        .filter(|item| item.name.is_empty())
                        .flat_map(|item| children(&item.kind))
                        .collect(),
                };
                for field in below {
                    if all.iter().all(|known| known.name != field.name) {
                        all.push(field);
                    }
                }
            }
            all
        }
        _ => Vec::new(),
    }
}

/// A named item of a choice's members, e.g. `task.preset`.
fn named_item(kind: &Kind, name: &str) -> Option<&'static Field> {
    let Kind::Choice(variants) = kind else {
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

/// A path that no scenario has: the part up to the unknown segment, and what may have been meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", self.message("a scenario", "field "), self.help().map(|help| format!("\nhelp: {help}")).unwrap_or_default())]
pub struct UnknownField {
    /// The section or field that lacks the segment; empty for the scenario as a whole.
    pub below: String,
    /// What it lacks.
    pub segment: String,
    /// The path that may have been meant.
    pub suggestion: Option<String>,
    /// What it has instead.
    pub available: Vec<&'static str>,
}

impl UnknownField {
    /// `whole`: what to call the scenario; `noun`: stands before the unknown segment.
    pub(super) fn message(&self, whole: &str, noun: &str) -> String {
        let place = match self.below.as_str() {
            "" => whole.into(),
            below => format!("`{below}`"),
        };
        if self.available.is_empty() {
            return format!("{place} has no fields");
        }
        let names = self.available.join(", ");
        format!("{place} has no {noun}`{}`; valid: {names}", self.segment)
    }

    pub(super) fn help(&self) -> Option<String> {
        let path = self.suggestion.as_ref()?;
        Some(format!("did you mean `{path}`?"))
    }
}

/// Splits `a.b[0].c` and `a.b.0.c` alike.
pub fn segments(path: &str) -> Vec<&str> {
    path.split(['.', '['])
        .map(|segment| segment.trim_end_matches(']'))
        .filter(|segment| !segment.is_empty())
        .collect()
}

/// Finds a dotted path; indices of list entries may be left out.
pub fn lookup(root: &'static Kind, path: &str) -> Result<Field, UnknownField> {
    let mut found = Field {
        doc: "The experiment.",
        has_default: true,
        ..Field::unnamed(*root)
    };
    let mut below = Vec::new();
    for segment in segments(path) {
        let is_index = segment.bytes().all(|b| b.is_ascii_digit());
        let kind = match found.kind {
            Kind::Optional(inner) => *inner,
            kind => kind,
        };
        let fields = children(&kind);
        if let (Kind::List(inner), true) = (kind, is_index) {
            found.kind = *inner;
        } else if let Some(field) = fields.iter().find(|field| field.name == segment) {
            found = **field;
        } else if let Some(item) = named_item(&kind, segment) {
            found = *item;
        } else {
            let available: Vec<_> = fields.iter().map(|field| field.name).collect();
            return Err(UnknownField {
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

/// Every path of the scenario, indices of lists left out, sections before their fields.
pub fn paths(root: &'static Kind) -> Vec<String> {
    fn collect(kind: &'static Kind, below: &str, all: &mut Vec<String>) {
        for field in children(kind) {
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
