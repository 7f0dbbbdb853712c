use proptest::prelude::*;

use super::*;
use crate::data::digits;
use crate::data::formats::array::Array;
use crate::data::formats::arrays::found;
use crate::data::locate::tests::{assert_refused, folder_of, packed};

/// A file of unsigned bytes.
fn file<const DIMENSIONS: usize>(sizes: [u32; DIMENSIONS], data: &[u8]) -> Vec<u8> {
    let sizes = sizes.map(u32::to_be_bytes).concat();
    [&[0, 0, 8, DIMENSIONS as u8][..], &sizes, data].concat()
}

fn pair(images: &[u8], labels: &[u8]) -> Result<Found, DataError> {
    let pair = [Array::read("i", images, head)?, Array::read("l", labels, head)?];
    found("idx", [Some(pair), None, None], &mut stated(255.0))
}

#[test]
fn images_with_planes_become_channels_last() {
    // Given one 2x2 image of two channels, stored plane by plane.
    let bytes = file([1, 2, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8]);

    let images = pair(&bytes, &file([1], &[0])).unwrap().train;

    let shape = images.shape;
    assert_eq!((shape.channels, shape.height, shape.width), (2, 2, 2));
    assert_eq!(images.part.pixels().unwrap()[..], [1, 5, 2, 6, 3, 7, 4, 8]);
}

#[test]
fn a_file_with_little_endian_sizes_is_refused_without_allocating() {
    let bytes = file([1797, 8, 8].map(u32::swap_bytes), &[0; 64]);

    // 84 344 832 images of 134 217 728 squared: beyond u64, reported all the same.
    let expected = "data file i has 80 bytes, its header implies 1519421415863308347506704 bytes";
    assert_refused(pair(&bytes, &[]), expected);
}

#[test]
fn labels_of_other_lengths_types_and_dimensions_are_refused() {
    for (bytes, expected) in [
        (file([4], &[0; 3]), " has 11 bytes, its header implies 12 bytes"),
        (file([4], &[0; 5]), " after the 12 that its header implies, found 13 "),
        (vec![0, 0, 8, 1, 0, 0], " has 6 bytes, its header implies 8 bytes"),
        (vec![0, 0, 0x0D, 1, 0, 0, 0, 0], " is not an IDX file of unsigned bytes"),
        (
            file([1, 2], &[0, 0]),
            "l has the sizes [1, 2]; valid: one label an image",
        ),
    ] {
        assert_refused(pair(&file([1, 1, 1], &[7]), &bytes), expected);
    }
    // The files of a pair are swapped.
    assert_refused(
        pair(&file([1], &[0]), &file([1, 1, 1], &[7])),
        "i has the sizes [1]; valid: ",
    );
}

#[test]
fn sizes_without_a_byte_after_them_arent_images() {
    // 0 images of 4 294 967 295 squared pixels: the product of the sizes is 0, those of two sizes would not fit.
    let bytes = file([0, u32::MAX, u32::MAX, u32::MAX], &[]);

    assert_refused(pair(&bytes, &file([0], &[])), "i holds no image");
}

#[test]
fn images_and_labels_of_different_numbers_are_refused() {
    let refused = pair(&file([2, 1, 1], &[7, 8]), &file([3], &[0, 1, 2]));

    assert_refused(refused, "data file i has 2 images, l has 3 labels");
}

#[test]
fn a_label_out_of_range_is_named_with_its_byte() {
    let pool = pair(&file([3, 1, 1], &[7, 8, 9]), &file([3], &[0, 12, 2]))
        .unwrap()
        .train;

    let expected = "data 'l': label 12 of sample 1 (byte 9) is outside 0..10";
    assert_refused(pool.check_labels("mine", 10), expected);
    assert!(pool.check_labels("mine", 13).is_ok());
}

proptest! {
    #[test]
    fn what_was_written_is_read(height in 1u8..5, width in 1u8..5, count in 1u8..9, seed: u8) {
        let size = usize::from(height) * usize::from(width);
        let pixels: Vec<u8> = (0..usize::from(count) * size).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect();
        let bytes = file([count, height, width].map(u32::from), &pixels);

        let images = pair(&bytes, &file([count.into()], &vec![0; count.into()])).unwrap().train;

        prop_assert_eq!(images.part.len(), usize::from(count));
        prop_assert_eq!(&images.part.pixels().unwrap()[..], &pixels[..]);
    }

    #[test]
    fn no_bytes_make_the_reader_fail_otherwise_than_by_an_error(
        start in prop::sample::select(vec![vec![], vec![0, 0, 8, 1], vec![0, 0, 8, 3], vec![0, 0, 8, 4]]),
        rest: Vec<u8>,
    ) {
        let bytes = [start, rest].concat();
        let _ = pair(&bytes, &file([1], &[0]));
        let _ = pair(&file([1, 1, 1], &[7]), &bytes);
    }

    #[test]
    fn a_file_cut_anywhere_is_refused(cut in 0usize..20) {
        let bytes = file([2, 2, 1], &[1, 2, 3, 4]);
        prop_assert!(pair(&bytes[..cut], &file([2], &[0, 1])).is_err());
    }
}

fn train() -> [(&'static str, Vec<u8>); 2] {
    [
        ("train-images-idx3-ubyte", digits::IMAGES.to_vec()),
        ("train-labels-idx1-ubyte.gz", packed(digits::LABELS)),
    ]
}

#[test]
fn the_four_published_files_are_found_packed_or_not_and_where_mirrors_have_them() {
    let test = [
        ("t10k-images-idx3-ubyte.gz", packed(digits::IMAGES)),
        ("t10k-labels-idx1-ubyte", digits::LABELS.to_vec()),
    ];
    let files = [train(), test].concat();
    for (place, idx) in [("NAME", "-idx"), ("MNIST/raw/BARE", "-idx"), ("BARE/BARE", ".idx")] {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in &files {
            let name = name.replace("-idx", idx);
            let place = place.replace("BARE", name.trim_end_matches(".gz"));
            let path = folder.path().join(place.replace("NAME", &name));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }

        let found = read_folder(folder.path(), 16.0).unwrap();

        assert!(is_in(folder.path()) && found.notes.is_empty() && found.val.is_none());
        let [train, test] = [found.train.part, found.test.unwrap().part];
        assert_eq!(train.pixels().unwrap(), test.pixels().unwrap());
        assert_eq!((train.len(), train.labels), (1797, test.labels));
    }
}

#[test]
fn without_test_files_the_test_part_is_drawn_and_a_note_says_so() {
    let folder = folder_of(train());

    let found = read_folder(folder.path(), 16.0).unwrap();

    assert!(found.test.is_none());
    let expected = "has no t10k-images-idx3-ubyte; the test part is drawn from the training files";
    assert!(found.notes[0].ends_with(expected), "{:?}", found.notes);
}

#[test]
fn half_a_pair_is_reported_with_the_file_that_is_missing() {
    let labels = [("t10k-labels-idx1-ubyte", digits::LABELS.to_vec())];
    let without_images = folder_of([&train()[..], &labels].concat());
    let without_train = folder_of(labels);

    for folder in [without_images, without_train] {
        let half = read_folder(folder.path(), 16.0);
        assert_refused(half, "has no file t10k-images-idx3-ubyte, which idx_folder needs");
    }
}

#[test]
fn a_packed_label_out_of_range_is_named_by_its_unpacked_byte() {
    let mut labels = digits::LABELS.to_vec();
    labels[8 + 5] = 77;
    let [images, _] = train();
    let folder = folder_of([images, ("train-labels-idx1-ubyte.gz", packed(&labels))]);

    let found = read_folder(folder.path(), 16.0).unwrap();

    let expected = "train-labels-idx1-ubyte.gz (unpacked)': label 77 of sample 5 (byte 13)";
    assert_refused(found.train.check_labels("idx_folder", 10), expected);
}
