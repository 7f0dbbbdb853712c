//! Standard error as progress bars and the log share it. It may fail at any time: a window is closed, the disk under a log
//! file is full. No one reads it then, and the run continues without it.

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use console::Term;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, TermLike};

use super::Output;
use crate::scenario::printable;

/// How often bars are drawn at most, in a second.
const FRAMES_PER_S: u8 = 20;

/// Standard error, shared by progress bars and log lines: what is written here appears above the bars.
#[derive(Clone, Debug)]
pub struct Terminal {
    err: Output,
    bars: MultiProgress,
    /// What is said while something else has the screen.
    held: Arc<Mutex<Option<Vec<u8>>>>,
    /// What has been written, where nothing is written twice.
    said: Arc<Mutex<Option<HashSet<Vec<u8>>>>>,
}

impl Default for Terminal {
    /// That of the process.
    fn default() -> Self {
        Self::on(Output::stderr())
    }
}

impl Terminal {
    /// `err` as standard error: bars are drawn where it ends in a terminal.
    pub fn on(err: Output) -> Self {
        let target = err.terminal().map_or_else(ProgressDrawTarget::hidden, |terminal| {
            ProgressDrawTarget::term_like_with_hz(Box::new(Forgiving(terminal.clone())), FRAMES_PER_S)
        });
        Self {
            err,
            bars: MultiProgress::with_draw_target(target),
            held: Arc::default(),
            said: Arc::default(),
        }
    }

    /// The stream itself, without regard to bars.
    pub fn stream(&self) -> &Output {
        &self.err
    }

    /// Draws a bar below those that there are.
    pub fn add(&self, bar: ProgressBar) -> ProgressBar {
        self.bars.add(bar)
    }

    fn held(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        // Lines are whole, also after a panic.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn said(&self) -> MutexGuard<'_, Option<HashSet<Vec<u8>>>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a line of the log once from now on: of many runs that warn of the same.
    pub fn say_once(&self) {
        self.said().get_or_insert_default();
    }

    /// Keeps what is written from now on, while something else has the screen.
    pub fn hold(&self) {
        self.held().get_or_insert_default();
    }

    /// Writes what was kept, and what follows at once.
    pub fn release(&self) {
        if let Some(held) = self.held().take() {
            let _ = self.err.clone().write_all(&held);
        }
    }

    /// Writes a line above the bars; names in it are others', and what would steer the terminal is written as an escape.
    pub fn say(&self, line: &str) {
        let _ = self.bars.println(printable(line, &[]));
    }
}

/// Lines of the log, of which the same is true as of what is [said](Terminal::say).
impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let shown = printable(&String::from_utf8_lossy(bytes), &[]).into_bytes();
        let is_said = self.said().as_mut().is_some_and(|said| !said.insert(shown.clone()));
        if is_said {
            return Ok(bytes.len());
        }
        if let Some(held) = self.held().as_mut() {
            held.extend(shown);
        } else {
            let _ = self.bars.suspend(|| self.err.clone().write_all(&shown));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A terminal that takes everything: the bars panic on one that refuses.
#[derive(Debug)]
struct Forgiving(Term);

impl TermLike for Forgiving {
    fn width(&self) -> u16 {
        TermLike::width(&self.0)
    }

    fn height(&self) -> u16 {
        TermLike::height(&self.0)
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        forgive(self.0.move_cursor_up(n))
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        forgive(self.0.move_cursor_down(n))
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        forgive(self.0.move_cursor_right(n))
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        forgive(self.0.move_cursor_left(n))
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        forgive(self.0.write_line(text))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        forgive(self.0.write_str(text))
    }

    fn clear_line(&self) -> io::Result<()> {
        forgive(self.0.clear_line())
    }

    fn flush(&self) -> io::Result<()> {
        forgive(self.0.flush())
    }
}

fn forgive(_: io::Result<()>) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;
