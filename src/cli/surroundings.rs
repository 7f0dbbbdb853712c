//! The surroundings of a command: streams, its program, its process.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::terminal::Output;

/// The surroundings of a command.
#[derive(Clone)]
pub struct Surroundings {
    /// Stream in place of standard input.
    pub input: Input,
    /// Stream in place of standard output, where results go and nothing else.
    pub out: Output,
    /// Stream in place of standard error, where everything else goes.
    pub err: Output,
    /// The program that the command is one of: sweeps play their trials with it.
    pub program: PathBuf,
    /// `true` if the process is there for this command alone. Then signals stop the command, and the log takes what any thread
    /// logs, not only those of the command.
    pub owns_process: bool,
}

impl Surroundings {
    /// Those of this process, which was started with these arguments for one command.
    pub(super) fn of_process(arguments: &[OsString]) -> Self {
        let name = || arguments.first().map(PathBuf::from).unwrap_or_default();
        let stdin = io::stdin();
        Self {
            input: Input {
                is_terminal: stdin.is_terminal(),
                ..Input::of(stdin)
            },
            out: Output::stdout(),
            err: Output::stderr(),
            program: std::env::current_exe().unwrap_or_else(|_| name()),
            owns_process: true,
        }
    }
}

/// Input of a command. Clones are the same stream, for any thread.
#[derive(Clone)]
pub struct Input {
    from: Arc<Mutex<dyn Read + Send>>,
    is_terminal: bool,
}

impl Input {
    /// An input other than a terminal.
    pub fn of(reader: impl Read + Send + 'static) -> Self {
        Self {
            from: Arc::new(Mutex::new(reader)),
            is_terminal: false,
        }
    }

    /// Returns whether a person types it.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }
}

impl Read for Input {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.from.lock().unwrap_or_else(PoisonError::into_inner).read(bytes)
    }
}
