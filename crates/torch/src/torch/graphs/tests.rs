use tch::{Kind, Tensor};

use super::*;
use crate::torch::fixtures::test_device;
use crate::torch::{HostSyncCounter, Stream, read_f64};

fn sum_of(tensor: &Tensor) -> f64 {
    let sum = tensor.sum(Kind::Double);
    read_f64(&sum, &HostSyncCounter::default()).expect("it can be read")[0]
}

#[test]
fn where_there_is_no_cuda_a_capture_says_so_and_does_not_run_its_body() {
    if test_device().is_cuda() {
        return;
    }
    let mut is_run = false;

    let captured = Graph::capture(None, || {
        is_run = true;
        Ok::<_, TorchError>(())
    });

    let reason = graphs_unavailable().expect("a CPU has no graphs");
    assert!(reason.contains("CUDA"), "{reason}");
    assert_eq!(captured.err(), Some(TorchError::Other(format!("CUDA graph: {reason}"))));
    assert!(!is_run);
}

#[test]
fn a_failed_capture_isnt_a_fault_of_the_device() {
    for text in [
        "CUDA error: operation not permitted when stream is capturing",
        "CUDA error: operation failed due to a previous error during capture\nException raised from capture_end at x.cpp:1",
        "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, opa, opb)`",
        "the device failed: CUDA error: dependency created on uncaptured work in another stream",
        "CUDA graphs must be captured on a non-default stream.",
    ] {
        let error = capture_error(text);

        assert!(matches!(error, TorchError::Other(_)), "{error}");
        assert!(error.to_string().starts_with("CUDA graph: "), "{error}");
        let again = TorchError::classify(error.to_string());
        assert_eq!(again, error, "callers may look at the text alone");
    }
}

#[test]
fn memory_and_faults_of_earlier_work_remain_what_they_are() {
    let memory = capture_error("CUDA error: out of memory");
    assert!(matches!(memory, TorchError::OutOfMemory(_)), "{memory}");
    let fault = capture_error("CUDA error: an illegal memory access was encountered");
    assert!(matches!(fault, TorchError::DeviceFault(_)), "{fault}");
}

#[test]
fn a_graph_computes_again_from_what_its_inputs_have_become() {
    let device = test_device();
    if graphs_unavailable().is_some() {
        return;
    }
    let stream = Stream::from_pool(device).expect("a stream");
    let _current = stream.enter().expect("it becomes current");
    let (input, output) = (
        Tensor::zeros([4], (Kind::Float, device)),
        Tensor::zeros([4], (Kind::Float, device)),
    );
    let add_to_output = || {
        let _ = output.shallow_clone().f_add_(&(&input * 2.0))?;
        Ok::<_, TorchError>(())
    };

    let waits = Graph::capture(None, || stream.synchronize());
    let first = Graph::capture(None, add_to_output).expect("eager work continues after a capture that failed");
    let second = Graph::capture(Some(&first), add_to_output).expect("a second one in the same memory");
    let _ = input.shallow_clone().fill_(3.0);
    first.replay().expect("once");
    second.replay().expect("and once more");

    let waits = waits.expect_err("CUDA captures no waiting");
    assert!(matches!(waits, TorchError::DeviceFault(_)), "{waits}");
    assert_eq!(sum_of(&output), 48.0);
    drop(first);
    second.replay().expect("its memory is still there");
    assert_eq!(sum_of(&output), 72.0);
}

#[test]
fn a_body_that_panics_ends_its_capture() {
    let device = test_device();
    if graphs_unavailable().is_some() {
        return;
    }
    let stream = Stream::from_pool(device).expect("a stream");
    let _current = stream.enter().expect("it becomes current");

    let panicked = crate::torch::catch(|| Graph::capture(None, || -> Result<(), TorchError> { panic!("in its body") }));

    assert_eq!(panicked.err(), Some(TorchError::Other("in its body".into())));
    stream.synchronize().expect("the stream captures no longer");
}
