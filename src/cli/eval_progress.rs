//! What is shown while `eval` plays: how much there is to do, then a bar on a terminal, and a line a controller and seed.

use std::time::Instant;

use indicatif::ProgressBar;

use super::Context;
use super::progress::Progress;
use crate::compare::EpisodeOutcome;
use crate::scenario::printable;
use crate::telemetry::sinks::short_duration;

/// How much there is to play.
pub struct Work {
    pub entrants: usize,
    pub seeds: usize,
    /// Of an entrant under one seed.
    pub episodes: usize,
    /// Of an episode; it may end sooner.
    pub steps: u32,
    /// That is to be expected.
    pub env_steps_per_s: Option<f64>,
}

impl Work {
    /// Of one entrant under one seed.
    fn share(&self) -> u64 {
        self.episodes as u64 * u64::from(self.steps)
    }

    fn shares(&self) -> u64 {
        self.entrants as u64 * self.seeds as u64
    }

    fn env_steps(&self) -> u64 {
        self.shares() * self.share()
    }

    fn describe(&self) -> String {
        let plural = if self.seeds == 1 { "" } else { "s" };
        let estimate = match self.env_steps_per_s {
            Some(speed) if speed > 0.0 => format!(
                "about {} at the run's own {speed:.1} env-steps/s",
                short_duration(self.env_steps() as f64 / speed)
            ),
            _ => "for how long is not known: no speed of the run is recorded".into(),
        };
        format!(
            "{} players x {} seed{plural} x {} episodes x {} steps: {} env-steps\n{estimate}",
            self.entrants,
            self.seeds,
            self.episodes,
            self.steps,
            self.env_steps()
        )
    }
}

/// The display. With `--quiet` it shows nothing.
pub struct EvalProgress {
    work: Work,
    progress: Progress,
    began: Instant,
    bar: ProgressBar,
    /// Controllers and seeds that are done with.
    done: u64,
    /// Of what is under way.
    env_steps: u64,
    name: String,
}

impl EvalProgress {
    /// Says how much there is to do.
    pub fn begin(work: Work, context: &Context) -> Self {
        let progress = Progress::new(context);
        progress.say(&work.describe());
        let is_colored = context.printer.is_coloured();
        let color = if is_colored { ".green/dim" } else { "" };
        let template = format!("{{bar:24{color}}} {{percent:>3}} %  {{msg}}");
        Self {
            began: Instant::now(),
            bar: progress.bar(work.env_steps(), &template),
            work,
            progress,
            done: 0,
            env_steps: 0,
            name: String::new(),
        }
    }

    /// A controller begins to play under a seed.
    pub fn enter(&mut self, name: &str, seed: u64) {
        self.name = format!("{}, seed {seed}", printable(name, &[]));
        self.env_steps = 0;
        self.draw();
    }

    /// Adds one step of `envs` envs.
    pub fn step(&mut self, envs: usize) {
        self.env_steps += envs as u64;
        self.draw();
    }

    /// The episodes have been played; those of a schedule that was tried are beside the work.
    pub fn leave(&mut self, outcomes: &[EpisodeOutcome], is_row: bool) {
        self.done += u64::from(is_row);
        self.env_steps = 0;
        let measured: Vec<f64> = outcomes.iter().filter_map(|outcome| outcome.accuracy).collect();
        let accuracy = match measured.len() {
            0 => "not measured".into(),
            count => format!("accuracy {:.1} %", measured.iter().sum::<f64>() / count as f64),
        };
        let count = match is_row {
            true => format!("{}/{} ", self.done, self.work.shares()),
            false => String::new(),
        };
        let line = format!("{count}{}: {accuracy}{}", self.name, self.time_left());
        self.progress.say(&line);
    }

    /// Nothing is drawn from here on.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn played(&self) -> u64 {
        self.done * self.work.share() + self.env_steps
    }

    /// From what was played so far; empty at both ends.
    fn time_left(&self) -> String {
        let (played, all) = (self.played(), self.work.env_steps());
        let left = all.saturating_sub(played);
        if played == 0 || left == 0 {
            return String::new();
        }
        let seconds = self.began.elapsed().as_secs_f64() * left as f64 / played as f64;
        format!(", {} left", short_duration(seconds))
    }

    fn draw(&self) {
        self.bar.set_position(self.played());
        self.bar.set_message(format!("{}{}", self.name, self.time_left()));
    }
}

#[cfg(test)]
mod tests;
