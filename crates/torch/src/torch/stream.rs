//! Streams for any device: queues of work that run side by side on CUDA and are no-ops elsewhere.
//!
//! Every CUDA env has its own stream and does all its tensor work inside that stream's guard.
//! On a CPU the same program runs with the same results, and every operation here does nothing.

use std::marker::PhantomData;

use tch::{Device, Tensor};

use super::TorchError;
use super::ffi::{self, RawStream};
use super::guards::ThreadBound;
use super::trace::{StreamTrace, TraceOperation};

/// A queue of device work.
#[derive(Clone, Debug)]
pub struct Stream {
    /// `None` on devices without streams.
    raw: Option<RawStream>,
    trace: Option<(usize, StreamTrace)>,
}

impl Stream {
    /// A stream of libtorch's pool on `device`. The pool holds 32 per device and hands them out one after another; with more envs
    /// streams are shared, which only serialises.
    pub fn from_pool(device: Device) -> Result<Self, TorchError> {
        let raw = match device {
            Device::Cuda(index) => {
                let mut raw = RawStream::default();
                // SAFETY: `raw` mirrors the shim's layout and lives through the call.
                unsafe {
                    ffi::check(ffi::simic_stream_from_pool(
                        ffi::device_type(device),
                        index as i64,
                        &mut raw,
                    ))
                }?;
                Some(raw)
            }
            _ => None,
        };
        Ok(Self { raw, trace: None })
    }

    /// The same stream, with everything that happens on it recorded as env `env`'s.
    pub fn traced(self, env: usize, trace: StreamTrace) -> Self {
        Self {
            trace: Some((env, trace)),
            ..self
        }
    }

    /// Makes this stream and its device current on this thread until the guard is dropped.
    pub fn enter(&self) -> Result<StreamGuard<'_>, TorchError> {
        let previous = match &self.raw {
            Some(raw) => {
                let (mut stream, mut device) = (RawStream::default(), 0);
                // SAFETY: `raw` came from the pool; the two places live through the call.
                unsafe { ffi::check(ffi::simic_stream_exchange(raw, &mut stream, &mut device)) }?;
                Some((stream, device))
            }
            None => None,
        };
        self.note(TraceOperation::EnterGuard, None);
        Ok(StreamGuard {
            stream: self,
            previous,
            _thread: PhantomData,
        })
    }

    /// Waits on the host until all work queued so far is done.
    pub fn synchronize(&self) -> Result<(), TorchError> {
        self.note(TraceOperation::Wait, None);
        match &self.raw {
            // SAFETY: `raw` came from the pool.
            Some(raw) => unsafe { ffi::check(ffi::simic_stream_synchronize(raw)) },
            None => Ok(()),
        }
    }

    /// Notes in the trace, if there is one, that `tensor` is written inside this stream's guard.
    pub fn note_write(&self, tensor: &Tensor) {
        self.note(TraceOperation::Write, Some(tensor));
    }

    fn note(&self, operation: TraceOperation, tensor: Option<&Tensor>) {
        if let Some((env, trace)) = &self.trace {
            trace.record(Some(*env), operation, tensor);
        }
    }
}

/// The current stream of this thread while it lives.
#[must_use = "the stream stops being current when the guard is dropped"]
#[derive(Debug)]
pub struct StreamGuard<'a> {
    stream: &'a Stream,
    previous: Option<(RawStream, i64)>,
    _thread: ThreadBound,
}

impl Drop for StreamGuard<'_> {
    fn drop(&mut self) {
        self.stream.note(TraceOperation::LeaveGuard, None);
        if let Some((stream, device)) = &self.previous {
            // SAFETY: both values were current before this guard, on this thread.
            let restored = unsafe { ffi::check(ffi::simic_stream_restore(stream, *device)) };
            // A panic while unwinding would abort the process; a device that cannot switch streams fails soon enough.
            if let Err(error) = restored {
                tracing::error!(%error, "the previous stream could not be restored");
            }
        }
    }
}

#[cfg(test)]
mod tests;
