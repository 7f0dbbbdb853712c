use super::*;

fn row(way: Way, validation: f64, ahead: Option<(f64, f64)>) -> Row {
    let interval = Bounded {
        mean: 0.0,
        low: 0.0,
        high: 0.0,
    };
    Row {
        way,
        name: way.name(true).into(),
        parameters: 100,
        macs: 100,
        gmacs: 1.0,
        steps: 1,
        seconds: 1.0,
        tried: 1,
        rate: 0.1,
        validation,
        test: interval,
        grown_ahead: ahead.map(|(low, high)| Bounded {
            mean: (low + high) / 2.0,
            low,
            high,
        }),
        old: None,
        seeds: Vec::new(),
    }
}

#[test]
fn paired_differences_know_which_samples_differ() {
    let one = [true, true, true, false, true, true, true, true];
    let other = [true, false, true, true, false, false, true, true];

    let ahead = paired(&one, &other);

    assert!((ahead.mean - 25.0).abs() < 1e-9);
    // Variance of (0, 1, 0, -1, 1, 1, 0, 0) over its eight values, standard error of their mean.
    let error = 100.0 * (0.4375_f64 / 8.0).sqrt();
    assert!(
        (ahead.high - ahead.mean - 1.959_963_985 * error).abs() < 1e-6,
        "{ahead:?}"
    );
    assert_eq!(
        paired(&one, &one),
        Bounded {
            mean: 0.0,
            low: 0.0,
            high: 0.0
        }
    );
}

#[test]
fn growth_is_written_where_it_is_ahead_of_the_best_other_by_its_interval() {
    let rows = [
        row(Way::Given, 50.0, Some((20.0, 30.0))),
        row(Way::Trained, 80.0, Some((0.5, 3.0))),
        row(Way::Grown, 82.0, None),
    ];
    let choice = choose(&rows, false).unwrap();
    assert_eq!(choice.way, Way::Grown);
    assert!(
        choice.why.contains("the best other that may be written, fine-tuned"),
        "{}",
        choice.why
    );
}

#[test]
fn the_best_other_by_validation_is_written_where_growth_is_not_ahead() {
    let rows = [
        row(Way::Given, 50.0, Some((20.0, 30.0))),
        row(Way::Trained, 80.0, Some((-0.5, 3.0))),
        row(Way::Widened, 79.0, Some((5.0, 6.0))),
        row(Way::Grown, 90.0, None),
    ];
    assert_eq!(choose(&rows, false).unwrap().way, Way::Trained);
    let given = [row(Way::Given, 99.0, Some((-1.0, 1.0))), row(Way::Grown, 99.0, None)];
    let choice = choose(&given, false).unwrap();
    assert_eq!(choice.way, Way::Given);
    assert!(choice.why.contains("unchanged"), "{}", choice.why);
}

#[test]
fn a_network_that_is_to_stay_as_it_is_is_never_replaced_by_a_fine_tuned_one() {
    let rows = [
        row(Way::Given, 50.0, Some((20.0, 30.0))),
        row(Way::Trained, 95.0, Some((-9.0, -5.0))),
        row(Way::Grown, 82.0, None),
    ];
    let choice = choose(&rows, true).unwrap();
    assert_eq!(choice.way, Way::Grown);
    assert!(choice.why.contains("-7.00 points from fine-tuned"), "{}", choice.why);
}

#[test]
fn without_a_committed_seed_the_best_other_is_written() {
    let choice = choose(&[row(Way::Trained, 80.0, None)], false).unwrap();
    assert_eq!(choice.way, Way::Trained);
    assert!(choice.why.contains("was committed in the steps"), "{}", choice.why);
}
