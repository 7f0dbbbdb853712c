//! What envs train on: loading and splitting images and texts, their one resident copy per device, the per-env feed of
//! batches, losses, and the per-env accumulators of a step.
//!
//! Bytes flow `idx | digits | synth → dataset (split, checked, hashed) → resident (device) → feed (per env) → loss →
//! accumulators → read pack`; of texts `file | procedural → tokens → resident → feed → …` ([`TaskData`] is either).

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
mod task_data;
mod tokens;

pub use accumulators::Accumulators;
pub use arithmetic::{FeedArithmetic, Sharing};
pub use dataset::{DataSet, Part, load};
pub use error::DataError;
pub use feed::StepFeed;
pub use loss::{TrainLoss, evaluate_rows, train_loss};
pub use pack::{ConfigNumbers, GroupNumbers, PackLayout, SlotNumbers, StepNumbers};
pub use plan::StepKey;
pub use resident::{Batch, EvalSet, ResidentData};
pub use task_data::{Feed, Resident, TaskData};
pub use tokens::{ResidentTokens, TokenFeed, TokenSet, load_tokens};
