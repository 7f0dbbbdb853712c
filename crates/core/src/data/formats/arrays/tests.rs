use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;
use crate::data::formats::npy::tests::npy;
use crate::data::locate::tests::{assert_refused, folder_of};

/// An archive as `numpy.savez` or `numpy.savez_compressed` writes it.
pub(crate) fn npz(arrays: &[(&str, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        let options = SimpleFileOptions::default().compression_method(method);
        writer.start_file(format!("{name}.npy"), options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn read_npz(bytes: &[u8]) -> Result<Found, DataError> {
    let folder = folder_of([("set.npz", bytes)]);
    read_archive(&folder.path().join("set.npz"), &mut Stated::default())
}

fn read_stated(images: &[u8], labels: &[u8], mut stated: Stated) -> Result<Found, DataError> {
    let folder = folder_of([("images.npy", images), ("labels.npy", labels)]);
    let paths = ["images.npy", "labels.npy"].map(|name| folder.path().join(name));
    read_pairs("npy", npy::head, paths, None, &mut stated)
}

/// Images and two labels, of which nothing else is known.
fn read_two(images: &[u8]) -> Result<Found, DataError> {
    read_stated(images, &two_labels(), Stated::default())
}

fn pixels(found: &Found) -> Vec<u8> {
    found.train.part.pixels().unwrap().into_owned()
}

fn two_images() -> Vec<u8> {
    npy("|u1", "(2, 1, 1)", &[7, 8])
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn two_labels() -> Vec<u8> {
    npy("<i8", "(2,)", &[[1, 0, 0, 0, 0, 0, 0, 0], [0; 8]].concat())
}

#[test]
fn channels_first_become_channels_last_if_stated_or_likely() {
    let images = npy("|u1", "(1, 3, 2, 2)", &(1..=12).collect::<Vec<u8>>());
    let labels = npy("|u1", "(1, 1)", &[4]);
    for layout in [Some(ArrayLayout::Nchw), None] {
        let stated = Stated { layout, scale: None };
        let found = read_stated(&images, &labels, stated).unwrap();

        assert_eq!(found.train.shape.channels, 3);
        assert_eq!(pixels(&found), [1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12]);
        assert_eq!((found.train.part.labels, found.scale), (vec![4], 255.0));
    }
    let (layout, scale) = (Some(ArrayLayout::Nhwc), Some(16.0));
    let found = read_stated(&images, &labels, Stated { layout, scale }).unwrap();
    assert_eq!((found.train.shape.channels, found.scale), (2, 16.0));
}

#[test]
fn a_layout_is_guessed_where_one_alone_is_likely() {
    let layout = |sizes: [usize; 3]| {
        let [a, b, c] = sizes;
        let images = npy("|u1", &format!("(2, {a}, {b}, {c})"), &vec![0; 2 * a * b * c]);
        let mut stated = Stated::default();
        let folder = folder_of([("images.npy", images), ("labels.npy", two_labels())]);
        let paths = ["images.npy", "labels.npy"].map(|name| folder.path().join(name));
        read_pairs("npy", npy::head, paths, None, &mut stated).map(|_| stated.layout.unwrap())
    };

    for first in [[4, 12, 12], [1, 4, 4], [2, 12, 9], [3, 2, 2]] {
        assert_eq!(layout(first).unwrap(), ArrayLayout::Nchw, "{first:?}");
    }
    for last in [[12, 12, 4], [4, 4, 1], [9, 12, 2], [2, 2, 3]] {
        assert_eq!(layout(last).unwrap(), ArrayLayout::Nhwc, "{last:?}");
    }
    for unclear in [[4, 4, 4], [12, 12, 12], [2, 3, 4], [8, 12, 12]] {
        assert_refused(layout(unclear), "images.npy has the sizes [2, ");
        assert_refused(layout(unclear), "--layout nchw or nhwc");
    }
}

#[test]
fn the_scale_of_floats_just_above_1_is_asked_for_and_rounding_isnt_a_reason_to_refuse_them() {
    let read = |values: [f32; 2], scale| {
        let (layout, images) = (None, npy("<f4", "(2, 1, 1)", &floats(&values)));
        read_stated(&images, &two_labels(), Stated { layout, scale })
    };

    for largest in [1.000_000_1, 1.5, 2.0] {
        let expected = format!("images.npy: its largest float is {largest}, which doesn't show ");
        assert_refused(read([0.2, largest], None), &expected);
    }
    assert_eq!(pixels(&read([0.2, 1.000_000_1], Some(1.0)).unwrap()), [51, 255]);
    assert_eq!(pixels(&read([0.2, 1.0], None).unwrap()), [51, 255]);
    assert_eq!(pixels(&read([3.0, 254.0], None).unwrap()), [3, 254]);
}

#[test]
fn floats_of_several_scales_are_refused_with_their_ranges_and_a_black_part_has_any() {
    let read = |[train, test]: [[f32; 2]; 2], scale| {
        let images = |values: [f32; 2]| npy("<f4", "(2, 1, 1)", &floats(&values));
        let images = [("x_train", images(train)), ("x_test", images(test))];
        let labels = ["y_train", "y_test"].map(|name| (name, two_labels()));
        let set = npz(&[images, labels].concat(), CompressionMethod::Stored);
        let folder = folder_of([("set.npz", set)]);
        read_archive(&folder.path().join("set.npz"), &mut Stated { layout: None, scale })
    };
    let (unit, bytes) = ([0.0, 0.5], [3.0, 254.0]);

    for scale in [None, Some(1.0), Some(255.0)] {
        for expected in ["x_train.npy from 0 to 0.5, ", "x_test.npy from 3 to 254)"] {
            assert_refused(read([unit, bytes], scale), expected);
        }
        assert_refused(read([bytes, unit], scale), "x_test.npy from 0 to 0.5, ");
    }
    assert_eq!(pixels(&read([bytes, [0.0, 0.0]], None).unwrap()), [3, 254]);
    // Normalised arrays don't have a scale.
    for parts in [[[-1.0, 0.5], bytes], [[-0.3, 1.4], unit]] {
        assert_refused(read(parts, None), "undo the normalisation");
    }
}

#[test]
fn floats_of_both_widths_are_kept_as_bytes_and_rounding_is_noted() {
    let read = |values: [f32; 2]| {
        let doubles = values.map(|value| f64::from(value).to_le_bytes()).concat();
        let found = read_two(&npy("<f4", "(2, 1, 1)", &floats(&values))).unwrap();
        let of_doubles = read_two(&npy("<f8", "(2, 1, 1)", &doubles)).unwrap();
        assert_eq!(pixels(&found), pixels(&of_doubles));
        found
    };

    let exact = read([1.0, 51.0 / 255.0]);
    let rounded = read([0.5, 0.25]);

    assert_eq!((pixels(&exact), exact.scale), (vec![255, 51], 255.0));
    assert!(exact.notes.is_empty(), "{:?}", exact.notes);
    assert_eq!(pixels(&rounded), [128, 64]);
    let notes = rounded.notes;
    assert!(notes[0].contains("rounded to the nearest"), "{notes:?}");
}

#[test]
fn a_float_that_isnt_a_pixel_is_named_by_its_byte() {
    for bad in [f32::NAN, -0.5, 1.5] {
        let images = npy("<f4", "(2, 1, 1)", &floats(&[0.5, bad]));
        let (layout, scale) = (None, Some(1.0));
        let refused = read_stated(&images, &two_labels(), Stated { layout, scale });
        assert_refused(refused, &format!("at byte 132: the value {bad} is outside 0..=1; "));
    }
}

#[test]
fn arrays_that_arent_images_or_labels_are_refused() {
    let wide = npy("<i8", "(2, 1, 1)", &[0; 16]);
    let flat = npy("|u1", "(2,)", &[7, 8]);
    let one_hot = npy("|u1", "(2, 2)", &[0, 1, 1, 0]);
    let three = npy("|u1", "(3,)", &[0, 1, 2]);
    let (none, no_labels) = (npy("|u1", "(0, 1, 1)", &[]), npy("|u1", "(0,)", &[]));

    for (images, labels, expected) in [
        (wide, two_labels(), "has elements of type '<i8', which "),
        (flat, two_labels(), "has the sizes [2]; valid: "),
        (two_images(), one_hot, "has the sizes [2, 2]; valid: "),
        (two_images(), three, "labels.npy has 3 labels; "),
        (none, no_labels, "holds no image"),
    ] {
        assert_refused(read_stated(&images, &labels, Stated::default()), expected);
    }
}

#[test]
fn a_label_out_of_range_is_named_by_its_byte() {
    let found = read_two(&two_images()).unwrap();

    let expected = "labels.npy': label 1 of sample 0 (byte 128) is outside 0..1";
    assert_refused(found.train.check_labels("npy", 1), expected);
}

#[test]
fn archives_bring_the_parts_that_their_names_say() {
    let read = |names: [&str; 4], method| {
        let arrays = [two_images(), two_labels(), two_images(), two_labels()];
        let arrays: Vec<_> = names.into_iter().zip(arrays).collect();
        read_npz(&npz(&arrays, method)).unwrap()
    };

    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let keras = read(["x_train", "y_train", "x_test", "y_test"], method);
        let medical = read(["train_images", "train_labels", "val_images", "val_labels"], method);

        assert_eq!(keras.train.part.labels, [1, 0]);
        assert!(keras.val.is_none() && keras.test.is_some());
        assert!(medical.val.is_some() && medical.test.is_none());
        assert!(read(["x", "y", "x_valid", "y_valid"], method).val.is_some());
        let two_pairs = read(["train_images", "train_labels", "x_train", "y_train"], method);
        let expected = "npz: arrays of no part or of a second pair were not read: train_images.npy, train_labels.npy";
        assert!(two_pairs.notes == [expected] && keras.notes.is_empty());
    }
}

#[test]
fn what_is_missing_in_an_archive_is_named_with_what_it_has() {
    let half = [("x_train", two_images())];
    let other = [("pictures", two_images()), ("y_test", two_labels())];

    for (arrays, expected) in [
        (&half[..], "has no array 'y_train', but x_train.npy; valid names: "),
        (&other, "has no array 'x_test', but "),
    ] {
        assert_refused(read_npz(&npz(arrays, CompressionMethod::Stored)), expected);
    }
    let mut photos = ZipWriter::new(Cursor::new(Vec::new()));
    photos.start_file("cat/1.png", SimpleFileOptions::default()).unwrap();
    let expected = "it is an archive of cat/1.png; unpack it, and give the folder";
    assert_refused(read_npz(&photos.finish().unwrap().into_inner()), expected);
}

#[test]
fn a_damaged_archive_is_an_error_wherever_it_is_damaged() {
    let arrays = [("x_train", two_images()), ("y_train", two_labels())];
    let whole = npz(&arrays, CompressionMethod::Deflated);

    for cut in 0..whole.len() {
        assert!(read_npz(&whole[..cut]).is_err(), "{cut}");
    }
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        // Dates and the like may change unnoticed; what counts is that nothing panics and no pixel changes.
        if let Ok(found) = read_npz(&bytes) {
            assert_eq!(pixels(&found), [7, 8], "{at}");
        }
    }
}
