//! Meaning of one field of a scenario: the text of `simic-engine explain`.

use std::fmt;

use serde::Serialize;

use super::SCENARIO;
use super::catalog::Catalog;
use super::check::check;
use super::parts::spelled_path;
use super::paths::{self, UnknownField, children, join};
use super::problem::{Source, SourceKind};
use super::reader;
use super::tree::Node;
use super::wording;
use crate::files::resolved_ron;
use crate::schema::{Described, Field, Kind, Variant};

/// Every dotted path that such a file may say: of a [`Scenario`](super::Scenario), those that can be explained or set.
pub fn field_paths<T: Described>() -> Vec<String> {
    paths::paths(const { &T::KIND })
}

/// Description of a field or section. Its `Display` is the text that the user reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Empty for the scenario as a whole.
    pub path: String,
    /// Its meaning.
    pub doc: String,
    /// In words, e.g. `a whole number`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Unit of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Valid values, in words, where the type does not say it all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid: Option<String>,
    /// The members of a choice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
    /// As RON; absent for sections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The fields below it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<ExplainedField>,
}

/// One member of a choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Member {
    /// `name`, or `name(..)` where it takes more.
    pub form: String,
    /// Meaning of this choice.
    pub doc: String,
}

/// A field of a section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExplainedField {
    /// The last segment of its path.
    pub name: String,
    /// Its meaning.
    pub doc: String,
    /// Unit of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// As RON; absent for sections and for what must be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// Doc, type, valid values, default and, for a section, its fields; an empty path lists the sections. The settings of a
/// registered part stand below its name, as in `policy.controller_settings.NAME`. Of a
/// [`Scenario`](super::Scenario), or of another file in its language, whose `name` then stands before its paths.
///
/// # Errors
/// An unknown path, with the nearest one.
pub fn explain<T>(name: &str, path: &str, catalog: &Catalog) -> Result<Explanation, UnknownField>
where
    T: Described + Default + Serialize,
{
    let whole = |path: &str| format!("{name}.{path}").trim_matches('.').to_owned();
    let root = const { &T::KIND };
    let spelled = spelled_path(root, path);
    if let Some((place, declared, below)) = paths::settings(root, spelled.as_deref().unwrap_or(path), catalog) {
        let defaults = reader::read(&declared.defaults, 0).ok().map(|document| document.root);
        let default_of = |path: &str| {
            let keys = path.split('.').filter(|key| !key.is_empty());
            keys.fold(defaults.as_ref(), |node, key| node?.field(key))
                .map(Node::to_string)
        };
        let mut found = paths::lookup(declared.kind, below).map_err(|unknown| UnknownField {
            below: [&whole(place), unknown.below.as_str()]
                .join(".")
                .trim_matches('.')
                .into(),
            suggestion: None,
            ..unknown
        })?;
        if below.is_empty() {
            found.doc = "Settings of the part.";
        }
        return Ok(of_field(whole(path), below, found, catalog, &default_of));
    }
    let (found, value) = paths::lookup_with_members(const { &T::KIND }, path).map_err(|unknown| UnknownField {
        below: whole(&unknown.below),
        suggestion: unknown.suggestion.as_deref().map(whole),
        ..unknown
    })?;
    Ok(of_field(whole(path), &value, found, catalog, &|path| {
        default_of::<T>(path, catalog)
    }))
}

/// `value`: the path by which `default_of` knows the field.
fn of_field(
    path: String,
    value: &str,
    found: Field,
    catalog: &Catalog,
    default_of: &dyn Fn(&str) -> Option<String>,
) -> Explanation {
    let variants = match &found.kind {
        Kind::Optional(Kind::Choice(variants)) | Kind::Choice(variants) => Some(*variants),
        _ => None,
    };
    let children = children(&found.kind);
    let default = default_of(value).or_else(|| match found.kind {
        _ if found.must_be_written() => Some("none: it must be written".into()),
        Kind::Optional(_) => Some("None".into()),
        // Of a member that is not the default one; the page of all fields has it.
        _ => None,
    });
    let is_section = !children.is_empty() && variants.is_none();
    Explanation {
        path,
        doc: found.doc.into(),
        kind: wording::noun(&found.kind),
        unit: found.unit.map(String::from),
        valid: match variants {
            Some(_) => None,
            None => wording::valid(&found.kind, catalog),
        },
        members: variants.unwrap_or_default().iter().map(member).collect(),
        default: default.filter(|_| !is_section),
        fields: children
            .iter()
            .map(|field| explained(value, field, default_of))
            .collect(),
    }
}

/// Values that may follow `--set PATH=`, where they can be listed: the words that a shell completes.
pub fn field_values(path: &str, catalog: &Catalog) -> Vec<String> {
    let found = paths::lookup(&SCENARIO, path);
    found.map_or_else(|_| Vec::new(), |found| words(&found.kind, catalog))
}

fn words(kind: &Kind, catalog: &Catalog) -> Vec<String> {
    match *kind {
        Kind::Bool => ["true", "false"].map(String::from).into(),
        Kind::Text(names) => wording::choices(names, catalog).unwrap_or_default(),
        Kind::Choice(variants) => {
            let forms = variants.iter().map(wording::variant_form);
            forms.map(|form| form.trim_end_matches("..)").into()).collect()
        }
        Kind::Optional(inner) => [vec!["None".into()], words(inner, catalog)].concat(),
        Kind::List(inner) => words(inner, catalog).iter().map(|word| format!("[{word}")).collect(),
        _ => Vec::new(),
    }
}

fn member(variant: &Variant) -> Member {
    Member {
        form: wording::variant_form(variant),
        doc: variant.doc.into(),
    }
}

fn explained(path: &str, field: &Field, default_of: &dyn Fn(&str) -> Option<String>) -> ExplainedField {
    let is_leaf = children(&field.kind).is_empty();
    ExplainedField {
        name: field.name.into(),
        doc: field.doc.into(),
        unit: field.unit.map(String::from),
        default: is_leaf.then(|| default_of(&join(path, field.name))).flatten(),
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = if self.path.is_empty() { "scenario" } else { &self.path };
        writeln!(f, "{title}\n    {}\n", self.doc)?;
        line(f, "type", &self.kind)?;
        line_if_any(f, "unit", self.unit.as_ref())?;
        for (index, member) in self.members.iter().enumerate() {
            let label = if index == 0 { "valid" } else { "" };
            line(f, label, &format!("{:<16} {}", member.form, member.doc))?;
        }
        line_if_any(f, "valid", self.valid.as_ref())?;
        line_if_any(f, "default", self.default.as_ref())?;
        if self.fields.is_empty() {
            return Ok(());
        }
        f.write_str("\n    fields\n")?;
        let width = self.fields.iter().map(|field| field.name.len()).max().unwrap_or(0);
        for field in &self.fields {
            let ExplainedField { name, doc, .. } = field;
            let value: Vec<&str> = [&field.default, &field.unit]
                .into_iter()
                .flatten()
                .map(String::as_str)
                .collect();
            let value = match value.join(" ") {
                none if none.is_empty() => none,
                value => format!(" [{value}]"),
            };
            writeln!(f, "      {name:<width$}  {doc}{value}")?;
        }
        Ok(())
    }
}

fn line_if_any(f: &mut fmt::Formatter<'_>, label: &str, value: Option<&String>) -> fmt::Result {
    value.map_or(Ok(()), |value| line(f, label, value))
}

fn line(f: &mut fmt::Formatter<'_>, label: &str, value: &str) -> fmt::Result {
    writeln!(f, "    {label:<8} {value}")
}

/// The default as RON, where the default file has the field.
fn default_of<T: Described + Default + Serialize>(path: &str, catalog: &Catalog) -> Option<String> {
    let text = resolved_ron(&T::default()).ok()?;
    let root = reader::read(&text, 0).ok()?.root;
    let source = Source::new("defaults", &text, SourceKind::Defaults);
    let places = check(const { &T::KIND }, root, catalog, &[source]).places;
    let span = places.get(path)?;
    let mut node = reader::read(text.get(span.start..span.end)?, 0).ok()?.root;
    // A row of `None` says nothing of a choice.
    node.drop_none();
    Some(node.to_string())
}
