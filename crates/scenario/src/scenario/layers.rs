//! Lays the sources of a scenario over each other: defaults < preset < file < environment < command line.

use super::paths;
use super::problem::{Problem, SourceKind};
use super::tree::{Name, Node, Value};
use crate::schema::{Content, Field, Kind};

/// One field set from outside the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Dotted path, e.g. `run.rounds`.
    pub path: String,
    /// RON; text may stand without quotes.
    pub value: String,
    /// As the user typed it, e.g. `--rounds 3`: error messages begin with it.
    pub shown: String,
    /// Whether a flag or an environment variable sets it.
    pub kind: SourceKind,
}

impl Override {
    /// `--set path=value`.
    ///
    /// # Errors
    /// Text without `=` or without a path.
    pub fn parse(assignment: &str) -> Result<Self, String> {
        let (path, value) = assignment
            .split_once('=')
            .filter(|(path, _)| !path.trim().is_empty())
            .ok_or_else(|| format!("--set {assignment}: expected path=value, e.g. run.rounds=3"))?;
        let shown = format!("--set {assignment}");
        Ok(Self::argument(shown, path.trim(), value.trim().into()))
    }

    /// The value of a flag of its own.
    pub fn flag(flag: &str, path: &str, value: impl ToString) -> Self {
        let value = value.to_string();
        Self::argument(format!("{flag} {value}"), path, value)
    }

    /// What an argument sets that is `shown` as the user typed it.
    pub fn argument(shown: String, path: &str, value: String) -> Self {
        Self {
            path: path.into(),
            value,
            shown,
            kind: SourceKind::Argument,
        }
    }

    /// An environment variable that sets a field.
    pub fn environment(variable: &str, path: &str, value: String) -> Self {
        Self {
            path: path.into(),
            shown: format!("{variable}={value}"),
            value,
            kind: SourceKind::Environment,
        }
    }

    /// Whether both set the same field, or one a part of the other's.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (mine, theirs) = (paths::segments(&self.path), paths::segments(&other.path));
        let shared = mine.len().min(theirs.len());
        mine[..shared] == theirs[..shared]
    }

    /// Whether the value is text as it stands: what a text field takes without quotes.
    pub(super) fn is_plain_text(&self, root: &'static Kind) -> bool {
        let kind = match paths::lookup(root, &self.path) {
            Ok(found) => found.kind,
            Err(_) => return false,
        };
        let text = match kind {
            Kind::Optional(Kind::Text(_)) => self.value != "None",
            kind => matches!(kind, Kind::Text(_)),
        };
        text && !self.value.starts_with('"')
    }
}

/// Puts `value` at `path` of `root`, a tree of all defaults.
pub fn put(kind: &'static Kind, root: &mut Node, path: &str, value: Node) -> Result<(), Problem> {
    let span = value.span;
    if let Err(unknown) = paths::lookup(kind, path) {
        let message = unknown.message("the scenario", "");
        return Err(Problem::error(span, path, message).with_help(unknown.help()));
    }
    let segments = paths::segments(path);
    descend(kind, root, &segments, value).map_err(|message| Problem::error(span, path, message))
}

fn descend(kind: &'static Kind, node: &mut Node, segments: &[&str], value: Node) -> Result<(), String> {
    let Some((&segment, rest)) = segments.split_first() else {
        node.overlay(value);
        return Ok(());
    };
    match kind {
        Kind::Optional(inner) => {
            if node.is_none() {
                *node = Node::new(Value::Tuple(None, Vec::new()), value.span);
            }
            descend(inner, node, segments, value)
        }
        Kind::List(inner) => {
            let index = segment.parse::<usize>();
            let Value::List(items) = &mut node.value else {
                return Err(format!("there is no list yet that `{segment}` could be an entry of"));
            };
            let count = items.len();
            match index.ok().and_then(|index| items.get_mut(index)) {
                Some(item) => descend(inner, item, rest, value),
                None => Err(format!(
                    "the list has {count} entries, counted from 0; `{segment}` is none"
                )),
            }
        }
        Kind::Record(fields) => match fields.iter().find(|field| field.name == segment) {
            Some(field) => descend_into_field(field, node, rest, value),
            None => Err(format!("`{segment}` does not belong to the choice made here")),
        },
        Kind::Choice(variants) => {
            let chosen = node.choice().unwrap_or_default().to_string();
            // What another choice is told by makes that choice: `task.preset` of a task that is written out.
            let is_told_by = |content| matches!(content, Content::Items([first, ..]) if first.name == segment);
            if chosen != segment
                && rest.is_empty()
                && variants.iter().any(|v| v.name == segment && is_told_by(v.content))
            {
                let (text, span) = (segment.into(), value.span);
                *node = Node::new(Value::Tuple(Some(Name { text, span }), vec![value]), span);
                return Ok(());
            }
            let variant = variants.iter().find(|variant| variant.name == chosen);
            match variant.map(|variant| &variant.content) {
                Some(Content::Fields(fields)) => {
                    let field = fields.iter().find(|field| field.name == segment);
                    let field = field.ok_or_else(|| format!("`{chosen}` has no `{segment}`"))?;
                    descend_into_field(field, node, rest, value)
                }
                Some(Content::Items(items)) => {
                    let position = items.iter().position(|item| item.name == segment);
                    let (index, rest) = match position {
                        Some(index) => (index, rest),
                        None => {
                            let unnamed = items.iter().position(|item| item.name.is_empty());
                            let index = unnamed.ok_or_else(|| format!("`{chosen}` has no `{segment}`"))?;
                            (index, segments)
                        }
                    };
                    let span = value.span;
                    let Value::Tuple(_, given) = &mut node.value else {
                        return Err(format!("`{chosen}` has no content yet; set the whole value"));
                    };
                    while given.len() <= index {
                        given.push(Node::new(Value::Tuple(None, Vec::new()), span));
                    }
                    descend(&items[index].kind, &mut given[index], rest, value)
                }
                _ => Err(format!(
                    "no choice is made here yet that has `{segment}`; set the whole value"
                )),
            }
        }
        _ => Err("this value has no fields".into()),
    }
}

/// Goes on in `field` of a record, which is made if it is not there.
fn descend_into_field(field: &'static Field, node: &mut Node, rest: &[&str], value: Node) -> Result<(), String> {
    let span = value.span;
    let placeholder = Value::Tuple(None, Vec::new());
    let (name, mut fields) = match std::mem::replace(&mut node.value, placeholder.clone()) {
        Value::Record(name, fields) => (name, fields),
        Value::Tuple(name, items) if items.is_empty() => (name, Vec::new()),
        wrong => {
            // The check reports what stands here instead of a section.
            node.value = wrong;
            return Ok(());
        }
    };
    let result = match fields.iter_mut().find(|(key, _)| key.text == field.name) {
        Some((_, child)) => descend(&field.kind, child, rest, value),
        None => {
            let key = Name {
                text: field.name.into(),
                span,
            };
            let mut child = Node::new(placeholder, span);
            let result = descend(&field.kind, &mut child, rest, value);
            fields.push((key, child));
            result
        }
    };
    node.value = Value::Record(name, fields);
    result
}
