//! Ranges of fields. Declarations see them without importing them.

use std::ops::Bound::{self, Excluded, Included, Unbounded};

use super::kind::{FloatRange, Kind, Names, Subject};

/// Whole numbers from `min` to `max`.
pub const fn integer(min: i128, max: i128) -> Kind {
    Kind::Integer { min, max }
}

/// Any count of at least `min`.
pub const fn at_least(min: i128) -> Kind {
    integer(min, u32::MAX as i128)
}

const fn float(lower: Bound<f64>, upper: Bound<f64>) -> Kind {
    Kind::Float(FloatRange(lower, upper))
}

/// Any finite number.
pub const ANY_NUMBER: Kind = float(Unbounded, Unbounded);
/// At least 0.
pub const NOT_NEGATIVE: Kind = float(Included(0.0), Unbounded);
/// 0 to 1.
pub const FRACTION: Kind = float(Included(0.0), Included(1.0));
/// Thousandths, less than the whole.
pub const PERMILLE: Kind = integer(0, 999);
/// 0 to 100.
pub const PERCENT: Kind = float(Included(0.0), Included(100.0));
/// At least 0, less than 1.
pub const BELOW_ONE: Kind = float(Included(0.0), Excluded(1.0));
/// More than 0, less than 1.
pub const OPEN_FRACTION: Kind = float(Excluded(0.0), Excluded(1.0));
/// More than 0, at most 1.
pub const SHARE: Kind = float(Excluded(0.0), Included(1.0));
/// More than 0.
pub const POSITIVE: Kind = float(Excluded(0.0), Unbounded);
/// The mean of pixels from 0 to 1; one that a network gives may lie a little below.
pub const MEAN: Kind = float(Included(-1.0), Included(1.0));

/// Name of a task.
pub const TASK: Kind = Kind::Text(Names::Registered(Subject::Tasks));
/// Name of a data set.
pub const DATA: Kind = Kind::Text(Names::Registered(Subject::Data));
/// Name of a host.
pub const HOST: Kind = Kind::Text(Names::Registered(Subject::Hosts));
/// Name of a blueprint.
pub const BLUEPRINT: Kind = Kind::Text(Names::Registered(Subject::Blueprints));
/// Name of a controller.
pub const CONTROLLER: Kind = Kind::Text(Names::Registered(Subject::Controllers));
/// Name of a policy network.
pub const NETWORK: Kind = Kind::Text(Names::Registered(Subject::Networks));
/// Name of a reward mode.
pub const REWARD: Kind = Kind::Text(Names::Registered(Subject::Rewards));

/// Settings of the part that the field `name` of the same record chooses.
pub const fn settings_of(name: &'static str) -> Kind {
    Kind::Settings(name)
}

/// The name of a run or task: it becomes part of a folder's name.
pub const RUN_NAME: Kind = Kind::Text(Names::Form {
    noun: "run name",
    form: "1 to 64 letters, digits, `.`, `_` or `-`, starting with a letter or digit",
    accepts: |text| text.is_empty() || is_plain_name(text, 64),
});

/// Returns whether a text is 1 to `longest` letters, digits, `.`, `_` or `-`, starting with a letter or digit.
pub fn is_plain_name(text: &str, longest: usize) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    text.len() <= longest && text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(part)
}
