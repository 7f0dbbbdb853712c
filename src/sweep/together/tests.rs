use std::sync::{Arc, Mutex};

use bevy_ecs::prelude::*;

use super::*;
use crate::clock::RunClock;
use crate::schedule::StepStart;

/// Who plays which round and step, in the order in which they do.
#[derive(Resource, Clone, Default)]
struct Diary(Arc<Mutex<Vec<(usize, u32, u32)>>>);

#[derive(Resource)]
struct Name(usize);

fn note(diary: Res<Diary>, name: Res<Name>, clock: Res<RunClock>) {
    diary.0.lock().unwrap().push((name.0, clock.round(), clock.step()));
}

fn engines(diary: &Diary, count: usize) -> Vec<Option<Engine>> {
    let engine = |index| {
        let mut engine = Engine::from_ron(
            r#"(
                task: preset("digits_minimal", (batches_per_step: count(1))),
                run: (rounds: 2, n_envs: 1, max_steps: 2),
                policy: (controller: "wait"),
            )"#,
        )
        .unwrap();
        engine.world_mut().insert_resource(diary.clone());
        engine.world_mut().insert_resource(Name(index));
        engine.app_mut().add_systems(StepStart, note.ambiguous_with_all());
        Some(engine)
    };
    (0..count).map(engine).collect()
}

const TURNS: Turns = Turns {
    seed: 42,
    first_round: 0,
};

fn play() -> Vec<(usize, u32, u32)> {
    let diary = Diary::default();
    let mut engines = engines(&diary, 3);
    let reports = play_together(&mut engines, TURNS, &StopSignal::default());
    assert!(reports.iter().flatten().all(|report| report.failure.is_none()));
    assert_eq!(reports.iter().flatten().count(), 3);
    let played = diary.0.lock().unwrap();
    played.clone()
}

#[test]
fn in_lockstep_every_arm_plays_a_step_before_any_plays_the_next() {
    let mut expected = Vec::new();
    for round in 0..2 {
        for step in 1..=2 {
            expected.extend(launch_order(42, round, 3).into_iter().map(|arm| (arm, round, step)));
        }
    }

    assert_eq!(play(), expected);
}

#[test]
fn every_round_draws_its_own_order_and_every_arm_is_first_in_some() {
    let orders: Vec<Vec<usize>> = (0..60).map(|round| launch_order(7, round, 3)).collect();

    for arm in 0..3 {
        let first = orders.iter().filter(|order| order[0] == arm).count();
        assert!((10..=30).contains(&first), "{arm} is first {first} times of 60");
    }
    assert_eq!(orders[5], launch_order(7, 5, 3));
}

#[test]
fn a_stop_ends_all_arms_and_closes_their_runs() {
    let diary = Diary::default();
    let stop = StopSignal::default();
    stop.request(StopRequest::Terminate);

    let reports = play_together(&mut engines(&diary, 2), TURNS, &stop);

    let stopped: Vec<_> = reports.into_iter().flatten().map(|report| report.stopped_by).collect();
    assert_eq!(stopped, [Some(StopRequest::Terminate); 2]);
    assert!(diary.0.lock().unwrap().is_empty());
}
