//! Cost of training data that do not lie on the device: the same batches from a copy there, from the memory of the machine, and
//! from files.
//!
//! CIFAR-shaped: 5000 images of 32x32x3 in a folder of CIFAR-10, batches of 512, cropped and mirrored; two envs. `fetch`
//! takes batch after batch of one env with nothing to do in between; `step` trains on each and validates, all envs on all cores,
//! time per env.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use simic_engine::internals::data::{Feed, Readers, Resident, StepKey};
use simic_engine::internals::env::LoadedData;
use simic_engine::internals::random::{Domain, Draw, RunRng};
use simic_engine::internals::scenario::Residency;
use simic_engine::internals::torch::Backend;
use simic_engine::prelude::*;

#[path = "support/grown.rs"]
mod grown;
#[path = "support/timed.rs"]
mod timed;

/// Steps that are timed as one: a feed looks ahead within them.
const STEPS: u64 = 4;
const RESIDENCIES: [Residency; 3] = [Residency::Device, Residency::Host, Residency::Stream];

/// Six files of 1000 records of noise.
fn write_set(folder: &Path) {
    let mut rng = RunRng::new(7, Domain::ProceduralImage, &[]);
    let batches = (1..=5).map(|batch| format!("data_batch_{batch}.bin"));
    for name in batches.chain(["test_batch.bin".into()]) {
        let mut records = Vec::with_capacity(1000 * 3073);
        for record in 0..1000_u32 {
            records.push((record % 10) as u8);
            records.extend((0..384).flat_map(|_| rng.next_u64().to_le_bytes()));
        }
        fs::write(folder.join(name), records).expect("the folder can be written");
    }
}

fn scenario(folder: &Path, residency: Residency) -> String {
    let residency = residency.name();
    format!(
        r#"(
            name: "bench",
            task: preset("cifar_baseline", (
                data: cifar10(path: {folder:?}), batch_size: 512, batches_per_step: count(8),
                val_batch_size: 250, val_batches_per_step: count(1),
            )),
            data: (residency: {residency}),
            run: (rounds: 1, n_envs: 2, max_steps: 100000), policy: (controller: "wait"),
        )"#
    )
}

/// A feed of the kind that the engine gives its envs.
fn feed(engine: &Engine, residency: Residency) -> (Feed, usize) {
    let experiment = engine.world().resource::<Experiment>();
    let data = engine.world().resource::<LoadedData>();
    let readers = Readers::new(experiment.scenario.data).expect("threads can be started");
    let readers = (residency != Residency::Device).then_some(&readers);
    let resident =
        Resident::upload(&data.set, experiment.task.augment, Backend::CPU, readers).expect("there is memory");
    let feed = Feed::new(&resident, data.feed, 0).expect("there is memory");
    (feed, data.feed.batches)
}

/// Time of `steps` steps of batches.
fn fetch_all(feed: &mut Feed, batches: usize, steps: u64) -> Duration {
    let began = Instant::now();
    for step in 1..=steps {
        let (seed, round) = (42, 0);
        let key = |step| StepKey { seed, round, step };
        let upcoming = (step < steps).then_some(key(step + 1));
        feed.begin_step(key(step), upcoming).expect("it is planned");
        for batch in 0..batches {
            black_box(feed.fetch(batch).expect("it is there"));
        }
    }
    began.elapsed()
}

/// Training and validation of `steps` steps.
fn train(engine: &mut Engine, steps: u64) -> Duration {
    let world = engine.world_mut();
    let mut spent = Duration::ZERO;
    for _ in 0..steps {
        world.resource_mut::<RunClock>().next_step();
        let began = Instant::now();
        world.run_schedule(StepStart);
        world.run_schedule(Batches);
        spent += began.elapsed();
    }
    spent
}

fn main() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    write_set(folder.path());
    for residency in RESIDENCIES {
        let engine = Engine::from_ron(&scenario(folder.path(), residency)).expect("the scenario is valid");
        let mut engine = grown::begun(engine, "", 0);
        let (mut feed, batches) = feed(&engine, residency);
        // Lets the allocator settle.
        fetch_all(&mut feed, batches, 1);
        train(&mut engine, 1);
        let [fetch, step] = ["fetch", "step"].map(|part| format!("{part}/{}", residency.name()));
        timed::report(&fetch, STEPS as usize * batches, || {
            fetch_all(&mut feed, batches, STEPS)
        });
        let envs = engine.world().resource::<Experiment>().envs.len();
        timed::report(&step, STEPS as usize * batches * envs, || train(&mut engine, STEPS));
    }
}
