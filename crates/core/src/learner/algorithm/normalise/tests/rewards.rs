use super::super::*;

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
    assert!((normalizer(&[&first]).scale() - 1.887_458_6).abs() < 1e-6);

    let scale = normalizer(&[&first, &[2.0, 1.0].repeat(8)]).scale();
    assert!((scale - 1.791_182_1).abs() < 1e-6);

    let scaled = [2.0, 1.0].map(|reward| scaled_reward(reward, scale));
    for (actual, expected) in scaled.iter().zip([1.116_581_1, 0.558_290_5]) {
        assert!((actual - expected).abs() < 1e-6, "{scaled:?}");
    }
}

#[test]
fn nothing_is_scaled_before_enough_is_known() {
    assert_eq!(normalizer(&[&[5.0; 31]]).scale(), 1.0);
    assert_eq!(normalizer(&[&[5.0; 32]]).scale(), 5.0);
}

#[test]
fn a_constant_reward_stays_a_constant() {
    assert!((normalizer(&[&[4.0; 40]]).scale() - 4.0).abs() < 1e-12);
}

#[test]
fn scaled_rewards_are_clamped() {
    assert_eq!(scaled_reward(-500.0, 2.0), -10.0);
}
