//! Where panics go. Inside the engine they become errors, which are reported as such; the panic's own message goes to the
//! log. One that is not caught is printed as usual.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{self, PanicHookInfo};

use crate::torch::is_catching;

/// Target of the log lines of panics: they go to the file, never to the terminal.
pub const TARGET: &str = "panic";

/// Sends panics of this process to the log.
pub fn send_to_log() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        note(panic);
        if !is_catching() {
            usual(panic);
        }
    }));
}

fn note(panic: &PanicHookInfo) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let text = panic.payload_as_str().unwrap_or("without a message");
    // With RUST_BACKTRACE alone: it takes time.
    let stack = Backtrace::capture();
    match stack.status() {
        BacktraceStatus::Captured => {
            tracing::info!(target: TARGET, "thread {name} panicked at {place}: {text}\n{stack}")
        }
        _ => tracing::info!(target: TARGET, "thread {name} panicked at {place}: {text}"),
    }
}
