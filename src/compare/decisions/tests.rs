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
        committed: 1,
        pruned: 2,
        lost: 0,
        first_germination: Some(1),
        first_commit: Some(10),
        last_commit: Some(10),
        blueprints: [(FIRST, "norm".into())].into(),
    };
    let late = Decisions {
        germinated: 2,
        committed: 2,
        first_germination: Some(3),
        first_commit: Some(20),
        last_commit: Some(30),
        blueprints: [(FIRST, "conv_light".into()), (SECOND, "norm".into())].into(),
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
        committed: 0.75,
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
