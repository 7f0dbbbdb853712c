//! Display of a sweep while it is played.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::ProgressBar;

use super::status::progress;
use crate::cli::Context;
use crate::cli::terminal::Terminal;
use crate::compare::Metric;
use crate::files::counted;
use crate::report::{end_text, short_id};
use crate::sweep::{Plan, Results, SweepFolder, Trial, TrialState, WorkerEvent};

/// Lines of past events, and on a terminal the current ones below them.
pub(super) struct View<'a> {
    plan: &'a Plan,
    terminal: &'a Terminal,
    total: ProgressBar,
    /// Lines of the trials in play.
    trials: ProgressBar,
    playing: Mutex<Vec<&'a Trial>>,
}

impl<'a> View<'a> {
    pub fn new(plan: &'a Plan, context: &'a Context) -> Self {
        let terminal = &context.terminal;
        let count = plan.trials.len() as u64;
        Self {
            plan,
            total: terminal.bar(count, "trials {bar} {pos}/{len} {elapsed_precise}"),
            trials: terminal.bar(0, "{msg}"),
            terminal,
            playing: Mutex::default(),
        }
    }

    pub fn show_event(&self, event: WorkerEvent) {
        let mut playing = self.playing.lock().unwrap_or_else(PoisonError::into_inner);
        let name = |trial: &Trial| format!("{} {} seed {}", short_id(&trial.id), trial.label(), trial.seed.0);
        let line = match event {
            WorkerEvent::Begun(trial) => {
                playing.extend(self.plan.trial(&trial.id));
                (!self.terminal.is_drawn()).then(|| format!("{}: begun", name(trial)))
            }
            WorkerEvent::Ended(trial, result) => {
                playing.retain(|known| known.id != trial.id);
                self.total.inc(1);
                let score = result
                    .training
                    .as_ref()
                    .and_then(|training| training.score(Metric::Accuracy));
                let score = score.map_or_else(String::new, |score| format!(", accuracy {score:.2} %"));
                Some(format!(
                    "{}: {}{score}, {:.0} s",
                    name(trial),
                    end_text(result),
                    result.wall_s
                ))
            }
            WorkerEvent::Scored(trial, segment, score) => {
                playing.retain(|known| known.id != trial.id);
                let rounds = counted(segment.until, "round");
                Some(format!("{}: {score:.2} % after {rounds}", name(trial)))
            }
            WorkerEvent::Left(trial, TrialState::Playing(worker)) => {
                Some(format!("{}: left to {worker}, which plays it", name(trial)))
            }
            WorkerEvent::Left(trial, _) => Some(format!("{}: it waits for others at a rung", name(trial))),
            WorkerEvent::Pauses(trial, reason, pause) => {
                playing.retain(|known| known.id != trial.id);
                let pause = pause.as_secs();
                Some(format!(
                    "{}: not played here, again in {pause} s: {reason}",
                    name(trial)
                ))
            }
            WorkerEvent::Again(trial, reason) => Some(format!("{}: tried again: {reason}", name(trial))),
        };
        if let Some(line) = line {
            self.terminal.say(&line);
        }
    }

    /// Draws the trials in play, until there are none.
    pub fn follow(&self, folder: &SweepFolder, is_over: &AtomicBool) {
        if !self.terminal.is_drawn() {
            return;
        }
        if let Ok(results) = Results::read(folder) {
            let trials = self.plan.trials.iter();
            let ended = trials.filter(|trial| results.end(&trial.id).is_some());
            self.total.set_position(ended.count() as u64);
        }
        while !is_over.load(Ordering::Relaxed) {
            let playing = self.playing.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let lines: Vec<String> = playing
                .iter()
                .map(|trial| format!("{} {} {}", short_id(&trial.id), progress(folder, trial), trial.label()))
                .collect();
            self.trials.set_message(lines.join("\n"));
            self.total.tick();
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Takes the bars away.
    pub fn clear(&self) {
        self.total.finish_and_clear();
        self.trials.finish_and_clear();
    }
}
