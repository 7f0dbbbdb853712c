//! Seeds: what can grow in a slot, and the life it leads there.

mod kinds;
mod report;

pub use kinds::*;
pub use report::*;
