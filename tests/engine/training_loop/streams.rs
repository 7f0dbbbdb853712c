//! Device work of an env lies in its stream's guard, and nothing waits between a step's start and its one sync.
//! A recorder notes it; on a CPU, where streams are no-ops, it stands in for the device.

use std::sync::LazyLock;

use bevy_platform::cell::SyncCell;
use simic_engine::internals::env::EnvStream;
use simic_engine::internals::torch::fixtures::test_device;
use simic_engine::internals::torch::{HostSyncCounter, Stream, StreamTrace, TraceEntry, TraceOperation};
use simic_engine::internals::training::EnvAccumulators;
use simic_engine::prelude::*;

use super::support::*;

const ENVS: usize = 3;
const STEPS: u32 = 20;

#[derive(Resource, Clone, Default)]
struct Recorder(StreamTrace);

/// Work of one step: until its sync, and from there to its end.
#[derive(Resource, Default)]
struct Steps {
    launched: Vec<Vec<TraceEntry>>,
    synced: Vec<Vec<TraceEntry>>,
    reads: Vec<u64>,
    /// Addresses of each env's accumulators and of its host's first parameter.
    tensors: Vec<[usize; 2]>,
}

fn install(mut envs: Query<(&EnvId, &mut EnvStream)>, mut syncs: ResMut<HostSyncCounter>, recorder: Res<Recorder>) {
    for (id, mut stream) in &mut envs {
        let traced = Stream::from_pool(test_device())
            .expect("a stream")
            .traced(id.index, recorder.0.clone());
        stream.0 = SyncCell::new(traced);
    }
    *syncs = HostSyncCounter::traced(recorder.0.clone());
}

fn forget(recorder: Res<Recorder>) {
    recorder.0.take();
}

fn note_launched(recorder: Res<Recorder>, mut steps: ResMut<Steps>) {
    steps.launched.push(recorder.0.take());
}

fn note_synced(
    mut envs: Query<(&EnvId, &mut EnvAccumulators, &mut HostModel)>,
    recorder: Res<Recorder>,
    syncs: Res<HostSyncCounter>,
    mut steps: ResMut<Steps>,
) {
    steps.synced.push(recorder.0.take());
    steps.reads.push(syncs.count());
    steps.tensors = vec![[0; 2]; ENVS];
    for (id, mut sums, mut host) in &mut envs {
        let parameter = &host.0.get().params().trainable()[0].tensor;
        steps.tensors[id.index] = [sums.0.get().pack(), parameter].map(|tensor| tensor.data_ptr().addr());
    }
}

/// The steps of a run in which a seed passes through every stage up to its commit.
static STEPS_OF_GROWTH: LazyLock<Steps> = LazyLock::new(|| {
    play(app(
        &scenario(MINIMAL, ENVS, STEPS, &grow_one_seed()),
        |app: &mut App| {
            app.init_resource::<Recorder>()
                .init_resource::<Steps>()
                .add_systems(Startup, install.after(Work::SpawnEnvs).before(Work::EquipTraining))
                .add_systems(Batches, forget.before(Work::FetchBatches))
                .add_systems(StepSync, note_launched.before(Work::EnqueueReads))
                .add_systems(StepEnd, note_synced.after(Work::EmitStep));
        },
    ))
});

fn count(entries: &[TraceEntry], operation: TraceOperation, env: Option<usize>) -> usize {
    let is_it = |entry: &&TraceEntry| entry.operation == operation && entry.env == env;
    entries.iter().filter(is_it).count()
}

#[test]
fn a_step_waits_once_for_each_env_and_reads_once_from_each() {
    let steps = &*STEPS_OF_GROWTH;

    assert_eq!(steps.launched.len(), STEPS as usize);
    for launched in &steps.launched {
        let waits = |entry: &TraceEntry| matches!(entry.operation, TraceOperation::Wait | TraceOperation::Read);
        assert!(!launched.iter().any(waits), "before the sync nothing waits");
    }
    for (step, synced) in (1..).zip(&steps.synced) {
        for env in 0..ENVS {
            let waits = count(synced, TraceOperation::Wait, Some(env));
            assert_eq!(waits, 1, "waits of step {step}");
        }
        // The last step also reads what each committed network does on the test part.
        let reads = if step == STEPS { 2 * ENVS } else { ENVS };
        assert_eq!(count(synced, TraceOperation::Read, None), reads, "reads of step {step}");
    }
    let reads = (1..STEPS).chain([STEPS + 1]);
    let reads = reads.map(|reads| u64::from(reads) * ENVS as u64);
    assert!(reads.eq(steps.reads.iter().copied()), "{:?}", steps.reads);
}

#[test]
fn an_env_s_tensors_are_written_inside_its_own_guard_alone() {
    let steps = &*STEPS_OF_GROWTH;

    for entries in steps.launched.iter().chain(&steps.synced) {
        let mut depth = [0_i32; ENVS];
        for entry in entries {
            let Some(env) = entry.env else { continue };
            match entry.operation {
                TraceOperation::EnterGuard => depth[env] += 1,
                TraceOperation::LeaveGuard => depth[env] -= 1,
                TraceOperation::Write => assert_eq!(depth[env], 1, "env {env} writes outside its guard"),
                _ => {}
            }
        }
        assert_eq!(depth, [0; ENVS]);
    }
    // Accumulators and parameters are written in every step, only by their env.
    for launched in &steps.launched {
        for (env, tensors) in steps.tensors.iter().enumerate() {
            for &tensor in tensors {
                let is_write =
                    |entry: &&TraceEntry| entry.operation == TraceOperation::Write && entry.tensor == Some(tensor);
                let mut writers = launched.iter().filter(is_write).map(|entry| entry.env).peekable();
                assert!(writers.peek().is_some() && writers.all(|writer| writer == Some(env)));
            }
        }
    }
}
