use super::*;
use crate::sweep::fixtures::trial;
use crate::sweep::{SuccessiveHalving, SweepFile};

fn planned(ids: &[&str]) -> Plan {
    let trials = ids.iter().zip(0..).map(|(&id, replicate)| {
        let (path, value) = ("policy.controller".into(), Written("\"wait\"".into()));
        let mut trial = trial(id, 0, replicate);
        trial.settings.push(Setting { path, value });
        trial
    });
    Plan::of_trials("s", SweepFile::default(), trials.collect())
}

#[test]
fn a_plan_differs_by_trials_and_settings() {
    let old = planned(&["a", "b"]);
    let mut new = planned(&["a", "c"]);
    new.sweep.budget.parallel = 7;

    let difference = old.difference(&new);

    assert_eq!(difference[0], "- policy.controller=wait seed 1 (b)");
    assert_eq!(difference[1], "+ policy.controller=wait seed 1 (c)");
    assert!(difference[2].starts_with("~ budget: "), "{difference:?}");
    assert!(old.difference(&old).is_empty());
}

#[test]
fn only_what_adds_trials_extends_a_plan() {
    let old = planned(&["a", "b"]);
    let mut otherwise_judged = planned(&["a", "b", "c"]);
    let (first_rounds, factor) = (1, 2);
    otherwise_judged.sweep.early_stop = Some(SuccessiveHalving { first_rounds, factor });

    assert!(old.is_extended_by(&planned(&["b", "a", "c"])));
    assert!(!old.is_extended_by(&planned(&["a", "c"])));
    assert!(!old.is_extended_by(&otherwise_judged));
}

#[test]
fn many_differences_are_counted() {
    let ids: Vec<String> = (0..30).map(|index| format!("t{index:02}")).collect();
    let many: Vec<&str> = ids.iter().map(String::as_str).collect();

    let difference = planned(&[]).difference(&planned(&many));

    assert_eq!(difference.len(), SHOWN + 1);
    assert_eq!(difference[SHOWN], "+ and 20 more trials");
}
