use std::collections::BTreeSet;

use super::*;
use crate::health::Position;
use DeviceSpec::{Cpu, Cuda};

#[test]
fn of_several_failures_that_of_the_earliest_batch_counts_then_that_of_the_first_env() {
    let pool = EnvPool::new(2, OnEnvError::AbortRun, (&[0, 1, 2], &[Cpu])).expect("two workers");
    let envs = [0, 1, 2].map(|index| (EnvId { index }, ()));
    let broken = || Err::<(), _>(Failure::message("it broke"));

    let outcome = pool.for_each(envs, |id, ()| match id.index {
        0 => in_batch("validation", 3, broken),
        1 => in_batch("optimize", 2, broken),
        _ => in_batch("train", 2, broken),
    });

    let error = outcome.expect_err("all fail").during("step", Position::default());
    assert_eq!(error.to_string(), "optimize failed at batch 3, env 1: it broke");
}

/// The worker of each env on CUDA, in their order.
fn workers(envs: usize, devices: &[DeviceSpec], workers: usize) -> Vec<(usize, usize)> {
    let envs: Vec<usize> = (0..envs).collect();
    workers_on_cuda(&envs, devices, workers).into_iter().collect()
}

#[test]
fn envs_on_cuda_are_dealt_out_to_the_workers_and_those_on_a_cpu_are_not() {
    assert!(workers(4, &[Cpu, Cpu], 2).is_empty());
    assert_eq!(workers(5, &[Cuda(0)], 2), [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0)]);
    assert_eq!(workers(6, &[Cpu, Cuda(0)], 2), [(1, 0), (3, 1), (5, 0)]);
    assert_eq!(workers(4, &[Cuda(0), Cuda(1)], 2), [(0, 0), (1, 1), (2, 0), (3, 1)]);
    // Those of an evaluation, wherever they are in the run.
    assert_eq!(
        workers_on_cuda(&[2, 6], &[Cuda(0)], 2),
        BTreeMap::from([(2, 0), (6, 1)])
    );
}

/// A device has 32 streams, assigned in rotation. The 33rd env shares that of the first.
#[test]
fn envs_that_share_a_stream_share_a_worker() {
    let one = workers(34, &[Cuda(0)], 12);
    assert_eq!([one[31], one[32], one[33]], [(31, 7), (32, 0), (33, 1)]);

    let two = workers(66, &[Cuda(0), Cuda(1)], 12);
    assert_eq!([two[63], two[64], two[65]], [(63, 3), (64, 0), (65, 1)]);
}

#[test]
fn an_env_on_cuda_is_played_by_its_own_worker_every_time() {
    let pool = EnvPool::new(3, OnEnvError::AbortRun, (&[0, 1, 2, 3, 4, 5], &[Cpu, Cuda(0)])).expect("three workers");
    let played = Mutex::new(BTreeMap::<usize, BTreeSet<Option<usize>>>::new());
    for _ in 0..50 {
        let envs = [0, 1, 2, 3, 4, 5].map(|index| (EnvId { index }, ()));
        let note = |id: &EnvId, ()| {
            let mut played = lock(&played);
            played
                .entry(id.index)
                .or_default()
                .insert(rayon::current_thread_index());
            Ok(())
        };
        pool.for_each(envs, note).expect("nothing fails");
    }

    let played = lock(&played);
    assert_eq!(played.len(), 6);
    for (env, worker) in [(1, 0), (3, 1), (5, 2)] {
        assert_eq!(played[&env], BTreeSet::from([Some(worker)]), "env {env}");
    }
}
