//! Training is channels-last throughout: no op and no gradient falls back.

use simic_engine::internals::seed::SeedInstance;
use simic_engine::internals::torch::{NoGrad, is_channels_last};
use simic_engine::prelude::*;

use super::support::*;

/// The number of features, weights and gradients seen, and those that aren't channels-last.
#[derive(Default)]
struct Layouts {
    seen: usize,
    fallen_back: Vec<String>,
}

impl Layouts {
    fn look(&mut self, tensor: &Tensor, what: &str) {
        self.seen += 1;
        let (size, stride) = (tensor.size(), tensor.stride());
        let is_wrong = !is_channels_last(tensor);
        self.fallen_back
            .extend(is_wrong.then(|| format!("{what}: {size:?} {stride:?}")));
    }
}

fn look_at_features(batch: &mut HookedBatch, layouts: &mut Layouts) {
    if !batch.clock.is_last_step() {
        return;
    }
    let _no_grad = NoGrad::new();
    let host = batch.env.host.0.get();
    layouts.look(&batch.samples.x, "batch");
    let mut features = batch.samples.x.shallow_clone();
    for op in 0..host.num_ops() - 1 {
        features = host.run(op..op + 1, &features, Mode::Train).expect("ops run");
        layouts.look(&features, &format!("features after op {op}"));
    }
}

fn look_at_gradients(batch: &mut HookedBatch, layouts: &mut Layouts) {
    if !batch.clock.is_last_step() {
        return;
    }
    let env = &mut batch.env;
    let seeds = env.slots.0.iter_mut().filter_map(|slot| slot.module.as_mut());
    let of_seeds = seeds.flat_map(|seed| (seed.get() as &SeedInstance).params());
    let convolutions = env.host.0.get().params().trainable().iter().chain(of_seeds);
    for param in convolutions.filter(|param| param.tensor.dim() == 4) {
        layouts.look(&param.tensor, &param.name);
        layouts.look(&param.tensor.grad(), &format!("gradient of {}", param.name));
    }
}

/// Trains with `blueprint` in training in the first slot and blending in the second.
fn train(task: &str, blueprint: &str) -> Layouts {
    let policy = schedule(&[
        (1, &germinate("r0c1", blueprint)),
        (2, &advance("r0c1")),
        (11, &germinate("r0c0", blueprint)),
        (12, &advance("r0c1")),
        (13, &advance("r0c0")),
    ]);
    play_hooked(app(&scenario(task, 1, 14, &policy), |app: &mut App| {
        hook(app, BatchPoint::Fetched, look_at_features);
        hook(app, BatchPoint::Backward, look_at_gradients);
    }))
}

#[test]
fn no_feature_and_no_gradient_of_a_training_step_falls_back_from_channels_last() {
    const SYNTH: &str = r#"preset("synth_baseline", (
        batch_size: 8, batches_per_step: count(1), val_batch_size: 8,
        data: synth_images((train: 10, val: 10, test: 10)),
    ))"#;
    let digits = |host| format!(r#"preset("digits_{host}", (batches_per_step: count(1)))"#);
    // Every seed module on a host of its own is a unit test.
    for (task, blueprint) in [
        (digits("minimal"), "depthwise"),
        (digits("impaired"), "bottleneck"),
        (digits("baseline"), "conv_small"),
        (SYNTH.into(), "depthwise"),
    ] {
        let layouts = train(&task, blueprint);

        // The batch, three blocks, and at least three weights of the host and one of each seed with gradients.
        assert!(layouts.seen >= 1 + 3 + 2 * (3 + 2), "{} seen", layouts.seen);
        assert_eq!(layouts.fallen_back, Vec::<String>::new(), "{blueprint} on {task}");
    }
}
