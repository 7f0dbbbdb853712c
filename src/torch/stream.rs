//! Streams and events for any device: queues of work that run side by side on CUDA and are no-ops elsewhere.
//!
//! Every CUDA env has a stream of its own and does all its tensor work inside that stream's guard (spec 06 §5.1 S1-S3).
//! On CPU and MPS the same program runs with the same results, and every operation here does nothing (S12).

use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use tch::{Device, Tensor};

use super::TorchError;
use super::ffi::{self, Opaque, RawStream, pointer};
use super::guards::ThreadBound;
use super::trace::{StreamTrace, TraceOperation};

/// A queue of device work.
#[derive(Clone, Debug)]
pub struct Stream {
    device: Device,
    /// `None` on devices without streams.
    raw: Option<RawStream>,
    trace: Option<(usize, StreamTrace)>,
}

impl Stream {
    /// A stream of libtorch's pool on `device`. The pool holds 32 per device and hands them out in turn; with more envs
    /// streams are shared, which only serialises (S1).
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
        Ok(Self {
            device,
            raw,
            trace: None,
        })
    }

    /// The same stream, with everything that happens on it recorded as env `env`'s.
    pub fn traced(self, env: usize, trace: StreamTrace) -> Self {
        Self {
            trace: Some((env, trace)),
            ..self
        }
    }

    pub fn device(&self) -> Device {
        self.device
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

    /// Keeps the memory of `tensor`, which another stream allocated, until this stream's work queued so far is done.
    /// This protects its lifetime only: the order of work needs [`Event`]s (S4).
    pub fn record_stream(&self, tensor: &Tensor) -> Result<(), TorchError> {
        self.note(TraceOperation::RecordStream, Some(tensor));
        match &self.raw {
            // SAFETY: `raw` came from the pool and `tensor` outlives the call.
            Some(raw) => unsafe { ffi::check(ffi::simic_record_stream(pointer(tensor), raw)) },
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

/// A mark in a stream that other streams, or the host, can wait for.
#[derive(Debug)]
pub struct Event {
    /// `None` on devices without streams.
    raw: Option<NonNull<Opaque>>,
}

// SAFETY: c10::Event holds a device event and no thread-local state; libtorch allows recording, waiting and destroying
// it on any thread, one at a time, and Event is not `Sync`.
unsafe impl Send for Event {}

impl Event {
    pub fn new(device: Device) -> Result<Self, TorchError> {
        if !matches!(device, Device::Cuda(_)) {
            return Ok(Self { raw: None });
        }
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is a valid place for the pointer that the shim writes.
        unsafe { ffi::check(ffi::simic_event_new(ffi::device_type(device), &mut raw)) }?;
        Ok(Self { raw: NonNull::new(raw) })
    }

    /// Marks the work queued on `stream` so far; an earlier mark is forgotten.
    pub fn record(&mut self, stream: &Stream) -> Result<(), TorchError> {
        stream.note(TraceOperation::RecordEvent, None);
        match (self.raw, &stream.raw) {
            // SAFETY: the event is ours until it is dropped, and the stream came from the pool.
            (Some(event), Some(stream)) => unsafe { ffi::check(ffi::simic_event_record(event.as_ptr(), stream)) },
            _ => Ok(()),
        }
    }

    /// Makes later work of `stream` wait for the mark, on the device; the host goes on.
    pub fn wait(&self, stream: &Stream) -> Result<(), TorchError> {
        stream.note(TraceOperation::WaitEvent, None);
        match (self.raw, &stream.raw) {
            // SAFETY: as in `record`.
            (Some(event), Some(stream)) => unsafe { ffi::check(ffi::simic_event_wait(event.as_ptr(), stream)) },
            _ => Ok(()),
        }
    }

    /// Waits for the mark on the host.
    pub fn synchronize(&self) -> Result<(), TorchError> {
        match self.raw {
            // SAFETY: the event is ours until it is dropped.
            Some(event) => unsafe { ffi::check(ffi::simic_event_synchronize(event.as_ptr())) },
            None => Ok(()),
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Some(event) = self.raw {
            // SAFETY: made by simic_event_new and freed once.
            unsafe { ffi::simic_event_free(event.as_ptr()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use tch::Kind;

    use super::*;
    use crate::torch::catch;

    /// Spec 06 §5.1 S12.
    #[test]
    fn on_cpu_streams_and_events_change_nothing() {
        let stream = Stream::from_pool(Device::Cpu).expect("stream");
        let mut event = Event::new(Device::Cpu).expect("event");

        let sum = {
            let _guard = stream.enter().expect("guard");
            let x = Tensor::ones([3], (Kind::Float, Device::Cpu));
            stream.record_stream(&x).expect("record");
            event.record(&stream).expect("record");
            event.wait(&stream).expect("wait");
            x.sum(Kind::Float)
        };
        event.synchronize().expect("synchronize");
        stream.synchronize().expect("synchronize");

        assert!(sum.equal(&Tensor::from(3.0f32)));
    }

    #[test]
    fn a_trace_shows_writes_inside_their_env_s_guard_also_when_it_is_left_by_a_panic() {
        let trace = StreamTrace::default();
        let stream = Stream::from_pool(Device::Cpu).expect("stream").traced(3, trace.clone());
        let x = Tensor::ones([1], (Kind::Float, Device::Cpu));

        let result = catch(|| {
            let _guard = stream.enter().expect("guard");
            stream.note_write(&x);
            panic!("inside");
        });
        stream.synchronize().expect("synchronize");

        assert!(result.is_err());
        let entries = trace.take();
        let operations: Vec<_> = entries.iter().map(|entry| entry.operation).collect();
        assert_eq!(
            operations,
            [
                TraceOperation::EnterGuard,
                TraceOperation::Write,
                TraceOperation::LeaveGuard,
                TraceOperation::Wait
            ]
        );
        assert!(entries.iter().all(|entry| entry.env == Some(3)));
        assert_eq!(entries[1].tensor, Some(x.data_ptr().addr()));
        assert!(trace.take().is_empty());
    }
}
