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
    assert!(matches!(
        class("The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1"),
        TorchError::Shape(_)
    ));
    assert!(matches!(class("something else"), TorchError::Other(_)));
}

#[test]
fn what_is_not_said_by_libtorch_is_no_shape_error_for_a_word_in_it() {
    let error = catch(|| panic!("the shape of the channels has sizes out of bounds")).expect_err("panicked");
    let said = TorchError::Other("the shape of the channels has sizes out of bounds".into());
    assert_eq!(error, said);
    assert!(matches!(
        TorchError::classify("expected a tensor of another dimension"),
        TorchError::Other(_)
    ));
}

/// As the CPU's allocator says it, and as a panic of tch carries it.
#[test]
fn out_of_memory_is_one_line_with_the_size_that_was_asked_for() {
    let raw = "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to \
               allocate 3932160000 bytes. Error code 12 (Cannot allocate memory)\nframe #0: c10::ThrowEnforceNotMet(char \
               const*) + 0x6b (0x7f)\nframe #1: other\n";
    let panic = format!(
        "called `Result::unwrap()` on an `Err` value: {:?}",
        tch::TchError::Torch(raw.into())
    );

    let errors = [
        TorchError::classify(raw),
        catch(|| panic!("{panic}")).expect_err("panicked"),
    ];

    for error in errors {
        let text = error.to_string();
        assert!(
            text.starts_with("no memory is left: can't allocate memory: you tried to allocate 3932160000 bytes"),
            "{text}"
        );
        assert!(
            !text.contains('\n') && !text.contains("unwrap") && !text.contains("frame #"),
            "{text}"
        );
        assert!(text.contains("what helps: "), "{text}");
    }
}

/// Far more than any machine has.
#[test]
fn an_allocation_that_fails_is_out_of_memory() {
    let error = catch(|| Tensor::zeros([1 << 50], (Kind::Float, Device::Cpu))).expect_err("four petabytes");

    assert!(
        matches!(&error, TorchError::OutOfMemory(message) if message.contains("tried to allocate 4503599627370")),
        "{error:?}"
    );
}

#[test]
fn a_thread_knows_whether_its_panics_are_caught() {
    assert!(!is_catching());
    let inside = catch(|| (catch(is_catching), is_catching()));
    assert_eq!(inside, Ok((Ok(true), true)));
    let _ = catch(|| panic!("caught"));
    assert!(!is_catching());
}

#[test]
fn a_value_passes_and_a_plain_panic_keeps_its_text() {
    assert_eq!(catch(|| 7), Ok(7));
    let error = catch(|| panic!("the rule was broken")).expect_err("panicked");
    assert_eq!(error, TorchError::Other("the rule was broken".into()));
}
