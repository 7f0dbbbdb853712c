//! Dotted paths through the description of the scenario: looked up, listed, suggested.

use super::catalog::Catalog;
use super::problem::{nearest, slip_of};
use crate::schema::{Content, Declared, Field, Kind};

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
    variants.iter().find_map(|variant| match variant.content {
        Content::Items(items) => items.iter().find(|item| item.name == name),
        _ => None,
    })
}

/// A path that no scenario has: the part up to the unknown segment, and what may have been meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", self.message("a scenario", "field "), self.help().map(|help| format!("\nhelp: {help}")).unwrap_or_default())]
pub struct UnknownField {
    /// The section or field in which the segment is missing; empty for the scenario as a whole.
    pub below: String,
    /// The missing segment.
    pub segment: String,
    /// The path that may have been meant.
    pub suggestion: Option<String>,
    /// The segments that are there instead.
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

/// The path of what is called `segment` below `path`; either may be empty.
pub fn join(path: &str, segment: &str) -> String {
    let dot = if path.is_empty() || segment.is_empty() { "" } else { "." };
    [path, dot, segment].concat()
}

/// Finds a dotted path; indices of list entries may be left out.
pub fn lookup(root: &'static Kind, path: &str) -> Result<Field, UnknownField> {
    walk(root, path, false).map(|(found, _)| found)
}

/// As [`lookup`], but through the members of choices as well, e.g. `task.host.cnn`; and the path of the value, which names
/// no members.
pub fn lookup_with_members(root: &'static Kind, path: &str) -> Result<(Field, String), UnknownField> {
    let (found, value) = walk(root, path, true)?;
    Ok((found, value.unwrap_or_else(|| path.into())))
}

/// Declaration of a registered part, for a path through settings and the part's name: the path up to the name,
/// the declaration, and the path below it.
pub fn settings<'a>(
    root: &'static Kind,
    path: &'a str,
    catalog: &'a Catalog,
) -> Option<(&'a str, &'a Declared, &'a str)> {
    let mut ends = path.match_indices('.').map(|(end, _)| end);
    let (end, of) = ends.find_map(|end| match lookup_with_members(root, &path[..end]).ok()?.0.kind {
        Kind::Settings(of) => Some((end, of)),
        _ => None,
    })?;
    let (name, below) = path[end + 1..].split_once('.').unwrap_or((&path[end + 1..], ""));
    let (section, _) = path[..end].rsplit_once('.').unwrap_or(("", ""));
    let fields = children(&lookup_with_members(root, section).ok()?.0.kind);
    let fields: Vec<Field> = fields.into_iter().copied().collect();
    let declared = catalog.settings_of(&fields, of, name)?;
    Some((&path[..end + 1 + name.len()], declared, below))
}

/// The path that is returned is the given one without members, if it has any.
fn walk(root: &'static Kind, path: &str, enters_members: bool) -> Result<(Field, Option<String>), UnknownField> {
    let mut found = Field {
        doc: "The file as a whole.",
        has_default: true,
        ..Field::unnamed(*root)
    };
    let mut below = Vec::new();
    let mut members = 0;
    let mut value = Vec::new();
    for segment in segments(path) {
        let is_index = segment.bytes().all(|b| b.is_ascii_digit());
        let kind = match found.kind {
            Kind::Optional(inner) => *inner,
            kind => kind,
        };
        let fields = children(&kind);
        let member = if enters_members { member(&kind, segment) } else { None };
        let mut is_member = false;
        if let (Kind::List(inner), true) = (kind, is_index) {
            found.kind = *inner;
        } else if let (Some(member), true) = (member, members > 0) {
            (found, is_member) = (member, true);
        } else if let Some(field) = fields.iter().find(|field| field.name == segment) {
            found = **field;
        } else if let Some(item) = named_item(&kind, segment) {
            found = *item;
        } else if let Some(member) = member {
            (found, is_member) = (member, true);
        } else {
            let available: Vec<_> = fields.iter().map(|field| field.name).collect();
            return Err(UnknownField {
                suggestion: suggest(root, &below, segment, path, &available),
                below: below.join("."),
                segment: segment.into(),
                available,
            });
        }
        below.push(segment);
        if is_member {
            members += 1;
        } else {
            value.push(segment);
        }
    }
    Ok((found, (members > 0).then(|| value.join("."))))
}

/// A member of a choice that has content, as if it were a field.
fn member(kind: &Kind, name: &str) -> Option<Field> {
    let Kind::Choice(variants) = kind else {
        return None;
    };
    let variant = variants.iter().find(|variant| variant.name == name)?;
    let kind = match variant.content {
        Content::Nothing => return None,
        Content::Fields(fields) => Kind::Record(fields),
        Content::Items(items) => items.iter().find(|item| item.name.is_empty())?.kind,
    };
    Some(Field {
        doc: variant.doc,
        has_default: true,
        ..Field::unnamed(kind)
    })
}

/// The member of a choice, or of a choice in it, that has a field of this name.
pub fn member_with(kind: &Kind, name: &str) -> Option<&'static str> {
    let has_it = |kind: &Kind| children(kind).iter().any(|field| field.name == name);
    match kind {
        Kind::Optional(inner) | Kind::List(inner) => member_with(inner, name),
        Kind::Choice(variants) => variants.iter().find_map(|variant| {
            let content = member(kind, variant.name)?.kind;
            member_with(&content, name).or_else(|| has_it(&content).then_some(variant.name))
        }),
        _ => None,
    }
}

/// A sibling whose name the segment misspells, otherwise a field elsewhere with that very name or the last name of the path,
/// otherwise a sibling with a similar name.
fn suggest(root: &'static Kind, below: &[&str], segment: &str, path: &str, siblings: &[&str]) -> Option<String> {
    let sibling = |name: &str| join(&below.join("."), name);
    slip_of(segment, siblings.iter().copied())
        .map(sibling)
        .or_else(|| path_ending_in(root, segment))
        .or_else(|| path_ending_in(root, path.rsplit('.').next()?))
        .or_else(|| nearest(segment, siblings.iter().copied()).map(sibling))
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
            let path = join(below, field.name);
            all.push(path.clone());
            collect(&field.kind, &path, all);
        }
    }
    let mut all = Vec::new();
    collect(root, "", &mut all);
    all
}
