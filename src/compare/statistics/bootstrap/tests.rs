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

#[derive(Deserialize)]
struct TwoLevels {
    tasks: Vec<Vec<Vec<Vec<f64>>>>,
    statistic: String,
    value: f64,
    #[serde(flatten)]
    resampled: Resampled,
}

#[derive(Deserialize)]
struct Crossed {
    first: Vec<Vec<Vec<Vec<f64>>>>,
    second: Option<Vec<Vec<Vec<Vec<f64>>>>>,
    statistic: String,
    value: f64,
    #[serde(flatten)]
    resampled: Resampled,
}

#[derive(Deserialize)]
struct OfArms {
    first: Vec<Vec<Vec<Vec<f64>>>>,
    second: Vec<Vec<Vec<Vec<f64>>>>,
    design: String,
    value: f64,
    #[serde(flatten)]
    resampled: Resampled,
}

fn interval_of(tasks: &[Vec<f64>], statistic: Statistic, seed: u64) -> Interval {
    let estimate = estimate(&Sample::of_numbers(tasks), statistic, Bootstrap::seeded(seed));
    estimate.interval.expect("five trainings")
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
    for case in reference::<Vec<TwoLevels>>("two_levels") {
        let (sample, statistic) = (sample(case.tasks), statistic(&case.statistic));
        let layout = Layout::of(&sample).expect("finite numbers");
        assert_close(statistic.of(&sample.scores()), case.value);
        let interval = resampled(&layout, statistic, case.resampled.bootstrap());
        case.resampled.assert_intervals([Some(interval)]);
    }
}

#[test]
fn hosts_that_trainings_share_are_drawn_once_for_all_of_them() {
    for case in reference::<Vec<Crossed>>("crossed") {
        let [first, second] = [Some(case.first), case.second].map(|arm| {
            arm.map(|tasks| Sample {
                shares_hosts: true,
                ..sample(tasks)
            })
        });
        let (first, statistic) = (first.expect("an arm"), statistic(&case.statistic));
        let (value, interval) = match second {
            Some(second) => {
                let difference = difference(&first, &second, statistic, Design::Paired, case.resampled.bootstrap());
                let difference = difference.expect("arms that fit");
                (difference.value, difference.interval)
            }
            None => {
                let layout = Layout::of(&first).expect("finite numbers");
                let interval = resampled(&layout, statistic, case.resampled.bootstrap());
                (statistic.of(&first.scores()), Some(interval))
            }
        };
        assert_close(value, case.value);
        case.resampled.assert_intervals([interval]);
    }
}

/// Ten trainings that are alike on hosts that are not: the hosts' doubt does not average out over trainings.
#[test]
fn more_trainings_on_the_same_hosts_tell_nothing_of_other_hosts() {
    let training: Vec<Vec<f64>> = (0..12).map(|host| vec![f64::from(host)]).collect();
    let mut sample = sample(vec![vec![training; 12]]);
    let width = |sample: &Sample| {
        let estimate = estimate(sample, Statistic::Mean, Bootstrap::seeded(5));
        let interval = estimate.interval.expect("twelve trainings");
        interval.high - interval.low
    };

    let nested = width(&sample);
    sample.shares_hosts = true;

    // Standard errors of 3.45 / √144 and 3.45 / √12, four of them wide.
    assert!((1.0..1.3).contains(&nested), "{nested}");
    assert!((3.5..4.3).contains(&width(&sample)), "{}", width(&sample));
}

/// As where a network was never measured: then hosts cannot be matched.
#[test]
fn hosts_of_unlike_trainings_are_not_shared() {
    let mut unlike = sample(vec![vec![vec![vec![1.0, 2.0], vec![3.0, 5.0]]; 5]]);
    unlike.tasks[0][2].by_seed[1].pop();
    let nested = estimate(&unlike, Statistic::Iqm, Bootstrap::seeded(5));
    unlike.shares_hosts = true;

    assert_eq!(estimate(&unlike, Statistic::Iqm, Bootstrap::seeded(5)), nested);
}

#[test]
fn of_differences_intervals_are_those_of_plain_numpy() {
    for case in reference::<Vec<OfArms>>("differences") {
        let design = match case.design.as_str() {
            "paired" => Design::Paired,
            _ => Design::Independent,
        };
        let (first, second) = (sample(case.first), sample(case.second));
        let estimate = difference(&first, &second, Statistic::Iqm, design, case.resampled.bootstrap());
        let estimate = estimate.expect("arms that fit");
        assert_close(estimate.value, case.value);
        case.resampled.assert_intervals([estimate.interval]);
    }
}

#[test]
fn a_training_s_score_pools_its_episodes() {
    let training = Training {
        by_seed: vec![vec![1.0], vec![], vec![2.0, 3.0, 4.0]],
    };
    assert_close(training.score(), 2.5);
    assert!(Training { by_seed: vec![vec![]] }.score().is_nan());
}

#[test]
fn values_that_do_not_vary_leave_no_doubt() {
    let value = Statistic::Iqm.of(&[61.3; 12]);
    let interval = interval_of(&[vec![61.3; 12]], Statistic::Iqm, 1);
    assert_eq!((interval.low, interval.high), (value, value));
}

/// The mean of 40 fair coins lies between the binomial quantiles 14/40 and 26/40.
#[test]
fn the_interval_of_a_proportion_is_the_binomial_s() {
    let coins = [vec![0.0; 20], vec![1.0; 20]].concat();

    let interval = policy_interval(&[coins], Statistic::Mean, 42);

    assert_eq!(interval, Some(Interval { low: 0.35, high: 0.65 }));
}

#[test]
fn differences_between_tasks_do_not_widen_the_interval() {
    let tasks = [vec![10.0; 5], vec![20.0; 5]];

    let stratified = interval_of(&tasks, Statistic::Mean, 3);
    let pooled = interval_of(&[tasks.concat()], Statistic::Mean, 3);

    assert_eq!((stratified.low, stratified.high), (15.0, 15.0));
    assert!(pooled.high - pooled.low > 4.0, "{pooled:?}");
}

/// Six trainings that are worlds apart and have a hundred equal episodes each: the interval is that of six numbers.
#[test]
fn episodes_are_no_replicates() {
    let levels = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0];
    let trainings = levels.map(|level| vec![vec![level; 50]; 2]);

    let clustered = estimate(&sample(vec![trainings.to_vec()]), Statistic::Mean, Bootstrap::seeded(5));
    let episodes = policy_interval(&trainings.concat(), Statistic::Mean, 5);

    let clustered = clustered.interval.expect("six trainings");
    assert!(clustered.high - clustered.low > 20.0, "{clustered:?}");
    assert_eq!(episodes, Some(Interval { low: 35.0, high: 35.0 }));
}

/// Trainings alike, episodes not: the lower level alone makes the interval.
#[test]
fn the_noise_of_episodes_is_drawn_as_well() {
    let training = vec![vec![0.0, 1.0], vec![0.0, 1.0]];

    let layout = Layout::of(&sample(vec![vec![training; 6]])).expect("finite numbers");

    let interval = resampled(&layout, Statistic::Mean, Bootstrap::seeded(5));
    // 24 fair coins: 0.5 ± 2·0.5/√24.
    assert!(
        (0.27..0.33).contains(&interval.low) && (0.67..0.73).contains(&interval.high),
        "{interval:?}"
    );
}

#[test]
fn pairs_that_differ_by_a_constant_leave_no_doubt_unless_they_are_torn_apart() {
    let first = Sample::of_numbers(&[vec![3.0, 1.0, 4.0, 1.5, 9.0], vec![20.0, 60.0]]);
    let second = Sample::of_numbers(&[vec![1.0, -1.0, 2.0, -0.5, 7.0], vec![18.0, 58.0]]);
    let of = |design| {
        let estimate =
            difference(&first, &second, Statistic::Mean, design, Bootstrap::seeded(2)).expect("arms that fit");
        estimate.interval.expect("seven trainings")
    };

    let paired = of(Design::Paired);
    assert_close(paired.low, 2.0);
    assert_close(paired.high, 2.0);
    let independent = of(Design::Independent);
    assert!(independent.low < -4.0 && independent.high > 8.0, "{independent:?}");
}

#[test]
fn four_units_are_too_few_for_an_interval() {
    assert_eq!(
        policy_interval(&[vec![1.0, 2.0], vec![3.0, 4.0]], Statistic::Mean, 1),
        None
    );
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
    let estimate_of = |sample: &Sample| estimate(sample, Statistic::Iqm, Bootstrap::seeded(1));
    let estimate = estimate_of(&not_finite);
    assert!(estimate.value.is_nan() && estimate.interval.is_none());

    let mut no_episode = Sample::of_numbers(&[vec![1.0; 6]]);
    no_episode.tasks[0][2].by_seed[0].clear();
    let estimate = estimate_of(&no_episode);
    assert!(estimate.value.is_nan() && estimate.interval.is_none());
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
    let mut sample = sample(vec![trainings.to_vec()]);
    let seeds = sample
        .tasks
        .iter_mut()
        .flatten()
        .flat_map(|training| &mut training.by_seed);
    seeds.flatten().for_each(|value| *value += shift);
    sample
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
            // Student's t knows no bounds.
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
    fn equal_inputs_give_equal_bits(trainings in trainings(), seed: u64) {
        let sample = shifted(&trainings, 0.0);
        let of = || estimate(&sample, Statistic::Iqm, few(seed));
        prop_assert_eq!(of(), of());
    }
}
