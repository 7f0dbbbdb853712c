use proptest::prelude::*;

use super::*;
use crate::growth::SeedStage::*;
use crate::reward::fixtures::{GAMMA, assert_close};

fn phi(stage: SeedStage, n: u32) -> f64 {
    of_stage(stage, n)
}

/// Shaping with the weight of most modes.
fn shaping(before: f64, after: f64) -> f64 {
    0.3 * (GAMMA * after - before)
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

proptest! {
    /// Holds for any histories of seeds in several slots.
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
        let steps = potentials.windows(2).zip(0..);
        let paid: f64 = steps.map(|(pair, t)| GAMMA.powi(t) * shaping(pair[0], pair[1])).sum();

        let (last, steps) = (potentials[potentials.len() - 1], potentials.len() as i32 - 1);
        prop_assert!((paid - 0.3 * GAMMA.powi(steps) * last).abs() < 1e-9);
    }
}
