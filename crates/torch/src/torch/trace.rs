//! A recorder of stream discipline: the guards that each env entered, its waits, adoptions, writes and reads, in order.
//!
//! The rules of streams concern CUDA, but break silently there. With a trace attached to the streams
//! and to the read counter the same program leaves the same record on a CPU, where tests can check it. Without one,
//! recording costs a test of an `Option`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tch::Tensor;

/// Kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceOperation {
    /// The stream became current.
    EnterGuard,
    /// The previous stream became current again.
    LeaveGuard,
    /// A tensor was written in place.
    Write,
    /// The host waited for the stream.
    Wait,
    /// A tensor was read by the host.
    Read,
}

/// One record. `tensor` is the address of its data; reads belong to no env.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// Index of the env.
    pub env: Option<usize>,
    /// Kind of operation.
    pub operation: TraceOperation,
    /// Address of the data.
    pub tensor: Option<usize>,
}

/// A shared, append-only record.
#[derive(Clone, Debug, Default)]
pub struct StreamTrace(Arc<Mutex<Vec<TraceEntry>>>);

impl StreamTrace {
    /// Appends one entry.
    pub fn record(&self, env: Option<usize>, operation: TraceOperation, tensor: Option<&Tensor>) {
        self.lock().push(TraceEntry {
            env,
            operation,
            tensor: tensor.map(|tensor| tensor.data_ptr().addr()),
        });
    }

    /// Takes all entries out, oldest first.
    pub fn take(&self) -> Vec<TraceEntry> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<TraceEntry>> {
        // A record is complete or absent: a panic elsewhere cannot leave half of one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
