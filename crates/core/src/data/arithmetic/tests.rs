use super::*;
use crate::data::dataset::tests::digits_task;

fn arithmetic(
    batch_size: usize,
    batches_per_step: BatchesPerStep,
    n_train: usize,
    n_envs: usize,
) -> Result<FeedArithmetic, DataError> {
    let task = TaskSpec {
        batch_size,
        batches_per_step,
        ..digits_task()
    };
    FeedArithmetic::from_counts(&task, (n_train, 355), n_envs)
}

#[test]
fn a_full_step_of_digits_is_19_batches_and_leaves_50_samples() {
    let feed = arithmetic(64, BatchesPerStep::Full, 1266, 8).unwrap();

    assert_eq!(feed.batches, 19);
    assert_eq!(feed.n_train - feed.train_samples(), 50);
    assert_eq!(
        (feed.val_batch_size, feed.val_batches, feed.val_samples()),
        (256, 2, 355)
    );
}

#[test]
fn shards_divide_the_training_part_by_the_envs() {
    let four = arithmetic(512, BatchesPerStep::Shard, 47_500, 4).unwrap();
    assert_eq!((four.batches, four.sharing), (23, Sharing::Shard));

    let many = arithmetic(512, BatchesPerStep::Shard, 47_500, 128).unwrap_err();
    assert!(matches!(many, DataError::TooSmall { max_batch: 371, .. }));
}

#[test]
fn a_set_of_50000_has_97_batches_of_512_a_quarter_has_24_and_validation_ends_with_a_short_one() {
    let full = arithmetic(512, BatchesPerStep::Full, 50_000, 4).unwrap();
    let shard = arithmetic(512, BatchesPerStep::Shard, 50_000, 4).unwrap();
    assert_eq!((full.batches, shard.batches), (97, 24));

    let task = TaskSpec {
        batch_size: 512,
        val_batch_size: Some(512),
        ..digits_task()
    };
    let feed = FeedArithmetic::from_counts(&task, (50_000, 10_000), 4).unwrap();
    assert_eq!(feed.val_batches, 20);
    assert_eq!(feed.val_samples() - 19 * feed.val_batch_size, 272);
}

#[test]
fn a_count_may_exceed_one_pass() {
    let feed = arithmetic(64, BatchesPerStep::Count(30), 1266, 8).unwrap();

    assert_eq!((feed.batches, feed.batches_per_pass), (30, 19));
}

#[test]
fn impossible_counts_are_refused() {
    assert!(matches!(
        arithmetic(2000, BatchesPerStep::Count(1), 1266, 1),
        Err(DataError::TooSmall {
            max_batch: 1266,
            mode: "count",
            ..
        })
    ));
    let task = TaskSpec {
        val_batches_per_step: ValBatches::Count(3),
        ..digits_task()
    };
    assert!(matches!(
        FeedArithmetic::from_counts(&task, (1266, 355), 1),
        Err(DataError::BatchCount { asked: 3, available: 2 })
    ));
}
