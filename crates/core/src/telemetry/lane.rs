//! A sink on its own thread: the run neither waits for it nor fails with it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use bevy_platform::cell::SyncCell;

use super::event::{Event, Severity};
use super::payload::RunFinished;
use super::sink::{Sink, SinkError, TelemetryError};
use crate::threads::in_this_log;
use crate::torch::catch;

pub(super) type Batch = Vec<Arc<Event>>;

/// Batches by which a sink may lag.
const CAPACITY: usize = 256;
/// Events other than step rows that are kept for a sink that lags by more: enough for hours.
const KEPT_EVENTS: usize = 65_536;
/// The longest wait of a sink's thread for events before it lets the sink flush.
const IDLE_FLUSH: Duration = Duration::from_secs(2);

enum Delivery {
    Events(Batch),
    End(Arc<RunFinished>),
}

pub(super) struct Lane {
    name: String,
    sender: mpsc::Sender<Delivery>,
    /// Batches on their way.
    queued: Arc<AtomicUsize>,
    /// The rest of the batches for which there was no room.
    kept: Batch,
    /// Events that the sink has missed.
    pub dropped: u64,
    /// Hears once when the thread is done; a receiver may not be shared as the hub is.
    done: SyncCell<mpsc::Receiver<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lane {
    /// # Errors
    /// The system gives no thread.
    pub fn open(mut sink: Box<dyn Sink>) -> Result<Self, TelemetryError> {
        let name = sink.name().to_owned();
        let (sender, receiver) = mpsc::channel();
        let (is_done, done) = mpsc::channel();
        let queued = Arc::<AtomicUsize>::default();
        let life = {
            let queued = Arc::clone(&queued);
            move || {
                if let Err(panic) = catch(|| serve(&mut *sink, &receiver, &queued)) {
                    tracing::error!(
                        "telemetry sink `{}` panicked and gets no more events: {panic}",
                        sink.name()
                    );
                }
                // The hub no longer listens if it lost patience.
                let _ = is_done.send(());
            }
        };
        let thread = std::thread::Builder::new()
            .name(format!("sink-{name}"))
            .spawn(in_this_log(life));
        Ok(Self {
            thread: Some(thread.map_err(|source| TelemetryError::Thread {
                name: name.clone(),
                source,
            })?),
            name,
            sender,
            queued,
            kept: Batch::new(),
            dropped: 0,
            done: SyncCell::new(done),
        })
    }

    /// Hands over a batch. If there is no room, its step rows are dropped, and the rest comes with the next.
    pub fn send(&mut self, batch: &Batch) {
        let mut batch = [std::mem::take(&mut self.kept), batch.clone()].concat();
        let is_first_loss = self.dropped == 0;
        if self.queued.load(Ordering::Relaxed) >= CAPACITY {
            let before = batch.len();
            batch.retain(|event| !event.payload.is_step_row() || event.severity >= Severity::Warning);
            batch.truncate(KEPT_EVENTS);
            self.dropped += (before - batch.len()) as u64;
            self.kept = batch;
        } else {
            self.queued.fetch_add(1, Ordering::Relaxed);
            if let Err(mpsc::SendError(Delivery::Events(batch))) = self.sender.send(Delivery::Events(batch)) {
                self.dropped += batch.len() as u64;
            }
        }
        if is_first_loss && self.dropped > 0 {
            tracing::warn!("telemetry sink `{}` is too slow: it misses step rows", self.name);
        }
    }

    /// Lets the sink write the events it has.
    pub fn close(&mut self, run: &Arc<RunFinished>) {
        let kept = std::mem::take(&mut self.kept);
        self.queued.fetch_add(1, Ordering::Relaxed);
        // A thread that is gone has said why.
        let _ = self.sender.send(Delivery::Events(kept));
        let _ = self.sender.send(Delivery::End(Arc::clone(run)));
    }

    /// Waits for the thread, but no longer than `patience`.
    pub fn join(&mut self, patience: Duration) {
        match (self.done.get().recv_timeout(patience), self.thread.take()) {
            (Err(mpsc::RecvTimeoutError::Timeout), _) => tracing::error!(
                "telemetry sink `{}` did not finish within {} s",
                self.name,
                patience.as_secs_f64()
            ),
            (_, Some(thread)) => {
                // Panics of the sink were caught inside the thread.
                let _ = thread.join();
            }
            (_, None) => {}
        }
    }
}

/// The life of a sink's thread.
fn serve(sink: &mut dyn Sink, receiver: &mpsc::Receiver<Delivery>, queued: &AtomicUsize) {
    let mut is_failing = false;
    loop {
        let delivery = receiver.recv_timeout(IDLE_FLUSH);
        let outcome = match &delivery {
            Ok(Delivery::Events(events)) => sink.write(events),
            Ok(Delivery::End(run)) => sink.finish(run),
            Err(mpsc::RecvTimeoutError::Timeout) => sink.flush(),
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        };
        report_outage(sink.name(), outcome, &mut is_failing);
        match delivery {
            Ok(Delivery::Events(_)) => _ = queued.fetch_sub(1, Ordering::Relaxed),
            Ok(Delivery::End(_)) => return,
            Err(_) => {}
        }
    }
}

fn report_outage(name: &str, outcome: Result<(), SinkError>, is_failing: &mut bool) {
    match outcome {
        Ok(()) if std::mem::take(is_failing) => tracing::warn!("telemetry sink `{name}` can write again"),
        Err(error) if !std::mem::replace(is_failing, true) => {
            tracing::warn!("telemetry sink `{name}` cannot write: {error}");
        }
        _ => {}
    }
}
