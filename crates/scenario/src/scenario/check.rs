//! Compares a tree with the declarations: every wrong key, type, choice, range and name becomes a problem, and what remains
//! is a tree that deserialises.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::catalog::Catalog;
use super::parts::{Guest, form_inside};
use super::paths::{join, lookup, member_with, path_ending_in};
use super::problem::{Problem, Source, SourceKind, did_you_mean, slip_of};
use super::reader;
use super::tree::{Name, Node, Span, Value, listed};
use super::wording::{choices, integer_range, noun, valid, variant_form};
use crate::schema::{Content, Field, Kind, Names, Variant};

/// Number of the source that holds all defaults.
pub const DEFAULTS: usize = 0;

/// Outcome of a check.
#[derive(Default)]
pub struct Checked {
    /// The tree without what is wrong, in the form that serde reads. `None` if nothing usable is left.
    pub clean: Option<Node>,
    pub problems: Vec<Problem>,
    /// The place of the value of each path.
    pub places: BTreeMap<String, Span>,
    /// For lists that lost entries: the indices, as written, of those that remain.
    pub kept: BTreeMap<String, Vec<usize>>,
}

impl Checked {
    /// The path, as written, of a path into the clean tree.
    pub fn written_path(&self, path: &str) -> String {
        let mut written = String::new();
        for (position, part) in path.split('[').enumerate() {
            if position == 0 {
                written.push_str(part);
                continue;
            }
            let (index, rest) = part.split_once(']').unwrap_or((part, ""));
            let kept = self.kept.get(&written);
            let original = kept
                .zip(index.parse::<usize>().ok())
                .and_then(|(kept, index)| kept.get(index).map(usize::to_string));
            let index = original.as_deref().unwrap_or(index);
            written = format!("{written}[{index}]{rest}");
        }
        written
    }
}

/// Checks `node` against `kind`. `sources` are those that spans point into; in one of the command line text may stand
/// without quotes.
pub fn check(kind: &'static Kind, node: &Node, catalog: &Catalog, sources: &[Source]) -> Checked {
    let mut checker = Checker {
        catalog,
        sources,
        checked: Checked::default(),
    };
    checker.checked.clean = checker.value(kind, node, "");
    checker.checked
}

struct Checker<'a> {
    catalog: &'a Catalog,
    sources: &'a [Source],
    checked: Checked,
}

impl Checker<'_> {
    /// Notes a problem; nothing is left of the value that has it.
    fn reject(&mut self, span: Span, path: &str, message: String, help: Option<String>) -> Option<Node> {
        self.checked
            .problems
            .push(Problem::error(span, path, message).with_help(help));
        None
    }

    /// The text of a value, shortened to fit a message.
    fn found(&self, node: &Node) -> String {
        let span = node.span;
        let text = &self.sources[span.source].text;
        let text = text.get(span.start..span.end).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        if line.chars().count() > 40 || line.len() < text.len() {
            let start: String = line.chars().take(40).collect();
            format!("`{start}…`")
        } else {
            format!("`{line}`")
        }
    }

    fn mismatch(&mut self, kind: &Kind, node: &Node, path: &str, help: Option<String>) -> Option<Node> {
        let found = self.found(node);
        let valid = match valid(kind, self.catalog) {
            Some(valid) => format!("; valid: {valid}"),
            None => String::new(),
        };
        let message = format!("expected {}, found {found}{valid}", noun(kind));
        self.reject(node.span, path, message, help)
    }

    fn wrong_type(&mut self, kind: &Kind, node: &Node, path: &str) -> Option<Node> {
        self.mismatch(kind, node, path, None)
    }

    fn value(&mut self, kind: &'static Kind, node: &Node, path: &str) -> Option<Node> {
        self.checked.places.insert(path.into(), node.span);
        match kind {
            Kind::Optional(_) if node.is_none() => Some(node.clone()),
            Kind::Optional(inner) => {
                let value = self.value(inner, node, path)?;
                let some = Name::new("Some", node.span);
                Some(Node::new(Value::Tuple(Some(some), vec![value]), node.span))
            }
            Kind::Bool => match node.value {
                Value::Bool(_) => Some(node.clone()),
                _ => self.wrong_type(kind, node, path),
            },
            Kind::Integer { min, max } => self.integer(kind, *min..=*max, node, path),
            Kind::Float(range) => {
                let value = match node.value {
                    Value::Float(value) => value,
                    Value::Integer(value) => value as f64,
                    _ => return self.wrong_type(kind, node, path),
                };
                if range.contains(value) {
                    Some(Node::new(Value::Float(value), node.span))
                } else {
                    self.out_of_range(range.to_string(), node, path)
                }
            }
            Kind::Text(names) => self.text(kind, *names, node, path),
            Kind::List(inner) => {
                let Value::List(items) = &node.value else {
                    return self.wrong_type(kind, node, path);
                };
                let indexed = items.iter().enumerate();
                let (kept, clean): (Vec<_>, Vec<_>) = indexed
                    .filter_map(|(i, item)| Some((i, self.value(inner, item, &format!("{path}[{i}]"))?)))
                    .unzip();
                if kept.len() < items.len() {
                    self.checked.kept.insert(path.into(), kept);
                }
                Some(Node::new(Value::List(clean), node.span))
            }
            Kind::Pair(inner) => match &node.value {
                Value::Tuple(None, items) if items.len() == 2 => {
                    let clean = items.iter().enumerate();
                    let clean: Vec<_> = clean
                        .filter_map(|(i, item)| self.value(inner, item, &format!("{path}[{i}]")))
                        .collect();
                    (clean.len() == 2).then(|| Node::new(Value::Tuple(None, clean), node.span))
                }
                _ => self.wrong_type(kind, node, path),
            },
            Kind::Record(fields) => match &node.value {
                Value::Record(None, given) => self.record(None, fields, given, node.span, path),
                Value::Tuple(None, items) if items.is_empty() => self.record(None, fields, &[], node.span, path),
                _ => self.wrong_type(kind, node, path),
            },
            Kind::Choice(variants) => self.choice(kind, variants, node, path),
            Kind::Settings(_) => Some(node.clone()),
            Kind::Written => Some(Node::new(Value::Text(node.to_string()), node.span)),
        }
    }

    fn out_of_range(&mut self, valid: String, node: &Node, path: &str) -> Option<Node> {
        let text = self.found(node);
        let message = format!("{} is out of range; valid: {valid}", text.trim_matches('`'));
        self.reject(node.span, path, message, None)
    }

    fn integer(&mut self, kind: &Kind, range: RangeInclusive<i128>, node: &Node, path: &str) -> Option<Node> {
        match node.value {
            Value::Integer(value) if range.contains(&value) => Some(node.clone()),
            Value::Integer(value) if value > *range.end() => {
                self.out_of_range(format!("at most {}", range.end()), node, path)
            }
            Value::Integer(_) => self.out_of_range(integer_range(*range.start(), *range.end()), node, path),
            _ => self.wrong_type(kind, node, path),
        }
    }

    fn text(&mut self, kind: &Kind, names: Names, node: &Node, path: &str) -> Option<Node> {
        let text = match &node.value {
            Value::Text(text) => text,
            Value::Word(word) if self.sources[node.span.source].kind == SourceKind::Argument => word,
            Value::Word(word) => {
                return self.mismatch(kind, node, path, Some(format!("write it in quotes: \"{word}\"")));
            }
            _ => return self.wrong_type(kind, node, path),
        };
        let noun = names.noun();
        let (message, help) = match (choices(names, self.catalog), names) {
            (Some(known), _) => match known.iter().find(|name| name.eq_ignore_ascii_case(text)) {
                Some(name) => return Some(Node::new(Value::Text(name.clone()), node.span)),
                None => (
                    format!("unknown {noun} \"{text}\"; valid: {}", known.join(", ")),
                    did_you_mean(text, known.iter().map(String::as_str)),
                ),
            },
            (None, Names::Form { form, accepts, .. }) if !accepts(text) => {
                (format!("\"{text}\" is no {noun}; valid: {form}"), None)
            }
            (None, _) => return Some(Node::new(Value::Text(text.clone()), node.span)),
        };
        self.reject(node.span, path, message, help)
    }

    /// Checks given fields; `None` if a field without default is missing or wrong.
    fn record(
        &mut self,
        name: Option<&Name>,
        fields: &'static [Field],
        given: &[(Name, Node)],
        span: Span,
        path: &str,
    ) -> Option<Node> {
        let mut clean = Vec::new();
        let unset = fields.iter().filter(|field| matches!(field.kind, Kind::Settings(_)));
        let unset = unset.filter(|field| given.iter().all(|(key, _)| key.text != field.name));
        let unset: Vec<_> = unset.map(nothing_set).collect();
        for (key, value) in given.iter().chain(&unset) {
            let below = join(path, &key.text);
            match fields.iter().find(|field| field.name == key.text) {
                Some(field) => {
                    let settings = match field.kind {
                        Kind::Settings(of) => Some(self.settings(fields, of, given, value)),
                        _ => None,
                    };
                    let (kind, value) = match &settings {
                        Some((kind, value)) => (*kind, value),
                        None => (&field.kind, value),
                    };
                    if let Some(value) = self.value(kind, value, &below) {
                        clean.push((key.clone(), value));
                    }
                }
                None => self.unknown_key(key, fields, path),
            }
        }
        let is_given = |field: &Field| given.iter().any(|(key, _)| key.text == field.name);
        let missing: Vec<_> = fields
            .iter()
            .filter(|field| field.must_be_written() && !is_given(field))
            .map(|field| field.name)
            .collect();
        if !missing.is_empty() {
            let message = format!("missing: {}", missing.join(", "));
            self.reject(span, path, message, None);
        }
        let has = |field: &Field| clean.iter().any(|(key, _)| key.text == field.name);
        let complete = fields.iter().all(|field| !field.must_be_written() || has(field));
        complete.then(|| Node::new(Value::Record(name.cloned(), clean), span))
    }

    /// What the part declares that the field `of` chooses, and what is written over its defaults; of a name that is not
    /// registered, which is reported where it stands, anything.
    fn settings(
        &self,
        fields: &'static [Field],
        of: &str,
        given: &[(Name, Node)],
        written: &Node,
    ) -> (&'static Kind, Node) {
        let named = given.iter().find(|(key, _)| key.text == of);
        let declared = named.and_then(|(_, node)| match &node.value {
            Value::Text(name) | Value::Word(name) => self.catalog.settings_of(fields, of, name),
            _ => None,
        });
        let Some(declared) = declared else {
            return (&Kind::Settings(""), written.clone());
        };
        let defaults = reader::read(&declared.defaults, DEFAULTS).ok();
        let mut value = defaults.map_or_else(|| written.clone(), |defaults| defaults.root);
        value.overlay(written.clone());
        (declared.kind, value)
    }

    fn unknown_key(&mut self, key: &Name, fields: &'static [Field], path: &str) {
        let names: Vec<_> = fields.iter().map(|field| field.name).collect();
        let below = join(path, &key.text);
        let elsewhere = || {
            let known = path_ending_in(&super::SCENARIO, &key.text)?;
            // Another member of the choice made here has it: the path would say what is written.
            let owner = match known == below {
                true => format!(
                    "{}(..)",
                    member_with(&lookup(&super::SCENARIO, path).ok()?.kind, &key.text)?
                ),
                false => known,
            };
            Some(format!("`{}` belongs to `{owner}`", key.text))
        };
        let slip = slip_of(&key.text, names.iter().copied()).map(|name| format!("did you mean `{name}`?"));
        let help = slip
            .or_else(elsewhere)
            .or_else(|| did_you_mean(&key.text, names.iter().copied()));
        let valid = match names.is_empty() {
            true => "none".into(),
            false => names.join(", "),
        };
        let message = format!("unknown key; valid: {valid}");
        self.reject(key.span, &below, message, help);
    }

    fn choice(&mut self, kind: &'static Kind, variants: &'static [Variant], node: &Node, path: &str) -> Option<Node> {
        let Some(word) = node.choice() else {
            let help = match &node.value {
                Value::Text(text) if variants.iter().any(|variant| variant.name == text) => {
                    Some(format!("write it without quotes: {text}"))
                }
                _ => None,
            };
            return self.mismatch(kind, node, path, help);
        };
        if let Some(guest) = Guest::of(variants, node) {
            return match guest.spelled_out(self.catalog) {
                Some(part) => self.choice(kind, variants, &part, path),
                None => self.unknown_choice(guest.members, guest.parts(self.catalog), guest.node, guest.name, path),
            };
        }
        let Some(variant) = variants.iter().find(|variant| variant.name == word) else {
            return self.unknown_choice(variants, Vec::new(), node, word, path);
        };
        match (&variant.content, &node.value) {
            (Content::Nothing, Value::Word(_)) => Some(node.clone()),
            (Content::Items(items), Value::Tuple(Some(name), given)) => self.items(name, items, given, node.span, path),
            (Content::Fields(fields), Value::Record(Some(name), given)) => {
                self.record(Some(name), fields, given, node.span, path)
            }
            (Content::Fields(fields), Value::Tuple(Some(name), given)) if given.is_empty() => {
                self.record(Some(name), fields, &[], node.span, path)
            }
            (content, _) => {
                let found = self.found(node);
                let message = format!("expected {}, found {found}", form(variant.name, content));
                self.reject(node.span, path, message, None)
            }
        }
    }

    /// `parts`: what may be chosen beside the members.
    fn unknown_choice(
        &mut self,
        variants: &'static [Variant],
        parts: Vec<String>,
        node: &Node,
        word: &str,
        path: &str,
    ) -> Option<Node> {
        let names = variants.iter().map(|variant| variant.name);
        let help = match form_inside(variants, word, self.catalog) {
            Some(form) => Some(format!("did you mean `{form}`?")),
            None => did_you_mean(word, names.chain(parts.iter().map(String::as_str))),
        };
        let forms = parts.iter().map(|part| format!("{part}(..)"));
        let valid = listed(variants.iter().map(variant_form).chain(forms));
        let message = format!("unknown choice `{word}`; valid: {valid}");
        self.reject(node.span, path, message, help)
    }

    fn items(&mut self, name: &Name, items: &'static [Field], given: &[Node], span: Span, path: &str) -> Option<Node> {
        let required = items.iter().filter(|item| !item.is_optional_item()).count();
        if !(required..=items.len()).contains(&given.len()) {
            let form = form(&name.text, &Content::Items(items));
            let message = format!("expected {form}, found {} values", given.len());
            return self.reject(span, path, message, None);
        }
        let clean: Vec<_> = items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| match given.get(index) {
                Some(node) if item.name.is_empty() => self.value(&item.kind, node, path),
                Some(node) => self.value(&item.kind, node, &join(path, item.name)),
                None => Some(Node::new(Value::Tuple(None, Vec::new()), span)),
            })
            .collect();
        self.checked.places.insert(path.into(), span);
        (clean.len() == items.len()).then(|| Node::new(Value::Tuple(Some(name.clone()), clean), span))
    }
}

/// Settings of which none is written.
fn nothing_set(field: &Field) -> (Name, Node) {
    let span = Span::start_of(DEFAULTS);
    let nothing = Node::new(Value::Tuple(None, Vec::new()), span);
    (Name::new(field.name, span), nothing)
}

/// How a choice is written, e.g. `sgd(lr: .., momentum: .., weight_decay: ..)`.
fn form(name: &str, content: &Content) -> String {
    match content {
        Content::Nothing => format!("`{name}` alone"),
        Content::Items(items) => {
            let items = items.iter().map(|item| match (item.is_optional_item(), &item.kind) {
                (false, Kind::Text(_)) => "\"..\"",
                (false, Kind::Record(_)) => "(..)",
                (false, _) => "..",
                (true, _) => "(..) or nothing",
            });
            format!("`{name}({})`", listed(items))
        }
        Content::Fields(fields) => {
            let fields = fields.iter().map(|field| format!("{}: ..", field.name));
            format!("`{name}({})`", listed(fields))
        }
    }
}
