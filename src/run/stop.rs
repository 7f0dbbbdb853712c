//! Requests to stop: the first lets the current step (or round) end and the record close, the second ends
//! the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bevy_ecs::prelude::Resource;

/// Who asks a run to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopRequest {
    /// Ctrl-C (SIGINT), or a system that wants the same.
    Interrupt,
    /// SIGTERM: a scheduler or the operating system.
    Terminate,
}

impl StopRequest {
    /// What the process ends with: 128 and the signal's number.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// The way to ask a run to stop, from any thread. Clones ask the same run.
///
/// ```
/// # use bevy_ecs::prelude::*;
/// use simic_engine::prelude::*;
/// use simic_engine::run::{StopRequest, StopSignal};
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
        // Whoever was first stays.
        let _ = self
            .0
            .compare_exchange(0, request.exit_code(), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// What was asked for, if anything.
    pub fn requested(&self) -> Option<StopRequest> {
        let code = self.0.load(Ordering::Relaxed);
        [StopRequest::Interrupt, StopRequest::Terminate]
            .into_iter()
            .find(|request| request.exit_code() == code)
    }

    /// Whether somebody has asked for a stop.
    pub fn is_requested(&self) -> bool {
        self.requested().is_some()
    }
}

/// Turns Ctrl-C and SIGTERM of this process into requests; the second signal ends the process where it stands.
///
/// # Errors
/// If the operating system refuses the handlers or their thread.
#[cfg(unix)]
pub fn stop_on_signals(stop: StopSignal) -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::exit;

    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let watch = move || {
        for signal in signals.forever() {
            let request = match signal {
                SIGTERM => StopRequest::Terminate,
                _ => StopRequest::Interrupt,
            };
            if stop.is_requested() {
                // Without destructors: another thread is in the middle of its work.
                exit(request.exit_code().into());
            }
            tracing::warn!("stopping after what is under way; a second signal ends the run at once");
            stop.request(request);
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(watch)
        .map(drop)
}

/// Elsewhere signals end the process at once; a resumed run plays the unfinished round again.
#[cfg(not(unix))]
pub fn stop_on_signals(_stop: StopSignal) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_counts_for_every_clone() {
        let stop = StopSignal::default();
        let elsewhere = stop.clone();
        assert_eq!(stop.requested(), None);

        elsewhere.request(StopRequest::Terminate);
        stop.request(StopRequest::Interrupt);

        assert_eq!(stop.requested(), Some(StopRequest::Terminate));
    }

    #[test]
    fn exit_codes_are_those_of_the_signals() {
        assert_eq!(StopRequest::Interrupt.exit_code(), 130);
        assert_eq!(StopRequest::Terminate.exit_code(), 143);
    }
}
