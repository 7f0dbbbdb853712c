use super::*;
use crate::data::dataset::tests::digits_task;
use crate::data::locate::tests::assert_refused;

fn arithmetic(batches: BatchesPerStep, [batch, train, envs]: [usize; 3]) -> Result<FeedArithmetic, DataError> {
    let mut task = digits_task();
    (task.batch_size, task.batches_per_step) = (batch, batches);
    FeedArithmetic::new(&task, train, 355, envs)
}

#[test]
fn a_full_step_of_digits_is_19_batches_and_leaves_50_samples() {
    let feed = arithmetic(BatchesPerStep::Full, [64, 1266, 8]).unwrap();

    assert_eq!((feed.batches, feed.n_train - feed.train_samples()), (19, 50));
    assert_eq!((feed.val_batch_size, feed.val_batches), (256, 2));
    assert_eq!(feed.val_samples(), 355);
}

#[test]
fn shards_divide_the_training_part_by_the_envs() {
    let four = arithmetic(BatchesPerStep::Shard, [512, 47_500, 4]).unwrap();
    assert_eq!((four.batches, four.sharing), (23, Sharing::Shard));

    let many = arithmetic(BatchesPerStep::Shard, [512, 47_500, 128]);
    assert_refused(many, "the largest legal batch_size is 371");
}

#[test]
fn a_set_of_50000_has_97_batches_of_512_a_quarter_has_24_and_validation_ends_with_a_short_one() {
    let full = arithmetic(BatchesPerStep::Full, [512, 50_000, 4]).unwrap();
    let shard = arithmetic(BatchesPerStep::Shard, [512, 50_000, 4]).unwrap();
    assert_eq!((full.batches, shard.batches), (97, 24));

    let mut task = digits_task();
    (task.batch_size, task.val_batch_size) = (512, Some(512));
    let feed = FeedArithmetic::new(&task, 50_000, 10_000, 4).unwrap();
    assert_eq!(feed.val_batches, 20);
    assert_eq!(feed.val_samples() - 19 * feed.val_batch_size, 272);
}

#[test]
fn a_count_may_exceed_one_pass() {
    let feed = arithmetic(BatchesPerStep::Count(30), [64, 1266, 8]).unwrap();

    assert_eq!((feed.batches, feed.batches_per_pass), (30, 19));
}

#[test]
fn impossible_counts_are_refused() {
    let large = arithmetic(BatchesPerStep::Count(1), [2000, 1266, 1]);
    let expected = "batches_per_step count and 1 env leaves no training batch of 1266 samples; the largest legal \
                batch_size is 1266";
    assert_refused(large, expected);

    let mut task = digits_task();
    task.val_batches_per_step = ValBatches::Count(3);
    let many = FeedArithmetic::new(&task, 1266, 355, 1);
    assert_refused(many, "task.val_batches_per_step is 3; it must be in 1..=2");
}
