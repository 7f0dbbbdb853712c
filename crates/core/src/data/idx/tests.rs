use proptest::prelude::*;

use super::*;

fn file(sizes: &[[u8; 4]], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, sizes.len() as u8];
    bytes.extend(sizes.concat());
    bytes.extend(data);
    bytes
}

#[test]
fn images_with_planes_become_channels_last() {
    // Given one 2x2 image of two channels, stored plane by plane.
    let bytes = file(
        &[[0, 0, 0, 1], [0, 0, 0, 2], [0, 0, 0, 2], [0, 0, 0, 2]],
        &[1, 2, 3, 4, 5, 6, 7, 8],
    );

    let images = read_images("planes", &bytes[..]).unwrap();

    assert_eq!((images.count, images.shape.channels), (1, 2));
    assert_eq!((images.shape.height, images.shape.width), (2, 2));
    assert_eq!(images.images, vec![1, 5, 2, 6, 3, 7, 4, 8].into());
}

#[test]
fn a_file_with_little_endian_sizes_is_refused_without_allocating() {
    let bytes = file(&[[5, 7, 0, 0], [8, 0, 0, 0], [8, 0, 0, 0]], &[0; 64]);

    let error = read_images("little", &bytes[..]).unwrap_err();

    // 84 344 832 images of 134 217 728 squared: beyond u64, reported all the same.
    let DataError::SizeMismatch { expected, found, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(expected, 1_519_421_415_863_308_347_506_704);
    assert_eq!(found, 80);
}

#[test]
fn a_file_one_byte_short_or_long_is_refused() {
    for (length, found) in [(3, 11), (5, 13)] {
        let bytes = file(&[[0, 0, 0, 4]], &vec![0; length]);

        let error = read_labels("labels", &bytes[..]).unwrap_err();

        assert!(
            matches!(error, DataError::SizeMismatch { expected: 12, found: f, .. } if f == found),
            "{error}"
        );
    }
}

#[test]
fn a_header_cut_short_is_a_size_mismatch() {
    let error = read_labels("labels", &[0, 0, 8, 1, 0, 0][..]).unwrap_err();

    assert!(matches!(
        error,
        DataError::SizeMismatch {
            expected: 8,
            found: 6,
            ..
        }
    ));
}

#[test]
fn other_types_and_swapped_files_are_named() {
    assert!(matches!(
        read("floats", &[0, 0, 0x0D, 1, 0, 0, 0, 0][..]),
        Err(DataError::BadMagic { .. })
    ));
    assert!(matches!(
        read_labels("images as labels", &file(&[[0, 0, 0, 1], [0, 0, 0, 1]], &[0])[..]),
        Err(DataError::Dimensions { found: 2, .. })
    ));
}

#[test]
fn sizes_without_a_byte_behind_them_are_no_images() {
    // 0 images of 4 294 967 295 squared pixels: the product of the sizes is 0, those of two sizes would not fit.
    let bytes = file(&[[0; 4], [0xff; 4], [0xff; 4], [0xff; 4]], &[]);

    assert!(matches!(
        read_images("none", &bytes[..]),
        Err(DataError::NoImages { .. })
    ));
}

#[test]
fn images_and_labels_of_different_numbers_are_refused() {
    let images = file(&[[0, 0, 0, 2], [0, 0, 0, 1], [0, 0, 0, 1]], &[7, 8]);
    let labels = file(&[[0, 0, 0, 3]], &[0, 1, 2]);

    let error = labelled(read_images("i", &images[..]).unwrap(), ("l", &labels[..]))
        .unwrap_err()
        .to_string();

    assert!(error.starts_with("data file i has 2 images, l has 3 labels"), "{error}");
}

#[test]
fn a_label_out_of_range_is_named_with_its_byte() {
    let images = file(&[[0, 0, 0, 3], [0, 0, 0, 1], [0, 0, 0, 1]], &[7, 8, 9]);
    let labels = file(&[[0, 0, 0, 3]], &[0, 12, 2]);
    let pool = labelled(read_images("i", &images[..]).unwrap(), ("l", &labels[..])).unwrap();

    let error = pool.check_labels("mine", 10).unwrap_err().to_string();

    assert!(
        error.starts_with("data 'l': label 12 of sample 1 (byte 9) is outside 0..10"),
        "{error}"
    );
    assert!(pool.check_labels("mine", 13).is_ok());
}

proptest! {
    #[test]
    fn what_was_written_is_read(height in 1u8..5, width in 1u8..5, count in 1u8..9, seed: u8) {
        let size = usize::from(height) * usize::from(width);
        let pixels: Vec<u8> = (0..usize::from(count) * size).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect();
        let bytes = file(&[[0, 0, 0, count], [0, 0, 0, height], [0, 0, 0, width]], &pixels);

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
        let bytes = file(&[[0, 0, 0, 2], [0, 0, 0, 2], [0, 0, 0, 1]], &[1, 2, 3, 4]);
        prop_assert!(read_images("cut", &bytes[..cut]).is_err());
    }
}
