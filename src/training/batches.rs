//! All training batches of a step of one env in one go: what the works of `TrainBatch` do batch after batch.

use super::components::EnvFeed;
use super::fetch::fetch;
use super::step::{TrainingEnvItem, TrainingRules};
use crate::env::in_batch;
use crate::health::Failure;
use crate::schedule::Work;
use crate::torch::Stream;

/// Fetches, trains on and forgets each of `batches` batches.
///
/// # Errors
/// That of the first work that fails; it knows its batch.
pub fn train_on_all(
    feed: &mut EnvFeed,
    env: &mut TrainingEnvItem,
    rules: &TrainingRules,
    stream: &Stream,
    batches: usize,
) -> Result<(), Failure> {
    for batch in 0..batches {
        in_batch(Work::FetchTrainBatch, batch, 0, || fetch(feed, &mut env.batch, batch))?;
        in_batch(Work::ForwardBackward, batch, 0, || rules.forward_backward(env, batch))?;
        in_batch(Work::Optimize, batch, 0, || rules.optimize(env, stream, batch))?;
    }
    Ok(())
}
