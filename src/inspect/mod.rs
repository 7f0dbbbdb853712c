//! What is left of runs and sweeps, seen from outside: whether a folder is whole and what it is good for ([`check()`]), and
//! where two runs part ([`diff()`]). Nothing on disk is changed.

mod check;
mod diff;

pub use check::{Check, CheckVerdict, Finding, Part, Use, Weight, check};
pub use diff::{Compared, Diff, DiffError, DiffKind, Difference, Extent, Side, diff};
