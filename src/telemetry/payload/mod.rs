//! What each event carries: one struct an event, plain data, absent values left out.

/// Counts of several envs or episodes add up field by field.
macro_rules! added_by_field {
    ($counts:ident: $($field:ident),+) => {
        impl std::ops::AddAssign for $counts {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)+
            }
        }
    };
}

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
