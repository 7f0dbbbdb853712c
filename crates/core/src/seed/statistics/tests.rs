use super::*;
use crate::kernels::GradientThresholds;

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

/// Sums over the `(norm, elements)` of each tensor, as the engine's kernel makes them.
fn sums_of(tensors: impl IntoIterator<Item = (f64, u64)>) -> GradientSums {
    let thresholds = GradientThresholds::new(1e-7, 10.0, Some(1.0));
    tensors
        .into_iter()
        .fold(GradientSums::default(), |sums, (norm, elements)| GradientSums {
            sum_squares: sums.sum_squares + norm * norm,
            vanishing: sums.vanishing + u32::from(norm < thresholds.vanishing),
            exploding: sums.exploding + u32::from(norm > thresholds.exploding || !norm.is_finite()),
            tensors: sums.tensors + 1,
            elements: sums.elements + elements,
        })
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
    assert_close(counted(4, 0, 0).health(), 1.0);
    assert_close(counted(4, 1, 0).health(), 0.875);
    assert_close(counted(4, 2, 1).health(), 0.55);
}

#[test]
fn no_gradient_at_all_is_unmeasured() {
    let none = GradientSums::default();
    assert_eq!(none.norm(), None);
    assert_eq!(none.health(), None);
    assert_eq!(none.ratio_to(&with_norm(1.0, 10), 10.0), None);
}

#[test]
fn tensor_norms_fold_into_one_global_norm() {
    let sums = sums_of([3.0, 4.0, 1e-8, 12.0].map(|norm| (norm, 10)));
    assert_close(sums.norm(), 13.0);
    assert_eq!((sums.vanishing, sums.exploding), (1, 1));
    assert_close(sums.health(), 0.675);
}

#[test]
fn a_tensor_without_gradient_counts_as_vanishing() {
    let norms = [0.0, 5e-8, 0.5, 3.0, 12.0].map(|norm| (norm, 10));
    let sums = sums_of(norms);
    assert_close(sums.norm(), 12.379_418_403_139_947);
    assert_eq!((sums.vanishing, sums.exploding), (2, 1));
    assert_close(sums.health(), 0.64);

    let diverged = norms.into_iter().chain([(f64::INFINITY, 10)]);
    assert_eq!(sums_of(diverged).health(), Some(0.0));
}

#[test]
fn huge_norms_stay_finite_and_non_finite_ones_are_worthless() {
    let huge = sums_of([(1e30, 1), (1e30, 1)]);
    assert!((huge.norm().expect("measured") / 1.4142e30 - 1.0).abs() < 1e-4);

    let diverged = sums_of([(f64::NAN, 1), (1.0, 1)]);
    assert_eq!(diverged.norm(), Some(f64::INFINITY));
    assert_eq!(diverged.exploding, 1);
    assert_eq!(diverged.health(), Some(0.0));
}

#[test]
fn the_ratio_compares_mean_squares_and_is_capped() {
    assert_close(with_norm(0.3, 688).ratio_to(&with_norm(2.0, 6418), 10.0), 0.458139);
    assert_close(with_norm(0.5, 1000).ratio_to(&with_norm(2.0, 100_000), 10.0), 2.499996);
    assert_close(with_norm(3.0, 10).ratio_to(&with_norm(0.1, 100_000), 10.0), 10.0);
    assert_close(with_norm(1e-9, 10).ratio_to(&with_norm(0.1, 10), 10.0), 0.0);
    assert_close(with_norm(1.0, 10).ratio_to(&GradientSums::default(), 10.0), 0.0);
}

#[test]
fn the_ratio_of_a_small_seed_to_its_host() {
    let ratio = with_norm(0.2, 4200).ratio_to(&with_norm(4.0, 6000), 10.0);
    assert_close(ratio, 0.059_761_418_893_970_7);
}

#[test]
fn growth_counts_committed_and_live_parameters_apart() {
    let growth = Growth::of(
        6418,
        [
            (SeedStage::Committed, 688),
            (SeedStage::Blending, 273),
            (SeedStage::Embargoed, 5000),
        ],
    );
    assert!((growth.growth_ratio() - 1.107199).abs() < 1e-6);
    assert!((growth.parameter_ratio() - 1.149735).abs() < 1e-6);
    assert_eq!((growth.live_params, growth.committed_params), (273, 688));
}
