//! Storage of an env is allocated once: values change, tensors stay.

use std::collections::BTreeMap;

use simic_engine::internals::env::{HostOptimizer, SeedOptimizers};
use simic_engine::internals::training::{EnvAccumulators, EnvFeed, GroupNorms};
use simic_engine::internals::validation::ValidationBatches;
use simic_engine::prelude::*;

use super::support::*;

/// Addresses by name, as seen at the end of every step and before every update.
#[derive(Default)]
struct Addresses(BTreeMap<String, Vec<usize>>);

impl Addresses {
    fn note(&mut self, name: String, tensor: &Tensor) {
        self.0.entry(name).or_default().push(tensor.data_ptr().addr());
    }

    fn note_all<'a>(&mut self, name: &str, tensors: impl IntoIterator<Item = &'a Tensor>) {
        for (index, tensor) in tensors.into_iter().enumerate() {
            self.note(format!("{name} {index}"), tensor);
        }
    }

    /// Names of what moved or was not there.
    fn moved(&self) -> Vec<&String> {
        let is_moved =
            |addresses: &[usize]| addresses[0] == 0 || addresses.iter().any(|address| *address != addresses[0]);
        let moved = self.0.iter().filter(|(_, addresses)| is_moved(addresses));
        moved.map(|(name, _)| name).collect()
    }
}

type HostStorage = (
    &'static EnvId,
    &'static mut HostModel,
    &'static mut HostOptimizer,
    &'static mut EnvAccumulators,
    &'static mut EnvFeed,
    &'static mut GroupNorms,
    &'static mut ValidationBatches,
);

fn note_host(mut envs: Query<HostStorage>, addresses: Res<Shared<Addresses>>) {
    let mut addresses = addresses.lock();
    for (id, mut host, mut optimizer, mut sums, mut feed, mut norms, mut val) in &mut envs {
        let env = id.index;
        let params = host.0.get().params();
        addresses.note_all(&format!("env {env} parameter"), params.all().map(|param| &param.tensor));
        for (kind, list) in optimizer.0.get().state_tensors() {
            addresses.note_all(&format!("env {env} {kind}"), list);
        }
        addresses.note(format!("env {env} accumulators"), sums.0.get().pack());
        addresses.note(format!("env {env} labels"), feed.0.get().step_labels());
        addresses.note(format!("env {env} norm"), &norms.host.get().norm);
        addresses.note_all(
            &format!("env {env} validation"),
            val.0.get().iter().map(|batch| &batch.x),
        );
    }
}

fn note_batch(batch: &mut HookedBatch, addresses: &mut Addresses) {
    let env = batch.env.id.index;
    addresses.note(format!("env {env} images"), &batch.samples.x);
    addresses.note(format!("env {env} labels of batch {}", batch.index), &batch.samples.y);
}

fn note_seed(mut envs: Query<(&EnvId, &mut SeedSlots, &mut SeedOptimizers)>, addresses: Res<Shared<Addresses>>) {
    let mut addresses = addresses.lock();
    for (id, mut slots, mut optimizers) in &mut envs {
        let Some(module) = &mut slots.0[0].module else { continue };
        let params = module.get().params().map(|param| &param.tensor);
        addresses.note_all(&format!("env {} seed parameter", id.index), params);
        let optimizer = optimizers.0[0].iter_mut();
        for (kind, list) in optimizer.flat_map(|optimizer| optimizer.get().state_tensors()) {
            addresses.note_all(&format!("env {} seed {kind}", id.index), list);
        }
    }
}

#[test]
fn parameters_momenta_batches_and_sums_keep_their_storage_over_steps_and_rounds() {
    for optimizer in [
        "sgd(lr: 0.01, momentum: 0.9, weight_decay: 0.0005)",
        "adamw(lr: 0.001, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01)",
    ] {
        // Two hosts that take different kernels, three rounds, with seeds germinating and dying in each.
        for preset in ["digits_minimal", "digits_baseline"] {
            let task = format!(r#"preset("{preset}", (batches_per_step: count(2), host_opt: {optimizer}))"#);
            let policy = schedule(&[(1, &germinate("r0c0", "conv_small")), (2, &advance("r0c0"))]);
            let text = scenario(&task, 2, 4, &policy).replace("rounds: 1", "rounds: 3");
            let addresses: Addresses = play_hooked(app(&text, |app: &mut App| {
                hook(app, BatchPoint::Fetched, note_batch);
                app.add_systems(StepEnd, note_host.after(Work::EmitStep));
            }));

            assert_eq!(addresses.0["env 1 accumulators"].len(), 3 * 4);
            assert_eq!(addresses.0["env 1 images"].len(), 3 * 4 * 2);
            assert!(addresses.0.contains_key("env 0 velocity 0") || addresses.0.contains_key("env 0 exp_avg_sq 0"));
            assert_eq!(addresses.moved(), Vec::<&String>::new(), "{preset}, {optimizer}");
        }
    }
}

#[test]
fn a_seed_keeps_its_tensors_from_its_first_training_step_to_its_commit() {
    let addresses: Addresses = play_hooked(app(&scenario(MINIMAL, 2, 20, &grow_one_seed()), |app: &mut App| {
        app.init_resource::<Shared<Addresses>>()
            .add_systems(StepEnd, note_seed.after(Work::EmitStep));
    }));

    // Created in step 1, committed in step 18.
    assert_eq!(addresses.0["env 0 seed parameter 0"].len(), 20);
    assert_eq!(addresses.0["env 0 seed velocity 0"].len(), 19);
    assert_eq!(addresses.moved(), Vec::<&String>::new());
}
