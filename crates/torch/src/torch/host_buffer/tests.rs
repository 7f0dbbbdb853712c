use tch::{Device, Kind, Tensor};

use super::*;

#[test]
fn a_buffer_is_filled_copied_and_filled_again() {
    let mut buffer = HostBuffer::new(6, Device::Cpu).unwrap();
    let to = Tensor::zeros([2, 3], (Kind::Uint8, Device::Cpu));

    buffer.bytes_mut().unwrap().copy_from_slice(&[1, 2, 3, 4, 5, 6]);
    buffer.copy_to(&to).unwrap();
    buffer.bytes_mut().unwrap().fill(9);

    assert_eq!(Vec::<Vec<u8>>::try_from(&to).unwrap(), [[1, 2, 3], [4, 5, 6]]);
    buffer.copy_to(&to).unwrap();
    assert_eq!(Vec::<Vec<u8>>::try_from(&to).unwrap(), [[9; 3]; 2]);
}

#[test]
fn a_tensor_of_another_size_is_refused() {
    let mut buffer = HostBuffer::new(6, Device::Cpu).unwrap();

    assert!(buffer.copy_to(&Tensor::zeros([5], (Kind::Uint8, Device::Cpu))).is_err());
    assert_eq!(HostBuffer::new(0, Device::Cpu).unwrap().bytes_mut().unwrap(), [0_u8; 0]);
}
