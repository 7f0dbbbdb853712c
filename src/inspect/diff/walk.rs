//! Two JSON values, side by side.

use std::collections::BTreeSet;

use serde_json::Value;

/// Shows `take` the path of every field in which two values differ, with what each says; those of an object by name, those
/// of a list by index. It says whether it wants more.
pub(super) fn differing<'a>(
    path: &str,
    left: Option<&'a Value>,
    right: Option<&'a Value>,
    take: &mut impl FnMut(&str, Option<&'a Value>, Option<&'a Value>) -> bool,
) -> bool {
    if left == right {
        return true;
    }
    match (left, right) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let join = |name: &str| match path {
                "" => name.to_owned(),
                path => format!("{path}.{name}"),
            };
            let mut names = names.into_iter();
            names.all(|name| differing(&join(name), one.get(name), other.get(name), take))
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            let mut indices = 0..one.len().max(other.len());
            indices.all(|index| differing(&format!("{path}[{index}]"), one.get(index), other.get(index), take))
        }
        _ => take(path, left, right),
    }
}
