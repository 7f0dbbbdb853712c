//! How single values are written (spec 07 §3, §4.2): numbers that may be non-finite, large integers, timestamps, action
//! ids, and the names of the growth vocabulary. Everything here reads back to what was written.

use std::fmt;
use std::time::SystemTime;

use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::growth::{
    AlphaAlgorithm, AlphaCurve, AlphaCurveAction, AlphaMode, AlphaSpeed, GateLevel, GerminationStyle, Initiator,
    LifecycleOp, PruneReason, SeedStage, Tempo,
};

/// A measured number. JSON knows no NaN, so non-finite values are the strings `"nan"`, `"inf"`, `"-inf"`; a value that
/// was not measured is an absent `Option<Num>`, never a zero (spec 07 §4.2).
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

/// A number, or a number that only fits a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText<T> {
    Number(T),
    Text(String),
}

impl<'de> Deserialize<'de> for Num {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match NumberOrText::<f64>::deserialize(deserializer)? {
            NumberOrText::Number(value) => Ok(Self(value)),
            NumberOrText::Text(text) => match text.as_str() {
                "nan" => Ok(Self(f64::NAN)),
                "inf" => Ok(Self(f64::INFINITY)),
                "-inf" => Ok(Self(f64::NEG_INFINITY)),
                other => Err(D::Error::invalid_value(
                    Unexpected::Str(other),
                    &"a number, \"nan\", \"inf\" or \"-inf\"",
                )),
            },
        }
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
        match NumberOrText::<u64>::deserialize(deserializer)? {
            NumberOrText::Number(value) => Ok(Self(value)),
            NumberOrText::Text(text) => text
                .parse()
                .map(Self)
                .map_err(|_| D::Error::invalid_value(Unexpected::Str(&text), &"an integer")),
        }
    }
}

/// A moment in UTC with millisecond resolution, written `2026-01-31T12:00:00.000Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    milliseconds_since_epoch: i64,
}

impl Timestamp {
    pub const EPOCH: Self = Self::from_milliseconds(0);

    pub fn now() -> Self {
        let now = OffsetDateTime::from(SystemTime::now());
        Self::from_utc(now)
    }

    pub const fn from_milliseconds(milliseconds_since_epoch: i64) -> Self {
        Self {
            milliseconds_since_epoch,
        }
    }

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
        let utc = self.to_utc();
        format!(
            "{:04}{:02}{:02}-{:02}{:02}{:02}",
            utc.year(),
            u8::from(utc.month()),
            utc.day(),
            utc.hour(),
            utc.minute(),
            utc.second()
        )
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
        let text = String::deserialize(deserializer)?;
        OffsetDateTime::parse(&text, &Rfc3339)
            .map(Self::from_utc)
            .map_err(|_| D::Error::invalid_value(Unexpected::Str(&text), &"an RFC 3339 time"))
    }
}

/// Identifies the one action of an env and step (spec 07 §3), written `e{episode}.t{step}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ActionId {
    pub episode: u32,
    pub step: u32,
}

impl ActionId {
    /// `episode << 32 | step`.
    pub const fn code(self) -> u64 {
        (self.episode as u64) << 32 | self.step as u64
    }
}

impl fmt::Display for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}.t{}", self.episode, self.step)
    }
}

impl Serialize for ActionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ActionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.strip_prefix('e')
            .and_then(|rest| rest.split_once(".t"))
            .and_then(|(episode, step)| {
                Some(Self {
                    episode: episode.parse().ok()?,
                    step: step.parse().ok()?,
                })
            })
            .ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), &"e<episode>.t<step>"))
    }
}

/// A member of the growth vocabulary that events print by its name.
pub trait Named: Copy {
    fn telemetry_name(self) -> &'static str;
    fn from_telemetry_name(name: &str) -> Option<Self>;
}

macro_rules! named {
    ($($kind:ty),+ $(,)?) => {
        $(impl Named for $kind {
            fn telemetry_name(self) -> &'static str {
                self.name()
            }

            fn from_telemetry_name(name: &str) -> Option<Self> {
                Self::from_name(name)
            }
        })+
    };
}

named!(
    AlphaAlgorithm,
    AlphaCurve,
    AlphaCurveAction,
    AlphaMode,
    AlphaSpeed,
    GateLevel,
    GerminationStyle,
    Initiator,
    LifecycleOp,
    PruneReason,
    SeedStage,
    Tempo,
);

/// `#[serde(with = "by_name")]`: the name that telemetry prints, where scenarios would write snake_case.
pub mod by_name {
    use super::*;

    pub fn serialize<T: Named, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value.telemetry_name())
    }

    pub fn deserialize<'de, T: Named, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let name = String::deserialize(deserializer)?;
        T::from_telemetry_name(&name).ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&name), &"a known name"))
    }
}

/// [`by_name`] for values that may be absent.
pub mod by_name_if_any {
    use super::*;

    pub fn serialize<T: Named, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => by_name::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, T: Named, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
        by_name::deserialize(deserializer).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Optional {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Num>,
    }

    /// Check C14.
    #[test]
    fn a_number_is_itself_again_after_json() {
        for (value, expected) in [
            (Some(f64::NAN), r#"{"value":"nan"}"#),
            (Some(f64::INFINITY), r#"{"value":"inf"}"#),
            (Some(f64::NEG_INFINITY), r#"{"value":"-inf"}"#),
            (Some(0.0), r#"{"value":0.0}"#),
            (Some(0.1 + 0.2), r#"{"value":0.30000000000000004}"#),
            (None, "{}"),
        ] {
            let original = Optional { value: value.map(Num) };

            let text = serde_json::to_string(&original).unwrap();

            assert_eq!(text, expected);
            assert_eq!(serde_json::from_str::<Optional>(&text).unwrap(), original);
        }
    }

    #[test]
    fn f32_sources_are_written_as_f32() {
        assert_eq!(serde_json::to_string(&Num::from(0.1_f32)).unwrap(), "0.1");
        assert!(Num::from(f32::NAN).0.is_nan());
        assert_eq!(Num::from(f32::NEG_INFINITY).0, f64::NEG_INFINITY);
    }

    #[test]
    fn words_that_are_no_numbers_are_refused() {
        let error = serde_json::from_str::<Num>("\"many\"").unwrap_err();

        assert!(error.to_string().contains("many"), "{error}");
    }

    #[test]
    fn integers_beyond_two_to_the_53_are_strings() {
        for (value, expected) in [
            (42, "42"),
            (9_007_199_254_740_992, "9007199254740992"),
            (9_007_199_254_740_993, "\"9007199254740993\""),
            (u64::MAX, "\"18446744073709551615\""),
        ] {
            let text = serde_json::to_string(&BigInteger(value)).unwrap();

            assert_eq!(text, expected);
            assert_eq!(serde_json::from_str::<BigInteger>(&text).unwrap(), BigInteger(value));
        }
    }

    #[test]
    fn timestamps_are_rfc_3339_with_milliseconds() {
        let moment = Timestamp::from_milliseconds(1_700_000_000_005);

        let text = serde_json::to_string(&moment).unwrap();

        assert_eq!(text, "\"2023-11-14T22:13:20.005Z\"");
        assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), moment);
        assert_eq!(moment.compact(), "20231114-221320");
    }

    /// Check C21.
    #[test]
    fn the_action_of_episode_3_step_7_is_e3_t7() {
        let action = ActionId { episode: 3, step: 7 };

        assert_eq!(action.code(), 12_884_901_895);
        assert_eq!(action.to_string(), "e3.t7");
        assert_eq!(serde_json::from_str::<ActionId>("\"e3.t7\"").unwrap(), action);
    }
}
