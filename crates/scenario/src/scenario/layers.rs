//! Lays the sources of a scenario over each other: defaults < preset < what the data settle < file < command line.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::catalog::Catalog;
use super::host::HostChoice;
use super::parts::{Guest, Holder, takes_part};
use super::paths::{self, UnknownField};
use super::presets::OWN_IMAGES;
use super::problem::Problem;
use super::task::{Normalise, TaskOverrides};
use super::tree::{Name, Node, Value};
use crate::growth::SlotId;
use crate::schema::{Content, Field, Kind};

/// One field set from outside the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Dotted path, e.g. `run.rounds`.
    pub path: String,
    /// RON; text may be without quotes.
    pub value: String,
    /// As the user typed it, e.g. `--rounds 3`: error messages begin with it.
    pub shown: String,
    /// It replaces what others set, where these may not set the same twice.
    pub is_above: bool,
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

    /// Override by an argument; it is `shown` as the user typed it.
    pub fn argument(shown: String, path: &str, value: String) -> Self {
        Self {
            path: path.into(),
            value,
            shown,
            is_above: false,
        }
    }

    /// Returns whether both set the same field, or one a part of the other's.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (mine, theirs) = (paths::segments(&self.path), paths::segments(&other.path));
        let shared = mine.len().min(theirs.len());
        mine[..shared] == theirs[..shared]
    }

    /// Returns whether the value is plain text, which a text field takes without quotes.
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

/// Puts `value` at `path` of `root`, a tree of all defaults; below the settings of a registered part, what the part declares is a
/// path as well.
pub fn put(kind: &'static Kind, root: &mut Node, path: &str, value: Node, catalog: &Catalog) -> Result<(), Problem> {
    let span = value.span;
    let refuse = |unknown: &UnknownField| {
        Problem::error(span, path, unknown.message("the scenario", "")).with_help(unknown.help())
    };
    let unknown = paths::lookup(kind, path).err();
    if let Some(unknown) = unknown.as_ref().filter(|unknown| !takes_part(kind, &unknown.below)) {
        return Err(refuse(unknown));
    }
    let put = descend(kind, root, &paths::segments(path), value, catalog);
    put.map_err(|miss| match &unknown {
        Some(unknown) if !miss.is_of_part && !unknown.available.is_empty() => refuse(unknown),
        _ => Problem::error(span, path, miss.message).with_help(miss.help),
    })
}

/// The reason why nothing can be put at a path.
struct Miss {
    message: String,
    help: Option<String>,
    /// The part that is chosen has no such setting.
    is_of_part: bool,
}

impl From<String> for Miss {
    fn from(message: String) -> Self {
        let (help, is_of_part) = (None, false);
        Self {
            message,
            help,
            is_of_part,
        }
    }
}

fn descend(
    kind: &'static Kind,
    node: &mut Node,
    segments: &[&str],
    value: Node,
    catalog: &Catalog,
) -> Result<(), Miss> {
    let Some((&segment, rest)) = segments.split_first() else {
        node.overlay(value);
        return Ok(());
    };
    match kind {
        Kind::Optional(inner) => {
            if node.is_none() {
                *node = Node::nothing(value.span);
            }
            descend(inner, node, segments, value, catalog)
        }
        Kind::List(inner) => {
            let index = segment.parse::<usize>();
            let Value::List(items) = &mut node.value else {
                return Err(format!("there is no list yet, so there is no entry `{segment}`").into());
            };
            let count = items.len();
            match index.ok().and_then(|index| items.get_mut(index)) {
                Some(item) => descend(inner, item, rest, value, catalog),
                None => Err(format!("there is no entry `{segment}`; the list has {count}, counted from 0").into()),
            }
        }
        Kind::Record(fields) => match fields.iter().find(|field| field.name == segment) {
            Some(field) => descend_into_field(fields, field, node, rest, value, catalog),
            None => Err(format!("`{segment}` does not belong to the choice made here").into()),
        },
        Kind::Choice(variants) => {
            if let Some(part) = Guest::of(variants, node).and_then(|guest| guest.spelled_out(catalog)) {
                *node = part;
            }
            let chosen = node.choice().unwrap_or_default().to_string();
            // A path of another choice makes that choice: `task.preset` of a task that is written out.
            let is_named_by = |content| matches!(content, Content::Items([first, ..]) if first.name == segment);
            if chosen != segment
                && rest.is_empty()
                && variants.iter().any(|v| v.name == segment && is_named_by(v.content))
            {
                let span = value.span;
                *node = Node::new(Value::Tuple(Some(Name::new(segment, span)), vec![value]), span);
                return Ok(());
            }
            let variant = variants.iter().find(|variant| variant.name == chosen);
            match variant.map(|variant| &variant.content) {
                Some(Content::Fields(fields)) => {
                    let named = fields.iter().find(|field| field.name == segment);
                    // What a part declares is set like what any other member has.
                    let set = || Some((Holder::of(variants)?.settings, segments));
                    let (field, rest) = named
                        .map(|field| (field, rest))
                        .or_else(set)
                        .ok_or_else(|| format!("`{chosen}` has no `{segment}`"))?;
                    descend_into_field(fields, field, node, rest, value, catalog)
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
                        return Err(format!("`{chosen}` has no content yet; set the whole value").into());
                    };
                    while given.len() <= index {
                        given.push(Node::nothing(span));
                    }
                    descend(&items[index].kind, &mut given[index], rest, value, catalog)
                }
                _ => Err(format!("no choice with `{segment}` is made here yet; set the whole value").into()),
            }
        }
        _ => Err(String::from("this value has no fields").into()),
    }
}

/// Descends into `field` of a record, and creates it if it is missing.
fn descend_into_field(
    fields: &'static [Field],
    field: &'static Field,
    node: &mut Node,
    rest: &[&str],
    value: Node,
    catalog: &Catalog,
) -> Result<(), Miss> {
    let span = value.span;
    let kind = match field.kind {
        Kind::Settings(of) if !rest.is_empty() => settings_kind(fields, of, node, rest, catalog)?,
        _ => &field.kind,
    };
    // The check reports a value in the place of a section.
    let Some(fields) = node.fields_mut() else { return Ok(()) };
    if fields.iter().all(|(key, _)| key.text != field.name) {
        fields.push((Name::new(field.name, span), Node::nothing(span)));
    }
    match fields.iter_mut().find(|(key, _)| key.text == field.name) {
        Some((_, child)) => descend(kind, child, rest, value, catalog),
        None => Ok(()),
    }
}

/// Declaration of the part that the field `of` of a record names, for a path that it has.
fn settings_kind(
    fields: &'static [Field],
    of: &str,
    record: &Node,
    path: &[&str],
    catalog: &Catalog,
) -> Result<&'static Kind, Miss> {
    let (Some(Value::Text(part)) | Some(Value::Word(part))) = record.field(of).map(|named| &named.value) else {
        return Err(format!("`{of}` does not name a part yet; set the whole value").into());
    };
    let declared = catalog.settings_of(fields, of, part);
    // A name that is not registered is reported at its own place.
    let kind = declared.map_or(&Kind::Settings(""), |declared| declared.kind);
    match declared.map(|declared| paths::lookup(declared.kind, &path.join("."))) {
        Some(Err(unknown)) => Err(Miss {
            message: unknown.message(&format!("`{part}`"), ""),
            help: unknown.help(),
            is_of_part: true,
        }),
        _ => Ok(kind),
    }
}

/// Values that a task of the preset for the user's images leaves to its data and to its host. The data are read only
/// if the task does not say both the classes and what the host reads, and the catalog knows images; `folder` is where relative
/// paths begin.
///
/// `None` for any other task, and where nothing can be said before the task is sound.
pub(super) fn settled(root: &Node, catalog: &Catalog, folder: Option<&Path>) -> Option<Result<TaskOverrides, Problem>> {
    let task = root.field("task").filter(|task| task.choice() == Some("preset"))?;
    let Value::Tuple(_, items) = &task.value else {
        return None;
    };
    let [name, fields] = &items[..] else {
        return None;
    };
    if !matches!(&name.value, Value::Text(name) if name.eq_ignore_ascii_case(OWN_IMAGES)) {
        return None;
    }
    let said = |key| fields.field(key).filter(|node| !node.is_none());
    // `--set` of a field of a host that is not chosen leaves a host without a choice.
    let (data, host) = (said("data")?, said("host").filter(|host| host.choice().is_some()));
    let mut settled = TaskOverrides::default();
    let says_all = said("classes").is_some() && host.is_some_and(says_input);
    if let (Some(known), false) = (&catalog.images, says_all) {
        let family = host.map_or("cnn", |host| host.choice().unwrap_or_default());
        match known.settle(&read(data)?, folder, family) {
            Ok(own) => {
                settled = TaskOverrides {
                    data: Some(own.data),
                    classes: Some(own.classes),
                    host: own.host,
                    normalise: Some(Normalise::Auto),
                    split: Some(own.split),
                    batch_size: Some(own.batch_size),
                    batches_per_step: Some(own.batches_per_step),
                    ..settled
                }
            }
            Err(message) => return Some(Err(Problem::error(data.span, "task.data", message))),
        }
    }
    settled.slots = host.and_then(read).and_then(|host| slots(&host, catalog, folder));
    Some(Ok(settled))
}

/// A family says what it reads by two of its fields, all other hosts by their names.
fn says_input(host: &Node) -> bool {
    let Value::Tuple(Some(family), items) = &host.value else {
        return false;
    };
    let says = |key: &str| items.first().is_some_and(|fields| fields.field(key).is_some());
    !matches!(family.text.as_str(), "cnn" | "resnet" | "vgg") || (says("in_channels") && says("input_hw"))
}

/// Before each pool of a convolutional host, at the end of each stage of any other.
fn slots(host: &HostChoice, catalog: &Catalog, folder: Option<&Path>) -> Option<Vec<SlotId>> {
    // How many classes there are does not matter to the places.
    let places = catalog.hosts.outline(host, 2, folder).ok()?.injections;
    let slots = || places.iter().map(|place| place.slot);
    let is_cnn = matches!(host, HostChoice::Cnn(_));
    let chosen = slots().filter(|slot| {
        let is_last = !slots().any(|other| other.row == slot.row && other.col > slot.col);
        if is_cnn { slot.row == 0 } else { is_last }
    });
    let chosen: Vec<SlotId> = chosen.collect();
    (!chosen.is_empty()).then_some(chosen)
}

fn read<T: DeserializeOwned>(node: &Node) -> Option<T> {
    T::deserialize(node).ok()
}
