use std::time::{Duration, SystemTime};

use super::*;
use crate::sweep::SweepFile;
use crate::sweep::fixtures::{folder, trial};
use crate::sweep::outcome::{TrialResult, write_rung};

fn plan(points: usize, replicates: u32) -> Plan {
    let of = |point| (0..replicates).map(move |replicate| trial(format!("{point}-{replicate}"), point, replicate));
    let trials = (0..points).flat_map(of);
    Plan::of_trials("halving", SweepFile::default(), trials.collect())
}

#[test]
fn rungs_grow_by_the_factor_up_to_the_last_round() {
    let halving = |first_rounds, factor| SuccessiveHalving { first_rounds, factor };

    assert_eq!(rungs(Some(halving(2, 3)), 20), [2, 6, 18, 20]);
    assert_eq!(rungs(Some(halving(2, 2)), 8), [2, 4, 8]);
    assert_eq!(rungs(Some(halving(9, 2)), 8), [8]);
    assert_eq!(rungs(None, 8), [8]);
}

#[test]
fn the_points_with_the_best_means_continue() {
    let scores = [vec![10.0, 90.0], vec![60.0; 2], vec![20.0; 2], vec![50.0; 2]];
    let scores = scores.into_iter().enumerate().collect();

    assert_eq!(promoted(&[0, 1, 2, 3], 2, &scores), [0, 1]);
    assert_eq!(promoted(&[0, 2, 3], 3, &scores), [0]);
    assert_eq!(promoted(&[4, 5], 2, &scores), [0; 0]);
}

#[test]
fn nothing_is_decided_while_a_trial_is_awaited_and_a_failed_one_does_not_count() {
    let (_root, folder) = folder();
    let mut plan = plan(2, 2);
    let (first_rounds, factor) = (1, 2);
    plan.sweep.early_stop = Some(SuccessiveHalving { first_rounds, factor });
    for (id, score) in [("0-0", 50.0), ("1-0", 40.0), ("1-1", 40.0)] {
        write_rung(&folder, id, 0, score).unwrap();
    }
    let state_of = |index: usize| {
        let leases = Leases::read(&folder, Duration::from_secs(60), SystemTime::now()).unwrap();
        let state = SweepState::read(&folder, &plan, leases).unwrap();
        let trial = &plan.trials[index];
        (state.of(trial).unwrap(), state.is_given_up(trial))
    };

    let waiting = (TrialState::AtRung(0), false);
    assert_eq!([0, 2].map(state_of), [waiting.clone(), waiting]);

    TrialResult::new(TrialEnd::Failed, 1, 2.0)
        .write(&folder, "0-1")
        .unwrap();

    let next = TrialSegment {
        rung: 1,
        until: 2,
        is_last: true,
    };
    assert_eq!(state_of(0), (TrialState::Waiting(next), false));
    assert!(state_of(2).1);
}
