//! What `eval` and `grow` show on standard error while they play one thing after the other: a bar, and a line for each.

use std::time::Instant;

use indicatif::ProgressBar;

use super::terminal::Terminal;
use crate::eval::PlayEvent;
use crate::report::short_duration;
use crate::scenario::printable;

/// Of the bar.
const PARTS: f64 = 1e6;

/// How far they are.
pub struct Progress {
    terminal: Terminal,
    bar: ProgressBar,
    began: Instant,
    /// `3/17 wait, seed 7`
    name: String,
    /// Share of all that has been played, and by how much a step moves it.
    played: f64,
    step: f64,
    /// Where it stands once the present one has been played.
    end: f64,
    /// What of it was read back, which took no time.
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
                let accuracy = accuracy.map_or("not measured".into(), |accuracy| format!("accuracy {accuracy:.2} %"));
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

    /// From what was played so far; empty at both ends.
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
