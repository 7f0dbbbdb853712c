//! Files other than scenarios that are written in the same language: declared, checked and reported alike.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use super::SCENARIO;
use super::catalog::Catalog;
use super::check::check;
use super::paths::{children, join};
use super::problem::{Cursor, Problem, Report, Source, SourceKind};
use super::reader::{self, Document};
use super::tree::{Node, Span, Value};
use crate::schema::{Described, Kind};

/// Declaration in a file, and the place of each value in it.
#[derive(Clone, Debug)]
pub struct Declared<T> {
    /// The written values, with all defaults.
    pub value: T,
    source: Source,
    places: BTreeMap<String, Span>,
}

/// Reads a file of settings.
///
/// # Errors
/// Every problem found, with its position.
pub fn read_declared<T: Described + DeserializeOwned>(
    label: &str,
    text: &str,
    catalog: &Catalog,
) -> Result<Declared<T>, Report> {
    const FILE: usize = 0;
    let source = Source::new(label, text, SourceKind::File);
    let refused = |problems: Vec<Problem>| Report::new(vec![source.clone()], problems);
    let Document { root, noted } = reader::read(text, FILE).map_err(|problem| refused(vec![problem]))?;
    let kind: &'static Kind = const { &T::KIND };
    let checked = check(kind, root, catalog, std::slice::from_ref(&source));
    let mut problems = noted;
    problems.extend(checked.problems);
    let read = checked.clean.filter(|_| problems.is_empty());
    match read.as_ref().map(T::deserialize) {
        Some(Ok(value)) => Ok(Declared {
            value,
            source,
            places: checked.places,
        }),
        Some(Err(error)) => {
            let message = format!("this cannot be read: {error}");
            Err(refused(vec![Problem::error(Span::start_of(FILE), "", message)]))
        }
        None => Err(refused(problems)),
    }
}

/// Returns whether a text writes a field of `T` that no scenario has.
pub fn declares<T: Described>(text: &str) -> bool {
    let kind: &'static Kind = const { &T::KIND };
    let has = |kind: &Kind, name: &str| children(kind).iter().any(|field| field.name == name);
    match reader::read(text, 0).map(|document| document.root.value) {
        Ok(Value::Record(_, fields)) => fields
            .iter()
            .any(|(name, _)| has(kind, &name.text) && !has(&SCENARIO, &name.text)),
        _ => false,
    }
}

impl<T> Declared<T> {
    /// `file:line:column` of the value at a dotted path; of the section around it where the value was left out.
    pub fn place(&self, path: &str) -> String {
        self.source
            .place(Cursor::new(&self.source.text).position(self.span(path).start))
    }

    /// Report of findings about values that are sound in themselves, by their paths.
    pub fn report(&self, findings: Vec<(String, String)>) -> Report {
        let problems = findings
            .into_iter()
            .map(|(path, message)| Problem::error(self.span(&path), &path, message));
        Report::new(vec![self.source.clone()], problems.collect())
    }

    fn span(&self, path: &str) -> Span {
        let outer = |path: &str| path.rfind(['.', '[']).map_or("", |end| &path[..end]).to_owned();
        let mut path = path.to_owned();
        loop {
            if let Some(span) = self.places.get(&path) {
                return *span;
            }
            if path.is_empty() {
                return Span::start_of(0);
            }
            path = outer(&path);
        }
    }
}

/// Every value of a resolved scenario by its dotted path, as it was written; `None` if the text isn't one. A choice stands
/// under its own path by its name, what it holds below.
pub fn written_values(text: &str) -> Option<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    collect_values(&reader::read(text, 0).ok()?.root, String::new(), &mut values);
    Some(values)
}

fn collect_values(node: &Node, path: String, values: &mut BTreeMap<String, String>) {
    match &node.value {
        Value::Record(name, fields) => {
            values.extend(name.as_ref().map(|name| (path.clone(), name.text.clone())));
            for (key, value) in fields {
                collect_values(value, join(&path, &key.text), values);
            }
        }
        Value::Tuple(Some(name), items) if items.len() == 1 && matches!(items[0].value, Value::Record(None, _)) => {
            values.insert(path.clone(), name.text.clone());
            collect_values(&items[0], path, values);
        }
        _ => {
            values.insert(path, node.to_string());
        }
    }
}
