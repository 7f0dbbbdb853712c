//! What envs train on: loading, splitting and normalising image data, its one resident copy per device, the
//! per-env feed of batches, losses, and the per-env accumulators of a step.
//!
//! Bytes flow `idx | digits | synth → dataset (split, checked, hashed) → resident (device) → feed (per env) → loss →
//! accumulators → read pack`.

mod accumulators;
mod arithmetic;
mod dataset;
pub(crate) mod digits;
mod error;
mod feed;
pub(crate) mod idx;
mod loss;
mod normalise;
mod pack;
mod plan;
mod resident;
mod split;
pub(crate) mod synth;

pub use accumulators::Accumulators;
pub use arithmetic::{FeedArithmetic, Sharing};
pub use dataset::{DataSet, Part, load};
pub use error::DataError;
pub use feed::StepFeed;
pub use loss::{TrainLoss, evaluate_rows, train_loss};
pub use pack::{ConfigNumbers, GroupNumbers, PackLayout, SlotNumbers, StepNumbers};
pub use plan::StepKey;
pub use resident::{Batch, EvalSet, ResidentData};
