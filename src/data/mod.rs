//! What envs train on: loading and splitting images and texts, their one resident copy per device, the per-env feed of
//! batches, losses, and the per-env accumulators of a step.
//!
//! Bytes flow `files of a format | digits | synth → dataset (split, checked, hashed) → resident (device) → feed (per env) → loss →
//! accumulators → read pack`; of texts `file | procedural → tokens → resident → feed → …` ([`TaskData`] is either).

mod accumulators;
mod arithmetic;
mod cutout;
mod dataset;
pub(crate) mod digits;
mod error;
mod feed;
mod formats;
pub(crate) mod idx;
mod locate;
mod loss;
mod normalise;
mod pack;
mod part;
mod plan;
mod registry;
mod resident;
mod split;
mod survey;
pub(crate) mod synth;
mod task_data;
mod tokens;

pub use accumulators::Accumulators;
pub use arithmetic::{FeedArithmetic, Sharing};
pub use dataset::{DataSet, load};
pub use error::DataError;
pub use feed::StepFeed;
pub use loss::{TrainLoss, evaluate_rows, train_loss};
pub use pack::{ConfigNumbers, GroupNumbers, PackLayout, SlotNumbers, StepNumbers};
pub use part::Part;
pub use plan::StepKey;
pub use registry::{CustomData, CustomImages, DataRegistry, DataRequest};
pub use resident::{Batch, EvalSet, ResidentData};
pub use survey::{ClassSurvey, Format, PartSurvey, Survey, survey};
pub use task_data::{Feed, Resident, TaskData};
pub use tokens::{ResidentTokens, TokenFeed, TokenSet, load_tokens};
