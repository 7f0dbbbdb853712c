use super::*;
use crate::torch::fixtures::{on_device, test_device};
use crate::torch::{HostSyncCounter, read_f64};

/// Parameters whose gradients are the given values.
fn params(kind: Kind, grads: &[&[f64]]) -> Vec<Tensor> {
    let param = |grad: &&[f64]| {
        let slope = on_device(Tensor::from_slice(grad).to_kind(kind));
        let param = slope.zeros_like().set_requires_grad(true);
        (&param * slope).sum(kind).backward();
        param
    };
    grads.iter().map(param).collect()
}

fn without_gradient() -> Tensor {
    Tensor::ones([4], (Kind::Float, test_device())).set_requires_grad(true)
}

fn read(tensor: &Tensor) -> Vec<f64> {
    read_f64(tensor, &HostSyncCounter::default()).expect("read")
}

fn clip(params: &[Tensor], max_norm: Option<f64>) -> (f64, f64) {
    let mut found = GroupNorm::new(test_device());
    clip_group(params, max_norm, &mut found).expect("clip");
    (read(&found.norm)[0], read(&found.bad)[0])
}

#[track_caller]
fn assert_close(actual: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(actual.len(), expected.len());
    for (a, e) in actual.iter().zip(expected) {
        assert!((a - e).abs() <= tolerance, "{actual:?} != {expected:?}");
    }
}

/// f32 gradients take the flat path on CPU, f64 gradients libtorch's multi-tensor operators, as on CUDA.
const BOTH_PATHS: [Kind; 2] = [Kind::Float, Kind::Double];

/// Tests norm 5, limit 1, over two tensors together; an undefined gradient is skipped.
#[test]
fn a_group_is_clipped_to_its_common_norm() {
    for kind in BOTH_PATHS {
        let mut group = params(kind, &[&[3.0, 0.0], &[4.0]]);
        group.push(without_gradient());

        let (norm, bad) = clip(&group, Some(1.0));

        assert_eq!((norm, bad), (5.0, 0.0));
        assert_close(&read(&group[0].grad()), &[3.0 * 0.19999996, 0.0], 1e-7);
        assert_close(&read(&group[1].grad()), &[4.0 * 0.19999996], 1e-7);
        assert!(!group[2].grad().defined());
    }
}

#[test]
fn small_gradients_and_groups_without_a_limit_stay_unchanged() {
    for kind in BOTH_PATHS {
        for max_norm in [Some(10.0), None] {
            let group = params(kind, &[&[3.0, -4.0]]);
            assert_eq!(clip(&group, max_norm), (5.0, 0.0));
            assert_eq!(read(&group[0].grad()), [3.0, -4.0]);
        }
    }
}

#[test]
fn nan_and_infinity_make_a_group_bad_with_and_without_clipping() {
    for kind in BOTH_PATHS {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for max_norm in [Some(1.0), None] {
                let group = params(kind, &[&[1.0], &[value, 2.0]]);
                assert_eq!(clip(&group, max_norm).1, 1.0);
            }
        }
    }
}

#[test]
fn a_group_without_gradients_has_norm_zero_and_overwrites_what_was_found_before() {
    let mut found = GroupNorm::new(test_device());
    let bad = params(Kind::Float, &[&[f64::NAN]]);
    clip_group(&bad, None, &mut found).expect("clip");
    clip_group(&[without_gradient()], Some(1.0), &mut found).expect("clip");

    assert_eq!((read(&found.norm), read(&found.bad)), (vec![0.0], vec![0.0]));
}

#[test]
fn a_gradient_explodes_at_a_multiple_of_what_it_is_clipped_to() {
    let exploding = |max_norm| GradientThresholds::new(10.0, max_norm).exploding;
    assert_eq!([Some(2.0), None].map(exploding), [20.0, 10.0]);
}

/// Tests norms 3, 4, 1e-8 and 12 with clip 1, so that more than 10 explodes.
#[test]
fn statistics_count_vanishing_and_exploding_tensors() {
    for kind in BOTH_PATHS {
        let mut group = params(kind, &[&[3.0], &[0.0, 4.0], &[1e-8], &[12.0]]);
        group.push(without_gradient());

        let stats = grad_stats(&group, 1e-7, 10.0).expect("stats");
        let stats = read(&stats);
        assert_close(&[stats[0].sqrt()], &[13.0], 1e-9);
        assert_eq!(stats[1..], [1.0, 1.0, 4.0, 5.0]);
    }
}

/// The norm of [1e30, 1e30] is finite.
#[test]
fn norms_of_huge_gradients_are_finite_and_non_finite_ones_count_as_exploding() {
    let group = params(Kind::Float, &[&[1e30, 1e30]]);
    let (norm, bad) = clip(&group, None);
    assert!((norm / 1.4142136e30 - 1.0).abs() < 1e-6);
    assert_eq!(bad, 0.0);

    for kind in BOTH_PATHS {
        let group = params(kind, &[&[f64::NAN], &[1.0]]);
        let stats = read(&grad_stats(&group, 1e-7, 10.0).expect("stats"));
        assert!(stats[0].is_nan());
        assert_eq!(stats[1..], [0.0, 1.0, 2.0, 2.0]);
    }
}

#[test]
fn statistics_of_nothing_are_zero() {
    assert_eq!(read(&grad_stats(&[], 1e-7, 10.0).expect("stats")), [0.0; 5]);
    let stats = grad_stats(&[without_gradient()], 1e-7, 10.0).expect("stats");
    assert_eq!(read(&stats), [0.0; 5]);
}

/// Compares the partial sums of the flat path with a plain sum, at lengths around the width of its lanes.
#[test]
fn every_element_of_any_length_counts_once() {
    for n in [1usize, 7, 8, 9, 16, 1003] {
        let grad: Vec<f64> = (1..=n).map(|i| i as f64 / 64.0).collect();
        let expected = grad.iter().map(|g| g * g).sum::<f64>().sqrt();

        let (norm, _) = clip(&params(Kind::Float, &[&grad]), None);

        assert!((norm - expected).abs() < 1e-12 * expected, "{n}: {norm}");
    }
}

#[test]
fn zeroed_gradients_keep_their_storage_for_the_next_ones_and_undefined_ones_stay_undefined() {
    for kind in BOTH_PATHS {
        let mut group = params(kind, &[&[1.0, 2.0]]);
        group.push(without_gradient());
        let storage = group[0].grad().data_ptr();

        zero_grads(&group).expect("zero");

        assert_eq!(read(&group[0].grad()), [0.0, 0.0]);
        assert!(!group[1].grad().defined());
        (&group[0] * 3.0).sum(kind).backward();
        assert_eq!(read(&group[0].grad()), [3.0, 3.0]);
        assert_eq!(group[0].grad().data_ptr(), storage);
    }
}
