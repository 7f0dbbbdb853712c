//! What earlier versions called fields, events, operations and features: `renamed.txt`, a line each. Readers of scenarios,
//! records and policies go through here, so that what earlier versions wrote is still read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

static TABLE: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let lines = include_str!("renamed.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(" = ")).collect()
});

/// The present name of what earlier versions called `old`; `None` for any other name.
pub fn present(old: &str) -> Option<&'static str> {
    TABLE.get(old).copied()
}

/// `text` with every old name in it replaced, as whole words.
pub fn in_text(text: &str) -> Cow<'_, str> {
    replace(text, present)
}

/// `text` as the first versions wrote it: what a hash over names is taken of, so that it outlasts their renaming.
pub fn as_first_written(text: &str) -> Cow<'_, str> {
    replace(text, |name| {
        TABLE.iter().find_map(|(&old, &new)| (new == name).then_some(old))
    })
}

fn replace(text: &str, with: impl Fn(&str) -> Option<&'static str>) -> Cow<'_, str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut replaced = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(start) = text[at..].find(is_part) {
        let start = at + start;
        let end = text[start..]
            .find(|c| !is_part(c))
            .map_or(text.len(), |length| start + length);
        if let Some(name) = with(&text[start..end]) {
            replaced.push_str(&text[copied..start]);
            replaced.push_str(name);
            copied = end;
        }
        at = end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    replaced.push_str(&text[copied..]);
    Cow::Owned(replaced)
}

#[cfg(test)]
mod tests;
