//! Types whose values a user may write.

use serde::{Deserialize, Serialize};

use super::kind::{Kind, Names};
use super::range::{self, at_least, integer};
use crate::growth::{AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, LifecycleOp, SlotId, Tempo};

/// A type that knows what its values may be.
pub trait Described {
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

/// A value as it was written, in RON: for a field that takes whatever another field may hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Written(pub String);

impl Described for Written {
    const KIND: Kind = Kind::Written;
}

impl<T: Described> Described for Option<T> {
    const KIND: Kind = Kind::Optional(&T::KIND);
}

impl<T: Described> Described for Vec<T> {
    const KIND: Kind = Kind::List(&T::KIND);
}

impl<T: Described> Described for (T, T) {
    const KIND: Kind = Kind::Pair(&T::KIND);
}

impl<T: Described> Described for Box<T> {
    const KIND: Kind = T::KIND;
}

/// Closed sets that are written as text, such as the members of action heads beside the blueprints.
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
pub(crate) use members;

members! {
    LifecycleOp => "lifecycle operation",
    GerminationStyle => "blend style",
    Tempo => "tempo",
    AlphaTarget => "alpha target",
    AlphaSpeed => "alpha speed",
    AlphaCurveAction => "alpha curve",
}
