//! Data that envs train on: loading and splitting images and texts, their one resident copy per device or the way to them, the
//! per-env feed of batches.
//!
//! Bytes flow `files of a format | digits | synth → dataset (split, checked, hashed) → resident (device) → feed (per env)`; of
//! texts `file | procedural → tokens → resident → feed` ([`TaskData`] is either). Training data that do not lie on the device
//! reach the feed through `ahead`: threads that gather batches before they are due.

pub(crate) mod digits;
mod error;
mod locate;
mod shape;
mod cutout;
mod records;
mod part;
mod normalise;
mod registry;
mod split;
pub(crate) mod synth;
mod formats;
mod dataset;
mod arithmetic;
mod geometry;
mod plan;
mod ahead;
mod resident;
mod tokens;
mod survey;
mod own_images;
mod task_data;
mod feed;

pub use ahead::Readers;
pub use arithmetic::{FeedArithmetic, Sharing};
pub use dataset::{DataSet, Drawn, load};
pub use error::DataError;
pub use feed::{Feed, StepFeed};
pub(crate) use locate::locate;
pub use own_images::{ImagesOnDisk, check_own_images, own_images};
pub use part::{Images, Part};
pub use plan::StepKey;
pub use records::Records;
pub use registry::{CustomData, CustomImages, DataRegistry, DataRequest};
pub use resident::{Batch, EvalSet, ResidentData};
pub use survey::{ClassSurvey, Format, Known, PartSurvey, Survey, Surveyed, survey};
pub(crate) use task_data::refuse_packed;
pub use task_data::{Resident, TaskData};
pub use tokens::{ResidentTokens, TextSurvey, TokenFeed, TokenSet, Tokens, load_tokens};
