//! Rollouts in checkpoints inside a round.

use super::bench::{Bench, TRUNCATED};
use crate::learner::algorithm::*;
use crate::scenario::LearnerConfig;
use crate::unfinished::UnfinishedRound;

/// A buffer with two states a row, as it is when `steps` of each env have been written.
fn written(mut bench: Bench, steps: [usize; 2]) -> Bench {
    for (env, count) in steps.into_iter().enumerate() {
        for _ in 0..count {
            bench.step(env, 1.0, 0.25);
        }
    }
    bench
}

fn fresh() -> Bench {
    let config = LearnerConfig {
        chunk_length: Some(2),
        ..LearnerConfig::default()
    };
    Bench::with(2, 4, config)
}

/// Both files of the unfinished round.
fn kept(buffer: &RolloutBuffer) -> [Vec<u8>; 2] {
    let mut round = UnfinishedRound::default();
    buffer.save(&mut round).expect("it is kept");
    files(&round)
}

fn files(round: &UnfinishedRound) -> [Vec<u8>; 2] {
    let folder = tempfile::tempdir().expect("a temporary folder");
    round.write(folder.path()).expect("it is written");
    ["round.txt", "round.safetensors"].map(|name| std::fs::read(folder.path().join(name)).expect("a file"))
}

#[test]
fn a_rollout_is_kept_without_what_is_left_of_the_one_before() {
    let mut used = written(fresh(), [4, 3]);
    used.end(0, TRUNCATED);
    used.end(1, TRUNCATED);
    used.buffer.clear().expect("no step is pending");

    assert!(kept(&written(used, [1, 3]).buffer) == kept(&written(fresh(), [1, 3]).buffer));
}

#[test]
fn a_rollout_that_was_kept_continues_as_if_it_had_not_been_interrupted() {
    let bench = written(fresh(), [1, 3]);
    let mut round = UnfinishedRound::default();
    bench.buffer.save(&mut round).expect("it is kept");

    // Of a rollout that is written over.
    let mut other = written(fresh(), [4, 4]);
    other.buffer.restore(&round).expect("a buffer of the same shape");

    assert!(kept(&other.buffer) == files(&round));
    let (mut bench, mut other) = (written(bench, [1, 1]), written(other, [1, 1]));
    for bench in [&mut bench, &mut other] {
        bench.end(0, TRUNCATED);
        bench.end(1, TRUNCATED);
    }
    let (one, two) = (bench.rollout().batch.advantages, other.rollout().batch.advantages);
    assert!(one.equal(&two));
}

#[test]
fn a_rollout_of_another_shape_is_refused() {
    let mut round = UnfinishedRound::default();
    written(fresh(), [1, 3]).buffer.save(&mut round).expect("it is kept");
    for (envs, steps) in [(3, 4), (1, 4), (2, 2)] {
        let mut other = Bench::with(envs, steps, LearnerConfig::default());
        let refusal = other.buffer.restore(&round).expect_err("another shape").to_string();
        assert!(refusal.contains("rollout.rows"), "{refusal}");
    }
}
