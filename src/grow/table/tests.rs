use super::*;

const NOTHING: Bounded = Bounded {
    mean: 0.0,
    low: 0.0,
    high: 0.0,
};

fn row(way: Way, validation: f64, ahead: Option<(f64, f64)>) -> Row {
    Row {
        way,
        name: way.name(true).into(),
        parameters: 100,
        macs: 100,
        gmacs: 1.0,
        gmacs_in_all: 1.0,
        note: None,
        steps: 1,
        seconds: 1.0,
        tried: 1,
        rate: 0.1,
        validation,
        test: NOTHING,
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
    // Agresti and Min: 3.5 against 1.5 of 10; (2 ± 1.959963985·√(5 - 4/10))/10.
    assert!(
        (ahead.low + 22.036_544).abs() < 1e-5 && (ahead.high - 62.036_544).abs() < 1e-5,
        "{ahead:?}"
    );
    // Four of a thousand, all on one side, decide nothing: the exact test has p = 0.125.
    let [few, none] = [4, 0].map(|count| (0..1000).map(|sample| sample < count).collect::<Vec<_>>());
    assert!(paired(&few, &none).low < 0.0);
}

#[track_caller]
fn assert_choice(rows: &[Row], way: Way, why: &str) {
    let choice = choose(rows, Keep::Best).unwrap();
    assert_eq!(choice.way, way);
    assert!(choice.why.contains(why), "{}", choice.why);
}

#[test]
fn growth_is_written_where_it_is_ahead_of_the_best_other_by_its_interval() {
    let rows = [
        row(Way::Given, 50.0, Some((20.0, 30.0))),
        row(Way::Trained, 80.0, Some((0.5, 3.0))),
        row(Way::Grown, 82.0, None),
    ];
    assert_choice(&rows, Way::Grown, "the best other, fine-tuned");
}

#[test]
fn the_best_other_by_validation_is_written_where_growth_is_not_ahead() {
    let rows = [
        row(Way::Given, 50.0, Some((20.0, 30.0))),
        row(Way::Trained, 80.0, Some((-0.5, 3.0))),
        row(Way::Widened, 79.0, Some((5.0, 6.0))),
        row(Way::Grown, 90.0, None),
    ];
    assert_choice(&rows, Way::Trained, "");
    let given = [row(Way::Given, 99.0, Some((-1.0, 1.0))), row(Way::Grown, 99.0, None)];
    assert_choice(&given, Way::Given, "unchanged");
}

#[test]
fn of_what_is_ahead_of_growth_the_best_by_validation_is_written_and_said_to_be_ahead() {
    let rows = [
        row(Way::Given, 50.0, Some((20.0, 30.0))),
        row(Way::Trained, 95.0, Some((-9.0, -5.0))),
        row(Way::Head, 96.0, Some((-4.0, 1.0))),
        row(Way::Grown, 82.0, None),
    ];
    let why = "fine-tuned is ahead of growth by +7.00 points on the test part, 95 % interval +5.00 to +9.00; the result is \
               the network of the row fine-tuned";
    assert_eq!(choose(&rows, Keep::Best).unwrap().why, why);
}

#[test]
fn a_person_may_keep_growth_where_it_is_not_ahead() {
    let rows = [row(Way::Trained, 80.0, Some((-0.5, 3.0))), row(Way::Grown, 79.0, None)];
    let choice = choose(&rows, Keep::Grown).unwrap();
    assert_eq!(choice.way, Way::Grown);
    let why = "(+1.25 points on the test part, 95 % interval -0.50 to +3.00); the result is the network of the row grown, as --keep grown asks";
    assert!(choice.why.ends_with(why), "{}", choice.why);
}

#[test]
fn without_a_committed_seed_the_best_other_is_written() {
    let trained = [row(Way::Trained, 80.0, None)];
    assert_choice(&trained, Way::Trained, "was committed in the given steps");
}
