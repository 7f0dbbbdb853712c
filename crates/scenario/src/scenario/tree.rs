//! A scenario as written: a tree of values with their places in the source.
//!
//! The reader makes it, layers are laid over each other in it, the checker compares it with the declarations. Serde reads it, so
//! that a value is made of what was checked and not of its text.

use std::collections::HashMap;
use std::fmt;

use serde::de::value::{Error, MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;

/// Bytes `start..end` of source number `source` (see [`super::problem::Source`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub source: usize,
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// The beginning of a source, for problems of the source as a whole.
    pub fn start_of(source: usize) -> Self {
        let (start, end) = (0, 0);
        Self { source, start, end }
    }
}

/// A key, or the name before a parenthesis.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    pub text: String,
    pub span: Span,
}

impl Name {
    pub fn new(text: impl Into<String>, span: Span) -> Self {
        let text = text.into();
        Self { text, span }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub value: Value,
    pub span: Span,
}

/// The shapes of RON that scenarios use. `Some(x)` is read as `x`: options are written either way.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// `(a, b)`, `name(a, b)`; `()` is also the empty record.
    Tuple(Option<Name>, Vec<Node>),
    /// `(key: a)`, `name(key: a)`.
    Record(Option<Name>, Vec<(Name, Node)>),
    /// A bare name: a choice without content, or `None`.
    Word(String),
}

impl Node {
    pub fn new(value: Value, span: Span) -> Self {
        Self { value, span }
    }

    /// `()`, to which fields may be added.
    pub fn nothing(span: Span) -> Self {
        Self::new(Value::Tuple(None, Vec::new()), span)
    }

    pub fn is_none(&self) -> bool {
        matches!(&self.value, Value::Word(word) if word == "None")
    }

    /// The choice that this value names, e.g. `count` of `count(24)`.
    pub fn choice(&self) -> Option<&str> {
        match &self.value {
            Value::Word(word) => Some(word),
            Value::Tuple(Some(name), _) | Value::Record(Some(name), _) => Some(&name.text),
            _ => None,
        }
    }

    /// Returns whether it is `(key: a)` or `name(key: a)`, also without a field.
    pub fn is_record(&self) -> bool {
        match &self.value {
            Value::Record(..) => true,
            Value::Tuple(_, items) => items.is_empty(),
            _ => false,
        }
    }

    /// The fields of a record.
    pub fn fields_mut(&mut self) -> Option<&mut Vec<(Name, Node)>> {
        if let Value::Tuple(name, items) = &mut self.value
            && items.is_empty()
        {
            self.value = Value::Record(name.take(), Vec::new());
        }
        match &mut self.value {
            Value::Record(_, fields) => Some(fields),
            _ => None,
        }
    }

    /// Drops what is `None` in the records of a choice, and the records that are empty then.
    pub fn drop_none(&mut self) {
        let Value::Tuple(_, items) = &mut self.value else {
            return;
        };
        items.retain_mut(|item| match &mut item.value {
            Value::Record(_, fields) => {
                fields.retain(|(_, value)| !value.is_none());
                !fields.is_empty()
            }
            _ => true,
        });
    }

    /// Value of `key` in a record.
    pub fn field(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Record(_, fields) => fields.iter().find(|(name, _)| name.text == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// Lays `upper` over this value: records and the content of equal choices merge field by field, all else is
    /// replaced.
    pub fn overlay(&mut self, upper: Node) {
        match (&mut self.value, upper.value) {
            (Value::Record(mine, lower), Value::Record(theirs, fields))
                if same_name(mine.as_ref(), theirs.as_ref()) =>
            {
                let places = lower
                    .iter()
                    .enumerate()
                    .map(|(place, (name, _))| (name.text.clone(), place));
                let mut places: HashMap<String, usize> = places.collect();
                for (name, node) in fields {
                    if let Some(&place) = places.get(&name.text) {
                        let (known, value) = &mut lower[place];
                        *known = name;
                        value.overlay(node);
                    } else {
                        places.insert(name.text.clone(), lower.len());
                        lower.push((name, node));
                    }
                }
                self.span = upper.span;
            }
            (Value::Record(None, _), Value::Tuple(None, items)) if items.is_empty() => {}
            (Value::Tuple(Some(mine), lower), Value::Tuple(Some(theirs), items))
                if mine.text == theirs.text && items.len() <= lower.len() =>
            {
                *mine = theirs;
                for (value, node) in lower.iter_mut().zip(items) {
                    value.overlay(node);
                }
                self.span = upper.span;
            }
            (_, value) => *self = Node::new(value, upper.span),
        }
    }
}

fn same_name(a: Option<&Name>, b: Option<&Name>) -> bool {
    a.map(|name| &name.text) == b.map(|name| &name.text)
}

/// One line of RON.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = |name: &Option<Name>| name.as_ref().map_or(String::new(), |n| n.text.clone());
        match &self.value {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Integer(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Text(text) => write!(f, "{text:?}"),
            Value::Word(word) => f.write_str(word),
            Value::List(items) => write!(f, "[{}]", listed(items)),
            Value::Tuple(name, items) => write!(f, "{}({})", prefix(name), listed(items)),
            Value::Record(name, fields) => {
                let fields = fields.iter().map(|(key, value)| format!("{}: {value}", key.text));
                write!(f, "{}({})", prefix(name), listed(fields))
            }
        }
    }
}

/// The name by which `ron::value::RawValue` asks for a value as text.
const RAW_VALUE: &str = "$ron::private::RawValue";

impl<'de> IntoDeserializer<'de, Error> for &'de Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.value {
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Integer(value) => match (i64::try_from(*value), u64::try_from(*value)) {
                (Ok(value), _) => visitor.visit_i64(value),
                (_, Ok(value)) => visitor.visit_u64(value),
                _ => Err(Error::custom(format!("{value} is out of range"))),
            },
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(items) | Value::Tuple(None, items) => visitor.visit_seq(SeqDeserializer::new(items.iter())),
            Value::Record(..) => self.deserialize_map(visitor),
            Value::Word(_) | Value::Tuple(Some(_), _) => visitor.visit_enum(self),
        }
    }

    /// Reads a record with or without a name; `()` is the empty one.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let fields = match &self.value {
            Value::Record(_, fields) => fields.as_slice(),
            Value::Tuple(_, items) if items.is_empty() => &[],
            _ => return Err(Error::custom("a record was expected")),
        };
        let fields = fields.iter().map(|(key, value)| (key.text.as_str(), value));
        visitor.visit_map(MapDeserializer::new(fields))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.is_none() {
            true => visitor.visit_none(),
            false => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        match name {
            RAW_VALUE => visitor.visit_string(self.to_string()),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct identifier ignored_any
    }
}

impl<'de> EnumAccess<'de> for &'de Node {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let name = self.choice().ok_or_else(|| Error::custom("a choice was expected"))?;
        Ok((seed.deserialize(StrDeserializer::<Error>::new(name))?, self))
    }
}

impl<'de> VariantAccess<'de> for &'de Node {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        match &self.value {
            Value::Tuple(_, items) if items.len() == 1 => seed.deserialize(&items[0]),
            _ => Err(Error::custom("one value was expected")),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Error> {
        match &self.value {
            Value::Tuple(_, items) => visitor.visit_seq(SeqDeserializer::new(items.iter())),
            _ => Err(Error::custom("values were expected")),
        }
    }

    fn struct_variant<V: Visitor<'de>>(self, _fields: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }
}

/// Separated by commas.
pub fn listed(items: impl IntoIterator<Item = impl fmt::Display>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
}
