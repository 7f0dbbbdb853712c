//! Streams that a program writes to: those of its process, or others in their place.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use console::Term;

/// Where a program writes. Clones are the same stream, for any thread.
#[derive(Clone)]
pub struct Output {
    to: Arc<Mutex<dyn Write + Send>>,
    /// `None` where the stream ends in none.
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

    /// What is no terminal.
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
