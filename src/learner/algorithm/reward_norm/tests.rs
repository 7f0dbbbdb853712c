use super::*;

fn normalizer(values: &[&[f64]], mode: RewardNormMode) -> RewardNormalizer {
    let mut normalizer = RewardNormalizer::new(mode);
    for batch in values {
        assert!(normalizer.moments.merge(batch.iter().copied(), 1.0));
    }
    normalizer
}

#[test]
fn rewards_are_divided_by_their_root_mean_square() {
    let first = normalizer(&[&[1.0, -2.0, 0.5, 3.0]], RewardNormMode::Rms);
    assert!((first.scale(2) - 1.887_458_6).abs() < 1e-6);

    let second = normalizer(&[&[1.0, -2.0, 0.5, 3.0], &[2.0, 1.0]], RewardNormMode::Rms);
    let scale = second.scale(2);
    assert!((scale - 1.791_182_1).abs() < 1e-6);

    let config = RewardNorm::default();
    let scaled = [2.0, 1.0].map(|reward| scaled_reward(reward, scale, &config));
    for (actual, expected) in scaled.iter().zip([1.116_581_1, 0.558_290_5]) {
        assert!((actual - expected).abs() < 1e-6, "{scaled:?}");
    }
}

#[test]
fn nothing_is_scaled_before_enough_is_known() {
    let few = normalizer(&[&[5.0, 7.0]], RewardNormMode::Rms);
    assert_eq!(few.scale(32), 1.0);
}

#[test]
fn a_constant_reward_stays_a_constant() {
    let rms = normalizer(&[&[4.0; 40]], RewardNormMode::Rms);
    assert!((rms.scale(32) - 4.0).abs() < 1e-12);
    let std = normalizer(&[&[4.0; 40]], RewardNormMode::Std);
    assert_eq!(std.scale(32), 1e-3);
}

#[test]
fn scaled_rewards_are_clamped() {
    assert_eq!(scaled_reward(-500.0, 2.0, &RewardNorm::default()), -10.0);
}
