//! The proof's scenario and its sweeps resolve to the committed values, even if defaults have changed.

use std::path::Path;

use simic_engine::internals::engine::built_in_names;
use simic_engine::internals::scenario::{Override, Scenario};
use simic_engine::internals::sweep::plan;

use crate::recorded::load;

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
    let loaded = load("digits_rescue.ron", text, overrides, &built_in_names());
    loaded.expect("sound").scenario
}

#[test]
fn the_scenario_and_every_point_of_the_proof_resolve_to_what_they_were_played_with() {
    assert_eq!(scenario(SCENARIO, &[]), scenario(RESOLVED, &[]));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("proof");
    for sweep in SWEEPS {
        let planned = plan(&folder.join(sweep).with_extension("ron"), &[], &built_in_names()).expect("a sound sweep");
        assert_eq!(planned.scenario, SCENARIO, "{sweep}");
        // Replicates differ only in their seed.
        for trial in planned.plan.trials.iter().filter(|trial| trial.replicate == 0) {
            let overrides = trial.overrides.iter();
            let overrides = overrides.map(|set| Override::flag("--set", &set.path, &set.value.0));
            let overrides: Vec<Override> = overrides.collect();
            let played = scenario(RESOLVED, &overrides);
            assert_eq!(scenario(SCENARIO, &overrides), played, "{sweep} {}", trial.label());
        }
    }
}
