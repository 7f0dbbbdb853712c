//! Envs over several devices, and many of them: each comes to the same, on any device and any worker. Entries of the CPU
//! stand in for devices.

use simic_engine::internals::env::SeedOptimizers;
use simic_engine::prelude::*;

use crate::training_loop::support::{
    MINIMAL, Notes, advance, germinate, host_bits, noted, scenario, schedule, seed_bits,
};

/// State of an env after a step: bits of its losses and of the scale of its loss, weights of host and seeds.
#[derive(PartialEq)]
struct Reached {
    losses: [u64; 2],
    scale: Option<u64>,
    host: Vec<Vec<u32>>,
    seeds: Vec<Vec<Vec<u32>>>,
}

fn note(
    mut envs: Query<(&mut HostModel, &mut SeedOptimizers, &TrainMetrics, &ValMetrics)>,
    mut notes: ResMut<Notes<Vec<Reached>>>,
) {
    let reached = envs.iter_mut().map(|(mut host, mut optimizers, train, val)| Reached {
        losses: [train.loss, val.loss].map(f64::to_bits),
        scale: train.loss_scale.map(f64::to_bits),
        host: host_bits(&mut host),
        seeds: seed_bits(&mut optimizers),
    });
    notes.0.extend(reached);
}

/// Every env after every step. In each a seed grows that learns from the second step on and is blended in from the third;
/// `settings`: of the run, which begin with others of the scenario.
fn played(envs: usize, steps: u32, settings: &str, threads: usize) -> Vec<Reached> {
    let policy = schedule(&[
        (1, &germinate("r0c1", "conv_small")),
        (2, &advance("r0c1")),
        (3, &advance("r0c1")),
    ]);
    let text = scenario(MINIMAL, envs, steps, &policy).replace("run: (", settings);
    let engine = Engine::builder().threads(threads).from_ron(&text);
    let reached: Vec<Reached> = noted(engine.unwrap_or_else(|problems| panic!("{problems}")), note);
    assert_eq!(reached.len(), envs * steps as usize);
    let mut seeds = reached.iter().flat_map(|env| &env.seeds);
    assert!(seeds.any(|seed| !seed.is_empty()));
    reached
}

/// Data, feeds and scales of losses are those of an entry or of an env, and envs take turns.
#[test]
fn envs_on_the_cpu_listed_twice_come_to_what_they_come_to_on_it_listed_once() {
    for amp in ["off", "fp16"] {
        let on = |devices: &str| {
            let settings = format!("training: (amp: {amp}), run: (devices: [{devices}], ");
            played(4, 6, &settings, 2)
        };
        let (once, twice) = (on(r#""cpu""#), on(r#""cpu", "cpu""#));

        assert!(once.iter().all(|env| env.scale.is_some() == (amp == "fp16")), "{amp}");
        assert!(once == twice, "{amp}");
    }
}

/// With a seed that incubates, then is blended in, and statistics of gradients in the first batch of each step.
#[test]
fn batches_that_put_their_results_aside_for_a_graph_come_to_the_same() {
    let with = |graphs: bool| {
        let settings = format!("run: (cuda_graphs: {graphs}, ");
        played(2, 6, &settings, 2)
    };

    assert!(with(true) == with(false));
}

#[test]
#[ignore = "long tier"]
fn sixty_four_envs_come_to_the_same_on_one_worker_and_on_three() {
    let on = |threads: usize| played(64, 3, "run: (", threads);

    assert!(on(1) == on(3));
}
