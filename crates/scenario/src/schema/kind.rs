//! Kinds of values, as constants that the declarations make.

use std::fmt;
use std::ops::{Bound, RangeBounds};

/// A key of a record, or a value inside `name(…)`; an unnamed one shares the path of the choice itself.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name in a scenario; empty for an item without one.
    pub name: &'static str,
    /// Its meaning.
    pub doc: &'static str,
    /// Unit of a number.
    pub unit: Option<&'static str>,
    /// Kind of its value.
    pub kind: Kind,
    /// True if it may be left out.
    pub has_default: bool,
}

impl Field {
    /// Without name and documentation of its own.
    pub const fn unnamed(kind: Kind) -> Self {
        Self {
            name: "",
            doc: "",
            unit: None,
            kind,
            has_default: false,
        }
    }

    /// As an item: may be left out, as the coefficients of `sparse()`; it then is the empty record.
    pub fn is_optional_item(&self) -> bool {
        matches!(self.kind, Kind::Record(fields) if fields.iter().all(|field| field.has_default))
    }

    /// Has neither a default nor `None` to fall back to; of settings each has a default.
    pub const fn must_be_written(&self) -> bool {
        !self.has_default && !matches!(self.kind, Kind::Optional(_) | Kind::Settings(_))
    }

    /// The field `name` of a record, as one that may be left out; with its own documentation unless `doc` is empty.
    ///
    /// Evaluated while compiling: a record without such a field is a compile error.
    pub const fn replacing(record: Kind, name: &'static str, doc: &'static str) -> Self {
        let Kind::Record(fields) = record else {
            panic!("only fields of a record can be replaced");
        };
        let mut index = 0;
        while !is_same(fields[index].name, name) {
            index += 1;
        }
        let replaced: &'static Self = &fields[index];
        Self {
            doc: if doc.is_empty() { replaced.doc } else { doc },
            kind: match replaced.kind {
                Kind::Optional(_) => replaced.kind,
                _ => Kind::Optional(&replaced.kind),
            },
            has_default: true,
            ..*replaced
        }
    }
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

/// One member of a choice.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// The name in a scenario.
    pub name: &'static str,
    /// Meaning of this choice.
    pub doc: &'static str,
    /// Its content.
    pub content: Content,
}

/// The content of the parentheses after a choice's name.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// `name`.
    Nothing,
    /// `name(item, …)`.
    Items(&'static [Field]),
    /// `name(key: …)`.
    Fields(&'static [Field]),
}

/// Kind of a value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Integer {
        /// Smallest.
        min: i128,
        /// Largest.
        max: i128,
    },
    /// A number.
    Float(FloatRange),
    /// Text in quotes.
    Text(Names),
    /// `None` or a value.
    Optional(&'static Kind),
    /// `[a, ..]`.
    List(&'static Kind),
    /// `(key: value, ..)`.
    Record(&'static [Field]),
    /// One of some names, which may take more.
    Choice(&'static [Variant]),
    /// The settings of the part that the field of this name, in the same record, chooses: a record that the part declares.
    Settings(&'static str),
    /// Any value, kept as it was written, for another description to decide about.
    Written,
}

impl Kind {
    /// The kind inside an option or a list; else the kind itself.
    pub const fn inner(self) -> Self {
        match self {
            Self::Optional(inner) | Self::List(inner) => *inner,
            plain => plain,
        }
    }

    /// The same option or list of `inner`, or `inner` itself, a narrower range than this one.
    ///
    /// Evaluated while compiling: a range whose type isn't the field's is a compile error.
    pub const fn with_inner(self, inner: &'static Self) -> Self {
        match (self, *inner) {
            (Self::Optional(_), _) => Self::Optional(inner),
            (Self::List(_), _) => Self::List(inner),
            (Self::Integer { .. }, Self::Integer { .. })
            | (Self::Float(_), Self::Float(_))
            | (Self::Text(_), Self::Text(_))
            | (Self::Settings(_), Self::Settings(_)) => *inner,
            _ => panic!("the range does not belong to the field's type"),
        }
    }
}

/// An interval of finite numbers, by its lower and upper end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatRange(pub Bound<f64>, pub Bound<f64>);

impl FloatRange {
    /// Returns whether the number lies in it.
    pub fn contains(&self, value: f64) -> bool {
        value.is_finite() && (self.0, self.1).contains(&value)
    }
}

impl fmt::Display for FloatRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |bound, included: &str, excluded: &str| match bound {
            Bound::Included(end) => Some(format!("{included} {end}")),
            Bound::Excluded(end) => Some(format!("{excluded} {end}")),
            Bound::Unbounded => None,
        };
        let lower = end(self.0, "at least", "more than");
        let upper = end(self.1, "at most", "less than");
        match (lower, upper) {
            (Some(lower), Some(upper)) => write!(f, "{lower}, {upper}"),
            (Some(only), None) | (None, Some(only)) => f.write_str(&only),
            (None, None) => f.write_str("any finite number"),
        }
    }
}

/// The names that a text may be.
#[derive(Clone, Copy, Debug)]
pub enum Names {
    /// Anything.
    Free,
    /// The members of a closed set, in lower case; they match in either case.
    Members {
        /// Noun for one of them.
        noun: &'static str,
        /// All of them.
        list: fn() -> Vec<String>,
    },
    /// Names that parts are registered under, those of plugins included; they match in either case.
    Registered(Subject),
    /// Any text of a certain form.
    Form {
        /// Noun for it.
        noun: &'static str,
        /// In words.
        form: &'static str,
        /// Returns whether a text has it.
        accepts: fn(&str) -> bool,
    },
}

/// The subjects that names are registered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Tasks, by their presets.
    Tasks,
    /// Data sets.
    Data,
    /// Host networks.
    Hosts,
    /// Seed modules.
    Blueprints,
    /// Controllers.
    Controllers,
    /// Policy networks.
    Networks,
    /// Reward modes.
    Rewards,
}

impl Names {
    /// Noun for what a name stands for.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Free => "text",
            Self::Members { noun, .. } | Self::Form { noun, .. } => noun,
            Self::Registered(Subject::Tasks) => "task",
            Self::Registered(Subject::Data) => "data set",
            Self::Registered(Subject::Hosts) => "host",
            Self::Registered(Subject::Blueprints) => "blueprint",
            Self::Registered(Subject::Controllers) => "controller",
            Self::Registered(Subject::Networks) => "network",
            Self::Registered(Subject::Rewards) => "reward mode",
        }
    }
}

/// `PerEnv` as `per_env`, serde's spelling of a variant, for constants: letters, and how many they are.
pub const fn snake_case(name: &str) -> ([u8; 64], usize) {
    let bytes = name.as_bytes();
    let mut snake = [b'_'; 64];
    let (mut at, mut index) = (0, 0);
    while index < bytes.len() {
        if index > 0 && bytes[index].is_ascii_uppercase() {
            at += 1;
        }
        snake[at] = bytes[index].to_ascii_lowercase();
        at += 1;
        index += 1;
    }
    (snake, at)
}
