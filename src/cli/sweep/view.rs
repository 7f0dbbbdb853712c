//! What is seen of a sweep while it is played.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle as BarStyle};

use super::status::progress;
use crate::cli::Context;
use crate::cli::output::print_note;
use crate::compare::Metric;
use crate::report::{end_text, short_id};
use crate::sweep::{Plan, Results, SweepFolder, Trial, TrialState, WorkerEvent};

/// Lines of what has happened, and on a terminal what is happening below them.
pub(super) struct View<'a> {
    plan: &'a Plan,
    quiet: bool,
    bars: Option<Bars<'a>>,
    playing: Mutex<Vec<&'a Trial>>,
}

struct Bars<'a> {
    context: &'a Context<'a>,
    total: ProgressBar,
    trials: ProgressBar,
}

impl<'a> View<'a> {
    pub fn new(plan: &'a Plan, context: &'a Context<'a>) -> Self {
        let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let quiet = context.global.quiet;
        let bars = (is_terminal && !quiet).then(|| {
            let style = |template: &str| {
                // The templates are constants, so the default is never seen.
                BarStyle::with_template(template)
                    .unwrap_or_else(|_| BarStyle::default_bar())
                    .progress_chars("━━─")
            };
            let total = context.terminal.add(ProgressBar::new(plan.trials.len() as u64));
            total.set_style(style("trials {bar:32} {pos}/{len} {elapsed_precise}"));
            let trials = context.terminal.add(ProgressBar::new(0));
            trials.set_style(style("{msg}"));
            Bars { context, total, trials }
        });
        Self {
            plan,
            quiet,
            bars,
            playing: Mutex::default(),
        }
    }

    pub fn show_event(&self, event: WorkerEvent) {
        let find = |trial: &Trial| self.plan.trials.iter().find(|known| known.id == trial.id);
        let mut playing = self.playing.lock().unwrap_or_else(PoisonError::into_inner);
        let name = |trial: &Trial| format!("{} {} seed {}", short_id(&trial.id), trial.label(), trial.seed.0);
        let line = match event {
            WorkerEvent::Begun(trial) => {
                playing.extend(find(trial));
                self.bars.is_none().then(|| format!("{}: begun", name(trial)))
            }
            WorkerEvent::Ended(trial, result) => {
                playing.retain(|known| known.id != trial.id);
                if let Some(bars) = &self.bars {
                    bars.total.inc(1);
                }
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
                Some(format!("{}: {score:.2} % after {} rounds", name(trial), segment.until))
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
        let Some(line) = line.filter(|_| !self.quiet) else {
            return;
        };
        match &self.bars {
            Some(bars) => bars.context.terminal.say(&line),
            None => print_note(line),
        }
    }

    /// Draws what is being played, until nothing is.
    pub fn follow(&self, folder: &SweepFolder, is_over: &AtomicBool) {
        let Some(bars) = &self.bars else { return };
        if let Ok(results) = Results::read(folder) {
            let ended = self
                .plan
                .trials
                .iter()
                .filter(|trial| results.end(&trial.id).is_some())
                .count();
            bars.total.set_position(ended as u64);
        }
        while !is_over.load(Ordering::Relaxed) {
            let playing = self.playing.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let lines: Vec<String> = playing
                .iter()
                .map(|trial| format!("{} {} {}", short_id(&trial.id), progress(folder, trial), trial.label()))
                .collect();
            bars.trials.set_message(lines.join("\n"));
            bars.total.tick();
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Takes the bars away.
    pub fn clear(&self) {
        if let Some(bars) = &self.bars {
            bars.total.finish_and_clear();
            bars.trials.finish_and_clear();
        }
    }
}
