use super::*;
use crate::data::dataset::tests::digits_task;
use crate::data::geometry::Crop;
use crate::data::{DataRegistry, load};

const PAD: usize = 4;

fn window(resident: &ResidentData, crop: Crop) -> Vec<Vec<u8>> {
    let TrainImages::Windows(windows) = &resident.train else {
        panic!("they are on the device");
    };
    let pixels = windows.get(resident.geometry.window(3, crop));
    Vec::<Vec<u8>>::try_from(pixels.contiguous()).unwrap()
}

#[test]
fn a_centred_crop_is_the_image_and_a_corner_crop_has_a_black_edge() {
    let data = load(&digits_task(), None, &DataRegistry::default()).unwrap();
    let augment = AugmentSpec {
        pad: PAD as u32,
        flip_p: 0.5,
        cutout: None,
    };
    let resident = ResidentData::upload(&data, Some(augment), Backend::CPU, None).unwrap();
    let image: Vec<Vec<u8>> = data.train.pixels().unwrap()[3 * 64..4 * 64]
        .chunks(8)
        .map(<[u8]>::to_vec)
        .collect();

    let centred = Crop {
        top: PAD,
        left: PAD,
        is_flipped: false,
    };
    assert_eq!(window(&resident, centred), image);

    let corner = window(&resident, Crop::default());
    for (y, row) in corner.iter().enumerate() {
        for (x, &pixel) in row.iter().enumerate() {
            let expected = if y < PAD || x < PAD { 0 } else { image[y - PAD][x - PAD] };
            assert_eq!(pixel, expected, "row {y}, column {x}");
        }
    }
}
