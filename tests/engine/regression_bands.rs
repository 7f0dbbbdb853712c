//! The tasks ask what they are meant to ask: how far a host comes alone, and with seeds.

use bevy_ecs::prelude::*;
use simic_engine::prelude::*;

use crate::support::engine;

#[derive(Resource, Default)]
struct Last(f64);

fn remember(envs: Query<&ValMetrics>, mut last: ResMut<Last>) {
    for metrics in &envs {
        last.0 = metrics.accuracy_percent;
    }
}

/// Validation accuracy of one env after its last step, percent.
fn accuracy_after(scenario: &str) -> f64 {
    let mut engine = engine(scenario);
    engine
        .app_mut()
        .init_resource::<Last>()
        .add_systems(StepEnd, remember.in_set(EngineSet::Record).after(Work::EmitStep));
    engine.run().expect("the run succeeds");
    engine.world().resource::<Last>().0
}

#[test]
fn a_capable_host_reads_digits_alone() {
    let accuracy = accuracy_after(
        r#"(
            name: "capable", task: preset("digits_baseline"),
            run: (rounds: 1, n_envs: 1, max_steps: 100), policy: (controller: "wait"),
        )"#,
    );
    assert!(accuracy >= 88.0, "{accuracy}");
}

#[test]
fn an_impaired_host_fails_alone() {
    let accuracy = accuracy_after(
        r#"(
            name: "impaired", task: preset("digits_impaired"),
            run: (rounds: 1, n_envs: 1, max_steps: 100), policy: (controller: "wait"),
        )"#,
    );
    assert!(accuracy <= 35.0, "{accuracy}");
}

#[test]
fn three_convolutions_rescue_an_impaired_host() {
    let accuracy = accuracy_after(
        r#"(
            name: "rescued", task: preset("digits_impaired"),
            run: (rounds: 1, n_envs: 1, max_steps: 100),
            lifecycle: (max_holding_steps: None, exploding_factor: 10.0),
            policy: (
                controller: "schedule",
                schedule: (entries: [
                    (step: 1, command: germinate(slot: "r0c0", blueprint: "conv_heavy", style: "linear_add", tempo: "fast", target: "full")),
                    (step: 2, command: germinate(slot: "r0c1", blueprint: "conv_heavy", style: "linear_add", tempo: "fast", target: "full")),
                    (step: 3, command: germinate(slot: "r0c2", blueprint: "conv_heavy", style: "linear_add", tempo: "fast", target: "full")),
                ]),
            ),
        )"#,
    );
    assert!(accuracy >= 70.0, "{accuracy}");
}
