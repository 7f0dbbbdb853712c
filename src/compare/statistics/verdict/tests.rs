use super::*;
use crate::compare::statistics::{Bootstrap, Design, Sample, Statistic, difference, holm, mann_whitney};
use crate::random::{Domain, Draw, RunRng};

const CRITERIA: Criteria = Criteria {
    test: DecisionTest::MannWhitney,
    alpha: 0.05,
    min_effect: 0.5,
};

const CLEAR: Evidence = Evidence {
    trainings: [5, 5],
    interim: false,
    adjusted_p: 0.01,
    difference: 2.0,
    interval: Some(Interval { low: 1.0, high: 3.0 }),
};

fn judge(evidence: Evidence) -> Option<Verdict> {
    verdict(&evidence, &CRITERIA)
}

#[test]
fn better_takes_a_test_an_interval_and_a_size() {
    assert_eq!(judge(CLEAR), Some(Verdict::Better(Arm::First)));
    let mirrored = Evidence {
        difference: -2.0,
        interval: Some(Interval { low: -3.0, high: -1.0 }),
        ..CLEAR
    };
    assert_eq!(judge(mirrored), Some(Verdict::Better(Arm::Second)));

    let insignificant = Evidence {
        adjusted_p: 0.05,
        ..CLEAR
    };
    assert_eq!(judge(insignificant), Some(Verdict::Inconclusive));
    let about_zero = Evidence {
        interval: Some(Interval { low: 0.0, high: 3.0 }),
        ..CLEAR
    };
    assert_eq!(judge(about_zero), Some(Verdict::Inconclusive));
    let small = Evidence {
        difference: 0.4,
        interval: Some(Interval { low: 0.1, high: 0.8 }),
        ..CLEAR
    };
    assert_eq!(judge(small), Some(Verdict::Inconclusive));
}

#[test]
fn arms_are_equivalent_when_no_difference_in_the_interval_matters() {
    // Significant, and still of no importance.
    let tiny = Evidence {
        difference: 0.3,
        interval: Some(Interval { low: 0.1, high: 0.45 }),
        ..CLEAR
    };
    assert_eq!(judge(tiny), Some(Verdict::Equivalent));
    let open = Evidence {
        difference: 0.0,
        adjusted_p: 1.0,
        interval: Some(Interval { low: -0.4, high: 0.51 }),
        ..CLEAR
    };
    assert_eq!(judge(open), Some(Verdict::Inconclusive));
}

#[test]
fn four_trainings_are_too_few_however_far_apart() {
    let few = Evidence {
        trainings: [4, 40],
        ..CLEAR
    };
    assert_eq!(judge(few), Some(Verdict::InsufficientData));
    let no_interval = Evidence {
        interval: None,
        ..CLEAR
    };
    assert_eq!(judge(no_interval), Some(Verdict::InsufficientData));

    let of_pairs = Criteria {
        test: DecisionTest::PairedSignFlip,
        ..CRITERIA
    };
    assert_eq!(verdict(&CLEAR, &of_pairs), Some(Verdict::InsufficientData));
    let six = Evidence {
        trainings: [6, 6],
        ..CLEAR
    };
    assert_eq!(verdict(&six, &of_pairs), Some(Verdict::Better(Arm::First)));
}

#[test]
fn nothing_is_said_before_all_trainings_are_done() {
    assert_eq!(judge(Evidence { interim: true, ..CLEAR }), None);
    let early = Evidence {
        interim: true,
        trainings: [1, 0],
        ..CLEAR
    };
    assert_eq!(judge(early), None);
}

#[test]
fn verdicts_are_words_in_json() {
    let told = |verdict: Verdict| serde_json::to_string(&verdict).expect("plain words");
    assert_eq!(told(Verdict::InsufficientData), r#""insufficient_data""#);
    assert_eq!(told(Verdict::Better(Arm::Second)), r#"{"better":"second"}"#);
}

/// Of 1000 experiments with two equal arms of ten trainings, 5 % may find a better arm. Where the test finds nothing the
/// verdict is not `Better` with any interval, so none is drawn.
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
        let bootstrap = Bootstrap {
            resamples: 1000,
            ..Bootstrap::seeded(experiment)
        };
        let estimate = difference(&first, &second, Statistic::Iqm, Design::Independent, bootstrap);
        let estimate = estimate.expect("arms that fit");
        let evidence = Evidence {
            trainings: [10, 10],
            interim: false,
            adjusted_p: p,
            difference: estimate.value,
            interval: estimate.interval,
        };
        winners += usize::from(matches!(verdict(&evidence, &criteria), Some(Verdict::Better(_))));
    }
    assert!((10..=50).contains(&winners), "{winners} of 1000");
}
