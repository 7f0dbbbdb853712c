use super::*;

#[track_caller]
fn assert_close(actual: Option<f64>, expected: f64) {
    let actual = actual.expect("measured");
    assert!((actual - expected).abs() < 1e-6, "{actual} is not {expected}");
}

fn counted(tensors: u32, vanishing: u32, exploding: u32) -> GradientSums {
    GradientSums {
        sum_squares: 1.0,
        vanishing,
        exploding,
        tensors,
        elements: 16,
    }
}

fn with_norm(norm: f64, elements: u64) -> GradientSums {
    GradientSums {
        sum_squares: norm * norm,
        tensors: 1,
        elements,
        ..GradientSums::default()
    }
}

#[test]
fn health_falls_with_vanishing_and_exploding_tensors() {
    for (tensors, vanishing, exploding, health) in [
        (4, 0, 0, 1.0),
        (4, 1, 0, 0.875),
        (4, 2, 1, 0.55),
        (4, 1, 1, 0.675),
        (5, 2, 1, 0.64),
    ] {
        assert_close(counted(tensors, vanishing, exploding).health(), health);
    }
}

#[test]
fn no_gradient_at_all_is_unmeasured() {
    let none = GradientSums::default();
    assert_eq!((none.norm(), none.health()), (None, None));
    assert_eq!(none.ratio_to(&with_norm(1.0, 10), 10.0), None);
}

#[test]
fn huge_norms_stay_finite_and_non_finite_ones_are_worthless() {
    assert_eq!(with_norm(1e30, 2).norm(), Some(1e30));
    for sum_squares in [f64::NAN, f64::INFINITY] {
        let diverged = GradientSums {
            sum_squares,
            ..counted(2, 0, 1)
        };
        assert_eq!((diverged.norm(), diverged.health()), (Some(f64::INFINITY), Some(0.0)));
        assert_eq!(diverged.ratio_to(&with_norm(1.0, 10), 10.0), None);
    }
}

#[test]
fn the_ratio_compares_mean_squares_and_is_capped() {
    for (seed, host, ratio) in [
        (with_norm(0.3, 688), with_norm(2.0, 6418), 0.458139),
        (with_norm(0.5, 1000), with_norm(2.0, 100_000), 2.499996),
        (with_norm(0.2, 4200), with_norm(4.0, 6000), 0.059_761_418),
        (with_norm(3.0, 10), with_norm(0.1, 100_000), 10.0),
        (with_norm(1e-9, 10), with_norm(0.1, 10), 0.0),
        (with_norm(1.0, 10), GradientSums::default(), 0.0),
    ] {
        assert_close(seed.ratio_to(&host, 10.0), ratio);
    }
}

#[test]
fn growth_counts_committed_and_live_parameters_apart() {
    let seeds = [
        (SeedStage::Committed, 688),
        (SeedStage::Blending, 273),
        (SeedStage::Embargoed, 5000),
    ];
    let growth = Growth::of(6418, seeds);
    assert_close(Some(growth.growth_ratio()), 1.107199);
    assert_close(Some(growth.parameter_ratio()), 1.149735);
    assert_eq!((growth.live_params, growth.committed_params), (273, 688));
}
