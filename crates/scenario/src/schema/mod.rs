//! The language in which settings are declared: name, type, default, range, unit and documentation in one place.
//!
//! [`section!`] and `record!` declare a struct, [`choice!`] an enum, `overlay!` the optional replacements for some
//! fields of a record. From a declaration follow the serde type, its `Default`, its rustdoc and its [`Kind`], the
//! description that checking, `--set`, `explain` and error messages read.
//!
//! ```text
//! section! {
//!     /// Section `run`: size and placement of the run.
//!     pub struct RunConfig {
//!         /// Number of envs that train at once.
//!         n_envs: usize = 4, integer(1, 4096);
//!         /// A loss up to this is never suspicious.
//!         #[unit = "nats"]
//!         absolute_limit: f64 = 12.0, POSITIVE;
//!     }
//! }
//! ```
//! A field without `= default` has its type's. The range, any constant of [`range`] or another [`Kind`], applies to what
//! an option or list holds; without one the type alone decides.

mod kind;
pub mod range;
/// The place in which declarations find serde: its attribute takes no `$crate`, and a glob import may be repeated.
#[doc(hidden)]
pub mod derive {
    pub use serde as simic_serde;
}
mod described;
mod declare;
mod registry;
#[cfg(test)]
mod tests;

pub(crate) use declare::overlay;
#[doc(hidden)]
pub use declare::{choice, field, name_of, record, section, structure};
pub use described::{Described, Settings, Written};
pub use kind::{Content, Field, FloatRange, Kind, Names, Subject, Variant, snake_case};
#[doc(hidden)]
pub use registry::registry;
pub use registry::{Declared, NameError, Registry};
