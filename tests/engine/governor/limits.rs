//! The number of rollbacks of an env before its episode ends, and what they leave.

use simic_engine::internals::telemetry::EndReason;
use simic_engine::prelude::*;

use super::diary::{play, scenario_text, steps_with};

#[test]
fn at_the_limit_the_env_idles_and_the_others_finish() {
    let entry = |step| format!("(env: 1, round: 0, step: {step}, fault: nan_weight)");
    let faults = [entry(5), entry(8), entry(11)].join(", ");
    // A committed seed takes part in every step: no rollback is in vain.
    let seed = r#"initial_topology: seeds([(slot: "r0c2", blueprint: "conv_light")])"#;
    let faults = format!("{seed}, faults: [{faults}],");
    let played = play(&scenario_text("n_envs: 3, rounds: 2, max_steps: 20", &faults));

    let first_round = played.of_round(1, 0);
    let with = |status| steps_with(first_round.iter().copied(), status);
    assert_eq!(with(StepStatus::RolledBack), [5, 8, 11]);
    assert_eq!(with(StepStatus::Idle), (12..=20).collect::<Vec<_>>());
    // Idle means idle: the restored host stays unchanged.
    assert_eq!(first_round[19].host, first_round[10].host);
    // The next round begins afresh for all.
    let second = played.of_round(1, 1);
    assert!(second.iter().all(|page| page.status == StepStatus::Participating));
    assert_eq!((second.len(), played.stats[1].rollbacks), (20, 0));
}

/// With no rollback allowed the first panic ends the episode, and a round without active envs is over.
#[test]
fn a_round_ends_early_once_every_env_idles() {
    let faults = "governor: (max_rollbacks_per_episode: 0), faults: [
        (env: 0, round: 0, step: 4, fault: nan_weight), (env: 1, round: 0, step: 6, fault: nan_weight)],";
    let played = play(&scenario_text("n_envs: 2, rounds: 2, max_steps: 18", faults));

    for (round, steps) in [(0, 1..=6), (1, 1..=18)] {
        assert!(played.of_round(0, round).iter().map(|page| page.step).eq(steps));
    }
    assert_eq!(played.page(0, 5).status, StepStatus::Idle);
}

#[test]
fn an_ended_episode_shows_what_its_snapshot_had_shown() {
    let faults = "governor: (max_rollbacks_per_episode: 1), faults: [
        (env: 0, round: 0, step: 9, fault: nan_weight),
        (env: 1, round: 0, step: 9, fault: nan_weight),
    ],";
    let played = play(&scenario_text("n_envs: 2, rounds: 1, max_steps: 20", faults));

    // All envs are idle after step 9: the round is over.
    assert_eq!(played.of_env(0).len(), 9);
    for env in [0, 1] {
        let stats = &played.stats[env];
        let end = stats.end.unwrap();
        assert_eq!((end.reason, end.step), (EndReason::GovernorLimit, 9));
        let rollback = played.page(env, 9).rollback.as_ref().unwrap();
        let captured = played.page(env, rollback.snapshot_step);
        assert_eq!(stats.last_val.unwrap().loss, captured.loss());
    }
}
