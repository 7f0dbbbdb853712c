//! How controllers decide: means over the episodes that one of them played, and what it commits in which slot.

use std::collections::BTreeMap;

use serde::Serialize;

use super::EpisodeOutcome;
use super::statistics::mean;
use crate::env::Decisions;
use crate::growth::SlotId;

/// Means of an episode of one controller.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DecisionSummary {
    /// Seeds planted.
    pub germinated: f64,
    /// Seeds committed.
    pub fossilized: f64,
    /// Seeds removed by the controller's order.
    pub pruned: f64,
    /// Seeds removed by anything else.
    pub lost: f64,
    /// Share of the episodes in which nothing was committed, 0 to 1.
    pub without_commit: f64,
    /// Step of the first germination, from 1, over the episodes with one; `None` if there is no such episode.
    pub first_germination: Option<f64>,
    /// Step of the first commit, likewise.
    pub first_commit: Option<f64>,
    /// Step of the last commit, likewise.
    pub last_commit: Option<f64>,
}

impl DecisionSummary {
    /// `None` of no episodes, or where one does not tell its decisions.
    pub fn of(episodes: &[EpisodeOutcome]) -> Option<Self> {
        let told = told(episodes)?;
        let count = |of: fn(&Decisions) -> u32| -> f64 {
            let counts: Vec<f64> = told.iter().map(|decisions| of(decisions).into()).collect();
            mean(&counts)
        };
        let step = |of: fn(&Decisions) -> Option<u32>| -> Option<f64> {
            let steps: Vec<f64> = told
                .iter()
                .filter_map(|decisions| of(decisions))
                .map(f64::from)
                .collect();
            (!steps.is_empty()).then(|| mean(&steps))
        };
        Some(Self {
            germinated: count(|decisions| decisions.germinated),
            fossilized: count(|decisions| decisions.fossilized),
            pruned: count(|decisions| decisions.pruned),
            lost: count(|decisions| decisions.lost),
            without_commit: count(|decisions| u32::from(decisions.fossilized == 0)),
            first_germination: step(|decisions| decisions.first_germination),
            first_commit: step(|decisions| decisions.first_commit),
            last_commit: step(|decisions| decisions.last_commit),
        })
    }
}

/// What a controller committed in a slot, in how many of its episodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlotCommits {
    /// The slot.
    pub slot: SlotId,
    /// Episodes by blueprint id.
    pub blueprints: BTreeMap<String, u32>,
    /// Episodes in which it was left without a commit.
    pub nothing: u32,
}

impl SlotCommits {
    /// One entry a slot, in their order; `None` as for [`DecisionSummary::of`].
    pub fn by_slot(slots: &[SlotId], episodes: &[EpisodeOutcome]) -> Option<Vec<Self>> {
        let told = told(episodes)?;
        let of_slot = |&slot: &SlotId| {
            let mut commits = Self {
                slot,
                blueprints: BTreeMap::new(),
                nothing: 0,
            };
            for decisions in &told {
                match decisions.committed.get(&slot) {
                    Some(blueprint) => *commits.blueprints.entry(blueprint.clone()).or_default() += 1,
                    None => commits.nothing += 1,
                }
            }
            commits
        };
        Some(slots.iter().map(of_slot).collect())
    }
}

/// The decisions of all episodes; `None` if there are none or one does not tell them.
fn told(episodes: &[EpisodeOutcome]) -> Option<Vec<&Decisions>> {
    let told: Option<Vec<_>> = episodes.iter().map(|outcome| outcome.decisions.as_ref()).collect();
    told.filter(|told| !told.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::BigInteger;

    const FIRST: SlotId = SlotId::new(0, 0);
    const SECOND: SlotId = SlotId::new(0, 1);

    fn episode(decisions: Option<Decisions>) -> EpisodeOutcome {
        EpisodeOutcome {
            seed: BigInteger(1),
            round: 0,
            env: 0,
            accuracy: Some(50.0),
            committed_accuracy: None,
            test_accuracy: None,
            loss: None,
            test_loss: None,
            rent: None,
            reward: 0.0,
            param_ratio: 1.0,
            rollbacks: 0,
            compute: None,
            decisions,
        }
    }

    /// Two episodes that commit, at steps 10 and 20 to 30, one that plants in vain, one that waits.
    fn episodes() -> Vec<EpisodeOutcome> {
        let early = Decisions {
            germinated: 3,
            fossilized: 1,
            pruned: 2,
            lost: 0,
            first_germination: Some(1),
            first_commit: Some(10),
            last_commit: Some(10),
            committed: [(FIRST, "norm".into())].into(),
        };
        let late = Decisions {
            germinated: 2,
            fossilized: 2,
            first_germination: Some(3),
            first_commit: Some(20),
            last_commit: Some(30),
            committed: [(FIRST, "conv_light".into()), (SECOND, "norm".into())].into(),
            ..Decisions::default()
        };
        let in_vain = Decisions {
            germinated: 1,
            lost: 1,
            first_germination: Some(5),
            ..Decisions::default()
        };
        [early, late, in_vain, Decisions::default()]
            .map(|decisions| episode(Some(decisions)))
            .into()
    }

    #[test]
    fn counts_are_means_of_all_episodes_and_steps_of_those_in_which_it_came_to_that() {
        let summary = DecisionSummary::of(&episodes());

        let expected = DecisionSummary {
            germinated: 1.5,
            fossilized: 0.75,
            pruned: 0.5,
            lost: 0.25,
            without_commit: 0.5,
            first_germination: Some(3.0),
            first_commit: Some(15.0),
            last_commit: Some(20.0),
        };
        assert_eq!(summary, Some(expected));
    }

    #[test]
    fn a_controller_that_only_waits_has_no_steps() {
        let summary = DecisionSummary::of(&episodes()[3..]).expect("it is told");

        assert_eq!((summary.germinated, summary.without_commit), (0.0, 1.0));
        assert_eq!(
            [summary.first_germination, summary.first_commit, summary.last_commit],
            [None; 3]
        );
    }

    #[test]
    fn every_slot_says_what_was_committed_in_it_and_how_often_nothing() {
        let slots = SlotCommits::by_slot(&[FIRST, SECOND], &episodes()).expect("it is told");

        let expected = [
            SlotCommits {
                slot: FIRST,
                blueprints: [("conv_light".into(), 1), ("norm".into(), 1)].into(),
                nothing: 2,
            },
            SlotCommits {
                slot: SECOND,
                blueprints: [("norm".into(), 1)].into(),
                nothing: 3,
            },
        ];
        assert_eq!(slots, expected);
    }

    #[test]
    fn episodes_that_do_not_tell_their_decisions_are_not_summed_up() {
        let mut episodes = episodes();
        episodes.push(episode(None));

        assert_eq!(DecisionSummary::of(&episodes), None);
        assert_eq!(SlotCommits::by_slot(&[FIRST], &episodes), None);
        assert_eq!(DecisionSummary::of(&[]), None);
    }

    /// As records of versions wrote it that told no decisions.
    #[test]
    fn an_outcome_without_decisions_is_read_and_written_as_before() {
        let text = r#"{"seed":1,"round":0,"env":0,"accuracy":50.0,"committed_accuracy":null,"test_accuracy":null,"rent":null,"reward":0.0,"param_ratio":1.0,"rollbacks":0}"#;

        let read: EpisodeOutcome = serde_json::from_str(text).expect("it is an outcome");

        assert_eq!(read, episode(None));
        assert_eq!(serde_json::to_string(&read).expect("it is written"), text);
        let told = &episodes()[1];
        let text = serde_json::to_string(told).expect("it is written");
        assert_eq!(
            serde_json::from_str::<EpisodeOutcome>(&text).expect("it is read"),
            *told
        );
    }
}
