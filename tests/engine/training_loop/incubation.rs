//! A seed that learns next to its host leaves no trace in it.

use std::sync::LazyLock;

use simic_engine::internals::env::SeedOptimizers;
use simic_engine::prelude::*;

use super::support::*;

/// States of the host, bit by bit.
#[derive(Default)]
struct Host {
    /// At every training batch.
    gradients: Vec<Vec<Vec<u32>>>,
    /// At the end of every step.
    params: Vec<Vec<Vec<u32>>>,
    metrics: Vec<[u64; 4]>,
    stages: Vec<Option<SeedStage>>,
    /// The seed in the first slot.
    seeds: Vec<Vec<Vec<u32>>>,
}

fn note_gradients(batch: &mut HookedBatch, notes: &mut Host) {
    notes.gradients.push(bits(&host_gradients(&mut batch.env.host)));
}

type Trained = (
    &'static mut HostModel,
    &'static mut SeedOptimizers,
    &'static SeedSlots,
    &'static TrainMetrics,
    &'static ValMetrics,
);

fn note_step(mut envs: Query<Trained>, notes: Res<Shared<Host>>) {
    let (mut host, mut optimizers, slots, train, val) = envs.single_mut().expect("one env");
    let mut notes = notes.lock();
    let metrics = [train.loss, train.accuracy_percent, val.loss, val.accuracy_percent];
    notes.metrics.push(metrics.map(f64::to_bits));
    notes.params.push(host_bits(&mut host));
    notes.stages.push(slots.0[0].record.as_ref().map(|seed| seed.stage));
    notes.seeds.push(seed_bits(&mut optimizers).swap_remove(0));
}

fn watched(policy: &str) -> Engine {
    app(&scenario(MINIMAL, 1, 8, policy), |app: &mut App| {
        hook(app, BatchPoint::Backward, note_gradients);
        app.add_systems(StepEnd, note_step.after(Work::EmitStep));
    })
}

fn growing(blueprint: &str) -> Engine {
    watched(&schedule(&[(1, &germinate("r0c0", blueprint)), (2, &advance("r0c0"))]))
}

static ALONE: LazyLock<Host> = LazyLock::new(|| play_hooked(watched(WAIT)));

/// As that of an env in which nothing grows.
fn assert_same_host(grown: &Host, what: &str) {
    assert_eq!(ALONE.stages, [None; 8]);
    assert!(grown.gradients == ALONE.gradients, "gradients with {what}");
    assert!(grown.params == ALONE.params, "parameters with {what}");
    assert!(grown.metrics == ALONE.metrics, "metrics with {what}");
}

#[test]
fn a_training_seed_leaves_host_gradients_parameters_and_metrics_bit_for_bit_alone() {
    for blueprint in [
        "norm",
        "attention",
        "depthwise",
        "bottleneck",
        "conv_small",
        "conv_light",
        "conv_heavy",
    ] {
        let grown: Host = play_hooked(growing(blueprint));

        assert_same_host(&grown, blueprint);
        // It was there and learned.
        assert_eq!(grown.stages[1..], [Some(SeedStage::Training); 7]);
        assert!(grown.seeds[6] != grown.seeds[7], "{blueprint} learns");
    }
}

#[test]
fn a_blending_seed_at_alpha_0_changes_neither_logits_nor_host() {
    // From step 5 on, the seed blends, but its amplitude has not left 0.
    let blend = |mut envs: Query<&mut SeedSlots>, clock: Res<RunClock>| {
        let mut slots = envs.single_mut().expect("one env");
        if let (5.., Some(seed)) = (clock.step(), &mut slots.0[0].record) {
            seed.stage = SeedStage::Blending;
        }
    };
    let mut app = growing("conv_small");
    app.app_mut()
        .add_systems(StepStart, blend.before(Work::SetLearningRates));
    let grown: Host = play_hooked(app);

    assert_eq!(grown.stages[4..], [Some(SeedStage::Blending); 4]);
    assert_same_host(&grown, "a blending seed at alpha 0");
}
