//! Runs a target until its time is up, and holds its readers to what they promise.

use std::convert::Infallible;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseResult, TestRunner};
use simic_engine::internals::scenario::{DataSource, Normalise, TaskSpec};

use crate::recorded::{CATALOG, load};

/// Seconds that each target runs on fresh random values.
const VARIABLE: &str = "SIMIC_ENGINE_FUZZ_SECONDS";
/// The longest time that each target runs if the variable isn't set, on the same values every time.
const SHORT: Duration = Duration::from_millis(400);
/// Between two looks at the clock.
const CASES: u32 = 8;
const LONGEST_SHRINKING: Duration = Duration::from_secs(60);
/// Longer than any reader of such small files takes, however busy the machine is.
const HANGS_AFTER: Duration = Duration::from_secs(120);
/// Memory that a reader may take in addition to its file: buffers, decoders' tables, messages, a count for each of 65 536 classes.
const ROOM: usize = 32 << 20;
/// And for each byte of it: trees of small values, pixels that were packed.
const ROOM_PER_BYTE: usize = 1 << 10;

static TASK: LazyLock<TaskSpec> = LazyLock::new(|| {
    let defaults = load("defaults", "()", &[], &CATALOG);
    defaults.expect("the defaults are sound").task
});

/// The default task on other data.
pub fn task(classes: i64, data: DataSource) -> TaskSpec {
    TaskSpec {
        classes,
        data,
        normalise: Normalise::None,
        ..TASK.clone()
    }
}

/// Checks one drawn value after the other until the time is up: an error found here must be found again.
pub fn fuzz<S: Strategy>(drawn: S, check: impl Fn(S::Value) -> TestCaseResult)
where
    S::Value: Debug,
{
    let asked = std::env::var(VARIABLE).ok();
    let asked = asked.map(|text| Duration::from_secs(text.parse().expect("a number of seconds")));
    let until = Instant::now() + asked.unwrap_or(SHORT);
    let config = |pass| ProptestConfig {
        cases: CASES,
        rng_seed: asked.map_or(RngSeed::Fixed(pass), |_| RngSeed::Random),
        failure_persistence: None,
        max_shrink_iters: u32::MAX,
        max_shrink_time: LONGEST_SHRINKING.as_millis() as u32,
        ..ProptestConfig::default()
    };
    for pass in 0.. {
        if Instant::now() >= until {
            break;
        }
        let found = TestRunner::new(config(pass)).run(&drawn, |value| {
            let _watched = watch(format!("{value:?}"));
            check(value)
        });
        if let Err(failure) = found {
            panic!("{failure}");
        }
    }
}

/// Ends the process unless what it returns is dropped in time: a reader that hangs cannot be stopped otherwise.
fn watch(input: String) -> Sender<Infallible> {
    let (alive, ended) = channel();
    std::thread::spawn(move || {
        if ended.recv_timeout(HANGS_AFTER) == Err(RecvTimeoutError::Timeout) {
            eprintln!("a reader hangs on {input}");
            std::process::abort();
        }
    });
    alive
}

/// Result of `read` on files of `bytes` bytes together. Memory is counted on this thread, where readers allocate.
pub fn in_bounds<T>(bytes: usize, read: impl FnOnce() -> T) -> Result<T, TestCaseError> {
    let mut outcome = None;
    // A panic must not pass through the measurement, which would never end.
    let used = allocation_counter::measure(|| outcome = Some(catch_unwind(AssertUnwindSafe(read))));
    let value = match outcome.expect("it was measured") {
        Ok(value) => value,
        Err(panic) => resume_unwind(panic),
    };
    let (used, limit) = (used.bytes_max, ROOM + ROOM_PER_BYTE * bytes);
    prop_assert!(used <= limit as u64, "{used} bytes of memory for a file of {bytes}");
    Ok(value)
}

/// An error says which file it is about.
pub fn names(error: &impl ToString, file: &Path) -> TestCaseResult {
    let message = error.to_string();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    prop_assert!(message.contains(&*name), "{name} is not named: {message}");
    Ok(())
}
