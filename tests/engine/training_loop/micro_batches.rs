//! A batch in parts trains as the whole batch does.

use simic_engine::internals::torch::NoGrad;
use simic_engine::prelude::*;

use super::support::*;

/// Gradients before the update, and parameters after it.
#[derive(Default)]
struct Trained {
    gradients: Vec<Vec<f32>>,
    params: Vec<Vec<f32>>,
    loss: f64,
}

/// Every sample becomes the batch's first image under its own label. Batch norm then sees the same statistics in every
/// part of a batch, so that parts and whole differ by nothing but the weights of the parts.
fn repeat_first_image(batch: &mut HookedBatch, _: &mut Trained) {
    let _no_grad = NoGrad::new();
    let images = &mut batch.samples.x;
    let first = images.narrow(0, 0, 1).copy();
    images.copy_(&first.expand_as(images));
}

fn note_gradients(batch: &mut HookedBatch, trained: &mut Trained) {
    let env = &mut batch.env;
    let seeds = env.seed_optimizers.0.iter_mut().flatten();
    let of_seeds = seeds.flat_map(|seed| seed.get().params().iter().map(Tensor::grad));
    let gradients: Vec<Tensor> = host_gradients(&mut env.host).into_iter().chain(of_seeds).collect();
    trained.gradients = gradients.iter().map(values).collect();
}

fn note_params(mut envs: Query<(&mut HostModel, &TrainMetrics)>, trained: Res<Shared<Trained>>) {
    let (mut host, metrics) = envs.single_mut().expect("one env");
    let params = host.0.get().params().trainable();
    let mut trained = trained.lock();
    trained.params = params.iter().map(|param| values(&param.tensor)).collect();
    trained.loss = metrics.loss;
}

/// One seed in training from step 3 on; batches of ten in `parts`.
fn train(parts: usize) -> Trained {
    let policy = schedule(&[(1, &germinate("r0c1", "conv_small")), (2, &advance("r0c1"))]);
    let task = r#"preset("digits_minimal", (batch_size: 10, batches_per_step: count(1)))"#;
    let text = scenario(task, 1, 5, &policy);
    let text = text.replace("run: (", &format!("training: (micro_batches: {parts}), run: ("));
    play_hooked(app(&text, |app: &mut App| {
        hook(app, BatchPoint::Fetched, repeat_first_image);
        hook(app, BatchPoint::Backward, note_gradients);
        app.add_systems(StepEnd, note_params.after(Work::EmitStep));
    }))
}

#[test]
fn ten_samples_in_parts_of_3_3_2_2_give_the_gradients_of_the_whole() {
    let whole = train(1);
    let parts = train(4);

    // The host's tensors and the seed's: nothing is compared with nothing.
    assert!(whole.gradients.len() > whole.params.len());
    let mut gradients = whole.gradients.iter();
    assert!(gradients.all(|gradient| gradient.iter().any(|value| *value != 0.0)));
    assert!(largest_difference(&whole.gradients, &parts.gradients) < 1e-6);
    assert!(largest_difference(&whole.params, &parts.params) < 1e-6);
    assert!((whole.loss - parts.loss).abs() < 1e-6);
}
