//! Worlds from numbers: whatever a scenario may ask for and whatever may interrupt a run, drawn at random and played twice.
//!
//! `cargo run --release --example world -- --seed 7` plays world 7; `--worlds 100` those from there on; `--minutes 30` as many
//! as fit. `--soak 2000` plays until so many episodes are over, those worlds over and over that the first tenth of them came
//! from, and fails if memory grows behind it: worlds of other sizes would need other memory.

mod worlds;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use worlds::{Sights, World};

/// Growth of the process that the rest of a soak may come with.
const GROWTH_PERCENT: f64 = 5.0;

#[derive(Parser)]
struct Options {
    /// Number of the first world.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many are played, one after the other.
    #[arg(long, default_value_t = 1)]
    worlds: u64,
    /// Plays for so long instead.
    #[arg(long)]
    minutes: Option<f64>,
    /// Plays until so many episodes of single envs are over instead, and watches the memory.
    #[arg(long, conflicts_with = "minutes")]
    soak: Option<usize>,
}

/// What was played so far.
#[derive(Default)]
struct Tally {
    worlds: u64,
    seen: Sights,
    faults: usize,
    failures: Vec<u64>,
    settled: Option<Settled>,
}

/// A soak after its first tenth.
#[derive(Clone, Copy)]
struct Settled {
    worlds: u64,
    /// MiB of the process.
    memory: f64,
}

impl Options {
    fn goes_on(&self, tally: &Tally, begun: Instant) -> bool {
        match (self.minutes, self.soak) {
            (Some(minutes), _) => begun.elapsed() < Duration::from_secs_f64(minutes * 60.0),
            (None, Some(episodes)) => tally.seen.episodes() < episodes,
            (None, None) => tally.worlds < self.worlds,
        }
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    simic_engine::internals::torch::keep_freed_blocks();
    let begun = Instant::now();
    let mut tally = Tally::default();
    while options.goes_on(&tally, begun) {
        let which = tally
            .settled
            .map_or(tally.worlds, |settled| tally.worlds % settled.worlds);
        let world = World::of(options.seed + which);
        tally.worlds += 1;
        match world.play() {
            Ok(story) => {
                println!("{story}");
                tally.seen += story.seen;
                tally.faults += story.faults;
            }
            Err(failure) => {
                println!("{failure}");
                tally.failures.push(world.seed);
            }
        }
        if options
            .soak
            .is_some_and(|episodes| tally.seen.episodes() * 10 >= episodes)
        {
            tally.settled.get_or_insert_with(|| Settled {
                worlds: tally.worlds,
                memory: resident_mib(),
            });
        }
    }
    println!(
        "{} worlds, {} faults; {}; failed: {:?}",
        tally.worlds, tally.faults, tally.seen, tally.failures
    );
    println!("never seen: {:?}", tally.seen.missing());
    let has_grown = tally.settled.is_some_and(has_grown_from);
    if has_grown || !tally.failures.is_empty() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn has_grown_from(settled: Settled) -> bool {
    let settled = settled.memory;
    let now = resident_mib();
    let growth = (now / settled - 1.0) * 100.0;
    println!("memory: {settled:.1} MiB after the first tenth, {now:.1} MiB at the end, {growth:+.1} %");
    growth > GROWTH_PERCENT
}

/// Memory of this process; NaN where the system does not tell.
fn resident_mib() -> f64 {
    const PAGE_BYTES: f64 = 4096.0;
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<f64>().ok());
    pages.map_or(f64::NAN, |pages| pages * PAGE_BYTES / f64::from(1 << 20))
}
