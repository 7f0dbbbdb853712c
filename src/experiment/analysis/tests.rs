use proptest::prelude::*;

use super::*;
use crate::experiment::fixtures::{design, record};
use crate::experiment::{ReplicateResult, Report};

const FIVE: &str = r#"arms: [(id: "low"), (id: "high")], replicates: 5"#;
const LOW: [f64; 5] = [50.0, 51.0, 52.0, 53.0, 54.0];
const HIGH: [f64; 5] = [60.0, 61.5, 62.0, 63.0, 64.5];

fn conclusions(record: &Record) -> Vec<Option<Conclusion>> {
    let analysis = record.analyse();
    analysis.pairs.into_iter().map(|pair| pair.conclusion).collect()
}

/// All 25 pairs won: U = 0, exact p = 2/C(10, 5) = 2/252.
#[test]
fn a_clear_difference_of_five_replicates_is_called_better() {
    let analysis = record(design(FIVE), &[&LOW, &HIGH]).analyse();

    let [pair] = &analysis.pairs[..] else {
        panic!("{:?}", analysis.pairs)
    };
    assert_eq!((pair.first.as_str(), pair.second.as_str()), ("high", "low"));
    assert_eq!(pair.mann_whitney.map(|test| test.u), Some(25.0));
    assert!((pair.p - 2.0 / 252.0).abs() < 1e-12);
    assert_eq!(pair.a12, 1.0);
    assert!((pair.hodges_lehmann - 10.0).abs() < 1e-9);
    assert_eq!(pair.conclusion, Some(Conclusion::Better("high".into())));
    assert!(analysis.stamps.comparison_valid && !analysis.stamps.interim && !analysis.stamps.same_split);
}

#[test]
fn of_sizes_the_smaller_is_better() {
    let fields = format!("{FIVE}, primary_metric: param_ratio, min_effect: 0.1");
    let mut record = record(design(&fields), &[&LOW, &HIGH]);
    for (index, replicate) in record.replicates.iter_mut().enumerate() {
        replicate.arms[0].training.episodes[0].param_ratio = 1.0 + 0.01 * index as f64;
        replicate.arms[1].training.episodes[0].param_ratio = 2.0 + 0.01 * index as f64;
    }

    assert_eq!(conclusions(&record), [Some(Conclusion::Better("low".into()))]);
}

#[test]
fn no_verdict_is_given_before_all_replicates_have_ended() {
    let mut record = record(design(FIVE), &[&LOW, &HIGH]);
    record.replicates.pop();

    let analysis = record.analyse();

    assert!(analysis.stamps.interim);
    assert_eq!(analysis.pairs[0].conclusion, None);
    assert_eq!(analysis.primary.arms[0].scores, LOW[..4]);
}

#[test]
fn four_replicates_are_too_few_whatever_they_show() {
    let fields = r#"arms: [(id: "low"), (id: "high")], replicates: 4"#;
    let record = record(design(fields), &[&LOW[..4], &HIGH[..4]]);

    assert_eq!(conclusions(&record), [Some(Conclusion::InsufficientData)]);
}

#[test]
fn a_replicate_that_failed_is_listed_and_in_no_statistic() {
    let mut record = record(design(FIVE), &[&LOW, &HIGH]);
    record.replicates[2] = ReplicateResult {
        failure: Some("low: out of memory".into()),
        arms: Vec::new(),
        ..record.replicates[2].clone()
    };

    let analysis = record.analyse();

    let missing = Missing {
        replicate: 2,
        reason: "low: out of memory".into(),
    };
    assert_eq!(analysis.missing, [missing]);
    assert!(!analysis.stamps.interim);
    assert_eq!(analysis.primary.arms[0].scores, [50.0, 51.0, 53.0, 54.0]);
    assert_eq!(analysis.pairs[0].conclusion, Some(Conclusion::InsufficientData));
}

#[test]
fn an_episode_that_nobody_measured_leaves_the_replicate_out_for_all_arms() {
    let mut record = record(design(FIVE), &[&LOW, &HIGH]);
    record.replicates[0].arms[1].training.episodes[0].test_accuracy = None;

    let analysis = record.analyse();

    assert_eq!(analysis.primary.arms[0].scores.len(), 4);
    assert_eq!(analysis.missing[0].reason, "an arm has no episode that was measured");
}

#[test]
fn unequal_budgets_make_the_comparison_invalid() {
    let mut record = record(design(FIVE), &[&LOW, &HIGH]);
    record.replicates[4].arms[0].budget.env_steps = 20;

    let analysis = record.analyse();

    assert!(!analysis.stamps.comparison_valid);
    assert_eq!(
        analysis.stamps.objections,
        ["trainings differ in their env-steps: 20, 24"]
    );
    assert_eq!(analysis.pairs[0].conclusion, None);
    assert_eq!(analysis.budgets[0].budget, None);
}

#[test]
fn arms_that_do_not_learn_need_no_updates() {
    let mut record = record(design(FIVE), &[&LOW, &HIGH]);
    for replicate in &mut record.replicates {
        replicate.arms[1].learns = true;
        replicate.arms[1].budget.updates = 3;
    }

    assert!(record.analyse().stamps.comparison_valid);
}

#[test]
fn accuracy_less_rent_is_measured_on_the_test_part() {
    let fields = format!("{FIVE}, primary_metric: accuracy_minus_rent");

    let analysis = record(design(&fields), &[&LOW, &HIGH]).analyse();

    assert_eq!(analysis.primary.split, Some("test"));
    assert_eq!(analysis.primary.arms[0].scores, LOW.map(|value| value - 2.0));
    assert!(!analysis.stamps.same_split);
}

#[test]
fn a_validation_metric_that_was_allowed_is_stamped() {
    let fields = format!("{FIVE}, primary_metric: accuracy, allow_same_split: true");

    let analysis = record(design(&fields), &[&LOW, &HIGH]).analyse();

    assert!(analysis.stamps.same_split);
    assert_eq!(analysis.primary.split, Some("validation"));
}

#[test]
fn with_a_control_each_other_arm_is_compared_with_it_alone() {
    let fields = r#"arms: [(id: "a"), (id: "off"), (id: "z")], replicates: 5, control: "off""#;

    let analysis = record(design(fields), &[&LOW, &HIGH, &LOW]).analyse();

    let pairs: Vec<_> = analysis
        .pairs
        .iter()
        .map(|pair| (pair.first.as_str(), pair.second.as_str()))
        .collect();
    assert_eq!(pairs, [("a", "off"), ("z", "off")]);
    // Two tests: the smaller p counts twice, the other no less.
    assert!((analysis.pairs[0].adjusted_p - 4.0 / 252.0).abs() < 1e-12);
}

#[test]
fn what_is_stored_gives_the_same_numbers_again() {
    let report = Report::from(record(design(FIVE), &[&LOW, &HIGH]));
    let stored = serde_json::to_string(&report).unwrap();

    let again = Report::from(serde_json::from_str::<Record>(&stored).unwrap());

    assert_eq!(serde_json::to_string(&again).unwrap(), stored);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn the_order_of_the_arms_changes_no_statistic(
        values in prop::collection::vec(prop::collection::vec(0.0..100.0_f64, 6), 3),
        rotation in 1..3_usize,
        pairs in any::<bool>(),
    ) {
        let ids = ["a", "b", "c"];
        let analyse = |order: &[usize]| {
            let arms: Vec<String> = order.iter().map(|&arm| format!("(id: {:?})", ids[arm])).collect();
            let test = if pairs { "paired_sign_flip" } else { "mann_whitney" };
            let fields = format!("arms: [{}], replicates: 6, decision_test: {test}", arms.join(", "));
            let values: Vec<&[f64]> = order.iter().map(|&arm| &values[arm][..]).collect();
            record(design(&fields), &values).analyse()
        };
        let mut order = vec![0, 1, 2];
        let before = analyse(&order);
        order.rotate_left(rotation);
        let after = analyse(&order);

        prop_assert_eq!(before.pairs, after.pairs);
        for arm in &before.primary.arms {
            prop_assert!(after.primary.arms.contains(arm));
        }
    }
}
