//! How a seed is initialized: nothing of it reaches its host, and nothing of it depends on chance.

use bevy_app::App;
use bevy_ecs::prelude::*;
use simic_engine::internals::env::{HostModel, SeedOptimizers};
use simic_engine::internals::telemetry::{Event, EventReader, GrowthEffect, Payload};
use simic_engine::prelude::*;

use super::support::*;

/// At the end of every step.
#[derive(Resource, Default, PartialEq, Debug)]
struct Steps {
    host: Vec<Vec<Vec<u32>>>,
    /// Of the seed in the first slot.
    seed: Vec<Vec<Vec<u32>>>,
}

fn note_step(mut envs: Query<(&mut HostModel, &mut SeedOptimizers)>, mut notes: ResMut<Steps>) {
    let (mut host, mut optimizers) = envs.single_mut().expect("one env");
    notes.host.push(host_bits(&mut host));
    notes.seed.push(seed_bits(&mut optimizers).swap_remove(0));
}

fn text(blueprint: &str, init: &str, max_steps: u32) -> String {
    let entries = [(1, germinate("r0c0", blueprint)), (2, advance("r0c0"))]
        .map(|(step, command)| format!("(step: {step}, command: {command})"))
        .join(", ");
    format!(
        r#"(
            name: "births", preset: "manual", task: {MINIMAL},
            run: (rounds: 1, n_envs: 1, max_steps: {max_steps}),
            lifecycle: (seed_init: {init}),
            policy: (
                controller: "schedule", schedule: (entries: [{entries}]),
                masks: (action_space: (blueprint: Some(["{blueprint}"]))),
            ),
        )"#
    )
}

fn played(blueprint: &str, init: &str) -> Steps {
    play(app(&text(blueprint, init, 4), |app: &mut App| {
        app.init_resource::<Steps>()
            .add_systems(StepEnd, note_step.after(Work::EmitStep));
    }))
}

#[test]
fn no_init_leaves_a_trace_in_the_host() {
    for blueprint in ["conv_light", "attention"] {
        let usual = played(blueprint, "zero_gain");
        for init in ["zero_output", "gradmax", "statistics"] {
            let other = played(blueprint, init);

            assert_eq!(other.host, usual.host, "{blueprint} initialized as {init}");
            let is_same = blueprint == "attention" && init == "zero_output";
            assert_eq!(other.seed == usual.seed, is_same, "{blueprint} initialized as {init}");
        }
    }
}

#[test]
fn a_seed_is_initialized_alike_every_time() {
    for init in ["gradmax", "statistics"] {
        assert_eq!(played("conv_light", init), played("conv_light", init), "{init}");
    }
}

#[test]
fn a_growth_event_is_recorded_with_its_effect() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let engine = Engine::builder().threads(2).recorded(folder.path());
    let text = text("conv_light", "gradmax", 12);

    let played = engine.from_ron(&text).expect("the scenario is sound").run();

    assert!(played.is_ok(), "{played:?}");
    let run = crate::support::latest(folder.path());
    let events = EventReader::open(&run).expect("the run has events");
    let told: Vec<(Event, GrowthEffect)> = events
        .map(|event| event.expect("events are readable"))
        .filter_map(|event| match &event.payload {
            Payload::GrowthEffect(insertion) => Some((event.clone(), insertion.clone())),
            _ => None,
        })
        .collect();
    let [(event, insertion)] = told.as_slice() else {
        panic!("one growth event: {told:?}");
    };
    // It germinates in step 1, advances in step 2 and has its first gradient in step 3.
    assert_eq!(event.step, Some(8));
    assert_eq!(
        (insertion.blueprint.as_str(), insertion.init.name()),
        ("conv_light", "gradmax")
    );
    assert_eq!(
        (insertion.before.step, insertion.after.map(|after| after.step)),
        (1, Some(2))
    );
    let ratios = insertion.gradient_ratio.expect("a germination is told with gradients");
    assert_eq!(ratios.step, Some(3));
    for ratio in [ratios.at_birth, ratios.after_1, ratios.after_5] {
        assert!(ratio.is_some_and(|ratio| ratio.0 > 0.0), "{ratios:?}");
    }
}
