//! What the proof was run with: its scenario and its sweeps resolve to the committed values, even if defaults have changed.

use std::path::Path;

use simic_engine::internals::engine::built_in_names;
use simic_engine::internals::scenario::{Input, Override, Scenario, load};
use simic_engine::internals::sweep::plan;

/// `scenarios/digits_rescue.ron` with every default written out, as it was when the proof was played.
const RESOLVED: &str = include_str!("resolved/digits_rescue.ron");
const SCENARIO: &str = include_str!("../../scenarios/digits_rescue.ron");
const SWEEPS: [&str; 6] = [
    "blind",
    "digits_baseline",
    "digits_impaired",
    "full_length",
    "heuristic",
    "synth_impaired",
];

fn scenario(text: &str, overrides: &[Override]) -> Scenario {
    let input = Input {
        label: "digits_rescue.ron",
        text,
        overrides,
    };
    load(&input, &built_in_names()).expect("sound").scenario
}

#[test]
fn the_scenario_of_the_proof_resolves_to_what_it_was_played_with() {
    assert_eq!(scenario(SCENARIO, &[]), scenario(RESOLVED, &[]));
}

#[test]
fn every_trial_of_the_proof_resolves_to_what_it_was_played_with() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("proof");
    for sweep in SWEEPS {
        let planned = plan(&folder.join(sweep).with_extension("ron"), &[], &built_in_names()).expect("a sound sweep");
        assert_eq!(planned.scenario, SCENARIO, "{sweep}");
        for trial in &planned.plan.trials {
            let overrides = trial.overrides.iter();
            let overrides: Vec<Override> = overrides
                .map(|setting| Override::flag("--set", &setting.path, &setting.value.0))
                .collect();
            let played = scenario(RESOLVED, &overrides);
            assert_eq!(scenario(SCENARIO, &overrides), played, "{sweep} {}", trial.label());
        }
    }
}
