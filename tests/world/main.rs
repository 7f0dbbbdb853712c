//! *Worlds*, scenarios and interruptions drawn from a number: a run comes to the same end however it is interrupted.
//!
//! A handful is played with all other tests. More of them, by number:
//!
//! ```text
//! export SIMIC_ENGINE_TEST_WORLD=7          # the first world; 0 if left out
//! export SIMIC_ENGINE_TEST_WORLDS=100       # those from there on; 1 if left out
//! export SIMIC_ENGINE_TEST_MINUTES=30       # as many as fit, instead
//! cargo test --release --test engine -- --ignored --nocapture worlds_by_number
//! SIMIC_ENGINE_TEST_EPISODES=2000 cargo test --release --test engine -- --ignored --nocapture a_soak
//! ```

mod worlds;

use std::str::FromStr;
use std::time::{Duration, Instant};

use worlds::{Sights, Story, World};

/// Enough of them for everything that worlds are about to come by.
#[test]
fn drawn_worlds_come_to_the_same_end_however_they_are_interrupted() {
    let mut seen = Sights::default();
    let mut faults = 0;
    for seed in 0..26 {
        let story = World::of(seed).play().unwrap_or_else(|failure| panic!("{failure}"));
        println!("{story}");
        seen += story.seen;
        faults += story.faults;
    }
    assert!(seen.missing().is_empty(), "{seen}");
    assert!(faults >= 10 && seen.episodes() >= 40, "{faults} faults; {seen}");
}

#[test]
fn worlds_that_have_failed_once_come_to_the_same_end() {
    let once = [
        (
            500_037,
            "what a failing step had reported was lost where no checkpoint followed",
        ),
        (
            500_195,
            "steps of an earlier rollout were kept with those of the present one",
        ),
        (
            500_490,
            "a round that had restarted with more parts ran out of memory again once resumed",
        ),
        (
            501_485,
            "a checkpoint says for what it was written, which is another thing where a run was stopped",
        ),
        (501_693, "the storage of an earlier snapshot was kept as if it were one"),
        (
            601_332,
            "that an error had kept the best checkpoint from the disk, so that another is, was taken for a difference",
        ),
    ];
    for (seed, what) in once {
        let story = World::of(seed)
            .play()
            .unwrap_or_else(|failure| panic!("{what}: {failure}"));
        println!("{story}");
    }
}

/// A number that the environment gives.
fn given<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}, which is no number")),
    )
}

/// What was played so far.
#[derive(Default)]
struct Tally {
    worlds: u64,
    seen: Sights,
    faults: usize,
    failures: Vec<u64>,
}

impl Tally {
    fn play(&mut self, seed: u64) {
        self.worlds += 1;
        match World::of(seed).play() {
            Ok(story) => self.add(&story),
            Err(failure) => {
                println!("{failure}");
                self.failures.push(seed);
            }
        }
    }

    fn add(&mut self, story: &Story) {
        println!("{story}");
        self.seen += story.seen;
        self.faults += story.faults;
    }

    /// No world failed.
    fn judge(&self) {
        println!("{} worlds, {} faults; {}", self.worlds, self.faults, self.seen);
        println!("never seen: {:?}", self.seen.missing());
        assert!(self.failures.is_empty(), "failed: {:?}", self.failures);
    }
}

#[test]
#[ignore = "plays as many as the environment asks for"]
fn worlds_by_number_come_to_the_same_end() {
    let first: u64 = given("SIMIC_ENGINE_TEST_WORLD").unwrap_or(0);
    let count: u64 = given("SIMIC_ENGINE_TEST_WORLDS").unwrap_or(1);
    let minutes: Option<f64> = given("SIMIC_ENGINE_TEST_MINUTES");
    let begun = Instant::now();
    let mut tally = Tally::default();
    while match minutes {
        Some(minutes) => begun.elapsed() < Duration::from_secs_f64(minutes * 60.0),
        None => tally.worlds < count,
    } {
        tally.play(first + tally.worlds);
    }
    tally.judge();
}

/// The worlds of the first tenth are played again and again: others would need other memory.
#[test]
#[ignore = "takes minutes, and must have the process for itself"]
fn a_soak_takes_no_more_memory_at_its_end() {
    /// Growth of the process that the rest of a soak may come with.
    const GROWTH_PERCENT: f64 = 5.0;
    let first: u64 = given("SIMIC_ENGINE_TEST_WORLD").unwrap_or(0);
    let episodes: usize = given("SIMIC_ENGINE_TEST_EPISODES").unwrap_or(2000);
    simic_engine::internals::torch::keep_freed_blocks();
    let mut tally = Tally::default();
    while tally.seen.episodes() * 10 < episodes {
        tally.play(first + tally.worlds);
    }
    let (worlds, settled) = (tally.worlds, resident_mib());
    while tally.seen.episodes() < episodes {
        tally.play(first + tally.worlds % worlds);
    }
    let now = resident_mib();
    let growth = (now / settled - 1.0) * 100.0;
    println!("memory: {settled:.1} MiB after the first tenth, {now:.1} MiB at the end, {growth:+.1} %");
    tally.judge();
    assert!(growth <= GROWTH_PERCENT, "{growth:+.1} %");
}

/// Memory of this process.
fn resident_mib() -> f64 {
    const PAGE_BYTES: f64 = 4096.0;
    let pages = std::fs::read_to_string("/proc/self/statm").expect("a soak needs Linux");
    let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok());
    pages.expect("the second number is resident pages") * PAGE_BYTES / f64::from(1 << 20)
}
