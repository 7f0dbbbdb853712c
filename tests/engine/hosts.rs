//! Hosts of an application, and the engine's own: seeds grow in every host that a scenario can name.

use simic_engine::internals::host::{Conv, ResidualBlock};
use simic_engine::prelude::*;

use crate::recorded::catalog;
use crate::support::builder;

/// One convolution and two residual blocks, with a slot after each block.
fn forked(classes: i64) -> HostPlan {
    HostPlan::new(1, 8)
        .layer("stem", Conv::new(4, 3))
        .pool()
        .layer("first", ResidualBlock::new(4, 1))
        .slot(0, 0)
        .layer("second", ResidualBlock::new(8, 2))
        .slot(1, 0)
        .head(classes)
}

fn register(app: &mut App) {
    let mut hosts = app.world_mut().resource_mut::<HostRegistry>();
    hosts.register("forked", "two residual blocks", Arc::new(forked));
}

/// A seed is planted in each slot and committed as soon as it is held.
const SCENARIO: &str = r#"(
    name: "forked",
    preset: "manual", task: preset("digits_baseline", (batches_per_step: count(2), host: named("Forked"))),
    run: (rounds: 2, n_envs: 2, max_steps: 14),
    lifecycle: (
        slots: ["r0c0", "r1c0"],
        auto_forward: true,
        gates: (min_training_steps: 1, min_gradient_health: 0.0),
    ),
    policy: (controller: "schedule", masks: (sequential_germination: false), schedule: (entries: [
        (step: 1, command: germinate(slot: "r0c0", blueprint: "conv_light", style: "linear_add", tempo: "fast", target: "full")),
        (step: 2, command: germinate(slot: "r1c0", blueprint: "norm", style: "linear_add", tempo: "fast", target: "full")),
        (step: 12, command: commit(slot: "r0c0")),
        (step: 13, command: commit(slot: "r1c0")),
    ])),
)"#;

#[test]
fn a_registered_host_is_listed_and_checked_by_its_name() {
    let names = catalog(register);
    let load = |text: &str| crate::recorded::load("forked.ron", text, &[], &names);
    let entries = names.hosts.entries();
    let found = entries.iter().find(|entry| entry.name == "forked");
    assert_eq!(found.expect("it is registered").summary, "two residual blocks");

    let loaded = load(SCENARIO).expect("sound");
    // Stem 36 + 8, first block 2·144 + 16, second 288 + 576 + 32, head 90.
    assert_eq!(loaded.host.parameters, 1_334);
    let slots: Vec<String> = loaded.slots.iter().map(ToString::to_string).collect();
    assert_eq!(slots, ["r0c0", "r1c0"]);

    for (right, wrong, complaint) in [
        ("Forked", "Forket", "did you mean `forked`?"),
        ("r1c0\"]", "r2c0\"]", "no slot r2c0; valid: r0c0, r1c0"),
        (
            "digits",
            "synth",
            "the host takes channels 1, but the data has channels 3",
        ),
    ] {
        let mistaken = load(&SCENARIO.replace(right, wrong));
        let report = mistaken.expect_err("a mistake").to_string();
        assert!(report.contains(complaint), "{report}");
    }
}

/// Plays the first episode, in which each env plants two seeds and commits them; its losses in validation.
pub fn assert_grown(engine: &mut Engine) -> Vec<f64> {
    use SeedStage::{Blending, Committed, Holding, Training};
    let (mut seen, mut losses) = (Vec::new(), Vec::new());
    for _ in 0..14 {
        assert!(engine.step().expect("it is played"));
        let mut envs = engine.world_mut().query::<(&SeedSlots, &ValMetrics)>();
        let (slots, val) = envs.iter(engine.world()).next().expect("an env");
        seen.extend(slots.records().flatten().map(|seed| seed.stage));
        losses.push(val.loss);
        let contributions = slots.records().flatten().filter_map(|seed| seed.contribution.value);
        assert!(contributions.map(f64::abs).all(f64::is_finite));
    }
    for stage in [Training, Blending, Holding, Committed] {
        assert!(seen.contains(&stage), "{stage}: {seen:?}");
    }
    let mut envs = engine.world_mut().query::<&EpisodeStats>();
    for stats in envs.iter(engine.world()) {
        assert_eq!((stats.growth.germinated, stats.growth.committed), (2, 2));
    }
    losses
}

#[test]
fn seeds_grow_in_a_registered_host_until_they_are_committed() {
    let engine = builder().with(register).from_ron(SCENARIO);
    assert_grown(&mut engine.expect("a sound scenario"));
}
