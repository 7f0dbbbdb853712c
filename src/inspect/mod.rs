//! Runs and sweeps seen from outside: whether a folder is whole and which uses remain ([`check()`]), and where two runs differ
//! ([`diff()`]). Nothing on disk is changed.

mod check;
mod diff;

pub use check::{Check, CheckVerdict, Finding, Part, Use, Weight, check};
pub use diff::{Compared, Diff, DiffError, DiffKind, Difference, Extent, Side, diff};
