//! The fields of a RON file as this program writes it, one field per line: enough to compare two of them, written by any version
//! or plugin, without knowing their types.

use std::collections::BTreeMap;

/// A line that holds a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Path: names and indices of its parents, with dots between them, and its own name.
    pub path: String,
    /// The value as written.
    pub value: String,
    /// Line, from 1.
    pub line: usize,
}

/// The fields of a text, in order.
pub(super) fn outline(text: &str) -> Vec<Field> {
    let mut fields = Vec::new();
    // The name of every open parent, and the number of its members without a name so far.
    let mut open: Vec<(String, usize)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if line.starts_with([')', ']', '}']) {
            open.pop();
            continue;
        }
        let (name, value) = named(line).unwrap_or_else(|| (member(&mut open), line));
        if value.ends_with(['(', '[', '{']) {
            open.push((name, 0));
            continue;
        }
        let names = open.iter().map(|(name, _)| name.as_str()).chain([name.as_str()]);
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        fields.push(Field {
            path: names.join("."),
            value: value.trim_end_matches(',').to_owned(),
            line: index + 1,
        });
    }
    fields
}

/// `name: value`, or a key of a map.
fn named(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.split_once(": ")?;
    let is_word = |text: &str| {
        text.chars()
            .all(|character| character.is_alphanumeric() || character == '_')
    };
    let key = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    (is_word(name) || key.is_some()).then(|| (key.unwrap_or(name).to_owned(), value))
}

/// The name of a member without one: its index in its parent, or nothing if it is the whole.
fn member(open: &mut [(String, usize)]) -> String {
    let Some((_, members)) = open.last_mut() else {
        return String::new();
    };
    *members += 1;
    (*members - 1).to_string()
}

/// Paths of the fields in which two texts differ, with both fields: in the order of the first, then those that only the second has.
pub(super) fn differing(left: &str, right: &str) -> Vec<(String, [Option<Field>; 2])> {
    let (left, right) = (outline(left), outline(right));
    let by_path = |fields: &[Field]| -> BTreeMap<String, Field> {
        let fields = fields.iter().map(|field| (field.path.clone(), field.clone()));
        fields.collect()
    };
    let (lefts, mut rights) = (by_path(&left), by_path(&right));
    let mut pairs = Vec::new();
    for field in left {
        let other = rights.remove(&field.path);
        if other.as_ref().map(|other| &other.value) != Some(&field.value) {
            pairs.push((field.path.clone(), [Some(field), other]));
        }
    }
    let added = right.into_iter().filter(|field| !lefts.contains_key(&field.path));
    pairs.extend(added.map(|field| (field.path.clone(), [None, Some(field)])));
    pairs
}

#[cfg(test)]
mod tests;
