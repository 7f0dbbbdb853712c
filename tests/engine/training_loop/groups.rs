//! Host and seeds are groups of their own: what befalls one gradient changes no other's update.

use bevy_app::App;
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::ScheduleConfigs;
use bevy_ecs::system::ScheduleSystem;
use simic_engine::env::{HostModel, SeedOptimizers};
use simic_engine::prelude::*;
use simic_engine::training::BatchSlot;

use super::support::*;

/// Bits of the host and of the seeds in the two slots.
#[derive(Default, PartialEq)]
struct Weights {
    host: Vec<Vec<u32>>,
    seeds: Vec<Vec<Vec<u32>>>,
}

impl Weights {
    fn of(envs: &mut Query<(&mut HostModel, &mut SeedOptimizers)>) -> Self {
        let (mut host, mut optimizers) = envs.single_mut().expect("one env");
        Self {
            host: host_bits(&mut host),
            seeds: seed_bits(&mut optimizers),
        }
    }
}

#[derive(Resource, Default)]
struct Notes {
    /// Around the update of the last batch.
    before: Weights,
    after: Weights,
    /// Updates of the host that the last step suppressed.
    skipped: u64,
}

fn note_before(mut envs: Query<(&mut HostModel, &mut SeedOptimizers)>, mut notes: ResMut<Notes>) {
    notes.before = Weights::of(&mut envs);
}

fn note_after(mut envs: Query<(&mut HostModel, &mut SeedOptimizers)>, mut notes: ResMut<Notes>) {
    notes.after = Weights::of(&mut envs);
}

fn note_skipped(envs: Query<&TrainMetrics>, mut notes: ResMut<Notes>) {
    notes.skipped = envs.single().expect("one env").skipped_updates;
}

fn is_last_batch(clock: Res<RunClock>) -> bool {
    clock.is_last_step() && clock.batch() == 1
}

/// Trains two seeds side by side; `tamper` meets the gradients of the last batch.
fn train(tamper: ScheduleConfigs<ScheduleSystem>) -> Notes {
    let policy = schedule(&[
        (1, &germinate("r0c0", "conv_small")),
        (2, &advance("r0c0")),
        (3, &germinate("r0c1", "conv_small")),
        (4, &advance("r0c1")),
    ]);
    let mut app = app(&scenario(MINIMAL, 1, 6, &policy), |app: &mut App| {
        app.init_resource::<Notes>()
            .add_systems(TrainBatch, note_after.after(Work::Optimize).run_if(is_last_batch))
            .add_systems(StepEnd, note_skipped.after(Work::EmitStep));
    });
    let between = (note_before, tamper).chain().run_if(is_last_batch);
    app.app_mut().add_systems(
        TrainBatch,
        between.after(Work::ForwardBackward).before(Work::InjectFaults),
    );
    play(app)
}

fn untouched() -> Notes {
    let notes = train((|| {}).into_configs());
    // Given: without interference all three groups learn from the last batch.
    assert!(notes.after.host != notes.before.host);
    assert!(notes.after.seeds[0] != notes.before.seeds[0]);
    assert!(notes.after.seeds[1] != notes.before.seeds[1]);
    assert_eq!(notes.skipped, 0);
    notes
}

#[test]
fn a_host_gradient_times_1000_changes_no_seed_s_update() {
    let magnify = |mut envs: Query<&mut HostModel>| {
        for mut gradient in host_gradients(&mut envs.single_mut().expect("one env")) {
            let _ = gradient.g_mul_scalar_(1000.0);
        }
    };

    let (plain, magnified) = (untouched(), train(magnify.into_configs()));

    assert!(magnified.after.host != plain.after.host);
    assert!(magnified.after.seeds == plain.after.seeds);
}

#[test]
fn a_nan_in_one_seed_s_gradient_stalls_that_seed_alone() {
    let spoil = |mut envs: Query<&mut SeedOptimizers>| {
        let mut optimizers = envs.single_mut().expect("one env");
        let seed = optimizers.0[0].as_mut().expect("the seed trains");
        let _ = seed.get().params()[0].grad().fill_(f64::NAN);
    };

    let (plain, spoiled) = (untouched(), train(spoil.into_configs()));

    assert!(spoiled.after.seeds[0] == spoiled.before.seeds[0]);
    assert!(spoiled.after.seeds[1] == plain.after.seeds[1]);
    assert!(spoiled.after.host == plain.after.host);
    assert_eq!(spoiled.skipped, 0);
}

#[test]
fn an_infinite_host_gradient_stalls_the_host_alone_and_is_counted() {
    let spoil = |mut envs: Query<&mut HostModel>| {
        let _ = host_gradients(&mut envs.single_mut().expect("one env"))[0].fill_(f64::INFINITY);
    };

    let (plain, spoiled) = (untouched(), train(spoil.into_configs()));

    assert!(spoiled.after.host == spoiled.before.host);
    assert!(spoiled.after.seeds == plain.after.seeds);
    assert_eq!(spoiled.skipped, 1);
}

/// A seed can blend a value into the features that is no number: the batch is lost, the host is not.
#[test]
fn a_batch_whose_features_are_no_numbers_leaves_weights_and_running_statistics_as_they_were() {
    let spoil = |mut batches: Query<&mut BatchSlot>| {
        let mut slot = batches.single_mut().expect("one env");
        let batch = slot.0.get().as_mut().expect("a batch was fetched");
        let _ = batch.x.narrow(0, 0, 1).fill_(f64::NAN);
    };
    let notes: Notes = play(app(&scenario(MINIMAL, 1, 2, WAIT), move |app: &mut App| {
        let before = (note_before, spoil).chain().run_if(is_last_batch);
        app.init_resource::<Notes>()
            .add_systems(
                TrainBatch,
                before.after(Work::FetchTrainBatch).before(Work::ForwardBackward),
            )
            .add_systems(TrainBatch, note_after.after(Work::Optimize).run_if(is_last_batch))
            .add_systems(StepEnd, note_skipped.after(Work::EmitStep));
    }));

    assert!(notes.after.host == notes.before.host);
    assert_eq!(notes.skipped, 1);
}
