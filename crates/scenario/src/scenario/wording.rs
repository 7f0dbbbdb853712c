//! Valid values, in the words of messages and of `simic-engine explain`.

use super::catalog::{Catalog, Entry};
use super::tree::listed;
use crate::schema::{Content, Kind, Names, Subject, Variant};

/// The valid names, where they can be listed; they match in either case.
pub fn choices(names: Names, catalog: &Catalog) -> Option<Vec<String>> {
    let of_entries = |entries: &[Entry]| entries.iter().map(|entry| entry.name.clone()).collect();
    match names {
        Names::Free | Names::Form { .. } => None,
        Names::Members { list, .. } => Some(list()),
        Names::Registered(Subject::Tasks) => Some(catalog.tasks.iter().map(|task| task.spec.name.clone()).collect()),
        Names::Registered(Subject::Data) => Some(of_entries(&catalog.data)),
        Names::Registered(Subject::Hosts) => Some(of_entries(&catalog.hosts.entries())),
        Names::Registered(Subject::Blueprints) => Some(catalog.blueprints.iter().map(|b| b.name.clone()).collect()),
        Names::Registered(Subject::Controllers) => Some(of_entries(&catalog.controllers)),
        Names::Registered(Subject::Networks) => Some(of_entries(&catalog.nets)),
        Names::Registered(Subject::Rewards) => Some(of_entries(&catalog.rewards)),
    }
}

/// The type in words, e.g. `a whole number`.
pub fn noun(kind: &Kind) -> String {
    match kind {
        Kind::Bool => "true or false".into(),
        Kind::Integer { .. } => "a whole number".into(),
        Kind::Float(_) => "a number".into(),
        Kind::Text(Names::Free) => "text in quotes".into(),
        Kind::Text(names) => format!("a {} in quotes", names.noun()),
        Kind::Optional(inner) => format!("None or {}", noun(inner)),
        Kind::List(inner) => format!("a list [..] of {}", noun(inner)),
        Kind::Record(_) => "a section (key: value, ..)".into(),
        Kind::Choice(_) => "a choice".into(),
        Kind::Settings(of) => format!("the settings (key: value, ..) of what `{of}` names"),
        Kind::Written => "a value".into(),
    }
}

/// Valid values, in words; `None` where the type says it all.
pub fn valid(kind: &Kind, catalog: &Catalog) -> Option<String> {
    match *kind {
        Kind::Bool | Kind::Record(_) | Kind::Settings(_) | Kind::Written | Kind::Text(Names::Free) => None,
        Kind::Integer { min, max } => Some(integer_range(min, max)),
        Kind::Float(range) => Some(range.to_string()),
        Kind::Text(Names::Form { form, .. }) => Some(form.into()),
        Kind::Text(names) => choices(names, catalog).map(|choices| match choices.is_empty() {
            true => format!("none, as no {} is registered", names.noun()),
            false => choices.join(", "),
        }),
        Kind::Optional(inner) => valid(inner, catalog).map(|valid| format!("None; {valid}")),
        Kind::List(inner) => valid(inner, catalog).map(|valid| format!("each {valid}")),
        Kind::Choice(variants) => Some(variant_list(variants)),
    }
}

/// `1..=4096`, or `at least 1` where the upper end is only the type's.
pub fn integer_range(min: i128, max: i128) -> String {
    if max >= u32::MAX.into() {
        format!("at least {min}")
    } else {
        format!("{min}..={max}")
    }
}

/// `name`, or `name(..)` where it takes more.
pub fn variant_form(variant: &Variant) -> String {
    match variant.content {
        Content::Nothing => variant.name.into(),
        _ => format!("{}(..)", variant.name),
    }
}

/// The members of a choice, separated by commas.
pub fn variant_list(variants: &[Variant]) -> String {
    listed(variants.iter().map(variant_form))
}
