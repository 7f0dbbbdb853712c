//! Timing of repeated work.

use std::time::Duration;

/// Prints the middle one of eleven times of `work`, for one of its `parts`. Without `--bench`, which `cargo bench` adds, it is
/// done once, which shows that it works.
pub fn report(name: &str, parts: usize, mut work: impl FnMut() -> Duration) {
    let is_measured = std::env::args().any(|argument| argument == "--bench");
    let times = (0..if is_measured { 11 } else { 1 }).map(|_| work());
    let mut times: Vec<f64> = times.map(|time| time.as_secs_f64()).collect();
    times.sort_unstable_by(f64::total_cmp);
    println!("{name:<16}  {:>10.3} ms", 1e3 * times[times.len() / 2] / parts as f64);
}
