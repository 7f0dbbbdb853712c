//! Compares a tree with the declarations: every wrong key, type, choice, range and name becomes a problem, and what remains
//! is a tree that deserialises.

use std::collections::BTreeMap;

use super::catalog::Catalog;
use super::parts::{Guest, form_inside};
use super::paths::{join, lookup, member_with, path_ending_in};
use super::problem::{Problem, Source, SourceKind, did_you_mean, slip_of};
use super::reader;
use super::tree::{Name, Node, Span, Value, listed};
use super::wording::{choices, integer_range, noun, valid, variant_form};
use crate::files::counted;
use crate::schema::{Content, Field, Kind, Names, Variant};

/// Number of the source that holds all defaults.
pub const DEFAULTS: usize = 0;

/// Outcome of a check.
#[derive(Default)]
pub struct Checked {
    /// The tree without what is wrong, from which serde makes the value. `None` if nothing usable is left.
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

/// Checks `root` against `kind`. `sources` are those that spans point into; in one of the command line text may stand
/// without quotes.
pub fn check(kind: &'static Kind, mut root: Node, catalog: &Catalog, sources: &[Source]) -> Checked {
    let mut checker = Checker {
        catalog,
        sources,
        checked: Checked::default(),
    };
    let is_sound = checker.value(kind, &mut root, "");
    checker.checked.clean = is_sound.then_some(root);
    checker.checked
}

/// Each check takes what is wrong out of the value that it gets, and says whether anything usable is left of it.
struct Checker<'a> {
    catalog: &'a Catalog,
    sources: &'a [Source],
    checked: Checked,
}

impl Checker<'_> {
    /// Notes a problem; nothing is left of the value that has it.
    fn reject(&mut self, span: Span, path: &str, message: String, help: Option<String>) -> bool {
        self.checked
            .problems
            .push(Problem::error(span, path, message).with_help(help));
        false
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

    fn mismatch(&mut self, kind: &Kind, node: &Node, path: &str, help: Option<String>) -> bool {
        let found = self.found(node);
        let valid = match valid(kind, self.catalog) {
            Some(valid) => format!("; valid: {valid}"),
            None => String::new(),
        };
        let message = format!("expected {}, found {found}{valid}", noun(kind));
        self.reject(node.span, path, message, help)
    }

    fn value(&mut self, kind: &'static Kind, node: &mut Node, path: &str) -> bool {
        self.checked.places.insert(path.into(), node.span);
        let (is_none, is_record) = (node.is_none(), node.is_record());
        match (kind, &mut node.value) {
            (Kind::Optional(inner), _) => is_none || self.value(inner, node, path),
            (Kind::Bool, Value::Bool(_)) | (Kind::Settings(_), _) => true,
            (&Kind::Integer { min, max }, &mut Value::Integer(value)) => {
                if (min..=max).contains(&value) {
                    return true;
                }
                let valid = match value > max {
                    true => format!("at most {max}"),
                    false => integer_range(min, max),
                };
                self.out_of_range(valid, node, path)
            }
            (Kind::Float(range), Value::Float(_) | Value::Integer(_)) => {
                if let Value::Integer(value) = node.value {
                    node.value = Value::Float(value as f64);
                }
                let is_inside = matches!(node.value, Value::Float(value) if range.contains(value));
                is_inside || self.out_of_range(range.to_string(), node, path)
            }
            (Kind::Text(names), _) => self.text(kind, *names, node, path),
            (Kind::List(inner), Value::List(items)) => {
                let (mut kept, mut index) = (Vec::new(), 0);
                items.retain_mut(|item| {
                    let is_sound = self.value(inner, item, &format!("{path}[{index}]"));
                    kept.extend(is_sound.then_some(index));
                    index += 1;
                    is_sound
                });
                if kept.len() < index {
                    self.checked.kept.insert(path.into(), kept);
                }
                true
            }
            (Kind::Record(fields), Value::Record(None, _) | Value::Tuple(None, _)) if is_record => {
                self.record(fields, node, path)
            }
            (Kind::Choice(variants), _) => self.choice(kind, variants, node, path),
            (Kind::Written, _) => {
                node.value = Value::Text(node.to_string());
                true
            }
            _ => self.mismatch(kind, node, path, None),
        }
    }

    fn out_of_range(&mut self, valid: String, node: &Node, path: &str) -> bool {
        let text = self.found(node);
        let message = format!("{} is out of range; valid: {valid}", text.trim_matches('`'));
        self.reject(node.span, path, message, None)
    }

    fn text(&mut self, kind: &Kind, names: Names, node: &mut Node, path: &str) -> bool {
        let is_argument = self.sources[node.span.source].kind == SourceKind::Argument;
        let text = match &node.value {
            Value::Text(text) => text.clone(),
            Value::Word(word) if is_argument => word.clone(),
            Value::Word(word) => {
                let help = format!("write it in quotes: \"{word}\"");
                return self.mismatch(kind, node, path, Some(help));
            }
            _ => return self.mismatch(kind, node, path, None),
        };
        let noun = names.noun();
        let (message, help) = match (choices(names, self.catalog), names) {
            (Some(known), _) => match known.iter().find(|name| name.eq_ignore_ascii_case(&text)) {
                Some(name) => {
                    node.value = Value::Text(name.clone());
                    return true;
                }
                None => (
                    format!("unknown {noun} \"{text}\"; valid: {}", known.join(", ")),
                    did_you_mean(&text, known.iter().map(String::as_str)),
                ),
            },
            (None, Names::Form { form, accepts, .. }) if !accepts(&text) => {
                (format!("\"{text}\" isn't a {noun}; valid: {form}"), None)
            }
            (None, _) => {
                node.value = Value::Text(text);
                return true;
            }
        };
        self.reject(node.span, path, message, help)
    }

    /// Checks the fields of a record, also of an empty one; nothing is left if a field without default is missing or wrong.
    fn record(&mut self, fields: &'static [Field], node: &mut Node, path: &str) -> bool {
        let span = node.span;
        let Some(given) = node.fields_mut() else { return false };
        let required = fields.iter().filter(|field| field.must_be_written());
        let missing: Vec<_> = required.clone().filter(|field| !has(given, field)).collect();
        let kinds: Vec<&'static Kind> = fields
            .iter()
            .map(|field| match field.kind {
                Kind::Settings(of) => self.settings(fields, field, of, given),
                _ => &field.kind,
            })
            .collect();
        given.retain_mut(
            |(key, value)| match fields.iter().position(|field| field.name == key.text) {
                Some(index) => self.value(kinds[index], value, &join(path, &key.text)),
                None => self.unknown_key(key, fields, path),
            },
        );
        if !missing.is_empty() {
            let names: Vec<_> = missing.iter().map(|field| field.name).collect();
            self.reject(span, path, format!("missing: {}", names.join(", ")), None);
        }
        required.clone().all(|field| has(given, field))
    }

    /// Settings of the part that the field `of` chooses; its defaults are laid below the values in `field`. Anything
    /// for a name that is not registered, which is reported where it stands.
    fn settings(
        &self,
        fields: &'static [Field],
        field: &Field,
        of: &str,
        given: &mut Vec<(Name, Node)>,
    ) -> &'static Kind {
        if given.iter().all(|(key, _)| key.text != field.name) {
            let span = Span::start_of(DEFAULTS);
            given.push((Name::new(field.name, span), Node::nothing(span)));
        }
        let named = given.iter().find(|(key, _)| key.text == of);
        let declared = named.and_then(|(_, node)| match &node.value {
            Value::Text(name) | Value::Word(name) => self.catalog.settings_of(fields, of, name),
            _ => None,
        });
        let Some(declared) = declared else {
            return &Kind::Settings("");
        };
        for (_, written) in given.iter_mut().filter(|(key, _)| key.text == field.name) {
            if let Ok(defaults) = reader::read(&declared.defaults, DEFAULTS) {
                let written_over = std::mem::replace(written, defaults.root);
                written.overlay(written_over);
            }
        }
        declared.kind
    }

    fn unknown_key(&mut self, key: &Name, fields: &'static [Field], path: &str) -> bool {
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
        self.reject(key.span, &below, message, help)
    }

    fn choice(&mut self, kind: &'static Kind, variants: &'static [Variant], node: &mut Node, path: &str) -> bool {
        let Some(word) = node.choice().map(str::to_owned) else {
            let help = match &node.value {
                Value::Text(text) if variants.iter().any(|variant| variant.name == text) => {
                    Some(format!("write it without quotes: {text}"))
                }
                _ => None,
            };
            return self.mismatch(kind, node, path, help);
        };
        if let Some(guest) = Guest::of(variants, node) {
            let Some(part) = guest.spelled_out(self.catalog) else {
                let parts = guest.parts(self.catalog);
                return self.unknown_choice(guest.members, parts, guest.node.span, guest.name, path);
            };
            *node = part;
            return self.choice(kind, variants, node, path);
        }
        let Some(variant) = variants.iter().find(|variant| variant.name == word) else {
            return self.unknown_choice(variants, Vec::new(), node.span, &word, path);
        };
        let (span, is_record) = (node.span, node.is_record());
        match (variant.content, &mut node.value) {
            (Content::Nothing, Value::Word(_)) => true,
            (Content::Items(items), Value::Tuple(Some(_), given)) => self.items(&word, items, given, span, path),
            (Content::Fields(fields), _) if is_record => self.record(fields, node, path),
            (content, _) => {
                let found = self.found(node);
                let message = format!("expected {}, found {found}", form(variant.name, &content));
                self.reject(span, path, message, None)
            }
        }
    }

    /// `parts`: what may be chosen in addition to the members.
    fn unknown_choice(
        &mut self,
        variants: &'static [Variant],
        parts: Vec<String>,
        span: Span,
        word: &str,
        path: &str,
    ) -> bool {
        let names = variants.iter().map(|variant| variant.name);
        let help = match form_inside(variants, word, self.catalog) {
            Some(form) => Some(format!("did you mean `{form}`?")),
            None => did_you_mean(word, names.chain(parts.iter().map(String::as_str))),
        };
        let forms = parts.iter().map(|part| format!("{part}(..)"));
        let valid = listed(variants.iter().map(variant_form).chain(forms));
        let message = format!("unknown choice `{word}`; valid: {valid}");
        self.reject(span, path, message, help)
    }

    fn items(&mut self, name: &str, items: &'static [Field], given: &mut Vec<Node>, span: Span, path: &str) -> bool {
        let required = items.iter().filter(|item| !item.is_optional_item()).count();
        if !(required..=items.len()).contains(&given.len()) {
            let form = form(name, &Content::Items(items));
            let message = format!("expected {form}, found {}", counted(given.len(), "value"));
            return self.reject(span, path, message, None);
        }
        let mut is_sound = true;
        for (item, node) in items.iter().zip(given.iter_mut()) {
            is_sound &= self.value(&item.kind, node, &join(path, item.name));
        }
        given.resize(items.len(), Node::nothing(span));
        self.checked.places.insert(path.into(), span);
        is_sound
    }
}

fn has(given: &[(Name, Node)], field: &Field) -> bool {
    given.iter().any(|(key, _)| key.text == field.name)
}

/// The written form of a choice, e.g. `sgd(lr: .., momentum: .., weight_decay: ..)`.
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
