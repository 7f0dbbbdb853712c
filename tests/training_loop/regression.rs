//! Hosts that never grow learn as much as they should, no more and no less (spec 02 §1.2, Check 20). Slow: run them with
//! `cargo test --release --test training_loop -- --ignored`.

use bevy_app::App;
use bevy_ecs::prelude::*;
use simic_engine::prelude::*;

use crate::support::*;

/// Validation accuracy of every env at its last step, percent.
#[derive(Resource, Default)]
struct Final(Vec<f64>);

fn note(envs: Query<&ValMetrics>, mut accuracies: ResMut<Final>) {
    accuracies.0 = envs.iter().map(|metrics| metrics.accuracy_percent).collect();
}

/// Four envs of a preset after 100 steps.
fn accuracies(preset: &str, policy: &str) -> Vec<f64> {
    let text = scenario(&format!(r#"preset("{preset}")"#), 4, 100, policy);
    let accuracies: Final = play(app(&text, |app: &mut App| {
        app.init_resource::<Final>()
            .add_systems(StepEnd, note.after(Work::EmitStep));
    }));
    accuracies.0
}

#[track_caller]
fn assert_band(accuracies: &[f64], band: std::ops::RangeInclusive<f64>) {
    assert_eq!(accuracies.len(), 4);
    assert!(
        accuracies.iter().all(|accuracy| band.contains(accuracy)),
        "{accuracies:?}"
    );
}

#[test]
#[ignore = "slow: trains four hosts for 100 steps"]
fn a_capable_host_alone_reads_most_digits() {
    assert_band(&accuracies("digits_baseline", WAIT), 88.0..=98.0);
}

#[test]
#[ignore = "slow: trains four hosts for 100 steps"]
fn an_impaired_host_alone_reads_few_digits() {
    assert_band(&accuracies("digits_impaired", WAIT), 15.0..=35.0);
}

#[test]
#[ignore = "slow: trains four hosts for 100 steps"]
fn three_convolutional_seeds_rescue_an_impaired_host() {
    // One after the other in every slot; from step 21 on all three are at alpha 1.
    let slots = [("r0c0", 1), ("r0c1", 3), ("r0c2", 5)];
    let mut entries: Vec<(u32, String)> = Vec::new();
    for (slot, first) in slots {
        entries.push((first, germinate(slot, "conv_heavy")));
        entries.extend([1, 11, 16].map(|later| (first + later, advance(slot))));
    }
    entries.sort_unstable();
    let entries: Vec<(u32, &str)> = entries
        .iter()
        .map(|(step, command)| (*step, command.as_str()))
        .collect();

    let rescued = accuracies("digits_impaired", &schedule(&entries));
    eprintln!("{rescued:?}");
    assert_band(&rescued, 70.0..=100.0);
}
