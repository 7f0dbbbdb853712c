//! A batch in parts trains as the whole batch does.

use bevy_app::App;
use bevy_ecs::prelude::*;
use simic_engine::env::{HostModel, SeedOptimizers};
use simic_engine::prelude::*;
use simic_engine::torch::NoGrad;
use simic_engine::training::BatchSlot;
use tch::Tensor;

use super::support::*;

/// Gradients before the update, and parameters after it.
#[derive(Resource, Default)]
struct Trained {
    gradients: Vec<Vec<f32>>,
    params: Vec<Vec<f32>>,
    loss: f64,
}

/// Every sample becomes the batch's first image under its own label. Batch norm then sees the same statistics in every
/// part of a batch, so that parts and whole differ by nothing but the weights of the parts.
fn repeat_first_image(mut envs: Query<&mut BatchSlot>) {
    let _no_grad = NoGrad::new();
    for mut slot in &mut envs {
        let batch = slot.0.get().as_mut().expect("a batch was fetched");
        let first = batch.x.narrow(0, 0, 1).copy();
        batch.x.copy_(&first.expand_as(&batch.x));
    }
}

fn note_gradients(mut envs: Query<(&mut HostModel, &mut SeedOptimizers)>, mut trained: ResMut<Trained>) {
    for (mut host, mut optimizers) in &mut envs {
        let seeds = optimizers.0.iter_mut().flatten();
        let of_seeds = seeds.flat_map(|seed| seed.get().params().iter().map(Tensor::grad));
        let gradients: Vec<Tensor> = host_gradients(&mut host).into_iter().chain(of_seeds).collect();
        trained.gradients = gradients.iter().map(values).collect();
    }
}

fn note_params(mut envs: Query<(&mut HostModel, &TrainMetrics)>, mut trained: ResMut<Trained>) {
    for (mut host, metrics) in &mut envs {
        let params = host.0.get().params().trainable();
        trained.params = params.iter().map(|param| values(&param.tensor)).collect();
        trained.loss = metrics.loss;
    }
}

/// One seed in training from step 3 on; batches of ten in `parts`.
fn train(parts: usize) -> Trained {
    let policy = schedule(&[(1, &germinate("r0c1", "conv_small")), (2, &advance("r0c1"))]);
    let text = format!(
        r#"(
            name: "test", policy: {policy}, training: (micro_batches: {parts}),
            preset: "manual", task: preset("digits_minimal", (batch_size: 10, batches_per_step: count(1))),
            run: (rounds: 1, n_envs: 1, max_steps: 5),
        )"#
    );
    play(app(&text, |app: &mut App| {
        app.init_resource::<Trained>()
            .add_systems(
                TrainBatch,
                repeat_first_image
                    .after(Work::FetchTrainBatch)
                    .before(Work::ForwardBackward),
            )
            .add_systems(
                TrainBatch,
                note_gradients.after(Work::ForwardBackward).before(Work::InjectFaults),
            )
            .add_systems(StepEnd, note_params.after(Work::EmitStep));
    }))
}

#[test]
fn ten_samples_in_parts_of_3_3_2_2_give_the_gradients_of_the_whole() {
    let whole = train(1);
    let parts = train(4);

    // The host's tensors and the seed's: nothing is compared with nothing.
    assert!(whole.gradients.len() > whole.params.len());
    assert!(
        whole
            .gradients
            .iter()
            .all(|gradient| gradient.iter().any(|value| *value != 0.0))
    );
    assert!(largest_difference(&whole.gradients, &parts.gradients) < 1e-6);
    assert!(largest_difference(&whole.params, &parts.params) < 1e-6);
    assert!((whole.loss - parts.loss).abs() < 1e-6);
}
