use super::*;
use crate::growth::{GateLevel, LifecycleOp, PruneReason, SeedStage, SlotId};
use crate::telemetry::examples::{
    committed, context_at, decision, env_step, episode_finished, events, gate_evaluated, germinated, matrix, pruned,
    rollback, round_finished,
};
use crate::telemetry::{EnvContext, Num, SeedEnd, SeedStageChanged};

const SLOT: SlotId = SlotId::new(0, 0);

fn folded(events: impl IntoIterator<Item = Event>) -> ViewState {
    let mut state = ViewState::default();
    for (seq, mut event) in events.into_iter().enumerate() {
        event.seq = seq as u64;
        state.apply(&event);
    }
    state
}

fn seed_id(at: EnvContext) -> String {
    format!("e{}.{SLOT}.0", at.episode)
}

/// An episode of env 0 in which a seed is planted in step 2 and committed in step 5.
fn grown(round: u32, accuracy: f64) -> Vec<Event> {
    let at = |step| context_at(0, round, step);
    let seed = |step, payload: Payload| Event::seed(at(step), SLOT, seed_id(at(step)), payload);
    let mut measured = matrix();
    measured.seed_ids[0] = seed_id(at(5));
    let mut finished = episode_finished();
    finished.committed_accuracy = Some(Num(accuracy));
    vec![
        seed(2, germinated().into()),
        seed(3, entered(SeedStage::Training).into()),
        seed(5, entered(SeedStage::Committed).into()),
        seed(5, committed().into()),
        Event::env(at(6), measured),
        Event::env(at(6), finished),
        Event::round(round, round_finished()),
    ]
}

fn entered(to: SeedStage) -> SeedStageChanged {
    let found = events().into_iter().find_map(|event| match event.payload {
        Payload::SeedStageChanged(change) => Some(change),
        _ => None,
    });
    let change = found.expect("there is an example");
    SeedStageChanged { to, ..change }
}

#[test]
fn the_life_of_a_seed_is_kept_with_its_stages_and_its_worth() {
    use SeedStage::{Committed, Germinated, Training};

    let state = folded(grown(0, 70.0));

    let trace = &state.episodes.latest[0];
    let seed = trace.seed_in(SLOT).expect("it stands");
    assert_eq!(seed.end, SeedEnd::Committed(committed()));
    assert_eq!(seed.stages, [(2, Germinated), (3, Training), (5, Committed)]);
    assert!(seed.worth.contribution.is_some());
    let planted = &state.choices.planted[&(SLOT, germinated().blueprint)];
    assert_eq!((planted.germinated, planted.committed), (1, 1));
    assert_eq!(planted.contributions.0, 1);
}

#[test]
fn a_seed_that_is_pruned_is_counted_and_keeps_its_reason() {
    let at = |step| context_at(0, 0, step);
    let mut gone = pruned();
    gone.reason = PruneReason::HoldingTimeout;

    let state = folded([
        Event::seed(at(2), SLOT, "e0.r0c0.0", germinated()),
        Event::seed(at(3), SLOT, "e0.r0c0.0", gate_evaluated()),
        Event::seed(at(4), SLOT, "e0.r0c0.0", gone),
        Event::env(at(4), rollback()),
        Event::env(at(6), episode_finished()),
    ]);

    let trace = &state.episodes.playing[&0];
    assert!(trace.seed_in(SLOT).is_none());
    let SeedEnd::Pruned { step: 4, data } = &trace.seeds[0].end else {
        panic!("{:?}", trace.seeds[0].end);
    };
    assert_eq!(data.reason, PruneReason::HoldingTimeout);
    assert_eq!(trace.marks, [(4, Mark::Rollback(rollback().snapshot_step))]);
    let planted = &state.choices.planted[&(SLOT, germinated().blueprint)];
    assert_eq!(planted.pruned, 1);
    let (_, seed, _) = &state.choices.uncommitted[0];
    let refused = seed.refused.as_ref().map(|(gate, check)| (*gate, check.name.as_str()));
    assert_eq!(refused, Some((GateLevel::G2, "improvement")));
}

#[test]
fn a_decision_that_was_refused_counts_as_a_wait() {
    let at = context_at(0, 0, 1);
    let order = |blocked: Option<&str>| {
        let mut ordered = decision();
        ordered.op = LifecycleOp::Prune;
        ordered.blocked = blocked.map(str::to_owned);
        [Event::env(at, env_step()), Event::env(at, ordered)]
    };

    let state = folded([order(None), order(Some("too_young"))].concat());

    let first = state.choices.by_step[0];
    assert_eq!(first[LifecycleOp::Prune.code()], 1);
    assert_eq!(first[LifecycleOp::Wait.code()], 1);
}

#[test]
fn the_best_episode_stays_when_later_ones_are_worse() {
    let state = folded([grown(0, 60.0), grown(1, 80.0), grown(2, 70.0)].concat());

    let best = state.episodes.best.as_ref().expect("there is one");
    assert_eq!((best.at.round, best.accuracy()), (1, Some(80.0)));
    assert_eq!(state.episodes.latest[0].at.round, 2);
    let rounds = state.episodes.best_of_rounds.iter().map(|trace| trace.at.round);
    assert_eq!(rounds.collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn an_episode_that_is_played_again_after_a_resume_begins_again() {
    let begun = |round, step| Event::env(context_at(0, round, step), env_step());

    let state = folded([begun(0, 1), begun(0, 2), begun(1, 1)]);

    assert_eq!(state.episodes.playing[&0].at.round, 1);
    assert_eq!(state.episodes.playing[&0].steps.len(), 1);
}

#[test]
fn the_order_that_most_episodes_follow_is_counted_over_two_rounds() {
    let mut other = grown(2, 70.0);
    other.drain(..4);

    let state = folded([grown(0, 60.0), grown(1, 80.0), other].concat());

    let modal = state.episodes.modal_order().expect("episodes ended");
    let expected = format!("{SLOT} {}, commit {SLOT}", germinated().blueprint);
    // Round 0 isn't one of them any more.
    assert_eq!(modal.of, 2);
    assert!(
        modal.episodes == 1 && [String::new(), expected].contains(&modal.order),
        "{modal:?}"
    );
}

#[test]
fn the_log_has_what_people_read_and_is_bounded() {
    let note = |_| Event::env(context_at(0, 0, 1), rollback());

    let state = folded((0..3 * LOG).map(note));

    assert_eq!(state.log.len(), LOG);
    assert!(state.log[0].text.contains("rolled back"), "{:?}", state.log[0]);
}

/// Events of a round of one env: a seed, and steps with decisions.
fn round_of(round: u32, steps: u32) -> Vec<Event> {
    let played = (1..=steps).flat_map(|step| {
        let at = context_at(0, round, step);
        [Event::env(at, env_step()), Event::env(at, decision())]
    });
    played.chain(grown(round, 70.0)).collect()
}

#[test]
fn a_state_takes_little_more_memory_the_longer_its_run_is() {
    let kept = |rounds: u32| {
        let mut state = ViewState::default();
        let taken = allocation_counter::measure(|| {
            for round in 0..rounds {
                for event in round_of(round, 60) {
                    state.apply(&event);
                }
            }
        });
        taken.bytes_current
    };

    let (short, long) = (kept(100), kept(1000));

    // Its rounds and its committed seeds are kept; of 900 rounds with 126 events each that is little.
    assert!(long - short < 900 * 6_000, "{short} bytes, then {long}");
}
