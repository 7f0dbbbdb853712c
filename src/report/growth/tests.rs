use super::*;
use crate::scenario::SeedInit;
use crate::telemetry::{BirthRatios, Num, ValidatedAt};

fn validated(step: u32, loss: f64, accuracy: f64) -> ValidatedAt {
    ValidatedAt {
        step,
        loss: Num(loss),
        accuracy: Num(accuracy),
    }
}

fn told(entered: SeedStage, after: Option<ValidatedAt>, first_gradient: Option<f64>) -> GrowthEffect {
    GrowthEffect {
        seed: "e0.r0c0.0".into(),
        blueprint: "conv_light".into(),
        init: SeedInit::ZeroGain,
        entered,
        before: validated(4, 1.5, 50.0),
        after,
        contribution: None,
        gradient_ratio: first_gradient.map(|ratio| BirthRatios {
            step: Some(5),
            at_birth: Some(Num(ratio)),
            ..BirthRatios::default()
        }),
    }
}

fn all(events: impl IntoIterator<Item = GrowthEffect>) -> GrowthEffects {
    let mut insertions = GrowthEffects::default();
    events.into_iter().for_each(|told| insertions.take(told));
    insertions
}

#[test]
fn events_of_a_kind_are_summed_up_over_those_of_which_enough_is_known() {
    let insertions = all([
        told(SeedStage::Committed, Some(validated(5, 1.0, 52.0)), None),
        told(SeedStage::Germinated, Some(validated(5, 1.4, 51.0)), Some(0.2)),
        told(SeedStage::Germinated, Some(validated(5, 1.2, 53.0)), Some(f64::NAN)),
        told(SeedStage::Germinated, None, None),
        told(SeedStage::Germinated, None, Some(0.4)),
    ]);

    let [germinated, committed] = &insertions.summaries()[..] else {
        panic!("two kinds");
    };
    let close = |change: Option<Change>, mean: f64, error: f64| {
        let change = change.expect("it is known");
        let found = change.standard_error.expect("of two");
        assert!(
            (change.mean - mean).abs() < 1e-12 && (found - error).abs() < 1e-12,
            "{change:?}"
        );
    };
    assert_eq!((germinated.entered, germinated.events), ("GERMINATED", 4));
    close(germinated.loss_change, -0.2, 0.1);
    close(germinated.accuracy_change, 2.0, 1.0);
    assert_eq!(germinated.gradient_ratio, [Some(0.30000000000000004), None, None]);
    assert_eq!((committed.entered, committed.events), ("COMMITTED", 1));
    let loss = committed.loss_change.expect("it is known");
    assert_eq!((loss.mean, loss.standard_error), (-0.5, None));
}

#[test]
fn the_table_says_what_is_in_its_columns() {
    let insertions = all([
        told(SeedStage::Committed, Some(validated(5, 1.0, 52.0)), None),
        told(SeedStage::Germinated, Some(validated(5, 1.4, 51.0)), Some(0.25)),
        told(SeedStage::Germinated, Some(validated(5, 1.2, 53.0)), Some(0.5)),
    ]);

    insta::assert_snapshot!(insertions.table(100));
    assert!(insertions.table(80).lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn a_run_without_growth_says_so() {
    assert!(
        GrowthEffects::default()
            .table(80)
            .starts_with("Nothing was told of growth")
    );
}
