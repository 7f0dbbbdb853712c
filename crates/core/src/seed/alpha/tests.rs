use proptest::prelude::*;

use super::*;
use crate::fixtures::assert_close;
use crate::seed::broken_law;
use crate::seed::fixtures::fresh;

fn ramp(start: f64, target: f64, ticks: u32, curve: AlphaCurve, steepness: f64) -> Vec<f64> {
    let mut controller = AlphaController::resting_at(start);
    let shape = RampShape::new(curve, steepness);
    controller.retarget(target, ticks, shape).unwrap();
    (0..ticks)
        .map(|tick| {
            assert_eq!(controller.step(), tick + 1 == ticks);
            controller.alpha()
        })
        .collect()
}

#[test]
fn ramps_follow_the_published_table_and_may_start_anywhere() {
    use AlphaCurve::{Cosine, Linear, Sigmoid};
    let table: [(u32, AlphaCurve, f64, &[f64]); 7] = [
        (3, Linear, 12.0, &[0.333333, 0.666667, 1.0]),
        (3, Cosine, 12.0, &[0.25, 0.75, 1.0]),
        (5, Linear, 12.0, &[0.2, 0.4, 0.6, 0.8, 1.0]),
        (5, Cosine, 12.0, &[0.095492, 0.345492, 0.654508, 0.904508, 1.0]),
        (5, Sigmoid, 6.0, &[0.104320, 0.339080, 0.660920, 0.895680, 1.0]),
        (5, Sigmoid, 12.0, &[0.024244, 0.230141, 0.769859, 0.975756, 1.0]),
        (5, Sigmoid, 24.0, &[0.000740, 0.083168, 0.916832, 0.999260, 1.0]),
    ];
    for (ticks, curve, steepness, expected) in table {
        assert_close(&ramp(0.0, 1.0, ticks, curve, steepness), expected, 1e-6);
    }
    let of_eight = [0.008557, 0.045177, 0.180847, 0.5, 0.819153, 0.954823, 0.991443, 1.0];
    assert_close(&ramp(0.0, 1.0, 8, Sigmoid, 12.0), &of_eight, 1e-6);
    let from_half = [0.512122, 0.615070, 0.884930, 0.987878, 1.0];
    assert_close(&ramp(0.5, 1.0, 5, Sigmoid, 12.0), &from_half, 1e-6);
}

#[test]
fn an_alpha_outside_its_range_is_found() {
    let mut seed = fresh();
    seed.alpha.alpha = 1.5;
    assert_eq!(broken_law(&seed), Some("alpha and its ramp are in range"));
}

#[test]
fn retargeting_a_moving_controller_is_refused_and_changes_nothing() {
    let mut controller = AlphaController::default();
    controller.retarget(1.0, 5, RampShape::default()).unwrap();
    controller.step();
    let before = controller;

    let refused = controller.retarget(0.5, 3, RampShape::default());

    assert_eq!(refused, Err(FailureReason::AlphaBusy { mode: AlphaMode::Up }));
    assert_eq!(controller, before);
}

#[test]
fn an_equal_target_rests_and_an_outlying_one_is_clamped() {
    let mut controller = AlphaController::default();
    controller.retarget(-3.0, 5, RampShape::default()).unwrap();
    assert_eq!((controller.mode(), controller.target()), (AlphaMode::Hold, 0.0));
    controller.retarget(7.0, 5, RampShape::default()).unwrap();
    assert_eq!((controller.mode(), controller.target()), (AlphaMode::Up, 1.0));
}

#[test]
fn time_and_velocity_describe_the_ramp_and_vanish_at_rest() {
    let mut controller = AlphaController::default();
    assert_eq!((controller.time_to_target(), controller.velocity()), (0, 0.0));
    controller.retarget(1.0, 4, RampShape::default()).unwrap();
    controller.step();
    assert_eq!((controller.time_to_target(), controller.velocity()), (3, 0.25));
}

proptest! {
    #[test]
    fn every_ramp_is_monotone_bounded_and_exact_at_its_end(
        start in 0.0..=1.0f64,
        target in 0.0..=1.0f64,
        ticks in 0u32..=25,
        curve in prop::sample::select(&AlphaCurve::ALL),
        steepness in 0.0..2000.0f64,
    ) {
        let mut controller = AlphaController::resting_at(start);
        controller.retarget(target, ticks, RampShape::new(curve, steepness)).unwrap();
        let mut previous = start;
        for _ in 0..ticks {
            controller.step();
            prop_assert!(controller.is_consistent());
            prop_assert!((target - start) * (controller.alpha() - previous) >= 0.0);
            previous = controller.alpha();
        }
        prop_assert_eq!(controller.alpha(), target);
        prop_assert_eq!(controller.mode(), AlphaMode::Hold);
        prop_assert!(!controller.step());
    }
}
