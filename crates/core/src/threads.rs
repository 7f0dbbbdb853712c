//! Threads that log where the thread that starts them logs: one process may play several runs, each with a log of its own.

use tracing::Dispatch;
use tracing::dispatcher::{get_default, with_default};

/// Work for another thread, with the log of this one.
pub fn in_this_log<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let log = get_default(Dispatch::clone);
    move || with_default(&log, work)
}

/// Starts a worker of a pool, with the log of this thread.
///
/// # Errors
/// The system gives no thread.
pub fn start_worker(worker: rayon::ThreadBuilder) -> std::io::Result<()> {
    let name = worker.name().unwrap_or_default().to_owned();
    let thread = std::thread::Builder::new().name(name);
    thread.spawn(in_this_log(|| worker.run())).map(drop)
}
