//! What scenarios of earlier versions could say, since when they cannot, and what stands in its place.

/// A field, all fields below it, or one value of a choice as `path: value`; the version without it; what to do.
type Removed = (&'static str, &'static str, &'static str);

const REMOVED: &[Removed] = &[];

/// Why the scenario has no such field any more, and what to do; `None` if it never had it.
pub(super) fn field(path: &str) -> Option<(String, String)> {
    find(|removed| {
        path.strip_prefix(removed)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// As [`field`], of the value `word` of the choice at `path`.
pub(super) fn value(path: &str, word: &str) -> Option<(String, String)> {
    let asked = format!("{path}: {word}");
    find(|removed| removed == asked)
}

fn find(fits: impl Fn(&str) -> bool) -> Option<(String, String)> {
    let (_, since, instead) = REMOVED.iter().find(|(removed, ..)| fits(removed))?;
    Some((format!("removed in {since}"), (*instead).into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{SCENARIO, paths};

    /// A path that is valid again must not be answered by what was.
    #[test]
    fn nothing_in_the_table_is_a_field_of_today() {
        for (removed, ..) in REMOVED {
            if !removed.contains(':') {
                assert!(paths::lookup(&SCENARIO, removed).is_err(), "{removed}");
            }
        }
    }
}
