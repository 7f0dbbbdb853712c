use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::compare::statistics::Training;
use crate::compare::statistics::fixtures::{Resampled, assert_close, reference, sample, statistic};

#[derive(Deserialize)]
struct SingleLevel {
    tasks: Vec<Vec<f64>>,
    statistic: String,
    value: f64,
    #[serde(flatten)]
    resampled: Resampled,
}

type Tasks = Vec<Vec<Vec<Vec<f64>>>>;

/// Levels of one arm, or of two.
#[derive(Deserialize)]
struct Levels {
    #[serde(alias = "tasks")]
    first: Tasks,
    second: Option<Tasks>,
    #[serde(default)]
    design: String,
    #[serde(default)]
    statistic: String,
    value: f64,
    #[serde(flatten)]
    resampled: Resampled,
}

fn assert_levels(name: &str, shares_hosts: bool) {
    for case in reference::<Vec<Levels>>(name) {
        let arm = |tasks| Sample {
            shares_hosts,
            ..sample(tasks)
        };
        let statistic = match case.statistic.as_str() {
            "" => Statistic::Iqm,
            name => statistic(name),
        };
        let (first, bootstrap) = (arm(case.first), case.resampled.bootstrap());
        let estimate = match case.second {
            Some(second) => {
                let design = match case.design.as_str() {
                    "independent" => Design::Independent,
                    _ => Design::Paired,
                };
                difference(&first, &arm(second), statistic, design, bootstrap).expect("arms that fit")
            }
            None => Estimate {
                value: statistic.of(&first.scores()),
                interval: Layout::of(&first).map(|layout| resampled(&layout, statistic, bootstrap)),
            },
        };
        assert_close(estimate.value, case.value);
        case.resampled.assert_intervals([estimate.interval]);
    }
}

#[test]
fn of_single_numbers_intervals_are_rliable_s() {
    for case in reference::<Vec<SingleLevel>>("single_level") {
        let sample = Sample::of_numbers(&case.tasks);
        let estimate = estimate(&sample, statistic(&case.statistic), case.resampled.bootstrap());
        assert_close(estimate.value, case.value);
        case.resampled.assert_intervals([estimate.interval]);
    }
}

#[test]
fn of_two_levels_intervals_are_those_of_plain_numpy() {
    assert_levels("two_levels", false);
}

#[test]
fn of_differences_intervals_are_those_of_plain_numpy() {
    assert_levels("differences", false);
}

#[test]
fn hosts_that_trainings_share_are_drawn_once_for_all_of_them() {
    assert_levels("crossed", true);
}

/// A network that was never measured has another shape: its hosts cannot be matched then.
#[test]
fn hosts_of_unlike_trainings_are_not_shared() {
    let mut unlike = sample(vec![vec![vec![vec![1.0, 2.0], vec![3.0, 5.0]]; 5]]);
    unlike.tasks[0][2].by_seed[1].pop();
    let nested = estimate(&unlike, Statistic::Iqm, Bootstrap::seeded(5));
    unlike.shares_hosts = true;

    assert_eq!(estimate(&unlike, Statistic::Iqm, Bootstrap::seeded(5)), nested);
}

#[test]
fn a_training_s_score_pools_its_episodes() {
    let training = Training {
        by_seed: vec![vec![1.0], vec![], vec![2.0, 3.0, 4.0]],
    };
    assert_close(training.score(), 2.5);
    assert!(Training { by_seed: vec![vec![]] }.score().is_nan());
}

/// The mean of 40 fair coins lies between the binomial quantiles 14/40 and 26/40.
#[test]
fn the_interval_of_a_proportion_is_the_binomial_s() {
    let coins = [vec![0.0; 20], vec![1.0; 20]].concat();

    let interval = policy_estimate(&[coins], Statistic::Mean, 42).interval;

    assert_eq!(interval, Some(Interval { low: 0.35, high: 0.65 }));
}

#[test]
fn four_units_are_too_few_for_an_interval() {
    let two_by_two = [vec![1.0, 2.0], vec![3.0, 4.0]];
    assert_eq!(policy_estimate(&two_by_two, Statistic::Mean, 1).interval, None);
    let (four, five) = (Sample::of_numbers(&[vec![1.0; 4]]), Sample::of_numbers(&[vec![1.0; 5]]));
    let few = estimate(&four, Statistic::Iqm, Bootstrap::seeded(1));
    assert_eq!((few.value, few.interval), (1.0, None));
    let unequal = difference(&five, &four, Statistic::Iqm, Design::Independent, Bootstrap::seeded(1));
    assert_eq!(unequal.map(|estimate| estimate.interval), Some(None));
}

#[test]
fn arms_that_do_not_fit_have_no_difference() {
    let five = Sample::of_numbers(&[vec![1.0; 5]]);
    let six = Sample::of_numbers(&[vec![1.0; 6]]);
    let two_tasks = Sample::of_numbers(&[vec![1.0; 5], vec![1.0; 5]]);
    let of = |second, design| difference(&five, second, Statistic::Mean, design, Bootstrap::seeded(1));

    assert_eq!(of(&six, Design::Paired), None);
    assert!(of(&six, Design::Independent).is_some());
    assert_eq!(of(&two_tasks, Design::Independent), None);
}

#[test]
fn what_was_not_measured_gives_no_interval() {
    let not_finite = Sample::of_numbers(&[vec![1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN]]);
    let mut no_episode = Sample::of_numbers(&[vec![1.0; 6]]);
    no_episode.tasks[0][2].by_seed[0].clear();
    for sample in [not_finite, no_episode] {
        let estimate = estimate(&sample, Statistic::Iqm, Bootstrap::seeded(1));
        assert!(estimate.value.is_nan() && estimate.interval.is_none());
    }
}

#[derive(Deserialize)]
struct Arms {
    first: Vec<Vec<f64>>,
    second: Vec<Vec<f64>>,
    value: f64,
    #[serde(flatten)]
    resampled: Resampled,
}

#[test]
fn probabilities_and_intervals_are_rliable_s() {
    for case in reference::<Vec<Arms>>("improvement") {
        let (first, second) = (Sample::of_numbers(&case.first), Sample::of_numbers(&case.second));
        let estimate = probability_of_improvement(&first, &second, case.resampled.bootstrap());
        let estimate = estimate.expect("arms that fit");
        assert_close(estimate.value, case.value);
        case.resampled.assert_intervals([estimate.interval]);
    }
}

/// One task with many trainings is always won, and one with few always lost. They weigh the same.
#[test]
fn tasks_weigh_the_same() {
    let first = Sample::of_numbers(&[vec![2.0; 9], vec![1.0; 2]]);
    let second = Sample::of_numbers(&[vec![1.0; 9], vec![2.0; 2]]);

    let estimate = probability_of_improvement(&first, &second, Bootstrap::seeded(1)).expect("arms that fit");

    let interval = estimate.interval.expect("eleven trainings");
    assert_eq!((estimate.value, interval.low, interval.high), (0.5, 0.5, 0.5));
}

#[test]
fn arms_that_do_not_fit_have_no_probability() {
    let five = Sample::of_numbers(&[vec![1.0; 5]]);
    let of = |tasks: &[Vec<f64>]| probability_of_improvement(&five, &Sample::of_numbers(tasks), Bootstrap::seeded(1));

    assert_eq!(of(&[vec![1.0; 5], vec![1.0; 5]]), None);
    assert_eq!(of(&[vec![]]), None);
    assert_eq!(of(&[vec![1.0, f64::NAN]]), None);
    let (value, interval) = (0.5, None);
    assert_eq!(of(&[vec![1.0; 4]]), Some(Estimate { value, interval }));
}

fn trainings() -> impl Strategy<Value = Vec<Vec<Vec<f64>>>> {
    let by_seed = prop::collection::vec(prop::collection::vec(-10.0..10.0f64, 1..4), 1..3);
    prop::collection::vec(by_seed, 5..9)
}

fn few(seed: u64) -> Bootstrap<RunRng> {
    Bootstrap {
        resamples: 60,
        ..Bootstrap::seeded(seed)
    }
}

fn shifted(trainings: &[Vec<Vec<f64>>], shift: f64) -> Sample {
    let mut trainings = trainings.to_vec();
    let values = trainings.iter_mut().flatten().flatten();
    values.for_each(|value| *value += shift);
    sample(vec![trainings])
}

proptest! {
    #[test]
    fn intervals_move_with_their_values_and_stay_among_them(trainings in trainings(), shift in -5.0..5.0f64, seed: u64) {
        let sample = shifted(&trainings, 0.0);
        let episodes: Vec<f64> = trainings.iter().flatten().flatten().copied().collect();
        let lowest = episodes.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = episodes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for statistic in [Statistic::Mean, Statistic::Median, Statistic::Iqm, Statistic::WorstTenth] {
            let here = estimate(&sample, statistic, few(seed)).interval.expect("five trainings");
            let there = estimate(&shifted(&trainings, shift), statistic, few(seed)).interval.expect("five trainings");
            prop_assert!((there.low - here.low - shift).abs() < 1e-9);
            prop_assert!((there.high - here.high - shift).abs() < 1e-9);
            prop_assert!(here.low <= here.high);
            // Student's t has no bounds.
            let is_among = lowest - 1e-9 <= here.low && here.high <= highest + 1e-9;
            prop_assert!(is_among || statistic == Statistic::Mean);
        }
    }

    #[test]
    fn a_pair_s_shift_is_certain(trainings in trainings(), shift in -5.0..5.0f64, seed: u64) {
        let (first, second) = (shifted(&trainings, shift), shifted(&trainings, 0.0));
        let estimate = difference(&first, &second, Statistic::Iqm, Design::Paired, few(seed)).expect("arms that fit");
        let interval = estimate.interval.expect("five trainings");
        prop_assert!((estimate.value - shift).abs() < 1e-9);
        prop_assert!((interval.low - shift).abs() < 1e-9 && (interval.high - shift).abs() < 1e-9);
    }

    #[test]
    fn what_one_arm_wins_the_other_loses(
        first in prop::collection::vec(prop::collection::vec((0..6u8).prop_map(f64::from), 1..6), 2),
        second in prop::collection::vec(prop::collection::vec((0..6u8).prop_map(f64::from), 1..6), 2),
    ) {
        let (first, second) = (Sample::of_numbers(&first), Sample::of_numbers(&second));
        let of = |first, second| {
            let few = Bootstrap { resamples: 1, ..Bootstrap::seeded(1) };
            probability_of_improvement(first, second, few).expect("arms that fit").value
        };
        prop_assert!((of(&first, &second) + of(&second, &first) - 1.0).abs() < 1e-12);
        prop_assert!((of(&first, &first) - 0.5).abs() < 1e-12);
    }
}
