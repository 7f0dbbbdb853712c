use tch::Kind;

use super::*;
use crate::torch::catch;
use crate::torch::fixtures::{on_device, test_device};

#[test]
fn a_stream_changes_no_result() {
    let stream = Stream::from_pool(test_device()).expect("stream");

    let sum = {
        let _guard = stream.enter().expect("guard");
        Tensor::ones([3], (Kind::Float, test_device())).sum(Kind::Float)
    };
    stream.synchronize().expect("synchronize");

    assert!(sum.equal(&on_device(Tensor::from(3.0f32))));
}

#[test]
fn a_trace_shows_writes_inside_their_env_s_guard_also_when_it_is_left_by_a_panic() {
    let trace = StreamTrace::default();
    let stream = Stream::from_pool(test_device()).expect("stream");
    let stream = stream.traced(3, trace.clone());
    let x = Tensor::ones([1], (Kind::Float, test_device()));

    let result = catch(|| {
        let _guard = stream.enter().expect("guard");
        stream.note_write(&x);
        panic!("inside");
    });
    stream.synchronize().expect("synchronize");

    assert!(result.is_err());
    let entries = trace.take();
    let operations: Vec<_> = entries.iter().map(|entry| entry.operation).collect();
    use TraceOperation::{EnterGuard, LeaveGuard, Wait, Write};
    assert_eq!(operations, [EnterGuard, Write, LeaveGuard, Wait]);
    assert!(entries.iter().all(|entry| entry.env == Some(3)));
    assert_eq!(entries[1].tensor, Some(x.data_ptr().addr()));
    assert!(trace.take().is_empty());
}
