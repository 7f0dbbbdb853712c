//! What an episode takes to compute: counted from the declared costs of host and seeds, by hand here.

use simic_engine::internals::compare::{Candidate, EpisodeOutcome, Episodes, play_until};
use simic_engine::internals::env::{InitialSeeds, SeedOrder};
use simic_engine::internals::growth::{AlphaTarget, GerminationStyle, Tempo};
use simic_engine::internals::policy::DecideMode;
use simic_engine::internals::run::StopSignal;
use simic_engine::internals::telemetry::EpisodeCompute;
use simic_engine::prelude::*;

use crate::support::engine;

/// 20 samples are trained on and 10 validated, three times.
const SCENARIO: &str = r#"(
    name: "counted",
    preset: "manual", task: preset("digits_minimal", (
        batch_size: 10, batches_per_step: count(2), val_batch_size: 10, val_batches_per_step: count(1),
    )),
    run: (rounds: 1, n_envs: 1, max_steps: 3),
    policy: (controller: "wait"),
)"#;

fn played(seeds: Vec<SeedOrder>) -> EpisodeOutcome {
    let experiment = engine(SCENARIO).world().resource::<Experiment>().clone();
    let candidate = Candidate {
        controller: "wait".into(),
        policy: None,
        mode: DecideMode::Sample,
        seeds: Some(InitialSeeds::Same(seeds)),
    };
    let episodes = Episodes {
        seed: 1,
        rounds: 0..1,
        envs: 1,
    };
    let stop = StopSignal::default();
    let played = play_until(experiment, &Extension::default(), &candidate, &episodes, &stop, |_| ());
    let played = played.expect("it is played");
    played.outcomes[0].clone()
}

/// Convolutions of 1x1 on 8x8 pixels, 1 to 2 to 4 to 8 channels, and 8 to 10 in the head: 2768.
#[test]
fn a_host_alone_costs_its_forward_pass_three_times_in_training_and_once_in_validation() {
    let compute = EpisodeCompute {
        train_macs: 3 * 2768 * 20 * 3,
        val_macs: 2768 * 10 * 3,
    };
    assert_eq!(played(Vec::new()).compute, Some(compute));
}

/// 3x3 from 2 to 2 channels on 8x8 pixels: 2304 more.
#[test]
fn a_committed_seed_costs_as_much_as_it_computes() {
    let seed = SeedOrder {
        slot: 0,
        blueprint: 1,
        style: GerminationStyle::SigmoidAdd,
        tempo: Tempo::Standard,
        target: AlphaTarget::Full,
    };
    let outcome = played(vec![seed]);

    let compute = EpisodeCompute {
        train_macs: 3 * (2768 + 2304) * 20 * 3,
        val_macs: (2768 + 2304) * 10 * 3,
    };
    assert_eq!(outcome.compute, Some(compute));
    assert!(outcome.param_ratio > 1.0, "the episode began with it");
}
