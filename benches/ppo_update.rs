//! What a policy update costs: alone, per transition, and as a share of the round that it learns from.
//!
//! Plays the quickstart (8 envs, 60 steps, the small recurrent policy) and times its rounds as a plugin does: a system
//! before the update, one after it, one at either end of the round. Update and round come from the same run, so their
//! ratio holds on any machine. `--rounds N` plays more than 5. Without `--bench`, which `cargo bench` adds, a few steps show
//! that it works.

use std::time::{Duration, Instant};

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use simic_engine::internals::learner::{LastUpdate, PolicyLearner};
use simic_engine::prelude::*;

const QUICKSTART: &str = include_str!("../scenarios/quickstart.ron");

#[derive(Clone)]
struct StopwatchPlugin;

impl Plugin for StopwatchPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<Stopwatch>()
            .add_systems(
                RoundStart,
                begin_round.in_set(EngineSet::Reset).before(Work::BeginRound),
            )
            .add_systems(
                RoundEnd,
                (
                    begin_update.in_set(EngineSet::PpoUpdate).before(Work::UpdatePolicy),
                    end_round.in_set(EngineSet::PpoUpdate).after(Work::UpdatePolicy),
                ),
            );
    }
}

/// When the round and its update began, and how long those of earlier rounds took.
#[derive(Resource, Default)]
struct Stopwatch {
    round_began: Option<Instant>,
    update_began: Option<Instant>,
    laps: Vec<Lap>,
}

struct Lap {
    round: Duration,
    update: Duration,
    gradient_steps: u32,
}

fn begin_round(mut watch: ResMut<Stopwatch>) {
    watch.round_began = Some(Instant::now());
}

fn begin_update(mut watch: ResMut<Stopwatch>) {
    watch.update_began = Some(Instant::now());
}

/// The round's end: what follows an update are a few records.
fn end_round(mut watch: ResMut<Stopwatch>, update: Res<LastUpdate>) {
    if let (Some(round), Some(began), Some(update)) = (watch.round_began, watch.update_began, &update.0) {
        watch.laps.push(Lap {
            round: round.elapsed(),
            update: began.elapsed(),
            gradient_steps: update.steps_taken,
        });
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let rounds = match arguments.iter().position(|argument| argument == "--rounds") {
        Some(at) => arguments.get(at + 1).ok_or("--rounds needs a number")?.parse::<u32>()?,
        None => 5,
    };
    let settings = if arguments.iter().any(|argument| argument == "--bench") {
        Engine::builder().set("run.rounds", rounds)
    } else {
        Engine::builder().set("run.rounds", 1).set("run.max_steps", 2)
    };
    let mut engine = settings.with(StopwatchPlugin).from_ron(QUICKSTART)?;
    engine.run()?;

    let world = engine.world_mut();
    let transitions = {
        let mut learner = world.resource_mut::<PolicyLearner>();
        let shape = learner.buffer.get().shape();
        shape.envs * shape.steps
    };
    report(&world.resource::<Stopwatch>().laps, transitions);
    Ok(())
}

fn report(laps: &[Lap], transitions: usize) {
    println!(
        "{:>5}  {:>9}  {:>9}  {:>8}  {:>14}  {:>14}",
        "round", "round s", "update ms", "share %", "gradient steps", "us/transition"
    );
    for (round, lap) in laps.iter().enumerate() {
        print_line(&(round + 1).to_string(), lap, transitions);
    }
    let median = |of: fn(&Lap) -> Duration| {
        let mut times: Vec<Duration> = laps.iter().map(of).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    };
    let median = Lap {
        round: median(|lap| lap.round),
        update: median(|lap| lap.update),
        gradient_steps: laps.iter().map(|lap| lap.gradient_steps).max().unwrap_or_default(),
    };
    print_line("mid", &median, transitions);
}

fn print_line(name: &str, lap: &Lap, transitions: usize) {
    let (round, update) = (lap.round.as_secs_f64(), lap.update.as_secs_f64());
    println!(
        "{name:>5}  {round:>9.2}  {:>9.1}  {:>8.2}  {:>14}  {:>14.1}",
        1e3 * update,
        100.0 * update / round,
        lap.gradient_steps,
        1e6 * update / transitions as f64,
    );
}
