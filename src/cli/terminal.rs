//! Streams that a command writes to: those of its process, or others in their place; and standard error as progress bars and the
//! log share it. It may fail at any time: a window is closed, the disk under a log file is full. No one reads it then, and the
//! command continues without it.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use console::Term;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::scenario::printable;

/// The largest number of times that bars are drawn in a second.
const FRAMES_PER_S: u8 = 20;

/// A stream that a program writes to. Clones are the same stream, for any thread.
#[derive(Clone)]
pub struct Output {
    to: Arc<Mutex<dyn Write + Send>>,
    /// The terminal. `None` where the stream doesn't end in one.
    terminal: Option<Term>,
}

impl Output {
    /// Standard output of the process.
    pub fn stdout() -> Self {
        Self::to(io::stdout()).ending_in(Term::stdout())
    }

    /// Standard error of the process.
    pub fn stderr() -> Self {
        Self::to(io::stderr()).ending_in(Term::stderr())
    }

    fn ending_in(self, terminal: Term) -> Self {
        let terminal = Some(terminal).filter(Term::is_term);
        Self { terminal, ..self }
    }

    /// An output other than a terminal.
    pub fn to(writer: impl Write + Send + 'static) -> Self {
        Self {
            to: Arc::new(Mutex::new(writer)),
            terminal: None,
        }
    }

    /// The terminal that it ends in.
    pub fn terminal(&self) -> Option<&Term> {
        self.terminal.as_ref()
    }

    /// A panic while something is written leaves it short, nothing else.
    fn lock(&self) -> MutexGuard<'_, dyn Write + Send + 'static> {
        self.to.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Output").field("terminal", &self.terminal).finish()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().flush()
    }

    /// No other thread writes into the middle of it.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.lock().write_all(bytes)
    }

    /// No other thread writes into the middle of it.
    fn write_fmt(&mut self, text: fmt::Arguments) -> io::Result<()> {
        self.lock().write_fmt(text)
    }
}

/// Standard error, shared by progress bars and lines. Lines appear above the bars.
#[derive(Clone, Debug)]
pub struct Terminal {
    err: Output,
    bars: MultiProgress,
    /// Nothing is shown but the log.
    is_quiet: bool,
    is_coloured: bool,
    /// Log lines that arrive while something else has the screen.
    held: Arc<Mutex<Option<Vec<String>>>>,
    /// Lines already logged, where nothing is logged twice.
    said: Arc<Mutex<Option<HashSet<String>>>>,
}

impl Terminal {
    /// `err` as standard error: bars are drawn where it ends in a terminal.
    pub fn on(err: Output, is_quiet: bool, is_coloured: bool) -> Self {
        let target = match err.terminal() {
            Some(terminal) if !is_quiet => ProgressDrawTarget::term(terminal.clone(), FRAMES_PER_S),
            _ => ProgressDrawTarget::hidden(),
        };
        Self {
            err,
            bars: MultiProgress::with_draw_target(target),
            is_quiet,
            is_coloured,
            held: Arc::default(),
            said: Arc::default(),
        }
    }

    /// The stream itself, without regard to bars.
    pub fn stream(&self) -> &Output {
        &self.err
    }

    /// Returns whether bars are drawn.
    pub fn is_drawn(&self) -> bool {
        !self.bars.is_hidden()
    }

    /// A bar below those that there are: the part `{bar}` of the template.
    pub fn bar(&self, length: u64, template: &str) -> ProgressBar {
        let bar = if self.is_coloured {
            "{bar:24.green/dim}"
        } else {
            "{bar:24}"
        };
        let style = ProgressStyle::with_template(&template.replace("{bar}", bar));
        // Templates are constants, so the default is never seen.
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = self.bars.add(ProgressBar::new(length));
        bar.set_style(style.progress_chars("━━─"));
        bar
    }

    fn held(&self) -> MutexGuard<'_, Option<Vec<String>>> {
        // Lines are whole, also after a panic.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn said(&self) -> MutexGuard<'_, Option<HashSet<String>>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a line of the log once from now on: of many runs that warn of the same.
    pub fn say_once(&self) {
        self.said().get_or_insert_default();
    }

    /// Keeps log lines from now on, while something else has the screen.
    pub fn hold(&self) {
        self.held().get_or_insert_default();
    }

    /// Writes the kept lines, and later ones at once.
    pub fn release(&self) {
        let held = self.held().take();
        held.iter().flatten().for_each(|lines| self.put(lines));
    }

    /// Writes a line, with `--quiet` none; names in it are others', and what would steer the terminal is written as an escape.
    pub fn say(&self, line: &str) {
        if !self.is_quiet {
            self.put(&printable(line, &[]));
        }
    }

    /// A closed terminal isn't a reason to fail.
    fn put(&self, lines: &str) {
        _ = match self.is_drawn() {
            true => self.bars.println(lines),
            false => writeln!(self.err.clone(), "{lines}"),
        };
    }
}

/// Lines of the log, treated like what is [said](Terminal::say).
impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let shown = printable(text.strip_suffix('\n').unwrap_or(&text), &[]);
        let is_said = self.said().as_mut().is_some_and(|said| !said.insert(shown.clone()));
        if !is_said {
            match self.held().as_mut() {
                Some(held) => held.push(shown),
                None => self.put(&shown),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
