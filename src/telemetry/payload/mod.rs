//! What each event carries: one struct an event, plain data, absent values left out.

mod attribution;
mod decision;
mod env;
mod governor;
mod learner;
mod lifecycle;
mod reward;
mod run;
mod sinks;

pub use attribution::*;
pub use decision::*;
pub use env::*;
pub use governor::*;
pub use learner::*;
pub use lifecycle::*;
pub use reward::*;
pub use run::*;
pub use sinks::*;
