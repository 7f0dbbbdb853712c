//! Statistics of experiments: pure functions of numbers, without an ECS, tensors or files.
//!
//! The unit of analysis is the *training*: one policy trained from one seed. Its episodes aren't replicates of their own,
//! because they share what was learnt. Hosts that all trainings were evaluated on are a sample of hosts.
//! A [`Sample`] has the trainings
//! of one arm by task. [`estimate`] and [`difference`] give intervals with trainings and hosts at random, [`mann_whitney`]
//! and [`sign_flip`] test two arms, [`holm`] corrects for several tests, and `verdict` draws the conclusion.
//! Interquartile means and [`probability_of_improvement`] are those of Agarwal et al., "Deep Reinforcement Learning at the Edge of
//! the Statistical Precipice" (NeurIPS 2021), as the library rliable computes them. Only [`policy_estimate`] is about a single training.
//!
//! All inputs must be finite: callers leave out unmeasured values, for both of a pair, and report their number.
//! With other inputs the result is not finite, or `None` where it is optional. It is never a number that looks right.
//! Higher values are better throughout.
//!
//! Equal inputs give equal numbers, bit for bit: resampling draws from its own streams, and nothing depends on threads.

mod summary;
mod sample;
mod curve;
mod permutation;
mod rank;
mod student;
mod bootstrap;
mod proportion;
mod verdict;
#[cfg(test)]
mod fixtures;

pub use bootstrap::{Bootstrap, Design, Estimate, difference, estimate, policy_estimate, probability_of_improvement};
pub use curve::{common_grid, interpolate};
pub use permutation::sign_flip;
pub use proportion::{Z, wilson};
pub use rank::mann_whitney;
pub use sample::{Interval, Sample, Training};
pub use student::mean_and_interval;
pub use summary::{Statistic, mean, mean_of, percentile};
pub use verdict::{Arm, Criteria, DecisionTest, Verdict, holm, verdict};
