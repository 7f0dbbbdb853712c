//! Rollouts in checkpoints inside a round.

use super::bench::{Bench, TRUNCATED};
use crate::unfinished::UnfinishedRound;

/// A buffer after `steps` of each env have been written.
fn written(mut bench: Bench, steps: [usize; 2]) -> Bench {
    for (env, count) in steps.into_iter().enumerate() {
        for _ in 0..count {
            bench.step(env, 1.0, 0.25);
        }
    }
    bench
}

fn fresh() -> Bench {
    Bench::new(2, 4)
}

fn kept(bench: &Bench) -> UnfinishedRound {
    let mut round = UnfinishedRound::default();
    bench.buffer.save(&mut round).expect("it is kept");
    round
}

/// Both files of the unfinished round.
fn files(round: &UnfinishedRound) -> [Vec<u8>; 2] {
    let folder = tempfile::tempdir().expect("a temporary folder");
    round.write(folder.path()).expect("it is written");
    ["round.txt", "round.safetensors"].map(|name| std::fs::read(folder.path().join(name)).expect("a file"))
}

#[test]
fn a_rollout_is_kept_without_what_is_left_of_the_one_before() {
    let mut used = written(fresh(), [4, 3]);
    (0..2).for_each(|env| used.end(env, TRUNCATED));
    used.buffer.clear().expect("no step is pending");

    let [used, unused] = [used, fresh()].map(|bench| files(&kept(&written(bench, [1, 3]))));
    assert!(used == unused);
}

#[test]
fn a_rollout_that_was_kept_continues_as_if_it_had_not_been_interrupted() {
    let bench = written(fresh(), [1, 3]);
    let round = kept(&bench);

    // A rollout that will be overwritten.
    let mut other = written(fresh(), [4, 4]);
    other.buffer.restore(&round).expect("a buffer of the same shape");

    assert!(files(&kept(&other)) == files(&round));
    let [one, two] = [bench, other].map(|bench| {
        let mut bench = written(bench, [1, 1]);
        (0..2).for_each(|env| bench.end(env, TRUNCATED));
        bench.rollout().batch.advantages
    });
    assert!(one.equal(&two));
}

#[test]
fn a_rollout_of_another_shape_is_refused() {
    let round = kept(&written(fresh(), [1, 3]));
    for (envs, steps) in [(3, 4), (1, 4), (2, 2)] {
        let mut other = Bench::new(envs, steps);
        let refusal = other.buffer.restore(&round).expect_err("another shape").to_string();
        assert!(refusal.contains("rollout.rows"), "{refusal}");
    }
}
