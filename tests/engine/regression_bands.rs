//! The tasks ask what they are meant to ask: how far a host comes alone, and with seeds.

use simic_engine::prelude::*;

use crate::support::engine;
use crate::training_loop::support::Notes;

/// Validation accuracy of one env of `task` after 100 steps, percent.
fn accuracy_after(task: &str, rest: &str) -> f64 {
    let mut engine = engine(&format!(
        r#"(name: "band", task: preset("{task}"), run: (rounds: 1, n_envs: 1, max_steps: 100), {rest})"#
    ));
    let remember = |envs: Query<&ValMetrics>, mut last: ResMut<Notes<f64>>| {
        last.0 = envs.single().expect("one env").accuracy_percent;
    };
    let remember = remember.in_set(EngineSet::Record).after(Work::EmitStep);
    engine
        .app_mut()
        .init_resource::<Notes<f64>>()
        .add_systems(StepEnd, remember);
    engine.run().expect("the run succeeds");
    engine.world().resource::<Notes<f64>>().0
}

const WAIT: &str = r#"policy: (controller: "wait")"#;

#[test]
fn a_capable_host_reads_digits_alone() {
    let accuracy = accuracy_after("digits_baseline", WAIT);
    assert!(accuracy >= 88.0, "{accuracy}");
}

#[test]
#[ignore = "long tier"]
fn an_impaired_host_fails_alone() {
    let accuracy = accuracy_after("digits_impaired", WAIT);
    assert!(accuracy <= 35.0, "{accuracy}");
}

#[test]
#[ignore = "long tier"]
fn three_convolutions_rescue_an_impaired_host() {
    let conv = r#"blueprint: "conv_heavy", style: "linear_add", tempo: "fast", target: "full""#;
    let entries = [(1, "r0c0"), (2, "r0c1"), (3, "r0c2")]
        .map(|(step, slot)| format!(r#"(step: {step}, command: germinate(slot: "{slot}", {conv}))"#));
    let entries = entries.join(", ");
    let accuracy = accuracy_after(
        "digits_impaired",
        &format!(
            r#"lifecycle: (max_holding_steps: None, exploding_factor: 10.0),
            policy: (controller: "schedule", schedule: (entries: [{entries}]))"#
        ),
    );
    assert!(accuracy >= 70.0, "{accuracy}");
}
