//! When a healthy env is captured, and when a capture is trusted (spec 02 §8.5). Pure: steps and losses in, orders out.
//!
//! Weights can be poisoned before the loss shows it. A capture is therefore on probation, and replaces the last known
//! good state only after further healthy steps.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::env::ValMetrics;
use crate::scenario::SnapshotPolicy;
use crate::telemetry::SnapshotTrigger;

/// Healthy losses, the newest included, of which the least shows how rough the present one is.
const RECENT_LOSSES: usize = 5;

/// What an env has shown by the end of a healthy step: everything of a snapshot that is no tensor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// 0 for a fresh host.
    pub step: u32,
    /// `None` for a fresh host.
    pub val: Option<ValMetrics>,
    pub best_accuracy_percent: f64,
    pub best_step: u32,
    /// Healthy losses, oldest first, this step's included where it is remembered.
    pub history: VecDeque<f64>,
}

impl Moment {
    fn loss(&self) -> Option<f64> {
        self.val.map(|val| val.loss)
    }

    /// Whether the loss is near the least of the last few.
    fn is_stable(&self, loss: f64, ratio: f64) -> bool {
        let is_remembered = self.history.back() == Some(&loss);
        let others = RECENT_LOSSES - usize::from(!is_remembered);
        let least = self
            .history
            .iter()
            .rev()
            .take(others)
            .fold(loss, |least, &loss| least.min(loss));
        loss <= ratio * least
    }
}

/// A captured moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    pub trigger: SnapshotTrigger,
    pub moment: Moment,
}

/// What to do with the tensors, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// The probation has become the known good state.
    pub promote: Option<SnapshotTrigger>,
    /// Capture into probation.
    pub capture: Option<SnapshotTrigger>,
}

/// The snapshots of an env as plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotRule {
    known_good: Mark,
    probation: Option<Mark>,
    /// Step and loss from which the next capture is reckoned.
    last: (u32, Option<f64>),
}

impl Default for SnapshotRule {
    /// Only the fresh host is known.
    fn default() -> Self {
        Self {
            known_good: Mark {
                trigger: SnapshotTrigger::Initial,
                moment: Moment::default(),
            },
            probation: None,
            last: (0, None),
        }
    }
}

impl SnapshotRule {
    /// What a rollback restores.
    pub fn known_good(&self) -> &Mark {
        &self.known_good
    }

    pub fn probation(&self) -> Option<&Mark> {
        self.probation.as_ref()
    }

    /// A healthy step is over.
    pub fn healthy(&mut self, policy: &SnapshotPolicy, now: &Moment) -> Orders {
        let mut orders = Orders::default();
        let probation_steps = probation_steps(policy);
        let has_proven_itself =
            |mark: &Mark| now.step.saturating_sub(mark.moment.step) >= probation_steps && probation_steps > 0;
        if self.probation.as_ref().is_some_and(has_proven_itself) {
            orders.promote = self.promote();
        }
        if self.probation.is_none()
            && let Some(trigger) = self.is_due(policy, now)
        {
            self.probation = Some(self.mark(trigger, now));
            orders.capture = Some(trigger);
        }
        orders
    }

    /// The capture of the step before has turned out to hold nothing but numbers. Where no probation is asked for, it
    /// is trusted from here on.
    pub fn found_finite(&mut self, policy: &SnapshotPolicy) -> Option<SnapshotTrigger> {
        if probation_steps(policy) == 0 {
            self.promote()
        } else {
            None
        }
    }

    /// Drops the capture on probation, if there is one: the next is reckoned from the known good state.
    pub fn discard(&mut self) -> Option<SnapshotTrigger> {
        let dropped = self.probation.take()?;
        let known = &self.known_good.moment;
        self.last = (known.step, known.loss());
        Some(dropped.trigger)
    }

    /// A seed was committed in this healthy step: its state is trusted at once.
    pub fn commit(&mut self, now: &Moment) {
        self.known_good = self.mark(SnapshotTrigger::Commit, now);
        self.probation = None;
    }

    /// The known good state stands again at the end of `step`.
    pub fn rolled_back(&mut self, step: u32) {
        self.probation = None;
        self.last = (step, self.known_good.moment.loss());
    }

    fn mark(&mut self, trigger: SnapshotTrigger, now: &Moment) -> Mark {
        self.last = (now.step, now.loss());
        Mark {
            trigger,
            moment: now.clone(),
        }
    }

    fn promote(&mut self) -> Option<SnapshotTrigger> {
        let proven = self.probation.take()?;
        let trigger = proven.trigger;
        self.known_good = proven;
        Some(trigger)
    }

    fn is_due(&self, policy: &SnapshotPolicy, now: &Moment) -> Option<SnapshotTrigger> {
        let loss = now.loss()?;
        let (last_step, last_loss) = self.last;
        let waited = now.step.saturating_sub(last_step);
        match *policy {
            SnapshotPolicy::Every(interval) => now.step.is_multiple_of(interval).then_some(SnapshotTrigger::Due),
            SnapshotPolicy::Adaptive {
                min_interval,
                max_interval,
                improvement,
                stable_ratio,
                patience,
                ..
            } => {
                let has_improved = last_loss.is_none_or(|last| loss <= (1.0 - improvement) * last);
                let trigger = if waited >= min_interval && has_improved {
                    SnapshotTrigger::Improved
                } else if waited >= max_interval {
                    SnapshotTrigger::Due
                } else {
                    return None;
                };
                if now.is_stable(loss, stable_ratio) {
                    Some(trigger)
                } else {
                    (waited >= patience).then_some(SnapshotTrigger::Patience)
                }
            }
        }
    }
}

fn probation_steps(policy: &SnapshotPolicy) -> u32 {
    match *policy {
        SnapshotPolicy::Adaptive { probation, .. } => probation,
        SnapshotPolicy::Every(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LOSSES: [f64; 14] = [
        2.3, 2.0, 1.8, 1.7, 1.65, 1.62, 1.60, 1.75, 1.9, 1.58, 1.57, 1.57, 1.56, 1.56,
    ];

    fn moment(losses: &[f64]) -> Moment {
        Moment {
            step: losses.len() as u32,
            val: losses.last().map(|&loss| ValMetrics {
                loss,
                accuracy_percent: 50.0,
            }),
            history: losses.iter().copied().collect(),
            ..Moment::default()
        }
    }

    /// Plays healthy steps and returns when captures and promotions happened: `(captures, (step, of step))`.
    fn play(rule: &mut SnapshotRule, policy: &SnapshotPolicy, losses: &[f64]) -> (Vec<u32>, Vec<(u32, u32)>) {
        let (mut captures, mut promotions) = (Vec::new(), Vec::new());
        for step in 1..=losses.len() {
            let orders = rule.healthy(policy, &moment(&losses[..step]));
            if orders.promote.is_some() {
                promotions.push((step as u32, rule.known_good().moment.step));
            }
            if orders.capture.is_some() {
                captures.push(step as u32);
            }
        }
        (captures, promotions)
    }

    #[test]
    fn captures_follow_improvements_and_prove_themselves_for_two_steps() {
        let mut rule = SnapshotRule::default();

        let (captures, promotions) = play(&mut rule, &SnapshotPolicy::default(), &LOSSES);

        assert_eq!(captures, [2, 4, 6, 10, 13]);
        assert_eq!(promotions, [(4, 2), (6, 4), (8, 6), (12, 10)]);
        assert_eq!(rule.known_good().moment.step, 10);
        assert_eq!(rule.probation().unwrap().moment.step, 13);
    }

    #[test]
    fn an_anomaly_drops_what_has_not_proven_itself() {
        let mut rule = SnapshotRule::default();
        play(&mut rule, &SnapshotPolicy::default(), &LOSSES[..13]);

        // Step 14 is suspect; step 16 panics.
        assert_eq!(rule.discard(), Some(SnapshotTrigger::Improved));

        assert_eq!(rule.probation(), None);
        assert_eq!(16 - rule.known_good().moment.step, 6);
        assert_eq!(rule.last, (10, Some(1.58)));
        assert_eq!(rule.discard(), None);
    }

    #[test]
    fn a_commit_is_trusted_at_once() {
        let mut rule = SnapshotRule::default();
        play(&mut rule, &SnapshotPolicy::default(), &LOSSES[..9]);

        rule.commit(&moment(&LOSSES[..9]));

        assert_eq!(rule.known_good().moment.step, 9);
        assert_eq!(rule.known_good().trigger, SnapshotTrigger::Commit);
        assert_eq!(rule.last, (9, Some(1.9)));
    }

    #[test]
    fn a_rough_loss_is_captured_only_when_patience_ends() {
        let mut rule = SnapshotRule::default();
        // Given a loss that rises by a fifth in every step after the second.
        let rising = (0..20).map(|step| 1.2_f64.powi(step));
        let losses: Vec<f64> = [2.0].into_iter().chain(rising).collect();

        let (captures, _) = play(&mut rule, &SnapshotPolicy::default(), &losses);

        assert_eq!(captures, [2, 17]);
        assert_eq!(rule.known_good().trigger, SnapshotTrigger::Patience);
    }

    #[test]
    fn fixed_intervals_are_trusted_as_soon_as_they_are_known_to_be_finite() {
        let policy = SnapshotPolicy::Every(5);
        let mut rule = SnapshotRule::default();
        let (captures, promotions) = play(&mut rule, &policy, &LOSSES[..5]);
        assert_eq!((captures, promotions), (vec![5], vec![]));

        assert_eq!(rule.found_finite(&policy), Some(SnapshotTrigger::Due));

        assert_eq!(rule.known_good().moment.step, 5);
    }

    #[test]
    fn after_a_rollback_intervals_count_from_it() {
        let mut rule = SnapshotRule::default();
        play(&mut rule, &SnapshotPolicy::default(), &LOSSES);

        rule.rolled_back(16);

        assert_eq!((rule.last, rule.probation()), ((16, Some(1.58)), None));
        assert_eq!(rule.known_good().moment.step, 10);
    }

    proptest! {
        /// The known good state never moves back, and every promotion is of a capture at least two steps old.
        #[test]
        fn known_good_states_are_proven_ones(losses in prop::collection::vec(0.01..5.0f64, 1..60), bad in prop::collection::vec(0..60usize, 0..5)) {
            let mut rule = SnapshotRule::default();
            let policy = SnapshotPolicy::default();
            for step in 1..=losses.len() {
                let before = rule.known_good().moment.step;
                if bad.contains(&step) {
                    rule.discard();
                    prop_assert_eq!(rule.known_good().moment.step, before);
                    continue;
                }
                let orders = rule.healthy(&policy, &moment(&losses[..step]));
                let known = rule.known_good().moment.step;
                prop_assert!(known >= before);
                prop_assert!(orders.promote.is_none() || step as u32 - known >= 2);
            }
        }
    }
}
