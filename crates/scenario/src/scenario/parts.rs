//! Parts of plugins among the members of a choice.
//!
//! A choice that has a member like `custom(name: .., settings: ..)` takes every registered part by it. Where another member
//! of the choice holds a choice itself, as `contribution(..)` does, a part may be written as if it belonged there:
//! `contribution(NAME((..)))` is `custom(name: "NAME", settings: (..))` for every NAME that is registered and no member.

use super::catalog::Catalog;
use super::paths::{lookup, lookup_with_members, segments};
use super::tree::{Name, Node, Value};
use super::wording::{choices, variant_form};
use crate::schema::{Content, Field, Kind, Variant};

/// The member of a choice that parts are given to.
#[derive(Clone, Copy)]
pub struct Holder {
    name: &'static str,
    /// The part's name among them.
    fields: &'static [Field],
    /// The field that names the part.
    of: &'static str,
    /// The field for its settings.
    pub settings: &'static Field,
}

impl Holder {
    pub fn of(variants: &'static [Variant]) -> Option<Self> {
        variants.iter().find_map(|variant| match variant.content {
            Content::Fields(fields) => fields.iter().find_map(|field| match field.kind {
                Kind::Settings(of) => Some(Self {
                    name: variant.name,
                    fields,
                    of,
                    settings: field,
                }),
                _ => None,
            }),
            _ => None,
        })
    }

    /// Names of the existing parts.
    pub fn parts(self, catalog: &Catalog) -> Vec<String> {
        let named = self.fields.iter().find(|field| field.name == self.of);
        match named.map(|field| field.kind) {
            Some(Kind::Text(names)) => choices(names, catalog).unwrap_or_default(),
            _ => Vec::new(),
        }
    }
}

/// A name in a member that holds a choice, but isn't a member of that choice.
pub struct Guest<'a> {
    holder: Holder,
    /// Members of the choice that it is written in.
    pub members: &'static [Variant],
    pub node: &'a Node,
    pub name: &'a str,
}

impl<'a> Guest<'a> {
    pub fn of(variants: &'static [Variant], node: &'a Node) -> Option<Self> {
        let holder = Holder::of(variants)?;
        let Value::Tuple(Some(outer), items) = &node.value else {
            return None;
        };
        let [node] = &items[..] else { return None };
        let members = held_choice(variants, &outer.text)?;
        let name = node.choice().filter(|name| !is_member(members, name))?;
        Some(Self {
            holder,
            members,
            node,
            name,
        })
    }

    /// The parts that are valid here too.
    pub fn parts(&self, catalog: &Catalog) -> Vec<String> {
        self.holder.parts(catalog)
    }

    /// The same part with its name and its settings in fields of their own; `None` of a name that is not registered.
    pub fn spelled_out(&self, catalog: &Catalog) -> Option<Node> {
        let Holder { name, fields, of, .. } = self.holder;
        catalog.settings_of(fields, of, self.name)?;
        let span = self.node.span;
        let (named, settings) = match &self.node.value {
            Value::Tuple(Some(name), items) => match &items[..] {
                [settings] => (name.span, settings.clone()),
                _ => (name.span, Node::new(Value::Tuple(None, items.clone()), span)),
            },
            Value::Record(Some(name), fields) => (name.span, Node::new(Value::Record(None, fields.clone()), span)),
            _ => (span, Node::nothing(span)),
        };
        let named_node = Node::new(Value::Text(self.name.into()), named);
        let fields = vec![
            (Name::new(of, named), named_node),
            (Name::new(self.holder.settings.name, span), settings),
        ];
        Some(Node::new(Value::Record(Some(Name::new(name, span)), fields), span))
    }
}

/// The members of the choice that the member `name` holds.
fn held_choice(variants: &[Variant], name: &str) -> Option<&'static [Variant]> {
    let outer = variants.iter().find(|variant| variant.name == name)?;
    let Content::Items([held]) = outer.content else {
        return None;
    };
    match held.kind {
        Kind::Choice(members) => Some(members),
        _ => None,
    }
}

fn is_member(members: &[Variant], name: &str) -> bool {
    members.iter().any(|member| member.name == name)
}

/// The written form of a member of a choice inside one of these, or of a part, e.g. `contribution(sparse())`.
pub fn form_inside(variants: &'static [Variant], word: &str, catalog: &Catalog) -> Option<String> {
    let is_part = || Holder::of(variants).is_some_and(|holder| holder.parts(catalog).iter().any(|part| part == word));
    let may_be_empty = |member: &&Variant| matches!(member.content, Content::Items(items) if items.iter().all(Field::is_optional_item));
    variants.iter().find_map(|outer| {
        let members = held_choice(variants, outer.name)?;
        let form = match members.iter().find(|member| member.name == word) {
            Some(member) if !may_be_empty(&member) => variant_form(member),
            None if !is_part() => return None,
            _ => format!("{word}()"),
        };
        Some(format!("{}({form})", outer.name))
    })
}

/// Returns whether a part may be chosen at `path`, so that the catalog knows what may be set below it.
pub fn takes_part(root: &'static Kind, path: &str) -> bool {
    lookup(root, path).is_ok_and(|found| match found.kind {
        Kind::Settings(_) => true,
        Kind::Choice(variants) => Holder::of(variants).is_some(),
        _ => false,
    })
}

/// The path by which what may be set of a part is known, for one that is written as if the part belonged to another member:
/// `reward.custom.settings.NAME.x` for `reward.contribution.NAME.x`.
pub fn spelled_path(root: &'static Kind, path: &str) -> Option<String> {
    let words = segments(path);
    (1..words.len().saturating_sub(1)).find_map(|end| {
        let Kind::Choice(variants) = lookup_with_members(root, &words[..end].join(".")).ok()?.0.kind else {
            return None;
        };
        let holder = Holder::of(variants)?;
        let members = held_choice(variants, words[end])?;
        let (choice, part) = (words[..end].join("."), words[end + 1..].join("."));
        let is_part = !is_member(members, words[end + 1]);
        is_part.then(|| format!("{choice}.{}.{}.{part}", holder.name, holder.settings.name))
    })
}
