//! Cost of a policy update, algorithm by algorithm: alone, per transition, and as a share of the round that it learns from.
//!
//! Plays the quickstart (8 envs, 60 steps, the small recurrent policy), or learns from its recordings, and times the rounds as a plugin
//! does: a system before the update, one after it, one at either end of the round. All rows come from one process, so their
//! ratios hold on any machine. `--rounds N` plays more than 5. Without `--bench`, which `cargo bench` adds, a few steps show
//! that it works.

use std::time::{Duration, Instant};

use simic_engine::internals::learner::LastUpdate;
use simic_engine::prelude::*;

const QUICKSTART: &str = include_str!("../scenarios/quickstart.ron");

fn time_rounds(app: &mut App) {
    let begin_round = begin_round.in_set(EngineSet::Reset).before(Work::BeginRound);
    let begin_update = begin_update.in_set(EngineSet::PpoUpdate).before(Work::UpdatePolicy);
    let end_round = end_round.in_set(EngineSet::PpoUpdate).after(Work::UpdatePolicy);
    app.init_resource::<Stopwatch>();
    app.add_systems(RoundStart, begin_round);
    app.add_systems(RoundEnd, (begin_update, end_round));
}

/// The start of the round and of its update, and the times that those of earlier rounds took.
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
    /// Transitions that it learnt from.
    transitions: u64,
}

fn begin_round(mut watch: ResMut<Stopwatch>) {
    watch.round_began = Some(Instant::now());
}

fn begin_update(mut watch: ResMut<Stopwatch>) {
    watch.update_began = Some(Instant::now());
}

/// The round's end: only a few records follow an update.
fn end_round(mut watch: ResMut<Stopwatch>, update: Res<LastUpdate>) {
    if let (Some(round), Some(began), Some(update)) = (watch.round_began, watch.update_began, &update.0) {
        watch.laps.push(Lap {
            round: round.elapsed(),
            update: began.elapsed(),
            gradient_steps: update.steps_taken,
            transitions: update.data.map_or(0, |data| data.steps_valid),
        });
    }
}

/// Rows to time: a name, and its changes to the quickstart.
const ROWS: [(&str, &[(&str, &str)]); 6] = [
    ("ppo", &[]),
    ("ppo, libtorch", &[("run.kernels", "libtorch")]),
    ("ppo, window", &[("policy.net", "window")]),
    ("impala, 4 rollouts", &[("learner.algorithm", "impala((rollouts: 4))")]),
    ("clone", &[("learner.algorithm", "clone(())")]),
    ("impala, recorded", &[("learner.algorithm", "impala(())")]),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let rounds = match arguments.iter().position(|argument| argument == "--rounds") {
        Some(at) => arguments.get(at + 1).ok_or("--rounds needs a number")?.parse::<u32>()?,
        None => 5,
    };
    let (rounds, steps) = match arguments.iter().any(|argument| argument == "--bench") {
        true => (rounds, 60),
        false => (1, 2),
    };
    let folder = tempfile::tempdir()?;
    let settings = || {
        let settings = Engine::builder().set("run.rounds", rounds).set("run.max_steps", steps);
        settings.with(time_rounds)
    };
    let recording = settings().set("run.trajectories", true).recorded(folder.path());
    let mut recording = recording.from_ron(QUICKSTART)?;
    recording.run()?;
    let recorded = std::fs::read_to_string(folder.path().join("latest"))?;
    let recorded = folder.path().join(recorded.trim());

    println!(
        "{:<18}  {:>9}  {:>9}  {:>8}  {:>14}  {:>14}",
        "", "round s", "update ms", "share %", "gradient steps", "us/transition"
    );
    for (name, changes) in ROWS {
        let mut settings = settings();
        for (path, value) in changes {
            settings = settings.set(path, value);
        }
        if ["clone", "impala, recorded"].contains(&name) {
            let sets = format!("[{:?}]", recorded.to_string_lossy());
            settings = settings.set("learner.recordings.sets", sets);
        }
        let mut engine = settings.from_ron(QUICKSTART)?;
        engine.run()?;
        report(name, &engine.world().resource::<Stopwatch>().laps);
    }
    Ok(())
}

/// The middle one of a row's rounds.
fn report(name: &str, laps: &[Lap]) {
    let middle = |of: fn(&Lap) -> f64| {
        let mut values: Vec<f64> = laps.iter().map(of).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let round = middle(|lap| lap.round.as_secs_f64());
    let update = middle(|lap| lap.update.as_secs_f64());
    println!(
        "{name:<18}  {round:>9.2}  {:>9.1}  {:>8.2}  {:>14.0}  {:>14.1}",
        1e3 * update,
        100.0 * update / round,
        middle(|lap| lap.gradient_steps.into()),
        middle(|lap| 1e6 * lap.update.as_secs_f64() / lap.transitions as f64),
    );
}
