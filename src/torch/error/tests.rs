use tch::{Device, Kind, Tensor};

use super::*;

#[test]
fn a_shape_mistake_in_a_tensor_operation_arrives_as_a_shape_error() {
    let result = catch(|| {
        let left = Tensor::zeros([2, 3], (Kind::Float, Device::Cpu));
        let right = Tensor::zeros([4, 5], (Kind::Float, Device::Cpu));
        left.matmul(&right)
    });

    let error = result.expect_err("2x3 and 4x5 cannot be multiplied");
    assert!(matches!(&error, TorchError::Shape(_)), "{error:?}");
    assert!(!error.to_string().contains("Exception raised from"));
}

#[test]
fn messages_are_sorted_by_what_can_be_done_about_them() {
    let class = |message: &str| TorchError::classify(message);
    assert!(matches!(class("CUDA error: out of memory"), TorchError::OutOfMemory(_)));
    assert!(matches!(
        class("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
        TorchError::OutOfMemory(_)
    ));
    assert!(matches!(
        class("CUDA error: device-side assert triggered"),
        TorchError::DeviceFault(_)
    ));
    assert!(matches!(
        class("CUDA error: an illegal memory access was encountered"),
        TorchError::DeviceFault(_)
    ));
    assert!(matches!(class("something else"), TorchError::Other(_)));
}

#[test]
fn a_value_passes_and_a_plain_panic_keeps_its_text() {
    assert_eq!(catch(|| 7), Ok(7));
    let error = catch(|| panic!("the rule was broken")).expect_err("panicked");
    assert_eq!(error, TorchError::Other("the rule was broken".into()));
}
