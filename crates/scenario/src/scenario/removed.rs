//! What scenarios of earlier versions could say, since when they cannot, and what stands in its place: `removed.txt`, what
//! to do instead in lines of their own, each above the paths that it answers. A path is a field with all that was below it,
//! or one value of a choice as `path: value`.

/// Since when they are gone: the version that first went without them.
pub(super) const SINCE: &str = "removed in 0.2.0";

const TABLE: &str = include_str!("removed.txt");

/// Every path with what to do instead.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE
        .lines()
        .scan("", |instead, line| {
            let path = line.strip_prefix("    ");
            if path.is_none() {
                *instead = line;
            }
            Some(path.map(|path| (path, *instead)))
        })
        .flatten()
}

/// What to do in place of a field that scenarios have no more; `None` if they never had it.
pub(super) fn field(path: &str) -> Option<&'static str> {
    find(|removed| {
        path.strip_prefix(removed)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// As [`field`], of the value `word` of the choice at `path`.
pub(super) fn value(path: &str, word: &str) -> Option<&'static str> {
    let asked = format!("{path}: {word}");
    find(|removed| removed == asked)
}

fn find(fits: impl Fn(&str) -> bool) -> Option<&'static str> {
    rows().find(|(path, _)| fits(path)).map(|(_, instead)| instead)
}

#[cfg(test)]
mod tests;
