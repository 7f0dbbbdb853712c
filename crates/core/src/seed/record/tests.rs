use super::*;
use crate::fixtures::assert_close;
use crate::scenario::fixtures::slow_lifecycle;
use crate::seed::fixtures::{fresh, healthy_sums};

#[test]
fn velocity_smooths_the_change_per_step_between_measurements() {
    for (points, expected) in [
        ([1.0, 2.0, 1.5, 3.0], [0.0, 0.3, 0.06, 0.492]),
        ([1.0, 2.0, 1.5, 1.5], [0.0, 0.3, 0.06, 0.042]),
    ] {
        let mut seed = fresh();
        let velocities = points.map(|points| {
            seed.measure_contribution(points);
            seed.age_measurements();
            seed.contribution.velocity
        });
        assert_close(&velocities, &expected, 1e-9);
    }
    for (gap, change) in [(2, 1.0), (4, 2.0)] {
        let mut seed = fresh();
        seed.measure_contribution(1.0);
        for _ in 0..gap {
            seed.age_measurements();
        }
        assert_eq!(seed.contribution.age, Some(gap));
        seed.measure_contribution(1.0 + change);
        assert_close(&[seed.contribution.velocity], &[0.15], 1e-9);
        assert_eq!(seed.contribution.age, Some(0));
    }
}

#[test]
fn what_was_never_measured_stays_unmeasured() {
    let mut seed = fresh();
    seed.measure_contribution(f64::NAN);
    seed.age_measurements();
    assert_eq!(seed.contribution, ContributionTrack::default());
    assert_eq!(seed.gradient.previous_health, None);
    assert!(!seed.healthy());
}

#[test]
fn a_step_without_a_finite_accuracy_only_counts() {
    let mut seed = fresh();
    seed.record_step(60.0);
    seed.record_step(55.0);
    seed.record_step(f64::NAN);
    assert_eq!((seed.age_steps, seed.steps_in_stage), (3, 3));
    assert_eq!(seed.accuracy.current, 55.0);
    assert_eq!(seed.total_improvement(), 5.0);
}

#[test]
fn the_gradient_ratio_starts_at_its_first_value() {
    let mut seed = fresh();
    let ratios = [0.2, 0.4, 0.1].map(|ratio| {
        let sums = GradientSums {
            sum_squares: ratio * ratio,
            ..healthy_sums()
        };
        seed.measure_gradients(&sums, &healthy_sums(), &slow_lifecycle());
        seed.gradient.ratio.expect("measured")
    });
    assert_close(&ratios, &[0.2, 0.22, 0.208], 1e-6);
}

#[test]
fn a_measurement_without_gradients_leaves_nothing_measured() {
    let mut seed = fresh();
    seed.measure_gradients(&healthy_sums(), &healthy_sums(), &slow_lifecycle());
    assert!(seed.healthy());
    seed.age_measurements();
    seed.measure_gradients(&GradientSums::default(), &healthy_sums(), &slow_lifecycle());
    let nothing = GradientTrack {
        previous_health: Some(1.0),
        ..GradientTrack::default()
    };
    assert_eq!(seed.gradient, nothing);
}

#[test]
fn a_diverged_gradient_is_worthless_but_keeps_the_average() {
    let mut seed = fresh();
    seed.measure_gradients(&healthy_sums(), &healthy_sums(), &slow_lifecycle());
    let before = seed.gradient;
    let diverged = GradientSums {
        sum_squares: f64::NAN,
        exploding: 1,
        ..healthy_sums()
    };
    seed.measure_gradients(&diverged, &healthy_sums(), &slow_lifecycle());
    let found = (seed.gradient.norm, seed.gradient.health, seed.gradient.ratio);
    assert_eq!(found, (Some(f64::INFINITY), Some(0.0), before.ratio));
    assert!(!seed.healthy());
}
