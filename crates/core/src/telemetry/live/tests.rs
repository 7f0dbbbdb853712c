use super::*;
use crate::growth::SlotId;
use crate::telemetry::payload::CoalitionRow;
use crate::telemetry::{BigInteger, Num, examples};

const SLOT: SlotId = SlotId::new(0, 0);

fn fold(events: &[Event]) -> LiveState {
    let mut live = LiveState::default();
    events.iter().for_each(|event| live.apply(event));
    live
}

fn at(t: i64, mut event: Event) -> Event {
    event.t = Timestamp::from_milliseconds(t);
    event
}

fn step_row(env: u32, step: u32, accuracy: f64) -> Event {
    let mut row = examples::env_step();
    row.val_accuracy = Num(accuracy);
    Event::env(examples::context_at(env, 0, step), row)
}

#[test]
fn progress_is_the_mean_over_envs_and_its_speed_comes_from_event_times() {
    let live = fold(&[
        at(1000, step_row(0, 1, 40.0)),
        at(1000, step_row(1, 1, 50.0)),
        at(1500, step_row(0, 2, 60.0)),
        at(1500, step_row(1, 2, 70.0)),
    ]);

    let progress = live.progress();
    assert_eq!((progress.round, progress.step), (0, 2));
    assert_eq!(progress.accuracy_mean, Some(65.0));
    assert_eq!(progress.env_steps_per_s, Some(4.0));
}

#[test]
fn a_committed_seed_carries_its_last_measurement_and_its_shapley_value() {
    let context = examples::context_at(0, 0, 9);
    let row = |mask, accuracy, discordant| CoalitionRow {
        mask: BigInteger(mask),
        accuracy: Num(accuracy),
        loss: Num(1.0),
        discordant,
    };
    let mut matrix = examples::matrix();
    matrix.samples = 100;
    matrix.rows = vec![row(3, 60.0, (0, 0)), row(2, 52.0, (9, 1)), row(0, 50.0, (12, 2))];
    let mut shapley = examples::shapley();
    shapley.values[0].mean = Num(6.5);

    let live = fold(&[
        Event::seed(context, SLOT, "e0.r0c0.0", examples::germinated()),
        Event::env(context, matrix),
        Event::seed(context, SLOT, "e0.r0c0.0", examples::committed()),
        Event::env(context, shapley),
    ]);

    let seed = &live.committed[0];
    let contribution = seed.worth.contribution.unwrap();
    assert_eq!(contribution.points, 8.0);
    let standard_error = contribution.standard_error.unwrap();
    assert!((standard_error - 3.059_411_708_155_671).abs() < 1e-12);
    assert_eq!(seed.worth.shapley, Some(6.5));
    assert_eq!((seed.seed_id.as_str(), seed.at), ("e0.r0c0.0", context));
}

#[test]
fn without_a_matrix_the_contribution_is_that_of_the_commit() {
    let seed = |payload: Payload| Event::seed(examples::context(), SLOT, "e0.r0c0.0", payload);

    let live = fold(&[seed(examples::germinated().into()), seed(examples::committed().into())]);

    let contribution = live.committed[0].worth.contribution.unwrap();
    assert_eq!((contribution.points, contribution.standard_error), (2.25, None));
}

fn episode(env: u32, round: u32, change: impl FnOnce(&mut EpisodeFinished)) -> Event {
    let mut episode = examples::episode_finished();
    change(&mut episode);
    Event::env(examples::context_at(env, round, 5), episode)
}

fn finish(env: u32, round: u32, validation: f64, committed_ratio: f64) -> Event {
    episode(env, round, |episode| {
        episode.committed_accuracy = Some(Num(validation));
        episode.committed_ratio = Num(committed_ratio);
        // Seeds that were not committed do not count.
        episode.param_ratio = Num(9.0 - committed_ratio);
    })
}

#[test]
fn the_best_episode_is_chosen_by_validation_of_what_it_committed_never_by_test() {
    let finish = |env, validation, test| {
        episode(env, 0, |episode| {
            episode.final_accuracy = Num(100.0 - validation);
            (episode.committed_accuracy, episode.test_accuracy) = (Some(Num(validation)), Some(Num(test)));
        })
    };

    let live = fold(&[finish(0, 70.0, 99.0), finish(1, 80.0, 60.0), finish(2, f64::NAN, 100.0)]);

    let best = live.best_episode().unwrap();
    assert_eq!((best.at.env, best.data.test_accuracy), (1, Some(Num(60.0))));
    assert_eq!(live.episodes_done, 3);
}

#[test]
fn accuracies_are_kept_of_the_latest_rounds_alone() {
    let live = fold(&[0, 1, 2].map(|round| finish(0, round, f64::from(10 * round), 1.0)));

    assert_eq!(live.latest_hosts, [(1, 10.0, 1.0), (2, 20.0, 1.0)]);
}

#[test]
fn an_env_that_failed_is_neither_averaged_nor_the_best() {
    let failed = episode(1, 0, |episode| {
        episode.committed_accuracy = Some(Num(99.0));
        episode.end = EndReason::Failed;
    });

    let live = fold(&[finish(0, 0, 60.0, 1.0), failed]);

    assert_eq!(live.latest_hosts, [(0, 60.0, 1.0)]);
    assert_eq!(live.best_episode().unwrap().at.env, 0);
    assert_eq!(live.episodes_done, 2);
}

#[test]
fn the_front_holds_what_none_beats_in_both_accuracy_and_size() {
    let live = fold(&[
        finish(0, 0, 70.0, 3.0),
        finish(1, 0, 50.0, 1.0),
        // Beaten by the first, as accurate and larger, and as large and less accurate.
        finish(2, 0, 70.0, 4.0),
        finish(3, 0, 65.0, 3.0),
        finish(0, 1, 80.0, 6.0),
        // It equals another: the first stays.
        finish(1, 1, 80.0, 6.0),
        // Beat the first, which is as large, and the second, which is as accurate.
        finish(2, 1, 75.0, 3.0),
        finish(3, 1, 50.0, 0.5),
    ]);

    let front: Vec<(u32, u32)> = live.front.iter().map(|one| (one.at.round, one.at.env)).collect();
    assert_eq!(front, [(1, 3), (1, 2), (1, 0)]);
    let best = live.best_episode().unwrap();
    assert_eq!((best.at.round, best.at.env), (1, 0));
}

#[test]
fn what_a_rollback_has_undone_was_not_committed() {
    let commits = |committed_ratio| {
        let mut data = examples::episode_finished();
        (data.growth.committed, data.committed_ratio) = (1, Num(committed_ratio));
        let at = examples::context();
        EpisodeResult { at, data }.has_committed()
    };

    assert!(commits(1.2) && !commits(1.0));
}

#[test]
fn learning_is_known_by_its_latest_update_and_the_rewards_of_the_rounds() {
    let mut skipped = examples::learner_update();
    (skipped.update_performed, skipped.updates) = (false, 1);
    let performed = examples::learner_update();

    let live = fold(&[
        Event::round(0, skipped),
        Event::round(0, examples::round_finished()),
        Event::env(examples::context_at(0, 1, 3), examples::rollback()),
        Event::round(1, performed.clone()),
        Event::round(1, examples::round_finished()),
    ]);

    assert_eq!(live.latest_update(), Some(&performed));
    assert_eq!(live.update_of_round(0), None);
    assert_eq!((live.updates(), live.skipped_updates), (3, 1));
    let row = |round: &RoundResult| (round.reward_mean(), round.rollbacks);
    let rounds: Vec<_> = live.rounds.iter().map(row).collect();
    assert_eq!(rounds, [(Some(12.0), 0), (Some(12.0), 1)]);
    assert_eq!(live.reward_terms().unwrap()["pbrs"], Num(-0.5));
}

#[test]
fn remaining_time_is_the_median_round_times_the_rounds_left() {
    let round = |index, wall_s| {
        let mut round = examples::round_finished();
        round.perf.round_wall_s = Num(wall_s);
        round.perf.env_steps_per_s = Num(16.0 / 2.5);
        Event::round(index, round)
    };
    let mut started = examples::run_started();
    started.n_rounds = 12;

    let live = fold(&[Event::run(started), round(0, 9.0), round(1, 1.0), round(2, 2.0)]);

    assert_eq!(live.eta_s(), Some(18.0));
    assert!((live.env_steps_per_s().unwrap() - 6.4).abs() < 1e-12);
}
