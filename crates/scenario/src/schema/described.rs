//! Types whose values a user may write.

use ron::error::SpannedError;
use ron::value::RawValue;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};

use super::kind::{Kind, Names};
use super::range::{self, at_least, integer};
use crate::files::ron_options;
use crate::growth::{AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, LifecycleOp, SlotId, Tempo};

/// A type that knows what its values may be.
pub trait Described {
    /// The kind of its values.
    const KIND: Kind;
}

macro_rules! plain {
    ($($type:ty => $kind:expr,)*) => {
        $(impl Described for $type {
            const KIND: Kind = $kind;
        })*
    };
}

plain! {
    bool => Kind::Bool,
    f64 => range::ANY_NUMBER,
    i64 => integer(i64::MIN as i128, i64::MAX as i128),
    u16 => integer(0, u16::MAX as i128),
    u32 => at_least(0),
    u64 => integer(0, u64::MAX as i128),
    usize => at_least(0),
    String => Kind::Text(Names::Free),
    SlotId => Kind::Text(Names::Form {
        noun: "slot",
        form: "r<row>c<column>, e.g. \"r0c1\"",
        accepts: |text| text.parse::<SlotId>().is_ok(),
    }),
}

/// A value as it was written, in RON: for a field that takes any value that another field may hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Written(pub String);

impl Described for Written {
    const KIND: Kind = Kind::Written;
}

/// The settings of a part that is chosen by name, as far as they were written, in RON: the part declares what they may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings(String);

impl Settings {
    /// The settings with the defaults of those that were not written.
    ///
    /// # Errors
    /// Settings that `T` does not have, or values that they cannot be; scenarios that were checked have neither.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, SpannedError> {
        ron_options().from_str(&self.0)
    }
}

impl Default for Settings {
    /// None are written.
    fn default() -> Self {
        Self("()".into())
    }
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_ron(&self.0)
            .map_err(ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|raw| Self(raw.get_ron().trim().into()))
    }
}

impl Described for Settings {
    const KIND: Kind = Kind::Settings("name");
}

impl<T: Described> Described for Option<T> {
    const KIND: Kind = Kind::Optional(&T::KIND);
}

impl<T: Described> Described for Vec<T> {
    const KIND: Kind = Kind::List(&T::KIND);
}

impl<T: Described> Described for Box<T> {
    const KIND: Kind = T::KIND;
}

/// Closed sets that are written as text, such as the members of action heads other than the blueprints.
macro_rules! members {
    ($($type:ty => $noun:literal,)*) => {
        $(impl $crate::schema::Described for $type {
            const KIND: $crate::schema::Kind = $crate::schema::Kind::Text($crate::schema::Names::Members {
                noun: $noun,
                list: || Self::ALL.iter().map(|member| member.name().to_ascii_lowercase()).collect(),
            });
        })*
    };
}

members! {
    LifecycleOp => "lifecycle operation",
    GerminationStyle => "blend style",
    Tempo => "tempo",
    AlphaTarget => "alpha target",
    AlphaSpeed => "alpha speed",
    AlphaCurveAction => "alpha curve",
}
