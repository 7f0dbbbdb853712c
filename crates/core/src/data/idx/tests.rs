use proptest::prelude::*;

use super::*;
use crate::data::locate::tests::assert_refused;

/// A file of unsigned bytes.
fn file<const DIMENSIONS: usize>(sizes: [u32; DIMENSIONS], data: &[u8]) -> Vec<u8> {
    let sizes = sizes.map(u32::to_be_bytes).concat();
    [&[0, 0, 8, DIMENSIONS as u8][..], &sizes, data].concat()
}

fn pool(images: &[u8], labels: &[u8]) -> Result<Pool, DataError> {
    labelled(read_images("i", images).unwrap(), ("l", labels))
}

#[test]
fn images_with_planes_become_channels_last() {
    // Given one 2x2 image of two channels, stored plane by plane.
    let bytes = file([1, 2, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8]);

    let images = read_images("planes", &bytes[..]).unwrap();

    assert_eq!((images.count, images.shape.channels), (1, 2));
    assert_eq!((images.shape.height, images.shape.width), (2, 2));
    assert_eq!(images.images, vec![1, 5, 2, 6, 3, 7, 4, 8].into());
}

#[test]
fn a_file_with_little_endian_sizes_is_refused_without_allocating() {
    let bytes = file([1797, 8, 8].map(u32::swap_bytes), &[0; 64]);

    // 84 344 832 images of 134 217 728 squared: beyond u64, reported all the same.
    let told = "data file little has 80 bytes, its header implies 1519421415863308347506704 bytes";
    assert_refused(read_images("little", &bytes[..]), told);
}

#[test]
fn labels_of_other_lengths_types_and_dimensions_are_refused() {
    for (bytes, told) in [
        (file([4], &[0; 3]), " has 11 bytes, its header implies 12 bytes"),
        (file([4], &[0; 5]), " after the 12 that its header implies, found 13 "),
        (vec![0, 0, 8, 1, 0, 0], " has 6 bytes, its header implies 8 bytes"),
        (vec![0, 0, 0x0D, 1, 0, 0, 0, 0], " is not an IDX file of unsigned bytes"),
        (file([1, 1], &[0]), " has 2 dimensions, labels need "),
    ] {
        assert_refused(read_labels("l", &bytes[..]), told);
    }
}

#[test]
fn sizes_without_a_byte_behind_them_are_no_images() {
    // 0 images of 4 294 967 295 squared pixels: the product of the sizes is 0, those of two sizes would not fit.
    let bytes = file([0, u32::MAX, u32::MAX, u32::MAX], &[]);

    assert_refused(read_images("none", &bytes[..]), "none holds no image");
}

#[test]
fn images_and_labels_of_different_numbers_are_refused() {
    let refused = pool(&file([2, 1, 1], &[7, 8]), &file([3], &[0, 1, 2]));

    assert_refused(refused, "data file i has 2 images, l has 3 labels");
}

#[test]
fn a_label_out_of_range_is_named_with_its_byte() {
    let pool = pool(&file([3, 1, 1], &[7, 8, 9]), &file([3], &[0, 12, 2])).unwrap();

    let told = "data 'l': label 12 of sample 1 (byte 9) is outside 0..10";
    assert_refused(pool.check_labels("mine", 10), told);
    assert!(pool.check_labels("mine", 13).is_ok());
}

proptest! {
    #[test]
    fn what_was_written_is_read(height in 1u8..5, width in 1u8..5, count in 1u8..9, seed: u8) {
        let size = usize::from(height) * usize::from(width);
        let pixels: Vec<u8> = (0..usize::from(count) * size).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect();
        let bytes = file([count, height, width].map(u32::from), &pixels);

        let images = read_images("any", &bytes[..]).unwrap();

        prop_assert_eq!(images.count, usize::from(count));
        prop_assert_eq!(images.images, pixels.into());
    }

    #[test]
    fn no_bytes_make_the_reader_fail_otherwise_than_by_an_error(
        start in prop::sample::select(vec![vec![], vec![0, 0, 8, 1], vec![0, 0, 8, 3], vec![0, 0, 8, 4]]),
        rest: Vec<u8>,
    ) {
        let bytes = [start, rest].concat();
        let _ = read_images("any", &bytes[..]);
        let _ = read_labels("any", &bytes[..]);
    }

    #[test]
    fn a_file_cut_anywhere_is_refused(cut in 0usize..20) {
        let bytes = file([2, 2, 1], &[1, 2, 3, 4]);
        prop_assert!(read_images("cut", &bytes[..cut]).is_err());
    }
}
