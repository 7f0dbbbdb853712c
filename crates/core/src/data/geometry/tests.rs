use super::*;
use crate::data::dataset::tests::{augmentation, loaded, small_colour_task};

#[test]
fn a_crop_that_is_cut_shows_what_its_window_shows() {
    let data = loaded(&small_colour_task());
    // Also of less padding than none, and of more than the image is wide.
    for (pad, flip_p) in [(0, 0.0), (0, 0.5), (1, 0.5), (4, 0.5), (9, 0.5), (3, 0.0)] {
        let geometry = Geometry::new(&data, Some(augmentation(pad, flip_p, None)));
        let stored = Tensor::from_slice(&geometry.lay_out(&data.train).unwrap());
        assert_eq!(stored.numel() as u128, geometry.stored_bytes());
        let windows = geometry.windows(&stored).unwrap();
        let offsets = 2 * pad as usize + 1;
        for (top, left) in (0..offsets).flat_map(|top| (0..offsets).map(move |left| (top, left))) {
            for is_flipped in [false, true].into_iter().take(1 + usize::from(flip_p > 0.0)) {
                let crop = Crop { top, left, is_flipped };
                for sample in [0, 5] {
                    let window = geometry.window(sample, crop);
                    let mut row = vec![7; 8 * 8 * 3];

                    assert_eq!(geometry.crop(window), (sample, crop));
                    geometry.cut(data.train.image(sample, &mut Vec::new()).unwrap(), crop, &mut row);

                    let expected = windows.get(window).contiguous().view(-1);
                    assert_eq!(Vec::<u8>::try_from(expected).unwrap(), row, "pad {pad}, {crop:?}");
                }
            }
        }
    }
}
