//! What a controller makes of an episode is told as it ordered it.

use simic_engine::internals::compare::{Candidate, Episodes, play_until};
use simic_engine::internals::env::{Decisions, InitialSeeds, SeedOrder};
use simic_engine::internals::growth::{AlphaTarget, GerminationStyle, SlotId, Tempo};
use simic_engine::internals::policy::DecideMode;
use simic_engine::internals::run::StopSignal;
use simic_engine::prelude::*;

use crate::support::engine;

/// A seed is held four steps after its germination, and removed if it is still held seven steps later.
const SCENARIO: &str = r#"(
    name: "ordered",
    preset: "manual", task: preset("digits_minimal", (batches_per_step: count(2))),
    run: (rounds: 1, n_envs: 2, max_steps: 26),
    lifecycle: (
        slots: ["r0c0", "r0c1", "r0c2"],
        max_seeds: 0,
        max_holding_steps: 6,
        embargo_steps: 1,
        auto_forward: (g1: true, g2: true, g3: true),
        gates: (min_training_steps: 1, min_gradient_health: 0.0),
    ),
    policy: (controller: "schedule", masks: (sequential_germination: false), schedule: (entries: [
        (step: 2, command: germinate(slot: "r0c1", blueprint: "conv_light", style: "linear_add", tempo: "fast", target: "full")),
        (step: 3, command: germinate(slot: "r0c0", blueprint: "conv_light", style: "linear_add", tempo: "fast", target: "full")),
        (step: 4, command: germinate(slot: "r0c2", blueprint: "norm", style: "linear_add", tempo: "fast", target: "full")),
        (step: 11, command: commit(slot: "r0c0")),
        (step: 12, command: prune(slot: "r0c2", speed: "fast", curve: "linear")),
        (step: 18, command: germinate(slot: "r0c1", blueprint: "norm", style: "linear_add", tempo: "fast", target: "full")),
        (step: 24, command: commit(slot: "r0c1")),
    ])),
)"#;

fn played(controller: &str, seeds: Option<InitialSeeds>) -> Vec<Option<Decisions>> {
    let experiment = engine(SCENARIO).world().resource::<Experiment>().clone();
    let candidate = Candidate {
        controller: controller.into(),
        policy: None,
        mode: DecideMode::Sample,
        seeds,
    };
    let episodes = Episodes {
        seed: 1,
        rounds: 0..1,
        envs: 2,
    };
    let stop = StopSignal::default();
    let played = play_until(experiment, &Extension::default(), &candidate, &episodes, &stop, |_| ());
    let played = played.expect("it is played");
    let outcomes = played.outcomes.into_iter();
    outcomes.map(|outcome| outcome.decisions).collect()
}

/// The first seed of `r0c1` is held for too long; that of `r0c2` goes by the ramp that its prune asked for.
#[test]
fn the_decisions_of_a_schedule_are_told_as_ordered() {
    let ordered = Decisions {
        germinated: 4,
        committed: 2,
        pruned: 1,
        lost: 1,
        first_germination: Some(2),
        first_commit: Some(11),
        last_commit: Some(24),
        blueprints: [
            (SlotId::new(0, 0), "conv_light".into()),
            (SlotId::new(0, 1), "norm".into()),
        ]
        .into(),
    };
    assert_eq!(played("schedule", None), [Some(ordered.clone()), Some(ordered)]);
}

#[test]
fn seeds_that_an_episode_begins_with_are_nobodys_decision() {
    let seed = SeedOrder {
        slot: 0,
        blueprint: 1,
        style: GerminationStyle::SigmoidAdd,
        tempo: Tempo::Standard,
        target: AlphaTarget::Full,
    };

    let told = played("wait", Some(InitialSeeds::Same(vec![seed])));

    assert_eq!(told, [Some(Decisions::default()), Some(Decisions::default())]);
}
