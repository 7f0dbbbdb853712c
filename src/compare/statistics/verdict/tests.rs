use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::compare::statistics::fixtures::{assert_close, reference};
use crate::compare::statistics::{Bootstrap, Design, Sample, Statistic, difference, mann_whitney};
use crate::random::{Domain, Draw, RunRng};

const CRITERIA: Criteria = Criteria {
    test: DecisionTest::MannWhitney,
    alpha: 0.05,
    min_effect: 0.5,
};

const CLEAR: Estimate = Estimate {
    value: 2.0,
    interval: Some(Interval { low: 1.0, high: 3.0 }),
};

#[test]
fn a_verdict_takes_a_test_an_interval_and_a_size() {
    for (adjusted_p, difference, low, high, expected) in [
        (0.01, 2.0, 1.0, 3.0, Verdict::Better(Arm::First)),
        (0.01, -2.0, -3.0, -1.0, Verdict::Better(Arm::Second)),
        (0.05, 2.0, 1.0, 3.0, Verdict::Inconclusive),
        (0.01, 2.0, 0.0, 3.0, Verdict::Inconclusive),
        (0.01, 0.4, 0.1, 0.8, Verdict::Inconclusive),
        // Significant, and still of no importance.
        (0.01, 0.3, 0.1, 0.45, Verdict::Equivalent),
        (1.0, 0.0, -0.4, 0.51, Verdict::Inconclusive),
    ] {
        let interval = Some(Interval { low, high });
        let estimate = Estimate {
            value: difference,
            interval,
        };
        let judged = verdict([5, 5], adjusted_p, estimate, &CRITERIA);
        assert_eq!(judged, expected, "{estimate:?} at {adjusted_p}");
    }
}

#[test]
fn four_trainings_are_too_few_however_far_apart() {
    let unsure = Estimate {
        interval: None,
        ..CLEAR
    };
    let test = DecisionTest::PairedSignFlip;
    let pairs = Criteria { test, ..CRITERIA };

    assert_eq!(verdict([4, 40], 0.01, CLEAR, &CRITERIA), Verdict::InsufficientData);
    assert_eq!(verdict([5, 5], 0.01, unsure, &CRITERIA), Verdict::InsufficientData);
    assert_eq!(verdict([5, 5], 0.01, CLEAR, &pairs), Verdict::InsufficientData);
    assert_eq!(verdict([6, 6], 0.01, CLEAR, &pairs), Verdict::Better(Arm::First));
}

#[test]
fn verdicts_are_words_in_json() {
    let word = |verdict: Verdict| serde_json::to_string(&verdict).expect("plain words");
    assert_eq!(word(Verdict::InsufficientData), r#""insufficient_data""#);
    assert_eq!(word(Verdict::Better(Arm::Second)), r#"{"better":"second"}"#);
}

/// 5 % of 1000 experiments with two equal arms of ten trainings may find a better arm. If the test finds nothing, the
/// verdict isn't `Better` with any interval, so none is drawn.
#[test]
fn equal_arms_rarely_have_a_winner() {
    let mut rng = RunRng::new(1, Domain::TelemetryProbe, &[]);
    let criteria = Criteria {
        min_effect: 0.0,
        ..CRITERIA
    };
    let mut arm = || {
        let mut values = [0.0_f32; 10];
        rng.fill_normal(&mut values, 1.0);
        values.map(f64::from)
    };
    let mut winners = 0;
    for experiment in 0..1000 {
        let (first, second) = (arm(), arm());
        let p = holm(&[mann_whitney(&first, &second).expect("ten values")])[0];
        if p >= criteria.alpha {
            continue;
        }
        let [first, second] = [first, second].map(|arm| Sample::of_numbers(&[arm.to_vec()]));
        let mut bootstrap = Bootstrap::seeded(experiment);
        bootstrap.resamples = 1000;
        let estimate = difference(&first, &second, Statistic::Iqm, Design::Independent, bootstrap);
        let judged = verdict([5, 5], p, estimate.expect("arms that fit"), &criteria);
        winners += usize::from(matches!(judged, Verdict::Better(_)));
    }
    assert!((10..=50).contains(&winners), "{winners} of 1000");
}

#[derive(Deserialize)]
struct Case {
    raw: Vec<f64>,
    adjusted: Vec<f64>,
}

#[test]
fn adjusted_p_values_are_those_of_statsmodels() {
    for case in reference::<Vec<Case>>("holm") {
        let adjusted = holm(&case.raw);
        assert_eq!(adjusted.len(), case.adjusted.len());
        for (actual, expected) in adjusted.into_iter().zip(case.adjusted) {
            assert_close(actual, expected);
        }
    }
    assert!(holm(&[]).is_empty());
}

proptest! {
    #[test]
    fn corrections_keep_the_order_and_never_help(raw in prop::collection::vec(0.0..=1.0f64, 1..20)) {
        let adjusted = holm(&raw);
        for (index, &p) in raw.iter().enumerate() {
            prop_assert!(p <= adjusted[index] && adjusted[index] <= 1.0);
            for (other, &q) in raw.iter().enumerate() {
                prop_assert!(p > q || adjusted[index] <= adjusted[other]);
            }
        }
        // The smallest is Bonferroni's.
        let smallest = raw.iter().copied().fold(1.0, f64::min);
        let least = adjusted.iter().copied().fold(1.0, f64::min);
        prop_assert_eq!(least, (smallest * raw.len() as f64).min(1.0));
    }
}
