use super::*;
use crate::telemetry::{SeedStageChanged, examples};

const SLOT: SlotId = SlotId::new(0, 0);

fn seed(env: u32, step: u32, payload: impl Into<Payload>) -> Event {
    Event::seed(examples::context_at(env, 0, step), SLOT, "a seed", payload)
}

fn enters(to: SeedStage) -> SeedStageChanged {
    SeedStageChanged {
        from: SeedStage::Germinated,
        to,
        alpha: Num(0.0),
    }
}

fn over(env: u32, step: u32, end: EndReason) -> Event {
    let mut episode = examples::episode_finished();
    (episode.end, episode.length) = (end, step);
    Event::env(examples::context_at(env, 0, step), episode)
}

fn fold(events: &[Event]) -> SeedEnds {
    let (mut lives, mut ends) = (SeedLives::default(), SeedEnds::default());
    for event in events {
        lives.apply(event);
        ends.apply(event, lives.of(event.env.unwrap_or_default()));
    }
    ends
}

#[test]
fn a_seed_ends_where_it_was_pruned_or_where_the_episode_left_it() {
    let mut pruned = examples::pruned();
    (pruned.stage, pruned.reason, pruned.age_steps) = (SeedStage::Training, PruneReason::Policy, 6);
    let ends = fold(&[
        seed(0, 2, examples::germinated()),
        seed(1, 3, examples::germinated()),
        seed(2, 3, examples::germinated()),
        seed(1, 4, enters(SeedStage::Training)),
        seed(0, 8, pruned),
        seed(2, 9, enters(SeedStage::Committed)),
        seed(2, 9, examples::committed()),
        over(0, 20, EndReason::Horizon),
        over(1, 20, EndReason::Horizon),
        over(2, 20, EndReason::Horizon),
    ]);

    assert_eq!(ends.germinated, 3);
    let expected = [
        ((SeedStage::Training, None), Ages::from([(17, 1)])),
        ((SeedStage::Training, Some(PruneReason::Policy)), Ages::from([(6, 1)])),
    ];
    assert_eq!(ends.ends, expected.into());
}

#[test]
fn an_episode_that_was_stopped_or_failed_has_ended_no_seed() {
    for end in [EndReason::Stopped, EndReason::Failed] {
        let ends = fold(&[seed(0, 2, examples::germinated()), over(0, 5, end)]);

        assert!(ends.ends.is_empty(), "{ends:?}");
    }
}

#[test]
fn refusals_are_counted_by_check_with_the_best_that_was_found() {
    let tried = |value: f64, passed| {
        let mut gate = examples::gate_evaluated();
        gate.gate = GateLevel::G2;
        gate.checks.truncate(1);
        gate.checks[0].name = "gradient_health".into();
        (gate.checks[0].value, gate.checks[0].threshold) = (Some(Num(value)), Some(Num(0.7)));
        (gate.checks[0].passed, gate.passed) = (passed, passed);
        seed(0, 3, gate)
    };

    let refused = [0.3, 0.5, f64::NAN].map(|value| tried(value, false));
    let ends = fold(&[&refused[..], &[tried(0.9, true)]].concat());

    let (count, asked, most) = (3, Some(Num(0.7)), Some(Num(0.5)));
    let key = (GateLevel::G2, "gradient_health".to_owned());
    assert_eq!(ends.refusals, [(key, Refusals { count, asked, most })].into());
}

#[test]
fn lives_are_in_the_order_of_germination_and_one_that_is_planted_again_begins_again() {
    let planted = |env: u32, step: u32, id: &str| {
        Event::seed(examples::context_at(env, 0, step), SLOT, id, examples::germinated())
    };
    let mut lives = SeedLives::default();
    for event in [
        planted(1, 2, "b"),
        planted(0, 3, "c"),
        planted(0, 2, "a"),
        planted(1, 2, "b"),
    ] {
        lives.apply(&event);
    }

    let ids: Vec<String> = lives.take().into_iter().map(|life| life.id).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert!(lives.of(0).is_empty());
}
