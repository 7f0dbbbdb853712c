use proptest::prelude::*;

use super::*;
use crate::growth::SeedStage::*;
use crate::reward::fixtures::assert_close;

const GAMMA: f64 = 0.995;

fn phi(stage: SeedStage, n: u32) -> f64 {
    Potential::default().of_stage(stage, n)
}

fn shaping(before: f64, after: f64) -> f64 {
    Potential::default().shaping(before, after, GAMMA)
}

#[test]
fn potential_rises_with_stage_and_time_but_never_into_the_next_stage() {
    for (stage, n, expected) in [
        (Germinated, 1, 1.0),
        (Germinated, 5, 1.9),
        (Training, 5, 3.2),
        (Training, 10, 3.35),
        (Blending, 5, 4.7),
        (Blending, 10, 5.3),
        (Holding, 2, 5.8),
        (Holding, 10, 5.95),
        (Committed, 1, 6.0),
        (Committed, 50, 6.0),
        (Embargoed, 3, 0.0),
    ] {
        assert_close(phi(stage, n), expected);
    }
}

#[test]
fn shaping_pays_for_progress_and_takes_it_back_at_a_prune() {
    assert_close(shaping(0.0, phi(Germinated, 1)), 0.2985);
    assert_close(shaping(phi(Training, 5), phi(Training, 6)), 0.039975);
    assert_close(shaping(phi(Training, 3), phi(Blending, 1)), 0.26475);
    assert_close(shaping(phi(Holding, 2), phi(Committed, 1)), 0.051);
    assert_close(shaping(phi(Committed, 1), phi(Committed, 2)), -0.009);
    assert_close(shaping(phi(Training, 5), 0.0), -0.96);
}

fn discounted(potentials: &[f64]) -> f64 {
    let steps = potentials.windows(2).zip(0..);
    steps.map(|(pair, t)| GAMMA.powi(t) * shaping(pair[0], pair[1])).sum()
}

#[test]
fn a_whole_life_adds_nothing_once_the_episode_terminates() {
    let mut potentials = vec![0.0];
    for (stage, steps) in [
        (Germinated, 2),
        (Training, 11),
        (Blending, 6),
        (Holding, 5),
        (Committed, 4),
    ] {
        potentials.extend((1..=steps).map(|n| phi(stage, n)));
    }
    assert_eq!(potentials.len(), 29);
    assert_close(discounted(&potentials), 1.5642953919814673);

    potentials.push(0.0);
    assert_close(discounted(&potentials), 0.0);
}

#[test]
fn germinating_and_pruning_again_earns_nothing() {
    let potentials = [0.0, phi(Germinated, 1), phi(Germinated, 2), phi(Germinated, 3), 0.0];

    let paid: Vec<f64> = potentials.windows(2).map(|pair| shaping(pair[0], pair[1])).collect();

    for (actual, expected) in paid.iter().zip([0.2985, 0.08805, 0.0876, -0.48]) {
        assert_close(*actual, expected);
    }
    assert_close(discounted(&potentials), 0.0);
}

proptest! {
    /// For any histories of seeds in several slots.
    #[test]
    fn shaping_telescopes(
        history in prop::collection::vec(prop::collection::vec((0usize..10, 1u32..20), 3), 1..80),
        terminates: bool,
    ) {
        let mut potentials = vec![0.0];
        potentials.extend(history.iter().map(|slots| -> f64 {
            slots.iter().map(|&(stage, n)| phi(SeedStage::ALL[stage], n)).sum()
        }));
        if terminates {
            potentials.push(0.0);
        }
        let last = potentials[potentials.len() - 1];
        let steps = potentials.len() as i32 - 1;

        prop_assert!((discounted(&potentials) - 0.3 * GAMMA.powi(steps) * last).abs() < 1e-9);
    }
}
