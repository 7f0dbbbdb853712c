//! The learner on its own, without hosts: two tasks with known optima, five seeds, and what happens without its parts.
//!
//! Run it with `cargo run --release --example learner_tasks`.

mod policy;
mod tasks;
mod training;

use std::num::NonZeroU16;

use policy::Core;
use simic_engine::extend::{LearnerConfig, TorchError, set_intra_op_threads};
use tasks::{BanditTask, CueTask};
use training::{final_score, small_config};

const SEEDS: u64 = 5;

fn main() -> Result<(), TorchError> {
    set_intra_op_threads(NonZeroU16::MIN)?;
    println!("mean score of the last 20 updates, 1 = optimal, .5 = guessing a cue; {SEEDS} seeds\n");
    println!("{:<36} {:>7} {:>7} {:>7}  seeds", "", "updates", "median", "worst");
    let one_epoch = LearnerConfig {
        epochs: 1,
        ..small_config()
    };
    let without_gae = LearnerConfig {
        gae_lambda: 0.0,
        ..small_config()
    };

    let cue = || CueTask::new(32);
    let (lstm, full) = (Core::Lstm, small_config);
    show("cue and recall", 150, |n, seed| {
        final_score(cue(), lstm, full(), n, seed)
    });
    show("  without memory", 150, |n, seed| {
        final_score(cue(), Core::FeedForward, full(), n, seed)
    });
    show("cue and recall, in a hurry", 40, |n, seed| {
        final_score(cue(), lstm, full(), n, seed)
    });
    show("  one epoch", 40, |n, seed| {
        final_score(cue(), lstm, one_epoch.clone(), n, seed)
    });
    show("cue and recall, paid at the end", 80, |n, seed| {
        final_score(cue().paying_late(), lstm, full(), n, seed)
    });
    show("  no GAE (lambda 0)", 80, |n, seed| {
        final_score(cue().paying_late(), lstm, without_gae.clone(), n, seed)
    });
    show("cue and recall, rewards of 100", 80, |n, seed| {
        final_score(cue().paying(100.0), lstm, full(), n, seed)
    });
    let bandit = |n, seed| final_score(BanditTask::new(256), Core::FeedForward, full(), n, seed);
    show("masked factored bandit", 150, bandit);
    Ok(())
}

/// `score` takes the number of updates and the seed.
fn show(name: &str, updates: u64, score: impl Fn(u64, u64) -> f64) {
    let mut scores: Vec<f64> = (0..SEEDS).map(|seed| score(updates, seed)).collect();
    let seeds: Vec<String> = scores.iter().map(|score| format!("{score:.3}")).collect();
    scores.sort_by(f64::total_cmp);
    println!(
        "{name:<36} {updates:>7} {:>7.3} {:>7.3}  {}",
        scores[scores.len() / 2],
        scores[0],
        seeds.join(" ")
    );
}
