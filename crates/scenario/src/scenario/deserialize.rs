//! A checked tree as serde reads it, so that a value is made of what was checked and not of its text.

use serde::de::value::{Error, MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::tree::{Node, Value};

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

    /// Of a record with or without a name; `()` is the empty one.
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
