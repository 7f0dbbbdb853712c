use proptest::prelude::*;

use super::*;
use crate::policy::fixtures::{assert_close, values};
use crate::torch::fixtures::on_device;

fn normalizer(batches: &[&[f64]]) -> RewardNormalizer {
    let mut normalizer = RewardNormalizer::default();
    for batch in batches {
        assert!(normalizer.moments.merge(batch.iter().copied(), MOMENTUM));
    }
    normalizer
}

#[test]
fn rewards_are_divided_by_their_root_mean_square() {
    let first = [1.0, -2.0, 0.5, 3.0].repeat(8);
    let scales = [
        normalizer(&[&first]).scale(),
        normalizer(&[&first, &[2.0, 1.0].repeat(8)]).scale(),
    ];
    assert_close(&scales, &[1.887_458_6, 1.791_182_1], 1e-6);
    let scaled = [2.0, 1.0].map(|reward| scaled_reward(reward, scales[1]));
    assert_close(&scaled, &[1.116_581_1, 0.558_290_5], 1e-6);
}

#[test]
fn nothing_is_scaled_before_enough_is_known() {
    assert_eq!(normalizer(&[&[5.0; 31]]).scale(), 1.0);
    assert_eq!(normalizer(&[&[5.0; 32]]).scale(), 5.0);
}

#[test]
fn scaled_rewards_are_clamped() {
    assert_eq!(scaled_reward(-500.0, 2.0), -10.0);
}

fn head(weight: [f32; 2], bias: f32) -> Linear {
    Linear {
        weight: on_device(Tensor::from_slice(&weight).reshape([1, 2])).set_requires_grad(true),
        bias: Some(on_device(Tensor::from_slice(&[bias])).set_requires_grad(true)),
    }
}

fn raw_output(head: &Linear, units: ValueUnits, input: [f64; 2]) -> f64 {
    let (weight, bias) = (values(&head.weight), values(bias_of(head).unwrap()));
    units.raw(weight[0] * input[0] + weight[1] * input[1] + bias[0])
}

#[test]
fn the_head_is_rewritten_so_that_raw_outputs_stay() {
    let head = head([0.5, -0.25], 0.1);
    let moved = ValueUnits {
        mean: 3.0,
        deviation: 2.0,
    };

    preserve_outputs(&head, ValueUnits::RAW, moved).expect("rescale");

    assert_eq!(values(&head.weight), [0.25, -0.125]);
    assert!((values(bias_of(&head).unwrap())[0] + 1.45).abs() < 1e-6);
    assert!((raw_output(&head, moved, [2.0, 4.0]) - 0.1).abs() < 1e-6);
    assert!(head.weight.requires_grad() && head.weight.is_leaf());
}

#[test]
fn targets_are_centred_and_divided() {
    let mut normalizer = ValueNormalizer::default();
    let returns = [14.0, 10.0, 6.0].repeat(11);
    let is_finite = normalizer.observe(&returns, 0.95, &head([0.0; 2], 0.0));
    assert_eq!(is_finite, Ok(true));

    let found = [normalizer.moments.mean, normalizer.moments.var];
    assert_close(&found, &[10.0, 10.666_666_7], 1e-6);
    let targets = [14.0, 10.0, 6.0].map(|ret| normalizer.units().normalise(ret));
    assert_close(&targets, &[1.224_744_9, 0.0, -1.224_744_9], 1e-6);
}

#[test]
fn returns_that_are_not_finite_change_neither_statistics_nor_head() {
    let head = head([0.5, -0.25], 0.1);
    let mut normalizer = ValueNormalizer::default();
    assert!(!normalizer.observe(&[1.0, f64::INFINITY], 0.95, &head).expect("observe"));

    assert_eq!(normalizer.moments, RunningMoments::default());
    assert_eq!(values(&head.weight), [0.5, -0.25]);
}

proptest! {
    /// Whether the statistics are in use or not.
    #[test]
    fn raw_outputs_follow_the_unit_and_nothing_else(
        batches in prop::collection::vec(prop::collection::vec(-50.0f64..50.0, 1..30), 1..5),
        factor in 0.2f64..5.0,
    ) {
        let head = head([0.5, -0.25], 0.1);
        let mut normalizer = ValueNormalizer::default();
        let input = [2.0, -3.0];
        let mut expected = raw_output(&head, normalizer.units(), input);
        for batch in &batches {
            normalizer.observe(batch, 0.95, &head).expect("observe");
            let raw = raw_output(&head, normalizer.units(), input);
            prop_assert!((raw - expected).abs() < 1e-3 * (1.0 + normalizer.units().deviation));

            let deviation = normalizer.moments.var.sqrt() * factor;
            normalizer.rescale_units(factor, &head).expect("rescale");
            // Below the least deviation units no longer follow.
            prop_assume!(deviation > 1e-2 && deviation / factor > 1e-2);
            expected = raw_output(&head, normalizer.units(), input);
            prop_assert!((expected - raw * factor).abs() < 1e-3 * (1.0 + raw.abs() * factor));
        }
    }
}
