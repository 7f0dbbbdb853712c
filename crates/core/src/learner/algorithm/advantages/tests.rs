use proptest::prelude::*;

use super::*;
use crate::policy::fixtures::assert_close;
use crate::telemetry::statistics::mean_and_std;

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

/// Where the policy that acted is the present one.
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

    /// `A_t = Σ_k (γλ)^k · δ_{t+k}`, summed as it is defined.
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
