//! Ranges of fields. Declarations see them without importing them.

use super::kind::{FloatRange, Kind, Names, Registry};

/// Whole numbers from `min` to `max`.
pub const fn integer(min: i128, max: i128) -> Kind {
    Kind::Integer { min, max }
}

/// Any count of at least `min`.
pub const fn at_least(min: i128) -> Kind {
    integer(min, u32::MAX as i128)
}

const fn float(min: f64, max: f64) -> FloatRange {
    FloatRange {
        min,
        max,
        min_excluded: false,
        max_excluded: false,
    }
}

pub const ANY_NUMBER: Kind = Kind::Float(float(f64::NEG_INFINITY, f64::INFINITY));
pub const NOT_NEGATIVE: Kind = Kind::Float(float(0.0, f64::INFINITY));
pub const NOT_POSITIVE: Kind = Kind::Float(float(f64::NEG_INFINITY, 0.0));
pub const FRACTION: Kind = Kind::Float(float(0.0, 1.0));
/// Thousandths, less than the whole.
pub const PERMILLE: Kind = integer(0, 999);
pub const PERCENT: Kind = Kind::Float(float(0.0, 100.0));
pub const AT_LEAST_ONE: Kind = Kind::Float(float(1.0, f64::INFINITY));
/// At least 0, less than 1.
pub const BELOW_ONE: Kind = Kind::Float(FloatRange {
    max_excluded: true,
    ..float(0.0, 1.0)
});
pub const ABOVE_ONE: Kind = Kind::Float(FloatRange {
    min_excluded: true,
    ..float(1.0, f64::INFINITY)
});
/// More than 0, less than 1.
pub const OPEN_FRACTION: Kind = Kind::Float(FloatRange {
    min_excluded: true,
    max_excluded: true,
    ..float(0.0, 1.0)
});
/// More than 0, at most 1.
pub const SHARE: Kind = Kind::Float(FloatRange {
    min_excluded: true,
    ..float(0.0, 1.0)
});
pub const POSITIVE: Kind = Kind::Float(FloatRange {
    min_excluded: true,
    ..float(0.0, f64::INFINITY)
});

pub const TASK: Kind = Kind::Text(Names::Registered(Registry::Tasks));
pub const BLUEPRINT: Kind = Kind::Text(Names::Registered(Registry::Blueprints));
pub const CONTROLLER: Kind = Kind::Text(Names::Registered(Registry::Controllers));
pub const NETWORK: Kind = Kind::Text(Names::Registered(Registry::Networks));

/// The name of a run or task: it becomes part of a folder's name.
pub const RUN_NAME: Kind = Kind::Text(Names::Form {
    noun: "run name",
    form: "1 to 64 letters, digits, `.`, `_` or `-`, starting with a letter or digit",
    accepts: |text| {
        let part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        text.len() <= 64 && text.chars().all(part) && text.chars().next().is_none_or(|c| c.is_ascii_alphanumeric())
    },
});
