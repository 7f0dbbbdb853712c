//! The data of each event: one struct an event, plain data, absent values left out.

/// Counts of several envs or episodes add up field by field. What was read from a file may hold any numbers: the
/// largest is kept.
macro_rules! added_by_field {
    ($counts:ident: $($count:ident),+) => {
        impl std::ops::AddAssign for $counts {
            fn add_assign(&mut self, other: Self) {
                $(self.$count = self.$count.saturating_add(other.$count);)+
            }
        }
    };
}

mod anomaly;
mod attribution;
mod governor;
mod learner;
mod lifecycle;
mod reward;
mod decision;
mod env;
mod phases;
mod run;

pub use anomaly::*;
pub use attribution::*;
pub use decision::*;
pub use env::*;
pub use governor::*;
pub use learner::*;
pub use lifecycle::*;
pub use phases::*;
pub use reward::*;
pub use run::*;
