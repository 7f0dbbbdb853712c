use tch::{Kind, Tensor};

use super::*;
use crate::torch::fixtures::test_device;

#[test]
fn a_buffer_is_filled_copied_and_filled_again() {
    let mut buffer = HostBuffer::new(6, test_device()).unwrap();
    let to = Tensor::zeros([2, 3], (Kind::Uint8, test_device()));

    buffer.bytes_mut().unwrap().copy_from_slice(&[1, 2, 3, 4, 5, 6]);
    buffer.copy_to(&to).unwrap();
    buffer.bytes_mut().unwrap().fill(9);

    assert_eq!(Vec::<Vec<u8>>::try_from(&to).unwrap(), [[1, 2, 3], [4, 5, 6]]);
    buffer.copy_to(&to).unwrap();
    assert_eq!(Vec::<Vec<u8>>::try_from(&to).unwrap(), [[9; 3]; 2]);
}

#[test]
fn a_tensor_of_another_size_is_refused() {
    let mut buffer = HostBuffer::new(6, test_device()).unwrap();

    let of_five = Tensor::zeros([5], (Kind::Uint8, test_device()));
    assert!(buffer.copy_to(&of_five).is_err());
    let mut empty = HostBuffer::new(0, test_device()).unwrap();
    assert_eq!(empty.bytes_mut().unwrap(), [0_u8; 0]);
}
