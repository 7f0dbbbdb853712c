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

    let images = parse_images("planes", &bytes).unwrap();

    assert_eq!((images.count, images.channels), (1, 2));
    assert_eq!((images.height, images.width), (2, 2));
    assert_eq!(images.pixels, [1, 5, 2, 6, 3, 7, 4, 8]);
}

#[test]
fn a_file_with_little_endian_sizes_is_refused_without_allocating() {
    let bytes = file(&[[5, 7, 0, 0], [8, 0, 0, 0], [8, 0, 0, 0]], &[0; 64]);

    let error = parse_images("little", &bytes).unwrap_err();

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

        let error = parse_labels("labels", &bytes).unwrap_err();

        assert!(
            matches!(error, DataError::SizeMismatch { expected: 12, found: f, .. } if f == found),
            "{error}"
        );
    }
}

#[test]
fn a_header_cut_short_is_a_size_mismatch() {
    let error = parse_labels("labels", &[0, 0, 8, 1, 0, 0]).unwrap_err();

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
fn other_types_and_compressed_files_are_named() {
    assert!(matches!(
        parse("floats", &[0, 0, 0x0D, 1, 0, 0, 0, 0]),
        Err(DataError::BadMagic { .. })
    ));
    assert!(matches!(
        parse("packed", &[0x1f, 0x8b, 8, 0]),
        Err(DataError::Compressed { .. })
    ));
    assert!(matches!(
        parse_labels("images as labels", &file(&[[0, 0, 0, 1], [0, 0, 0, 1]], &[0])),
        Err(DataError::Dimensions { found: 2, .. })
    ));
}
