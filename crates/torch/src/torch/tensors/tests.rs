use tch::{Device, Kind, Tensor};

use super::*;
use crate::torch::fixtures::{on_device, test_device};

fn f32s() -> (Kind, Device) {
    (Kind::Float, test_device())
}

#[test]
fn channels_last_moves_memory_and_keeps_values() {
    let image = Tensor::arange(24, f32s()).reshape([1, 2, 3, 4]);

    let moved = channels_last(&image).expect("four dimensions");

    assert!(!is_channels_last(&image));
    assert!(is_channels_last(&moved));
    assert_eq!(moved.stride(), [24, 1, 8, 2]);
    assert!(moved.equal(&image));
    assert_eq!(channels_last(&moved).expect("again").data_ptr(), moved.data_ptr());
}

#[test]
fn channels_last_of_a_matrix_is_an_error() {
    assert!(channels_last(&Tensor::zeros([2, 2], f32s())).is_err());
    assert!(!is_channels_last(&Tensor::zeros([2, 2], f32s())));
}

#[test]
fn copies_keep_the_storage_of_a_trained_parameter_and_record_nothing() {
    let param = Tensor::zeros([3], f32s()).set_requires_grad(true);
    let storage = param.data_ptr();

    copy_into(&param, &Tensor::from_slice(&[1i64, 2, 3]), false).expect("copy");

    assert_eq!(param.data_ptr(), storage);
    assert!(param.is_leaf() && param.requires_grad());
    assert!(param.equal(&on_device(Tensor::from_slice(&[1.0f32, 2.0, 3.0]))));
}

#[test]
fn lists_are_copied_and_zeroed_in_place() {
    let from = [Tensor::ones([2], f32s()), Tensor::full([2, 2], 3.0, f32s())];
    // One dense tensor and one view with gaps: both ways of zeroing.
    let wide = Tensor::ones([2, 4], f32s());
    let to = [Tensor::zeros([2], f32s()), wide.narrow(1, 0, 2)];

    copy_all(&to, &from, false).expect("copy");
    assert!(to[1].equal(&from[1]));
    assert!(copy_all(&to, &from[..1], false).is_err());

    zero_all(&to).expect("zero");
    assert!(to[0].equal(&Tensor::zeros([2], f32s())));
    let half = Tensor::from_slice2(&[[0.0f32, 0.0, 1.0, 1.0]; 2]);
    assert!(wide.equal(&on_device(half)));
}

#[test]
fn values_are_uploaded_row_by_row_and_have_to_fit() {
    let to = Tensor::zeros([2, 2], (Kind::Int64, test_device()));

    upload(&to, &[1, 2, 3, 4]).expect("they fit");

    let expected = Tensor::from_slice(&[1_i64, 2, 3, 4]).view([2, 2]);
    assert!(to.equal(&on_device(expected)));
    assert!(matches!(upload(&to, &[1, 2, 3]), Err(TorchError::Shape(_))));
    synchronize(test_device()).expect("nothing fails");
}
