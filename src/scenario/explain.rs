//! What one field of a scenario means: the text of `simic-engine explain`.

use std::fmt::Write;

use super::Scenario;
use super::catalog::Catalog;
use super::check::check;
use super::fields::SCENARIO;
use super::reader;
use super::resolve::resolved_ron;
use super::schema::{self, Content, Field, Kind};

/// A path that no scenario has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default())]
pub struct UnknownField {
    pub message: String,
    pub help: Option<String>,
}

/// Every dotted path that can be explained or set.
pub fn field_paths() -> Vec<String> {
    schema::paths(&SCENARIO)
}

/// Doc, type, valid values, default and, for a section, its fields. An empty path lists the sections.
///
/// # Errors
/// An unknown path, with the nearest one.
pub fn explain(path: &str, catalog: &Catalog) -> Result<String, UnknownField> {
    let found = schema::lookup(&SCENARIO, path).map_err(|unknown| {
        let place = if unknown.below.is_empty() {
            "a scenario".into()
        } else {
            format!("`{}`", unknown.below)
        };
        let fields = if unknown.available.is_empty() {
            format!("{place} has no fields")
        } else {
            let names = unknown.available.join(", ");
            format!("{place} has no field `{}`; valid: {names}", unknown.segment)
        };
        UnknownField {
            message: fields,
            help: unknown.suggestion.map(|path| format!("did you mean `{path}`?")),
        }
    })?;
    let title = if path.is_empty() { "scenario" } else { path };
    let mut text = format!("{title}\n    {}\n\n", found.doc);
    line(&mut text, "type", &found.kind.noun());
    let variants = match found.kind {
        Kind::Optional(Kind::Choice(variants)) | Kind::Choice(variants) => Some(variants),
        _ => None,
    };
    if let Some(variants) = variants {
        for (index, variant) in variants.iter().enumerate() {
            let label = if index == 0 { "valid" } else { "" };
            let form = match variant.content {
                Content::Nothing => variant.name.into(),
                _ => format!("{}(..)", variant.name),
            };
            line(&mut text, label, &format!("{form:<16} {}", variant.doc));
        }
    } else if let Some(valid) = found.kind.valid(catalog) {
        line(&mut text, "valid", &valid);
    }
    let default = match default_of(path, catalog) {
        Some(default) => default,
        None if found.required => "none: it must be written".into(),
        None => "None".into(),
    };
    if found.kind.children().is_empty() || variants.is_some() {
        line(&mut text, "default", &default);
    }
    write_fields(&mut text, path, &found.kind.children(), catalog);
    Ok(text)
}

fn line(text: &mut String, label: &str, value: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "    {label:<8} {value}");
}

fn write_fields(text: &mut String, path: &str, fields: &[&'static Field], catalog: &Catalog) {
    if fields.is_empty() {
        return;
    }
    let width = fields.iter().map(|field| field.name.len()).max().unwrap_or(0);
    text.push_str("\n    fields\n");
    for field in fields {
        let below = if path.is_empty() {
            field.name.to_string()
        } else {
            format!("{path}.{}", field.name)
        };
        let default = match default_of(&below, catalog) {
            Some(default) if field.kind.children().is_empty() => format!(" [{default}]"),
            _ => String::new(),
        };
        let _ = writeln!(text, "      {:<width$}  {}{default}", field.name, field.doc);
    }
}

/// The default as RON, where the default scenario has the field.
fn default_of(path: &str, catalog: &Catalog) -> Option<String> {
    let text = resolved_ron(&Scenario::default()).ok()?;
    let root = reader::read(&text, 0).ok()?.root;
    let places = check(&SCENARIO, &root, catalog, &[&text], &|_| false).places;
    let span = places.get(path)?;
    let node = reader::read(text.get(span.start..span.end)?, 0).ok()?.root;
    Some(node.to_string())
}
