use super::*;
use crate::sweep::SweepFile;
use crate::sweep::fixtures::trial;

fn plan(points: usize, replicates: u32) -> Plan {
    let of = |point| (0..replicates).map(move |replicate| trial(format!("{point}-{replicate}"), point, replicate));
    let trials = (0..points).flat_map(of);
    Plan::of_trials("halving", SweepFile::default(), trials.collect())
}

#[test]
fn rungs_grow_by_the_factor_up_to_the_last_round() {
    let halving = |first_rounds, factor| SuccessiveHalving { first_rounds, factor };

    assert_eq!(rungs(halving(2, 3), 20), [2, 6, 18, 20]);
    assert_eq!(rungs(halving(2, 2), 8), [2, 4, 8]);
    assert_eq!(rungs(halving(9, 2), 8), [8]);
}

#[test]
fn the_points_with_the_best_means_continue() {
    let plan = plan(4, 2);
    let scores = |id: &str| {
        AtRung::Reached(match id {
            "0-0" => 10.0,
            "0-1" => 90.0,
            "1-0" | "1-1" => 60.0,
            "2-0" | "2-1" => 20.0,
            _ => 50.0,
        })
    };

    assert_eq!(promoted(&plan, &[0, 1, 2, 3], 2, scores), Some(vec![0, 1]));
    assert_eq!(promoted(&plan, &[0, 2, 3], 3, scores), Some(vec![0]));
}

#[test]
fn nothing_is_decided_while_a_trial_is_awaited_and_a_failed_one_does_not_count() {
    let plan = plan(2, 2);
    let with = |third: AtRung| {
        move |id: &str| match id {
            "0-0" => AtRung::Reached(50.0),
            "0-1" => third,
            _ => AtRung::Reached(40.0),
        }
    };

    assert_eq!(promoted(&plan, &[0, 1], 2, with(AtRung::Awaited)), None);
    assert_eq!(promoted(&plan, &[0, 1], 2, with(AtRung::Failed)), Some(vec![0]));
    assert_eq!(promoted(&plan, &[0, 1], 2, |_| AtRung::Failed), Some(vec![]));
}
