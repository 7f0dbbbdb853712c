use super::*;
use crate::seed::fixtures::{Life, germination, healthy_sums};

fn fresh() -> SeedRecord {
    let mut life = Life::new(crate::scenario::fixtures::slow_lifecycle());
    life.germinate(germination());
    life.seed().clone()
}

/// Velocities after measuring `points` one step apart.
fn velocities(points: &[f64]) -> Vec<f64> {
    let mut seed = fresh();
    let measure = |&points: &f64| {
        seed.measure_contribution(points);
        seed.age_measurements();
        seed.contribution.velocity
    };
    points.iter().map(measure).collect()
}

#[track_caller]
fn assert_all_close(actual: &[f64], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len());
    for (a, e) in actual.iter().zip(expected) {
        assert!((a - e).abs() < 1e-9, "{actual:?} is not {expected:?}");
    }
}

#[test]
fn velocity_smooths_the_change_per_step() {
    assert_all_close(&velocities(&[1.0, 2.0, 1.5, 3.0]), &[0.0, 0.3, 0.06, 0.492]);
    assert_all_close(&velocities(&[1.0, 3.0, 2.0]), &[0.0, 0.6, 0.12]);
    assert_all_close(&velocities(&[1.0, 2.0, 1.5, 1.5]), &[0.0, 0.3, 0.06, 0.042]);
}

#[test]
fn velocity_divides_by_the_steps_between_measurements() {
    for (gap, change) in [(2, 1.0), (4, 2.0)] {
        let mut seed = fresh();
        seed.measure_contribution(1.0);
        for _ in 0..gap {
            seed.age_measurements();
        }
        assert_eq!(seed.contribution.age, Some(gap));
        seed.measure_contribution(1.0 + change);
        assert_all_close(&[seed.contribution.velocity], &[0.15]);
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
    let config = crate::scenario::fixtures::slow_lifecycle();
    let host = GradientSums {
        sum_squares: 1.0,
        ..healthy_sums()
    };
    let mut seed = fresh();
    let ratios: Vec<f64> = [0.2, 0.4, 0.1]
        .iter()
        .map(|ratio: &f64| {
            let sums = GradientSums {
                sum_squares: ratio * ratio,
                ..host
            };
            seed.measure_gradients(&sums, &host, &config);
            seed.gradient.ratio.expect("measured")
        })
        .collect();
    for (ratio, expected) in ratios.iter().zip([0.2, 0.22, 0.208]) {
        assert!((ratio - expected).abs() < 1e-6);
    }
}

#[test]
fn a_measurement_without_gradients_leaves_nothing_measured() {
    let config = crate::scenario::fixtures::slow_lifecycle();
    let mut seed = fresh();
    seed.measure_gradients(&healthy_sums(), &healthy_sums(), &config);
    assert!(seed.healthy());
    seed.age_measurements();
    seed.measure_gradients(&GradientSums::default(), &healthy_sums(), &config);
    let previous_health = Some(1.0);
    let nothing = GradientTrack {
        previous_health,
        ..GradientTrack::default()
    };
    assert_eq!(seed.gradient, nothing);
}

#[test]
fn a_diverged_gradient_is_worthless_but_keeps_the_average() {
    let config = crate::scenario::fixtures::slow_lifecycle();
    let mut seed = fresh();
    seed.measure_gradients(&healthy_sums(), &healthy_sums(), &config);
    let ratio = seed.gradient.ratio;
    let diverged = GradientSums {
        sum_squares: f64::NAN,
        exploding: 1,
        ..healthy_sums()
    };
    seed.measure_gradients(&diverged, &healthy_sums(), &config);
    assert_eq!(seed.gradient.norm, Some(f64::INFINITY));
    assert_eq!(seed.gradient.health, Some(0.0));
    assert_eq!(seed.gradient.ratio, ratio);
    assert!(!seed.healthy());
}
