//! The learner on its own, without hosts: two tasks with known optima, five seeds, and what happens without its parts.
//!
//! Run it with `cargo run --release --example learner_tasks`.

mod policy;
mod tasks;
mod training;

use std::num::NonZeroU16;

use policy::Core;
use simic_engine::scenario::{LearnerConfig, RewardNormMode, ValueNormMode};
use simic_engine::torch::{TorchError, set_intra_op_threads};
use tasks::{BanditTask, CueTask};
use training::{final_score, small_config};

const SEEDS: u64 = 5;
const UPDATES: u64 = 150;

fn main() -> Result<(), TorchError> {
    set_intra_op_threads(NonZeroU16::MIN)?;
    println!("score of the last 20 of {UPDATES} updates, 1 = optimal; {SEEDS} seeds\n");
    println!("{:<34} {:>7} {:>7}  seeds", "", "median", "worst");
    let without_gae = LearnerConfig {
        gae_lambda: 0.0,
        ..small_config()
    };
    let mut without_normalisers = small_config();
    without_normalisers.reward_norm.mode = RewardNormMode::Off;
    without_normalisers.value_norm.mode = ValueNormMode::Off;
    let one_epoch = LearnerConfig {
        epochs: 1,
        ..small_config()
    };
    let cue = |name: &str, core, config: LearnerConfig| {
        show(name, |seed| {
            final_score(CueTask::new(32), core, config.clone(), UPDATES, seed)
        });
    };
    cue("cue and recall, LSTM", Core::Lstm, small_config());
    cue("  without memory", Core::FeedForward, small_config());
    cue("  one epoch", Core::Lstm, one_epoch.clone());
    cue("  no GAE (lambda 0)", Core::Lstm, without_gae.clone());
    cue("  no normalisers", Core::Lstm, without_normalisers.clone());
    let bandit = |name: &str, config: LearnerConfig| {
        show(name, |seed| {
            final_score(BanditTask::new(256), Core::FeedForward, config.clone(), UPDATES, seed)
        });
    };
    bandit("masked factored bandit", small_config());
    bandit("  one epoch", one_epoch);
    bandit("  no normalisers", without_normalisers);
    Ok(())
}

fn show(name: &str, score: impl Fn(u64) -> f64) {
    let mut scores: Vec<f64> = (0..SEEDS).map(score).collect();
    let seeds: Vec<String> = scores.iter().map(|score| format!("{score:.3}")).collect();
    scores.sort_by(f64::total_cmp);
    println!(
        "{name:<34} {:>7.3} {:>7.3}  {}",
        scores[scores.len() / 2],
        scores[0],
        seeds.join(" ")
    );
}
