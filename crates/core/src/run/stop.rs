//! Requests to stop: the first lets the current step end and the record close, a second by hand ends the
//! process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bevy_ecs::prelude::Resource;

/// The source of a request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopRequest {
    /// Ctrl-C (SIGINT), or a system that wants the same.
    Interrupt,
    /// SIGTERM: a scheduler or the operating system.
    Terminate,
    /// SIGHUP: the terminal was closed.
    HangUp,
    /// The run itself, because of an anomaly: `run.on_anomaly`.
    Anomaly,
    /// This part of the run has played its rounds: see [`RoundLimit`].
    RoundLimit,
}

impl StopRequest {
    const ALL: [Self; 5] = [
        Self::Interrupt,
        Self::Terminate,
        Self::HangUp,
        Self::Anomaly,
        Self::RoundLimit,
    ];

    /// Exit code of the process: 128 and the signal's number; 0 after a stop that was requested; 8 after a stop with a reason.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::RoundLimit => 0,
            Self::Anomaly => 8,
            Self::Interrupt => 130,
            Self::Terminate => 143,
            Self::HangUp => 129,
        }
    }
}

/// The way to ask a run to stop, from any thread. Clones ask the same run.
///
/// ```
/// # extern crate simic_core as simic_engine;
/// # use bevy_ecs::prelude::*;
/// use simic_engine::prelude::*;
/// use simic_engine::extend::StopRequest;
///
/// fn stop_when_perfect(envs: Query<&ValMetrics>, stop: Res<StopSignal>) {
///     if envs.iter().all(|metrics| metrics.accuracy_percent >= 100.0) {
///         stop.request(StopRequest::Interrupt);
///     }
/// }
/// ```
#[derive(Resource, Clone, Debug, Default)]
pub struct StopSignal(Arc<AtomicU8>);

impl StopSignal {
    /// Asks for a stop; the first request counts.
    pub fn request(&self, request: StopRequest) {
        // The first request stays.
        let _ = self
            .0
            .compare_exchange(0, request as u8 + 1, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The first request, if there is one.
    pub fn requested(&self) -> Option<StopRequest> {
        let code = self.0.load(Ordering::Relaxed);
        let index = usize::from(code).checked_sub(1)?;
        StopRequest::ALL.get(index).copied()
    }

    /// Returns whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.requested().is_some()
    }
}

/// Rounds of the run after which it stops, to be resumed later; rounds that were played before a resume count.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundLimit(pub u32);

/// Turns Ctrl-C, SIGTERM and the end of the terminal into requests; a second Ctrl-C or SIGTERM ends the process at
/// once. A process that was started to outlive its terminal (`nohup`) does.
///
/// # Errors
/// An operating system that refuses the handlers or their thread.
#[cfg(unix)]
pub fn stop_on_signals(stop: StopSignal) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    if !ignores_hang_up() {
        signals.add_signal(SIGHUP)?;
    }
    let watch = move || {
        let mut is_first = true;
        for signal in signals.forever() {
            let request = match signal {
                SIGTERM => StopRequest::Terminate,
                SIGHUP => StopRequest::HangUp,
                _ => StopRequest::Interrupt,
            };
            if std::mem::take(&mut is_first) {
                // The request precedes the warning, which a terminal that is stopped holds up.
                stop.request(request);
                tracing::warn!("stopping after what is under way; a second signal ends the run at once");
            } else if request != StopRequest::HangUp {
                // A terminal that is closed sends one signal for itself and one for its shell: the second doesn't ask to hurry.
                end_at_once(request);
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(watch)
        .map(drop)
}

/// Lets a write beyond the limit of `ulimit -f` fail from here on, as on a full disk, in place of ending the process.
pub fn outlive_file_limit() {
    // If the system refuses the handler, all is as it was.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(
        signal_hook::consts::SIGXFSZ,
        Arc::new(std::sync::atomic::AtomicBool::new(false)),
    );
}

/// Ends the process at once, without destructors: another thread is in the middle of its work.
#[cfg(unix)]
pub fn end_at_once(request: StopRequest) -> ! {
    signal_hook::low_level::exit(request.exit_code().into())
}

/// Ends the process at once.
#[cfg(not(unix))]
pub fn end_at_once(request: StopRequest) -> ! {
    std::process::exit(request.exit_code().into())
}

/// Returns whether SIGHUP was ignored when the process was started, or may have been: then it stays so.
#[cfg(unix)]
fn ignores_hang_up() -> bool {
    std::fs::read_to_string("/proc/self/status").map_or(true, |status| ignores_first_signal(&status))
}

/// The mask of ignored signals in the kernel's words: bit 0 is signal 1, SIGHUP.
#[cfg(unix)]
fn ignores_first_signal(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_none_or(|mask| mask & 1 == 1)
}

/// Elsewhere signals end the process at once; a resumed run plays the unfinished round again.
#[cfg(not(unix))]
pub fn stop_on_signals(_stop: StopSignal) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;
