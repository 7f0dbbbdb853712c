use super::*;
use crate::scenario::task_presets;

fn task(name: &str) -> TaskSpec {
    let found = task_presets().into_iter().find(|task| task.spec.name == name);
    found.expect("a preset").spec
}

#[test]
fn digits_split_into_1266_355_176_and_give_19_batches_of_64() {
    let digits = task("digits_baseline");
    let sizes = digits.data.part_sizes(&digits.split).expect("known");
    assert_eq!((sizes.train, sizes.val, sizes.test), (1266, 355, 176));
    assert_eq!(digits.train_batches(sizes.train, 8), 19);
}

/// As many samples as CIFAR-10 has for training, 47 500, in batches of 512.
#[test]
fn shard_divides_the_training_part_by_the_number_of_envs() {
    let mut spec = task("synth_baseline");
    spec.batch_size = 512;
    spec.batches_per_step = BatchesPerStep::Shard;
    assert_eq!(spec.train_batches(47_500, 4), 23);
    assert_eq!(spec.train_batches(47_500, 128), 0);
}
