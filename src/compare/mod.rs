//! Comparisons between controllers that played the same episodes: estimates with intervals, and paired differences.

mod standings;
mod statistics;

pub use standings::{Difference, Estimate, Paired, Played, Standing, Standings, Summary};
pub use statistics::{Interval, bootstrap_interval, iqm, mean, percentile};
