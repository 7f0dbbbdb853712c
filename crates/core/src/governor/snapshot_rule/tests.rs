use proptest::prelude::*;

use super::*;

const LOSSES: [f64; 14] = [
    2.3, 2.0, 1.8, 1.7, 1.65, 1.62, 1.60, 1.75, 1.9, 1.58, 1.57, 1.57, 1.56, 1.56,
];

fn moment(losses: &[f64]) -> SnapshotInput {
    SnapshotInput {
        step: losses.len() as u32,
        val: losses.last().map(|&loss| ValMetrics {
            loss,
            accuracy_percent: 50.0,
        }),
        history: losses.iter().copied().collect(),
        ..SnapshotInput::default()
    }
}

/// Plays healthy steps and returns when captures and promotions happened: `(captures, (step, of step))`.
fn play(rule: &mut SnapshotRule, losses: &[f64]) -> (Vec<u32>, Vec<(u32, u32)>) {
    let (mut captures, mut promotions) = (Vec::new(), Vec::new());
    for step in 1..=losses.len() {
        let orders = rule.healthy(&moment(&losses[..step]));
        if orders.promote {
            promotions.push((step as u32, rule.known_good().step));
        }
        if orders.capture {
            captures.push(step as u32);
        }
    }
    (captures, promotions)
}

#[test]
fn captures_follow_improvements_and_prove_themselves_for_two_steps() {
    let mut rule = SnapshotRule::default();

    let (captures, promotions) = play(&mut rule, &LOSSES);

    assert_eq!(captures, [2, 4, 6, 10, 13]);
    assert_eq!(promotions, [(4, 2), (6, 4), (8, 6), (12, 10)]);
    assert_eq!(rule.known_good().step, 10);
    assert_eq!(rule.probation.unwrap().step, 13);
}

#[test]
fn an_anomaly_drops_what_has_not_proven_itself() {
    let mut rule = SnapshotRule::default();
    play(&mut rule, &LOSSES[..13]);

    // Step 14 is suspect, and step 16 panics.
    assert!(rule.discard());

    assert_eq!(rule.probation, None);
    assert_eq!(16 - rule.known_good().step, 6);
    assert_eq!(rule.last, (10, Some(1.58)));
    assert!(!rule.discard());
}

#[test]
fn a_commit_is_trusted_at_once() {
    let mut rule = SnapshotRule::default();
    play(&mut rule, &LOSSES[..9]);

    rule.commit(&moment(&LOSSES[..9]));

    assert_eq!(rule.known_good().step, 9);
    assert_eq!(rule.last, (9, Some(1.9)));
}

#[test]
fn a_rough_loss_is_captured_only_when_patience_ends() {
    let mut rule = SnapshotRule::default();
    // Given a loss that rises by a fifth in every step after the second.
    let rising = (0..20).map(|step| 1.2_f64.powi(step));
    let losses: Vec<f64> = [2.0].into_iter().chain(rising).collect();

    let (captures, _) = play(&mut rule, &losses);

    assert_eq!(captures, [2, 17]);
}

#[test]
fn after_a_rollback_intervals_count_from_it() {
    let mut rule = SnapshotRule::default();
    play(&mut rule, &LOSSES);

    rule.rolled_back(16);

    assert_eq!((rule.last, rule.probation.as_ref()), ((16, Some(1.58)), None));
    assert_eq!(rule.known_good().step, 10);
}

proptest! {
    /// The known good state never moves back, and every promotion is of a capture at least two steps old.
    #[test]
    fn known_good_states_are_proven_ones(losses in prop::collection::vec(0.01..5.0f64, 1..60), bad in prop::collection::vec(0..60usize, 0..5)) {
        let mut rule = SnapshotRule::default();
        for step in 1..=losses.len() {
            let before = rule.known_good().step;
            if bad.contains(&step) {
                rule.discard();
                prop_assert_eq!(rule.known_good().step, before);
                continue;
            }
            let orders = rule.healthy(&moment(&losses[..step]));
            let known = rule.known_good().step;
            prop_assert!(known >= before);
            prop_assert!(!orders.promote || step as u32 - known >= 2);
        }
    }
}
