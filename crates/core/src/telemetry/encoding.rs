//! The written form of single values: numbers that may be non-finite, large integers, timestamps, action
//! ids, and the names of the growth vocabulary. Every written value reads back unchanged.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::SystemTime;

use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A measured number. JSON knows no NaN, so non-finite values are the strings `"nan"`, `"inf"`, `"-inf"`; a value that
/// was not measured is an absent `Option<Num>`, never a zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct Num(pub f64);

/// Two NaNs are the same measurement.
impl PartialEq for Num {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || (self.0.is_nan() && other.0.is_nan())
    }
}

impl From<f64> for Num {
    fn from(value: f64) -> Self {
        Self(value)
    }
}

impl From<f32> for Num {
    /// Takes the f64 nearest to the shortest decimal of `value`, so that 0.1 in f32 is written `0.1`.
    fn from(value: f32) -> Self {
        Self(value.to_string().parse().unwrap_or(f64::from(value)))
    }
}

impl Num {
    /// Rounds to the digits of an f32, which are more than the accuracy of any measurement: half the length in files.
    pub fn short(value: f64) -> Self {
        match value as f32 {
            short if short.is_finite() => short.into(),
            _ => Self(value),
        }
    }
}

impl Serialize for Num {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            finite if finite.is_finite() => serializer.serialize_f64(finite),
            nan if nan.is_nan() => serializer.serialize_str("nan"),
            positive if positive > 0.0 => serializer.serialize_str("inf"),
            _ => serializer.serialize_str("-inf"),
        }
    }
}

impl<'de> Deserialize<'de> for Num {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Num;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number, \"nan\", \"inf\" or \"-inf\"")
            }

            fn visit_f64<E>(self, value: f64) -> Result<Num, E> {
                Ok(Num(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Num, E> {
                Ok(Num(value as f64))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Num, E> {
                Ok(Num(value as f64))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Num, E> {
                match text {
                    "nan" => Ok(Num(f64::NAN)),
                    "inf" => Ok(Num(f64::INFINITY)),
                    "-inf" => Ok(Num(f64::NEG_INFINITY)),
                    other => Err(E::invalid_value(Unexpected::Str(other), &self)),
                }
            }
        }

        deserializer.deserialize_any(Number)
    }
}

/// The largest integer that every JSON reader keeps exactly.
const LARGEST_EXACT_INTEGER: u64 = 1 << 53;

/// An integer such as an RNG seed; above 2^53 it is written as a string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BigInteger(pub u64);

impl Serialize for BigInteger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 > LARGEST_EXACT_INTEGER {
            serializer.collect_str(&self.0)
        } else {
            serializer.serialize_u64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for BigInteger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Integer;

        impl Visitor<'_> for Integer {
            type Value = BigInteger;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an integer")
            }

            fn visit_u64<E>(self, value: u64) -> Result<BigInteger, E> {
                Ok(BigInteger(value))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<BigInteger, E> {
                let value = text.parse().map(BigInteger);
                value.map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(Integer)
    }
}

/// A moment in UTC with millisecond resolution, written `2026-01-31T12:00:00.000Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    milliseconds_since_epoch: i64,
}

impl Timestamp {
    /// 1970-01-01, before an event is stamped.
    pub const EPOCH: Self = Self::from_milliseconds(0);

    /// The present.
    pub fn now() -> Self {
        let now = OffsetDateTime::from(SystemTime::now());
        Self::from_utc(now)
    }

    /// A moment by its distance from the epoch.
    pub const fn from_milliseconds(milliseconds_since_epoch: i64) -> Self {
        Self {
            milliseconds_since_epoch,
        }
    }

    /// Since the epoch.
    pub const fn milliseconds(self) -> i64 {
        self.milliseconds_since_epoch
    }

    fn from_utc(moment: OffsetDateTime) -> Self {
        Self::from_milliseconds(moment.unix_timestamp() * 1000 + i64::from(moment.millisecond()))
    }

    fn to_utc(self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(self.milliseconds_since_epoch.div_euclid(1000))
            .unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }

    /// `yyyymmdd-hhmmss`, the start of a run id.
    pub fn compact(self) -> String {
        let seconds = self.to_string().replace(['-', ':'], "").replace('T', "-");
        seconds.chars().take("yyyymmdd-hhmmss".len()).collect()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let utc = self.to_utc();
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            utc.year(),
            u8::from(utc.month()),
            utc.day(),
            utc.hour(),
            utc.minute(),
            utc.second(),
            self.milliseconds_since_epoch.rem_euclid(1000)
        )
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        OffsetDateTime::parse(&text, &Rfc3339)
            .map(Self::from_utc)
            .map_err(|_| D::Error::invalid_value(Unexpected::Str(&text), &"an RFC 3339 time"))
    }
}

/// `#[serde(with = "by_name")]`: the name that telemetry prints, where scenarios would write snake_case.
pub mod by_name {
    use super::*;

    pub fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse()
            .map_err(|_| D::Error::invalid_value(Unexpected::Str(&name), &"a known name"))
    }
}

/// `#[serde(serialize_with = "by_names")]`: a list by the names that telemetry prints; they are read in either case.
pub fn by_names<T: Display, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(T::to_string))
}

/// `#[serde(default, skip_serializing_if = "is_default")]`: a value that is left out is the default.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// [`by_name`] for values that may be absent.
pub mod by_name_if_any {
    use super::*;

    pub fn serialize<T: Display, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => by_name::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
        by_name::deserialize(deserializer).map(Some)
    }
}

/// `#[serde(deserialize_with = "round")]`: counted from 0. People count from 1, so the last number of all is refused.
pub fn round<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        u32::MAX => Err(D::Error::invalid_value(
            Unexpected::Unsigned(u32::MAX.into()),
            &"a round, from 0 to 4294967294",
        )),
        round => Ok(round),
    }
}

/// [`round`] for what may belong to none.
pub fn round_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    #[derive(Deserialize)]
    struct Round(#[serde(deserialize_with = "round")] u32);

    let found = Option::<Round>::deserialize(deserializer)?;
    Ok(found.map(|Round(round)| round))
}

#[cfg(test)]
mod tests;
