use super::*;
use crate::health::Position;

#[test]
fn of_several_failures_that_of_the_earliest_batch_counts_and_training_comes_before_validation() {
    let pool = EnvPool::new(2, OnEnvError::AbortRun).expect("two workers");
    let envs = [0, 1, 2].map(|index| (EnvId { index }, ()));
    let broken = || Err(Failure::message("it broke"));

    // Three training batches come before the first validation batch.
    let outcome = pool.for_each(envs, |id, ()| match id.index {
        0 => in_batch("validation", 0, 3, broken),
        1 => in_batch("optimize", 2, 0, broken),
        _ => in_batch("train", 2, 0, broken),
    });

    let error = outcome.expect_err("all fail").during("step", Position::default());
    assert_eq!(error.to_string(), "optimize failed at batch 3, env 1: it broke");
}
