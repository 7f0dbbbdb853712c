use proptest::prelude::*;

use super::*;
use crate::policy::fixtures::assert_close;
use crate::random::{Draw, RunRng};

const LOGITS: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

fn even() -> Choices {
    [0, 2, 4].into_iter().collect()
}

fn floored(logits: &[f32], valid: Choices, epsilon: f64) -> Categorical {
    Categorical::new(logits, valid, Floor { epsilon })
}

/// Checks the probability of each valid member, and its logarithm.
#[track_caller]
fn assert_probabilities(distribution: &Categorical, expected: &[f64], logarithms: &[f64]) {
    let members = || distribution.valid.iter();
    let probabilities: Vec<f64> = members().map(|member| distribution.probability(member)).collect();
    let logs: Vec<f64> = members().map(|member| distribution.log_probability(member)).collect();
    assert_close(&probabilities, expected, 1e-6);
    assert_close(&logs, logarithms, 1e-6);
}

#[test]
fn a_masked_softmax_shares_all_probability_among_valid_members() {
    let distribution = floored(&LOGITS, even(), 0.0);
    let expected = [0.015_876_24, 0.117_310_43, 0.866_813_33];
    assert_probabilities(&distribution, &expected, &[-4.142_932, -2.142_932, -0.142_932]);
    assert_eq!(distribution.probability(5), 0.0);
}

#[test]
fn a_single_valid_member_is_certain() {
    for epsilon in [0.0, 0.05] {
        let distribution = floored(&LOGITS, Choices::only(3), epsilon);
        assert!(distribution.log_probability(3).abs() < 1e-15);
    }
}

#[test]
fn a_mixture_floor_lifts_every_valid_member_and_is_capped() {
    let distribution = floored(&LOGITS, even(), 0.05);
    let expected = [0.063_494_8, 0.149_713_9, 0.786_791_3];
    assert_probabilities(&distribution, &expected, &[-2.756_797, -1.899_029, -0.239_792]);
    let capped = [0, 2, 4].map(|member| floored(&LOGITS, even(), 0.3).probability(member));
    assert_close(&capped, &[0.174_604_8, 0.225_321_9, 0.600_073_3], 1e-6);
}

#[test]
fn uniforms_fall_on_members_in_ascending_order() {
    let distribution = floored(&LOGITS, even(), 0.05);
    let drawn = [0.06, 0.0635, 0.20, 0.999_999_9].map(|uniform| distribution.draw(uniform));
    assert_eq!(drawn, [0, 2, 2, 4]);
    assert_eq!(distribution.likeliest(), 4);
    assert_eq!(floored(&[1.0; 6], even(), 0.0).likeliest(), 0);
}

/// Chi-squared with two degrees of freedom below its 0.1 % point of 13.816.
#[test]
fn draws_follow_the_probabilities_and_never_leave_the_mask() {
    const DRAWS: u32 = 200_000;
    let distribution = floored(&LOGITS, even(), 0.05);
    let mut rng = RunRng::from_seed(1);
    let mut counts = [0u32; 6];
    for _ in 0..DRAWS {
        counts[distribution.draw(rng.uniform_f64())] += 1;
    }
    assert_eq!([counts[1], counts[3], counts[5]], [0, 0, 0]);
    let terms = [(0, 0.063_494_78), (2, 0.149_713_87), (4, 0.786_791_35)].map(|(member, probability)| {
        let expected: f64 = probability * f64::from(DRAWS);
        (f64::from(counts[member]) - expected).powi(2) / expected
    });
    let chi_squared: f64 = terms.iter().sum();
    assert!(chi_squared < 13.816, "{chi_squared}");
}

proptest! {
    #[test]
    fn floored_probabilities_sum_to_one_over_the_mask_alone(
        logits in prop::collection::vec(-30.0f32..30.0, 13),
        bits in 1u64..1 << 13,
        epsilon in 0.0..0.9f64,
        uniform in 0.0..1.0f64,
    ) {
        let valid: Choices = (0..13).filter(|member| bits >> member & 1 == 1).collect();
        let distribution = floored(&logits, valid, epsilon);
        let sum: f64 = (0..13).map(|member| distribution.probability(member)).sum();
        prop_assert!((sum - 1.0).abs() < 1e-9);
        prop_assert!(valid.contains(distribution.draw(uniform)));
        prop_assert!(valid.contains(distribution.likeliest()));
    }
}
