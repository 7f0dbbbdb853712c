use proptest::prelude::*;

use super::*;
use crate::policy::fixtures::{assert_close, values};
use crate::telemetry::statistics::mean_and_std;
use crate::torch::fixtures::on_device;

fn normalizer(batches: &[&[f64]]) -> RewardNormalizer {
    let mut normalizer = RewardNormalizer::default();
    for batch in batches {
        assert!(normalizer.moments.merge(batch.iter().copied(), REWARD_MOMENTUM));
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
    let is_finite = normalizer.observe(&returns, &head([0.0; 2], 0.0));
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
    assert!(!normalizer.observe(&[1.0, f64::INFINITY], &head).expect("observe"));

    assert_eq!(normalizer.moments, RunningMoments::default());
    assert_eq!(values(&head.weight), [0.5, -0.25]);
}

proptest! {
    /// Holds with and without the use of the statistics.
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
            normalizer.observe(batch, &head).expect("observe");
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

#[test]
fn a_cloned_step_weighs_by_its_advantage_up_to_a_limit_or_as_all_others() {
    let target = |advantage| StepTargets {
        advantage,
        ..StepTargets::default()
    };
    let mut targets = vec![[0.0, -2.0, 9.0, 5.0].map(target).to_vec()];
    let steps = [(0, 0), (0, 1), (0, 2)];
    let mut weights = |beta| {
        weigh(&mut targets, &steps, beta);
        targets[0].iter().map(|target| target.advantage).collect::<Vec<f64>>()
    };

    // 1, 1/e, e^4.5 beyond 20; the last step is not learnt from.
    assert_close(&weights(Some(2.0)), &[1.0, 0.367_879, 20.0, 5.0], 1e-6);
    assert_eq!(weights(None), [1.0, 1.0, 1.0, 5.0]);
}

#[test]
fn a_deviation_below_the_floor_is_raised_to_it() {
    let advantages = [1.0, 1.02, 0.98, 1.0];
    let (mean, deviation) = mean_and_std(&advantages).unwrap();
    let found = advantages.map(|advantage| standardised(advantage, mean, deviation));
    assert_close(&found, &[0.0, 0.2, -0.2, 0.0], 1e-6);
}

/// Advantages if the acting policy is the current one.
fn on_policy(rewards: &[f64], values: &[f64], after: f64, gamma: f64, lambda: f64) -> Advantages {
    gae((rewards, values, &vec![1.0; rewards.len()]), after, gamma, lambda)
}

#[test]
fn what_the_present_policy_would_hardly_do_counts_less_and_shields_what_came_before() {
    let steps = (&[1.0, 0.0, 2.0][..], &[0.5, 1.0, 1.5][..], &[0.5, 3.0, 0.8][..]);

    let found = gae(steps, 0.0, 0.9, 1.0);

    // .8·.5, then .35 + .9·.4 with a ratio cut off at 1, then half of 1.4 + .9·.71.
    assert_close(&found.advantages, &[1.0195, 0.71, 0.4], 1e-6);
    assert_close(&found.returns, &[1.5195, 1.71, 1.9], 1e-6);
}

proptest! {
    /// `v_s − V_s = Σ_t γ^(t−s) · (Π_(s ≤ i < t) λ·c_i) · ρ_t · δ_t`, as the paper has it.
    #[test]
    fn returns_are_those_of_v_trace(
        steps in prop::collection::vec((-5.0f64..5.0, -5.0f64..5.0, 0.0f64..3.0), 1..20),
        after in -5.0f64..5.0,
        gamma in 0.0f64..1.0,
        lambda in 0.0f64..1.0,
    ) {
        let column = |of: fn(&(f64, f64, f64)) -> f64| steps.iter().map(of).collect::<Vec<f64>>();
        let (rewards, values, ratios) = (column(|step| step.0), column(|step| step.1), column(|step| step.2));
        let found = gae((&rewards, &values, &ratios), after, gamma, lambda);

        let next = |t: usize| values.get(t + 1).copied().unwrap_or(after);
        for s in 0..steps.len() {
            let (mut sum, mut trace) = (0.0, 1.0);
            for t in s..steps.len() {
                sum += trace * ratios[t].min(1.0) * (rewards[t] + gamma * next(t) - values[t]);
                trace *= gamma * lambda * ratios[t].min(1.0);
            }
            prop_assert!((found.returns[s] - values[s] - sum).abs() < 1e-9 * (1.0 + sum.abs()));
        }
    }

    /// `A_t = Σ_k (γλ)^k · δ_{t+k}`, summed by its definition.
    #[test]
    fn advantages_are_the_discounted_sum_of_one_step_errors(
        steps in prop::collection::vec((-5.0f64..5.0, -5.0f64..5.0), 1..30),
        after in -5.0f64..5.0,
        gamma in 0.0f64..1.0,
        lambda in 0.0f64..1.0,
    ) {
        let (rewards, values): (Vec<f64>, Vec<f64>) = steps.iter().copied().unzip();
        let result = on_policy(&rewards, &values, after, gamma, lambda);

        let n = rewards.len();
        let next = |t: usize| if t + 1 < n { values[t + 1] } else { after };
        for t in 0..n {
            let sum: f64 = (t..n)
                .map(|u| (gamma * lambda).powi((u - t) as i32) * (rewards[u] + gamma * next(u) - values[u]))
                .sum();
            prop_assert!((result.advantages[t] - sum).abs() < 1e-9 * (1.0 + sum.abs()));
        }
    }
}

#[test]
fn explained_variance_is_measured_against_a_floor() {
    let (returns, values) = ([1.0, 2.0, 3.0, 4.0], [1.5, 1.5, 3.5, 3.5]);
    assert!((explained_variance(&returns, &values) - 0.8).abs() < 1e-9);

    let (returns, values) = (returns.map(|r| r * 0.1), values.map(|v| v * 0.1));
    assert!((explained_variance(&returns, &values) - 0.9975).abs() < 1e-9);
}
