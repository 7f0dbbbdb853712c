//! Progress of a run: one line per round, on a terminal above two bars; or JSON lines. It goes to standard error; results go to
//! standard output and are not this sink's business. Of `eval` and `grow`, which play one thing after the other: a bar, and a line
//! for each.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use indicatif::ProgressBar;

use super::options::ProgressStyle;
use super::terminal::Terminal;
use crate::eval::PlayEvent;
use crate::report::{anomaly_lines, event_line, header, round_line, short_duration};
use crate::scenario::printable;
use crate::telemetry::{AnomalyState, Event, LiveState, Payload, RunFinished, RunInfo, Severity, Sink, SinkError};

/// The progress display of a run.
pub struct Console {
    live: LiveState,
    terminal: Terminal,
    style: ProgressStyle,
    /// `true` if every event gets a line, except step rows.
    tells_events: bool,
    /// The header of the rounds' lines was printed.
    has_header: bool,
    /// On a terminal.
    bars: Option<Bars>,
}

impl Console {
    /// Shows progress in a style that shows any.
    pub fn new(style: ProgressStyle, tells_events: bool, terminal: &Terminal) -> Self {
        let has_bars = !matches!(style, ProgressStyle::Plain | ProgressStyle::Json) && terminal.is_drawn();
        Self {
            live: LiveState::default(),
            terminal: terminal.clone(),
            style,
            tells_events,
            has_header: false,
            bars: has_bars.then(|| Bars::new(terminal)),
        }
    }

    /// An event after it was folded.
    fn show(&mut self, event: &Event) {
        if let (Payload::RoundFinished(_), Some(round)) = (&event.payload, self.live.rounds.last()) {
            let heads = match std::mem::replace(&mut self.has_header, true) {
                true => Vec::new(),
                false => header(&self.live),
            };
            let found = anomaly_lines(round, &self.live);
            let lines = heads.into_iter().chain(found).chain([round_line(round, &self.live)]);
            lines.for_each(|line| self.terminal.say(&line));
        } else if is_of_run(event) || self.tells_events && event.severity >= Severity::Info {
            event_line(event).iter().for_each(|line| self.terminal.say(line));
        }
    }
}

impl Sink for Console {
    fn name(&self) -> &str {
        "console"
    }

    /// The place of the record is printed first, so that it is known even if the run fails.
    fn start(&mut self, run: &RunInfo) -> Result<(), SinkError> {
        if let Some(earlier) = &run.earlier {
            self.live = earlier.live.clone();
        }
        if self.style != ProgressStyle::Json {
            self.terminal
                .say(&format!("run directory  {}", run.directory.display()));
        }
        if matches!(self.style, ProgressStyle::Bar | ProgressStyle::Tui) && self.bars.is_none() {
            self.terminal
                .say("standard error isn't a terminal, so each round prints a line");
        }
        Ok(())
    }

    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), SinkError> {
        for event in events {
            self.live.apply(event);
            match (self.style, &event.payload) {
                (ProgressStyle::Json, Payload::RoundFinished(_)) => {
                    let line = serde_json::to_string(event.as_ref())?;
                    // A closed terminal isn't a reason to stop, and a new try would not help.
                    _ = writeln!(self.terminal.stream().clone(), "{line}");
                }
                (ProgressStyle::Json, _) => {}
                _ => self.show(event),
            }
        }
        if let Some(bars) = &self.bars {
            bars.draw(&self.live);
        }
        Ok(())
    }

    fn finish(&mut self, _run: &RunFinished) -> Result<(), SinkError> {
        if let Some(Bars { rounds, steps, status }) = &self.bars {
            for bar in [rounds, steps, status] {
                bar.finish_and_clear();
            }
        }
        Ok(())
    }
}

/// The few lines about the run as a whole: its beginning, and changes of its course. Findings about envs wait for the
/// end of their round.
fn is_of_run(event: &Event) -> bool {
    match &event.payload {
        Payload::RunStarted(_) | Payload::CheckpointLoaded(_) | Payload::Note(_) => true,
        Payload::LearnerUpdate(update) => !update.update_performed,
        Payload::Anomaly(anomaly) => anomaly.state == AnomalyState::Onset && event.env.is_none(),
        _ => false,
    }
}

/// One bar over rounds, one over the steps of the round, and a status line.
struct Bars {
    rounds: ProgressBar,
    steps: ProgressBar,
    status: ProgressBar,
}

impl Bars {
    fn new(terminal: &Terminal) -> Self {
        Self {
            rounds: terminal.bar(0, "round {bar} {pos:>4}/{len}  {msg}"),
            steps: terminal.bar(0, "step  {bar} {pos:>4}/{len}"),
            status: terminal.bar(0, "{msg}"),
        }
    }

    fn draw(&self, live: &LiveState) {
        if let Some(run) = live.started.as_ref() {
            self.rounds.set_length(u64::from(run.n_rounds));
            self.steps.set_length(u64::from(run.max_steps));
        }
        self.rounds.set_position(live.rounds.len() as u64);
        self.steps.set_position(u64::from(live.progress().step));
        if let Some(seconds) = live.eta_s() {
            self.rounds.set_message(format!("{} left", short_duration(seconds)));
        }
        self.status.set_message(status_line(live));
    }
}

/// `accuracy 54.3 %  germinated 3, committed 1, pruned 2  6.4 env-steps/s`
fn status_line(live: &LiveState) -> String {
    let (progress, growth) = (live.progress(), live.growth_in_round);
    let accuracy = progress
        .accuracy_mean
        .map(|accuracy| format!("accuracy {accuracy:.1} %"));
    let grown = format!(
        "germinated {}, committed {}, pruned {}",
        growth.germinated, growth.committed, growth.pruned
    );
    let speed = progress.env_steps_per_s.map(|speed| format!("{speed:.1} env-steps/s"));
    let parts = accuracy.into_iter().chain([grown]).chain(speed);
    parts.collect::<Vec<_>>().join("  ")
}

/// Length of the bar of `eval` and `grow`.
const PARTS: f64 = 1e6;

/// The progress of `eval` or `grow`.
pub struct Progress {
    terminal: Terminal,
    bar: ProgressBar,
    began: Instant,
    /// `3/17 wait, seed 7`
    name: String,
    /// Share of all that has been played, and by how much a step moves it.
    played: f64,
    step: f64,
    /// Share of all that has been played once the current training ends.
    end: f64,
    /// Share that was read back, which took no time.
    kept: f64,
}

impl Progress {
    pub fn new(terminal: &Terminal) -> Self {
        Self {
            bar: terminal.bar(PARTS as u64, "{bar} {percent:>3} %  {msg}"),
            terminal: terminal.clone(),
            began: Instant::now(),
            name: String::new(),
            played: 0.0,
            step: 0.0,
            end: 0.0,
            kept: 0.0,
        }
    }

    pub fn show(&mut self, event: PlayEvent) {
        match event {
            PlayEvent::Note(note) => self.terminal.say(&format!("note: {note}")),
            PlayEvent::Begins { name, share, steps } => {
                self.name = name.into();
                self.step = share / steps.max(1) as f64;
                self.end += share;
                self.draw();
            }
            PlayEvent::Step => {
                self.played += self.step;
                self.draw();
            }
            PlayEvent::Ends { accuracy, is_kept } => {
                if is_kept {
                    self.kept += self.end - self.played;
                }
                self.played = self.end;
                let accuracy = accuracy.map_or("trained".into(), |accuracy| format!("accuracy {accuracy:.2} %"));
                let kept = if is_kept { ", played before" } else { "" };
                let line = format!("{}: {accuracy}{kept}{}", self.name, self.time_left());
                self.terminal.say(&line);
            }
        }
    }

    /// Nothing is drawn from here on.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// The time left, estimated from the played share. Empty at both ends.
    fn time_left(&self) -> String {
        let (played, left) = (self.played - self.kept, 1.0 - self.played);
        if played <= 0.0 || left < 1.0 / PARTS {
            return String::new();
        }
        let seconds = self.began.elapsed().as_secs_f64() * left / played;
        format!(", {} left", short_duration(seconds))
    }

    fn draw(&self) {
        self.bar.set_position((self.played * PARTS) as u64);
        let name = printable(&self.name, &[]);
        self.bar.set_message(format!("{name}{}", self.time_left()));
    }
}

#[cfg(test)]
mod tests;
