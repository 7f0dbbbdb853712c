//! What an env costs: a batch of a step, a validation batch of all coalitions, a whole step, at 0 to 3 live seeds.
//!
//! Two settings: `digits` (8 envs of `digits_baseline`, batch 64) and `cifar_shaped` (4 envs, 32x32x3 images, blocks of
//! 8-16-32 channels, batch 512). All envs run on all cores; times are per env.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use simic_engine::internals::validation::ValPlan;
use simic_engine::prelude::*;

#[path = "support/grown.rs"]
mod grown;
#[path = "support/step.rs"]
mod step;

const DIGITS: &str = r#"(
    name: "bench", task: preset("digits_baseline"),
    run: (rounds: 1, n_envs: 8, max_steps: 100000), policy: (controller: "wait"),
)"#;
const CIFAR_SHAPED: &str = r#"(
    name: "bench",
    task: preset("synth_baseline", (
        batch_size: 512, batches_per_step: count(4), val_batch_size: 512, val_batches_per_step: count(2),
        data: synth_images((train: 2048, val: 1024, test: 512)),
    )),
    run: (rounds: 1, n_envs: 4, max_steps: 100000), policy: (controller: "wait"),
)"#;

#[derive(Clone, Copy)]
enum Part {
    Batches,
    Validation,
    Step,
}

/// Time that `iterations` steps spend in the part of a step that `part` names; in validation: what a worker would need for all
/// envs.
fn time_steps(app: &mut App, iterations: u64, part: Part) -> Duration {
    let world = app.world_mut();
    let mut spent = Duration::ZERO;
    for _ in 0..iterations {
        let began = Instant::now();
        let in_batches = step::step(world);
        spent += match part {
            Part::Validation => world.query::<&ValPlan>().iter(world).map(|plan| plan.elapsed).sum(),
            Part::Batches => in_batches,
            Part::Step => began.elapsed(),
        };
    }
    black_box(spent)
}

/// Times per env: of a batch for the parts of a step, of a step for the whole.
fn measure(criterion: &mut Criterion, setting: &str, text: &str, seeded: &[(&'static str, &[usize])]) {
    let mut group = criterion.benchmark_group(setting);
    group.sample_size(10);
    let cases = seeded
        .iter()
        .flat_map(|&(blueprint, counts)| counts.iter().map(move |&seeds| (blueprint, seeds)));
    for (blueprint, seeds) in cases {
        let engine = Engine::from_ron(text).expect("the scenario is valid");
        let mut engine = grown::begun(engine, blueprint, seeds);
        // Lets the allocator settle.
        time_steps(engine.app_mut(), 8, Part::Step);
        let envs = engine.world().resource::<Experiment>().envs.len() as u32;
        let (train, val) = engine.world().resource::<RunClock>().batches_per_step();
        for (name, part, batches) in [
            ("batch", Part::Batches, (train + val) as u32),
            ("val_batch", Part::Validation, val as u32),
            ("step", Part::Step, 1),
        ] {
            group.bench_function(format!("{name}/{blueprint}x{seeds}"), |bencher| {
                bencher.iter_custom(|iterations| time_steps(engine.app_mut(), iterations, part) / (envs * batches));
            });
        }
    }
}

fn digits(criterion: &mut Criterion) {
    let seeded: [(_, &[usize]); 3] = [("conv_light", &[0, 3]), ("conv_small", &[3]), ("attention", &[3])];
    measure(criterion, "digits", DIGITS, &seeded);
}

fn cifar_shaped(criterion: &mut Criterion) {
    let seeded: [(_, &[usize]); 2] = [("conv_light", &[0, 1, 3]), ("conv_small", &[3])];
    measure(criterion, "cifar_shaped", CIFAR_SHAPED, &seeded);
}

criterion_group!(benches, digits, cifar_shaped);
criterion_main!(benches);
