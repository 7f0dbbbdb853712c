//! A controller's decisions in an episode are reported as it ordered them, and so is the episode's compute: counted from the
//! declared costs of host and seeds, by hand here.

use simic_engine::internals::compare::{Candidate, EpisodeOutcome, Episodes, play_until};
use simic_engine::internals::env::{Decisions, InitialSeeds, SeedOrder};
use simic_engine::internals::growth::{AlphaTarget, GerminationStyle, SlotId, Tempo};
use simic_engine::internals::policy::DecideMode;
use simic_engine::internals::telemetry::EpisodeCompute;
use simic_engine::prelude::*;

use crate::support::engine;

/// A seed is held four steps after its germination, and removed if it is still held seven steps later.
const ORDERED: &str = r#"(
    name: "ordered",
    preset: "manual", task: preset("digits_minimal", (batches_per_step: count(2))),
    run: (rounds: 1, n_envs: 2, max_steps: 29),
    lifecycle: (
        slots: ["r0c0", "r0c1", "r0c2"],
        max_seeds: 0,
        max_holding_steps: 6,
        auto_forward: true,
        gates: (min_training_steps: 1, min_gradient_health: 0.0),
    ),
    policy: (controller: "schedule", masks: (sequential_germination: false), schedule: (entries: [
        (step: 2, command: germinate(slot: "r0c1", blueprint: "conv_light", style: "linear_add", tempo: "fast", target: "full")),
        (step: 3, command: germinate(slot: "r0c0", blueprint: "conv_light", style: "linear_add", tempo: "fast", target: "full")),
        (step: 4, command: germinate(slot: "r0c2", blueprint: "norm", style: "linear_add", tempo: "fast", target: "full")),
        (step: 11, command: commit(slot: "r0c0")),
        (step: 12, command: prune(slot: "r0c2", speed: "fast", curve: "linear")),
        (step: 21, command: germinate(slot: "r0c1", blueprint: "norm", style: "linear_add", tempo: "fast", target: "full")),
        (step: 27, command: commit(slot: "r0c1")),
    ])),
)"#;

/// The outcome of each env of `scenario` with this controller, and a `conv_light` in its first slot if it begins with one.
fn played(scenario: &str, controller: &str, has_seed: bool) -> Vec<EpisodeOutcome> {
    let experiment = engine(scenario).world().resource::<Experiment>().clone();
    let seed = SeedOrder {
        slot: 0,
        blueprint: 1,
        style: GerminationStyle::SigmoidAdd,
        tempo: Tempo::Standard,
        target: AlphaTarget::Full,
    };
    let candidate = Candidate {
        controller: controller.into(),
        policy: None,
        mode: DecideMode::Sample,
        seeds: has_seed.then(|| InitialSeeds::Same(vec![seed])),
    };
    let episodes = Episodes {
        seed: 1,
        rounds: 0..1,
        envs: experiment.envs.len(),
    };
    let stop = StopSignal::default();
    let played = play_until(experiment, &Extension::default(), &candidate, &episodes, &stop, |_| ());
    played.expect("it is played").outcomes
}

/// The first seed of `r0c1` is held for too long; that of `r0c2` goes by the ramp that its prune asked for.
#[test]
fn the_decisions_of_a_schedule_are_reported_as_ordered() {
    let ordered = Decisions {
        germinated: 4,
        committed: 2,
        pruned: 1,
        lost: 1,
        first_germination: Some(2),
        first_commit: Some(11),
        last_commit: Some(27),
        blueprints: [
            (SlotId::new(0, 0), "conv_light".into()),
            (SlotId::new(0, 1), "norm".into()),
        ]
        .into(),
    };
    let outcomes = played(ORDERED, "schedule", false);
    let decided: Vec<_> = outcomes.iter().map(|outcome| outcome.decisions.as_ref()).collect();
    assert_eq!(decided, [Some(&ordered); 2]);
}

/// 20 samples are trained on and 10 validated, three times.
const COUNTED: &str = r#"(
    name: "counted",
    preset: "manual", task: preset("digits_minimal", (
        batch_size: 10, batches_per_step: count(2), val_batch_size: 10, val_batches_per_step: count(1),
    )),
    run: (rounds: 1, n_envs: 1, max_steps: 3),
    policy: (controller: "wait"),
)"#;

/// Convolutions of 1x1 on 8x8 pixels, 1 to 2 to 4 to 8 channels, and 8 to 10 in the head: 2768.
#[test]
fn a_host_alone_costs_its_forward_pass_three_times_in_training_and_once_in_validation() {
    let compute = EpisodeCompute {
        train_macs: 3 * 2768 * 20 * 3,
        val_macs: 2768 * 10 * 3,
    };
    assert_eq!(played(COUNTED, "wait", false)[0].compute, Some(compute));
}

/// 3x3 from 2 to 2 channels on 8x8 pixels: 2304 more.
#[test]
fn a_committed_seed_that_an_episode_begins_with_costs_as_much_as_it_computes_and_counts_as_no_decision() {
    let outcome = &played(COUNTED, "wait", true)[0];

    let compute = EpisodeCompute {
        train_macs: 3 * (2768 + 2304) * 20 * 3,
        val_macs: (2768 + 2304) * 10 * 3,
    };
    assert_eq!(outcome.compute, Some(compute));
    assert!(outcome.param_ratio > 1.0, "the episode began with it");
    assert_eq!(outcome.decisions, Some(Decisions::default()));
}
