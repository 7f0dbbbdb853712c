use super::*;
use crate::sweep::fixtures::trial;
use crate::sweep::{Budget, SweepFile};

fn planned(ids: &[&str]) -> Plan {
    let trials = ids.iter().zip(0..).map(|(&id, replicate)| Trial {
        settings: vec![Setting {
            path: "policy.controller".into(),
            value: Written("\"wait\"".into()),
        }],
        ..trial(id, 0, replicate)
    });
    Plan::of_trials("s", SweepFile::default(), trials.collect())
}

#[test]
fn a_plan_differs_by_trials_and_settings() {
    let old = planned(&["a", "b"]);
    let mut new = planned(&["a", "c"]);
    new.sweep.budget = Budget {
        parallel: 7,
        ..new.sweep.budget
    };

    let difference = old.difference(&new);

    assert_eq!(
        difference[..2],
        [
            "- policy.controller=wait seed 1 (b)",
            "+ policy.controller=wait seed 1 (c)"
        ]
    );
    assert!(difference[2].starts_with("~ budget: "), "{difference:?}");
    assert!(old.difference(&old).is_empty());
}

#[test]
fn only_what_adds_trials_extends_a_plan() {
    let old = planned(&["a", "b"]);
    let mut otherwise_judged = planned(&["a", "b", "c"]);
    otherwise_judged.sweep.early_stop = Some(crate::sweep::SuccessiveHalving {
        first_rounds: 1,
        factor: 2,
    });

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
