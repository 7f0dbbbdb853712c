use std::io::Write;

use super::*;
use crate::data::locate::tests::assert_refused;
use crate::data::{Images, Part};

/// A file of `count` records of 2x2 images of two channels after a byte of label: each image is its number and 1 to 7 more.
fn file(name: &str, first: u8, count: u8) -> RecordFile {
    let mut file = tempfile::tempfile().unwrap();
    for image in (0..count).map(|index| first + 10 * index) {
        let pixels = [0, 1, 2, 3, 4, 5, 6, 7].map(|value| image + value);
        file.write_all(&[&[255][..], &pixels].concat()).unwrap();
    }
    RecordFile {
        name: name.into(),
        source: Source::File(file),
        first: 1,
        each: 9,
        count: count.into(),
    }
}

const SHAPE: Shape = Shape {
    channels: 2,
    height: 2,
    width: 2,
};

#[test]
fn images_of_several_files_are_read_in_the_order_that_was_chosen_with_their_planes_side_by_side() {
    let all = Records::new(vec![file("a", 0, 2), file("b", 100, 3)], SHAPE, true);
    let images = Images::Files(all.choose(&[1, 2, 4]).choose(&[2, 0]));
    let labels = vec![0, 1];
    let part = Part { images, labels };

    let expected = [120, 124, 121, 125, 122, 126, 123, 127, 10, 14, 11, 15, 12, 16, 13, 17];
    assert_eq!(part.pixels().unwrap()[..], expected);
    assert_eq!(part.in_memory().unwrap().pixels().unwrap()[..], expected);
}

#[test]
fn planes_that_are_not_asked_for_stay_unchanged() {
    let records = Records::new(vec![file("a", 0, 1)], SHAPE, false);

    assert_eq!(records.read(0, &mut Vec::new()).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_file_that_has_become_shorter_is_reported_with_record_and_byte() {
    let files = vec![file("a", 0, 2), file("b", 100, 3)];
    let Source::File(cut) = &files[1].source else {
        unreachable!("it is a file");
    };
    let cut = cut.try_clone().unwrap();
    let records = Records::new(files, SHAPE, true);
    cut.set_len(22).unwrap();

    assert_eq!(records.read(3, &mut Vec::new()).unwrap()[0], 110);
    let expected = "data file b: record 2 at byte 19 has 3 of 8 bytes; the file is cut short";
    assert_refused(records.read(4, &mut Vec::new()), expected);
}
