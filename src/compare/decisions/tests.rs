use super::*;

const FIRST: SlotId = SlotId::new(0, 0);
const SECOND: SlotId = SlotId::new(0, 1);
/// An outcome as written by versions that recorded no decisions.
const WITHOUT: &str = r#"{"seed":1,"round":0,"env":0,"accuracy":50.0,"committed_accuracy":null,"test_accuracy":null,"rent":null,"reward":0.0,"param_ratio":1.0,"rollbacks":0}"#;

fn episode(decisions: Option<Decisions>) -> EpisodeOutcome {
    EpisodeOutcome {
        decisions,
        ..serde_json::from_str(WITHOUT).expect("it is an outcome")
    }
}

/// Seeds germinated, committed, pruned and lost; steps of the first germination, of the first and the last commit.
fn decided(counts: [u32; 4], steps: [Option<u32>; 3], blueprints: &[(SlotId, &str)]) -> EpisodeOutcome {
    let [germinated, committed, pruned, lost] = counts;
    let [first_germination, first_commit, last_commit] = steps;
    episode(Some(Decisions {
        germinated,
        committed,
        pruned,
        lost,
        first_germination,
        first_commit,
        last_commit,
        blueprints: blueprints.iter().map(|&(slot, name)| (slot, name.into())).collect(),
    }))
}

/// Four episodes: two commit at steps 10 and 20 to 30, one plants but never commits, one waits.
fn episodes() -> Vec<EpisodeOutcome> {
    let both = [(FIRST, "conv_light"), (SECOND, "norm")];
    vec![
        decided([3, 1, 2, 0], [Some(1), Some(10), Some(10)], &[(FIRST, "norm")]),
        decided([2, 2, 0, 0], [Some(3), Some(20), Some(30)], &both),
        decided([1, 0, 0, 1], [Some(5), None, None], &[]),
        decided([0; 4], [None; 3], &[]),
    ]
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
    let summary = DecisionSummary::of(&episodes()[3..]).expect("decisions are recorded");

    assert_eq!((summary.germinated, summary.without_commit), (0.0, 1.0));
    assert_eq!(
        [summary.first_germination, summary.first_commit, summary.last_commit],
        [None; 3]
    );
}

#[test]
fn every_slot_says_what_was_committed_in_it_and_how_often_nothing() {
    let slots = SlotCommits::by_slot(&[FIRST, SECOND], &episodes()).expect("decisions are recorded");

    let commits = |slot, blueprints: &[(&str, u32)], nothing| SlotCommits {
        slot,
        blueprints: blueprints.iter().map(|&(name, count)| (name.into(), count)).collect(),
        nothing,
    };
    let in_first = commits(FIRST, &[("conv_light", 1), ("norm", 1)], 2);
    assert_eq!(slots, [in_first, commits(SECOND, &[("norm", 1)], 3)]);
}

#[test]
fn episodes_that_do_not_tell_their_decisions_are_not_summed_up() {
    let mut episodes = episodes();
    episodes.push(episode(None));

    assert_eq!(DecisionSummary::of(&episodes), None);
    assert_eq!(SlotCommits::by_slot(&[FIRST], &episodes), None);
    assert_eq!(DecisionSummary::of(&[]), None);
}

#[test]
fn an_outcome_is_written_as_it_was_read_and_without_decisions_as_before() {
    assert_eq!(serde_json::to_string(&episode(None)).expect("it is written"), WITHOUT);
    let recorded = &episodes()[1];
    let text = serde_json::to_string(recorded).expect("it is written");
    let read: EpisodeOutcome = serde_json::from_str(&text).expect("it is read");
    assert_eq!(read, *recorded);
}
