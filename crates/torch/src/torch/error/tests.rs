use tch::{Device, Kind, Tensor};

use super::*;

#[test]
fn a_shape_mistake_in_a_tensor_operation_arrives_as_a_shape_error() {
    let [left, right] = [[2, 3], [4, 5]].map(|shape| Tensor::zeros(shape, (Kind::Float, Device::Cpu)));

    let error = catch(|| left.matmul(&right)).expect_err("2x3 and 4x5 cannot be multiplied");

    assert!(matches!(&error, TorchError::Shape(_)), "{error:?}");
    assert!(!error.to_string().contains("Exception raised from"));
}

#[test]
fn messages_are_sorted_by_what_can_be_done_about_them() {
    for (message, class) in [
        ("CUDA error: out of memory", "memory"),
        ("DefaultCPUAllocator: can't allocate memory", "memory"),
        ("CUDA error: device-side assert triggered", "device"),
        ("CUDA error: an illegal memory access was encountered", "device"),
        ("The size of tensor a (3) must match the size of tensor b (4)", "shape"),
        ("something else", "other"),
        ("expected a tensor of another dimension", "other"),
    ] {
        let found = match TorchError::classify(message) {
            TorchError::OutOfMemory(_) => "memory",
            TorchError::DeviceFault(_) => "device",
            TorchError::Shape(_) => "shape",
            TorchError::Other(_) => "other",
        };
        assert_eq!(found, class, "{message}");
    }
}

#[test]
fn a_message_of_others_isnt_a_shape_error_for_a_word_in_it() {
    let error = catch(|| panic!("the shape of the channels has sizes out of bounds")).expect_err("panicked");
    let said = TorchError::Other("the shape of the channels has sizes out of bounds".into());
    assert_eq!(error, said);
}

/// Tests the words of the CPU's allocator, plain and in a panic of tch.
#[test]
fn out_of_memory_is_one_line_with_the_size_that_was_asked_for() {
    let raw = "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to \
               allocate 3932160000 bytes. Error code 12 (Cannot allocate memory)\nframe #0: c10::ThrowEnforceNotMet(char \
               const*) + 0x6b (0x7f)\nframe #1: other\n";
    let error = tch::TchError::Torch(raw.into());
    let panicked = catch(|| panic!("called `Result::unwrap()` on an `Err` value: {error:?}")).expect_err("panicked");

    for error in [TorchError::classify(raw), panicked] {
        let text = error.to_string();
        let said = "no memory is left: can't allocate memory: you tried to allocate 3932160000 bytes";
        assert!(text.starts_with(said) && text.contains("; split batches "), "{text}");
        let has_noise = ["\n", "unwrap", "frame #"].iter().any(|noise| text.contains(noise));
        assert!(!has_noise, "{text}");
    }
}

/// Asks for far more than any machine has.
#[test]
fn an_allocation_that_fails_is_out_of_memory() {
    let error = catch(|| Tensor::zeros([1 << 50], (Kind::Float, Device::Cpu))).expect_err("four petabytes");

    let is_named =
        matches!(&error, TorchError::OutOfMemory(message) if message.contains("tried to allocate 4503599627370"));
    assert!(is_named, "{error:?}");
}

#[test]
fn a_thread_knows_whether_its_panics_are_caught() {
    assert!(!is_catching());
    let inside = catch(|| (catch(is_catching), is_catching()));
    assert_eq!(inside, Ok((Ok(true), true)));
    let _ = catch(|| panic!("caught"));
    assert!(!is_catching());
}
