use super::*;
use crate::data::dataset::tests::{digits_task, loaded};
use crate::torch::fixtures::test_backend;

#[test]
fn validation_is_the_data_in_order_with_a_short_last_batch() {
    let data = loaded(&digits_task());
    let resident = ResidentData::upload(&data, None, test_backend(), None).unwrap();

    let batches = resident.val.batches(256, 2);

    assert_eq!(batches.iter().map(|b| b.n).collect::<Vec<_>>(), [256, 99]);
    assert_eq!(batches[1].x.size(), [99, 1, 8, 8]);
    assert_eq!(Vec::<i64>::try_from(&batches[1].y).unwrap(), data.val.labels[256..]);
    // A black corner pixel is -mean/std.
    let corner = f32::try_from(batches[0].x.get(0).view(-1).get(0)).unwrap();
    assert!((corner + 0.811_17).abs() < 1e-5, "{corner}");
}

#[test]
fn bytes_that_are_uploaded_in_pieces_arrive_in_their_order() {
    let bytes: Vec<u8> = (0..10).collect();
    let to = Tensor::zeros([10], (Kind::Uint8, Device::Cpu));

    upload_pieces(&to, &bytes, 4).unwrap();

    assert!(to.equal(&upload_bytes(&bytes, Device::Cpu).unwrap()));
    assert_eq!(Vec::<u8>::try_from(&to).unwrap(), bytes);
}
