//! Host and seeds are groups of their own: what befalls one gradient changes no other's update.

use std::sync::LazyLock;

use simic_engine::prelude::*;

use super::support::*;

/// Bits of the host and of the seeds in the two slots.
type Weights = (Vec<Vec<u32>>, Vec<Vec<Vec<u32>>>);

fn weights(batch: &mut HookedBatch) -> Weights {
    let env = &mut batch.env;
    (host_bits(&mut env.host), seed_bits(&mut env.seed_optimizers))
}

#[derive(Default)]
struct Notes {
    /// Around the update of the last batch.
    before: Weights,
    after: Weights,
    /// Updates of the host that the last step suppressed.
    skipped: u64,
}

/// Plays `text`, with notes around what happens between `point` of the last batch and its end; `tamper` meets the batch there.
fn watch(text: &str, point: BatchPoint, tamper: impl Fn(&mut HookedBatch) + Send + Sync + Copy + 'static) -> Notes {
    play_hooked(app(text, move |app: &mut App| {
        hook(app, point, move |batch, notes: &mut Notes| {
            if is_last_batch(batch) {
                notes.before = weights(batch);
                tamper(batch);
            }
        });
        hook(app, BatchPoint::Updated, |batch, notes: &mut Notes| {
            if is_last_batch(batch) {
                notes.after = weights(batch);
            }
        });
        let note_skipped = |envs: Query<&TrainMetrics>, notes: Res<Shared<Notes>>| {
            notes.lock().skipped = envs.single().expect("one env").skipped_updates;
        };
        app.add_systems(StepEnd, note_skipped.after(Work::EmitStep));
    }))
}

/// Trains two seeds side by side; `tamper` meets the gradients of the last batch.
fn train(tamper: impl Fn(&mut HookedBatch) + Send + Sync + Copy + 'static) -> Notes {
    let policy = schedule(&[
        (1, &germinate("r0c0", "conv_small")),
        (2, &advance("r0c0")),
        (3, &germinate("r0c1", "conv_small")),
        (4, &advance("r0c1")),
    ]);
    watch(&scenario(MINIMAL, 1, 6, &policy), BatchPoint::Backward, tamper)
}

static UNTOUCHED: LazyLock<Notes> = LazyLock::new(|| train(|_| {}));

#[test]
fn without_interference_all_groups_learn_from_the_last_batch() {
    let Notes { before, after, skipped } = &*UNTOUCHED;

    assert!(after.0 != before.0);
    assert!(after.1[0] != before.1[0] && after.1[1] != before.1[1]);
    assert_eq!(*skipped, 0);
}

#[test]
fn a_host_gradient_times_1000_changes_no_seed_s_update() {
    let magnified = train(|batch| {
        for mut gradient in host_gradients(&mut batch.env.host) {
            let _ = gradient.g_mul_scalar_(1000.0);
        }
    });

    assert!(magnified.after.0 != UNTOUCHED.after.0);
    assert!(magnified.after.1 == UNTOUCHED.after.1);
}

#[test]
fn a_nan_in_one_seed_s_gradient_stalls_that_seed_alone() {
    let spoiled = train(|batch| {
        let seed = batch.env.seed_optimizers.0[0].as_mut().expect("the seed trains");
        let _ = seed.get().params()[0].grad().fill_(f64::NAN);
    });

    assert!(spoiled.after.1[0] == spoiled.before.1[0]);
    assert!(spoiled.after.1[1] == UNTOUCHED.after.1[1]);
    assert!(spoiled.after.0 == UNTOUCHED.after.0);
    assert_eq!(spoiled.skipped, 0);
}

#[test]
fn an_infinite_host_gradient_stalls_the_host_alone_and_is_counted() {
    let spoiled = train(|batch| {
        let _ = host_gradients(&mut batch.env.host)[0].fill_(f64::INFINITY);
    });

    assert!(spoiled.after.0 == spoiled.before.0);
    assert!(spoiled.after.1 == UNTOUCHED.after.1);
    assert_eq!(spoiled.skipped, 1);
}

/// A seed can blend a value into the features that isn't a number: the batch is lost, the host is not.
#[test]
fn a_batch_whose_features_are_not_numbers_leaves_weights_and_running_statistics_as_they_were() {
    let spoil = |batch: &mut HookedBatch| {
        let _ = batch.samples.x.narrow(0, 0, 1).fill_(f64::NAN);
    };
    let notes = watch(&scenario(MINIMAL, 1, 2, WAIT), BatchPoint::Fetched, spoil);

    assert!(notes.after.0 == notes.before.0);
    assert_eq!(notes.skipped, 1);
}
