//! Seeds: what can grow in a slot, and the life it leads there.

mod alpha;
mod change;
#[cfg(test)]
mod fixtures;
mod gates;
mod invariants;
mod kinds;
mod legality;
mod lifecycle;
mod record;
mod report;
mod stages;
mod statistics;

pub use alpha::*;
pub use change::*;
pub use gates::*;
pub use invariants::*;
pub use kinds::*;
pub use legality::*;
pub use lifecycle::*;
pub use record::*;
pub use report::*;
pub use stages::*;
pub use statistics::*;
