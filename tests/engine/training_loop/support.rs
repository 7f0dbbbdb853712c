//! Helpers of the loop's tests: runs from scenario texts, and plain copies of an env's tensors.

use std::sync::{Arc, Mutex, MutexGuard};

use bevy_app::Plugins;
use bevy_ecs::system::ScheduleSystem;
use simic_engine::extend::EngineBuilder;
use simic_engine::internals::env::SeedOptimizers;
use simic_engine::internals::reward::RewardPlugin;
use simic_engine::internals::torch::{HostSyncCounter, read_f32};
use simic_engine::prelude::*;

use crate::recorded::ONE_SEED;
use crate::support::builder;

/// A scenario as most tests need it: `task` and `policy` as written in a file, envs and steps of the only round.
pub fn scenario(task: &str, n_envs: usize, max_steps: u32, policy: &str) -> String {
    format!(
        r#"(
            name: "test", preset: "manual", task: {task}, policy: {policy},
            run: (rounds: 1, n_envs: {n_envs}, max_steps: {max_steps}),
        )"#
    )
}

/// Digits on the smallest host without pools: two training batches a step.
pub const MINIMAL: &str = r#"preset("digits_minimal", (batches_per_step: count(2)))"#;
pub const WAIT: &str = r#"(controller: "wait")"#;

/// The policy that takes one seed to its commit in step 18.
pub fn grow_one_seed() -> String {
    format!(r#"(controller: "schedule", schedule: ({ONE_SEED}))"#)
}

/// The policy that orders `entries`, each `(step, command)` with the command as written in a file. Seeds may grow side
/// by side.
pub fn schedule(entries: &[(u32, &str)]) -> String {
    let entry = |(step, command): &(u32, &str)| format!("(step: {step}, command: {command}), ");
    let entries: String = entries.iter().map(entry).collect();
    format!(r#"(controller: "schedule", schedule: (entries: [{entries}]), masks: (sequential_germination: false))"#)
}

/// The command that moves the seed in `slot` on to its next stage.
pub fn advance(slot: &str) -> String {
    format!(r#"advance(slot: "{slot}")"#)
}

/// The command that plants `blueprint` in `slot`, to be blended in additively over the standard five ticks.
pub fn germinate(slot: &str, blueprint: &str) -> String {
    format!(
        r#"germinate(slot: "{slot}", blueprint: "{blueprint}", style: "sigmoid_add", tempo: "standard", target: "full")"#
    )
}

/// The engine with `plugins`, ready to be driven through the scenario `text`.
pub fn app<M>(text: &str, plugins: impl Plugins<M> + Clone + Send + Sync + 'static) -> Engine {
    app_of(builder(), text, plugins)
}

/// As [`app`], of another builder: that of an engine on the CPU for what a CPU alone does.
pub fn app_of<M>(
    builder: EngineBuilder,
    text: &str,
    plugins: impl Plugins<M> + Clone + Send + Sync + 'static,
) -> Engine {
    // Rewards assume that only the engine changes a seed, and some of these tests change one.
    let builder = builder.threads(2).without::<RewardPlugin>();
    let engine = builder.with(plugins).from_ron(text);
    engine.unwrap_or_else(|problems| panic!("{problems}"))
}

/// Plays `engine` to its end and hands out the notes that its systems took.
pub fn play<T: Resource>(mut engine: Engine) -> T {
    engine.run().expect("the run succeeds");
    engine.world_mut().remove_resource().expect("notes were taken")
}

/// Notes that systems take.
#[derive(Resource, Default)]
pub struct Notes<T>(pub T);

/// As [`play`], of what `note` notes at the end of every step.
pub fn noted<T: Default + Send + Sync + 'static, M>(
    mut engine: Engine,
    note: impl IntoScheduleConfigs<ScheduleSystem, M>,
) -> T {
    let app = engine.app_mut().init_resource::<Notes<T>>();
    app.add_systems(StepEnd, note.after(Work::EmitStep));
    play::<Notes<T>>(engine).0
}

/// Notes that hooks of batches take, and systems with them.
#[derive(Resource, Default)]
pub struct Shared<T>(Arc<Mutex<T>>);

impl<T> Shared<T> {
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("no hook panicked")
    }
}

/// Lets every batch be looked at, and tampered with, at `point`.
pub fn hook<T: Default + Send + 'static>(
    app: &mut App,
    point: BatchPoint,
    hook: impl Fn(&mut HookedBatch, &mut T) + Send + Sync + 'static,
) {
    app.init_resource::<Shared<T>>();
    let notes = Shared(Arc::clone(&app.world().resource::<Shared<T>>().0));
    app.on_batch(point, move |batch| {
        hook(batch, &mut notes.lock());
        Ok(())
    });
}

/// As [`play`], of notes that hooks took.
pub fn play_hooked<T: Default + Send + 'static>(engine: Engine) -> T {
    let notes: Shared<T> = play(engine);
    std::mem::take(&mut *notes.lock())
}

/// The second of two batches, in the last step.
pub fn is_last_batch(batch: &HookedBatch) -> bool {
    batch.clock.is_last_step() && batch.index == 1
}

/// Values of a tensor, in row order.
pub fn values(tensor: &Tensor) -> Vec<f32> {
    read_f32(tensor, &HostSyncCounter::default()).expect("read")
}

/// Bits of a list of tensors: equal exactly if every value is.
pub fn bits<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Vec<Vec<u32>> {
    let of_tensor = |tensor: &'a Tensor| values(tensor).into_iter().map(f32::to_bits).collect();
    tensors.into_iter().map(of_tensor).collect()
}

/// Bits of the host's parameters and running statistics.
pub fn host_bits(host: &mut HostModel) -> Vec<Vec<u32>> {
    bits(host.0.get().params().all().map(|param| &param.tensor))
}

/// Gradients of the host's parameters.
pub fn host_gradients(host: &mut HostModel) -> Vec<Tensor> {
    let params = host.0.get().params().trainable();
    params.iter().map(|param| param.tensor.grad()).collect()
}

/// Bits of the parameters that each slot's optimizer trains; empty without one.
pub fn seed_bits(optimizers: &mut SeedOptimizers) -> Vec<Vec<Vec<u32>>> {
    let optimizers = optimizers.0.iter_mut().map(Option::as_mut);
    let of_slot = optimizers.map(|optimizer| optimizer.map(|optimizer| bits(optimizer.get().params())));
    of_slot.map(Option::unwrap_or_default).collect()
}

/// The largest difference between two lists of values.
pub fn largest_difference(left: &[Vec<f32>], right: &[Vec<f32>]) -> f32 {
    let (left, right) = (left.concat(), right.concat());
    assert_eq!(left.len(), right.len());
    let differences = left.iter().zip(right).map(|(left, right)| (left - right).abs());
    differences.fold(0.0, f32::max)
}
