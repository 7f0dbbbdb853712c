use super::*;
use crate::data::dataset::tests::{FIRST_STEP, augmentation, digits_task, loaded, small_colour_task};
use crate::scenario::{BatchesPerStep, DataSource, TaskSpec};

/// Feed plans of all envs of a task, without augmentation.
fn plans(task: &TaskSpec, n_envs: usize) -> Vec<FeedPlan> {
    let data = loaded(task);
    let arithmetic = FeedArithmetic::new(task, data.train.len(), data.val.len(), n_envs).unwrap();
    let plan = |env| FeedPlan::of_crops(None, Geometry::new(&data, None), arithmetic, env);
    (0..n_envs as u64).map(plan).collect()
}

fn order(plan: &mut FeedPlan, key: StepKey) -> Vec<i64> {
    let mut samples = vec![0; plan.arithmetic.train_samples()];
    plan.draw_order(key, &mut samples);
    samples
}

#[test]
fn crops_are_the_published_ones() {
    let crops = |pad: u32| {
        let mut rng = RunRng::new(42, Domain::Augmentation, &[0, 0, 1, 0]);
        [(); 4].map(|()| {
            let crop = draw_crop(&mut rng, augmentation(pad, 0.5, None));
            (crop.top, crop.left, crop.is_flipped)
        })
    };

    assert_eq!(crops(4), [(3, 5, true), (1, 4, false), (0, 8, true), (0, 7, true)]);
    assert_eq!(crops(1), [(1, 1, true), (0, 1, false), (0, 2, true), (0, 2, true)]);
}

#[test]
fn the_order_of_an_env_is_the_published_permutation() {
    let mut task = small_colour_task();
    if let DataSource::SynthImages(params) = &mut task.data {
        params.train = 8;
    }
    task.batch_size = 4;
    let mut envs = plans(&task, 2);

    assert_eq!(order(&mut envs[0], FIRST_STEP), [5, 1, 6, 4, 3, 2, 7, 0]);
    assert_eq!(order(&mut envs[1], FIRST_STEP), [4, 5, 7, 3, 0, 1, 6, 2]);
    let second = StepKey { step: 2, ..FIRST_STEP };
    assert_eq!(order(&mut envs[0], second), [3, 0, 6, 7, 5, 2, 1, 4]);
}

#[test]
fn batches_beyond_one_pass_come_from_a_new_permutation() {
    let full = order(&mut plans(&digits_task(), 1)[0], FIRST_STEP);
    let mut long_task = digits_task();
    long_task.batches_per_step = BatchesPerStep::Count(30);

    let long = order(&mut plans(&long_task, 1)[0], FIRST_STEP);

    // Batches 0..19 are pass 0, batches 19..30 begin pass 1.
    let mut second: Vec<i64> = (0..1266).collect();
    RunRng::new(42, Domain::DataOrder, &[0, 0, 1, 1]).shuffle(&mut second);
    assert_eq!(long[..19 * 64], full);
    assert_eq!(long[19 * 64..], second[..11 * 64]);
    assert_eq!(long.len(), 30 * 64);
}

#[test]
fn only_shards_depend_on_the_number_of_envs() {
    let mut shard_task = digits_task();
    shard_task.batches_per_step = BatchesPerStep::Shard;
    let orders = |task: &TaskSpec, n_envs: usize| -> Vec<Vec<i64>> {
        let mut envs = plans(task, n_envs);
        envs.iter_mut().map(|plan| order(plan, FIRST_STEP)).collect()
    };

    let per_env = orders(&digits_task(), 4);
    assert_eq!(per_env[2], orders(&digits_task(), 8)[2]);

    let shards = orders(&shard_task, 4);
    assert_ne!(shards[2], orders(&shard_task, 8)[2]);
    let mut all = shards.concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 4 * 4 * 64, "shards overlap");
}
