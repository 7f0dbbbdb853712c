use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;
use crate::data::formats::npy::tests::npy;

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

fn read_npz(bytes: &[u8], stated: Stated) -> Result<Found, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.npz");
    std::fs::write(&path, bytes).unwrap();
    read_archive(&path, &mut { stated })
}

fn read_pair(images: &[u8], labels: &[u8], stated: Stated) -> Result<Found, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["images.npy", "labels.npy"].map(|name| folder.path().join(name));
    std::fs::write(&paths[0], images).unwrap();
    std::fs::write(&paths[1], labels).unwrap();
    read_pairs(paths, None, &mut { stated })
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
        let found = read_pair(&images, &labels, stated).unwrap();

        assert_eq!(found.train.shape.channels, 3);
        assert_eq!(
            found.train.part.pixels().unwrap()[..],
            [1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12]
        );
        assert_eq!((found.train.part.labels, found.scale), (vec![4], 255.0));
    }
    let as_stated = Stated {
        layout: Some(ArrayLayout::Nhwc),
        scale: Some(16.0),
    };
    let found = read_pair(&images, &labels, as_stated).unwrap();
    assert_eq!((found.train.shape.channels, found.scale), (2, 16.0));
}

#[test]
fn floats_are_kept_as_bytes_and_rounding_is_told() {
    let labels = two_labels();
    let exact = npy("<f4", "(2, 1, 1)", &floats(&[1.0, 51.0 / 255.0]));
    let rounded = npy("<f4", "(2, 1, 1)", &floats(&[0.5, 0.25]));

    let exact = read_pair(&exact, &labels, Stated::default()).unwrap();
    let rounded = read_pair(&rounded, &labels, Stated::default()).unwrap();

    assert_eq!(
        (exact.train.part.pixels().unwrap().to_vec(), exact.scale),
        (vec![255, 51], 255.0)
    );
    assert!(exact.notes.is_empty(), "{:?}", exact.notes);
    assert_eq!(rounded.train.part.pixels().unwrap()[..], [128, 64]);
    assert!(
        rounded.notes[0].contains("rounded to the nearest"),
        "{:?}",
        rounded.notes
    );
}

#[test]
fn doubles_are_read_as_floats_are() {
    let values = [0.5_f32, 51.0 / 255.0];
    let doubles: Vec<u8> = values
        .iter()
        .flat_map(|&value| f64::from(value).to_le_bytes())
        .collect();
    let read = |images: &[u8]| read_pair(images, &two_labels(), Stated::default()).unwrap().train.part;

    let doubles = read(&npy("<f8", "(2, 1, 1)", &doubles));

    assert_eq!(doubles.pixels().unwrap()[..], [128, 51]);
    assert_eq!(doubles, read(&npy("<f4", "(2, 1, 1)", &floats(&values))));
}

#[test]
fn a_float_that_is_no_pixel_is_named_by_its_byte() {
    let labels = two_labels();
    for bad in [f32::NAN, -0.5, 1.5] {
        let images = npy("<f4", "(2, 1, 1)", &floats(&[0.5, bad]));
        let stated = Stated {
            layout: None,
            scale: Some(1.0),
        };
        let error = read_pair(&images, &labels, stated).unwrap_err().to_string();
        assert!(
            error.contains(&format!("the value {bad} at byte 132 is outside 0..=1")),
            "{error}"
        );
    }
}

#[test]
fn arrays_that_are_no_images_or_labels_are_refused() {
    let (images, labels) = (npy("|u1", "(2, 1, 1)", &[7, 8]), two_labels());
    let wide_integers = npy("<i8", "(2, 1, 1)", &[0; 16]);
    let flat = npy("|u1", "(2,)", &[7, 8]);
    let one_hot = npy("|u1", "(2, 2)", &[0, 1, 1, 0]);
    let three = npy("|u1", "(3,)", &[0, 1, 2]);
    let none = npy("|u1", "(0, 1, 1)", &[]);
    let no_labels = npy("|u1", "(0,)", &[]);

    let refused = |images: &[u8], labels: &[u8]| read_pair(images, labels, Stated::default()).unwrap_err();

    assert!(matches!(refused(&wide_integers, &labels), DataError::NpyType { .. }));
    assert!(matches!(refused(&flat, &labels), DataError::NpyShape { .. }));
    assert!(matches!(refused(&images, &one_hot), DataError::NpyShape { .. }));
    assert!(matches!(refused(&images, &three), DataError::LengthMismatch { .. }));
    assert!(matches!(refused(&none, &no_labels), DataError::NoImages { .. }));
}

#[test]
fn a_label_out_of_range_is_named_by_its_byte() {
    let images = npy("|u1", "(2, 1, 1)", &[7, 8]);
    let found = read_pair(&images, &two_labels(), Stated::default()).unwrap();

    let error = found.train.check_labels("npy", 1).unwrap_err().to_string();

    assert!(
        error.contains("labels.npy': label 1 of sample 0 (byte 128) is outside 0..1"),
        "{error}"
    );
}

#[test]
fn archives_bring_the_parts_that_their_names_say() {
    let (images, labels) = (npy("|u1", "(2, 1, 1)", &[7, 8]), two_labels());
    let keras = [
        ("x_train", images.clone()),
        ("y_train", labels.clone()),
        ("x_test", images.clone()),
        ("y_test", labels.clone()),
    ];
    let medical = [
        ("train_images", images.clone()),
        ("train_labels", labels.clone()),
        ("val_images", images),
        ("val_labels", labels),
    ];

    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let keras = read_npz(&npz(&keras, method), Stated::default()).unwrap();
        let medical = read_npz(&npz(&medical, method), Stated::default()).unwrap();

        assert_eq!(keras.train.part.labels, [1, 0]);
        assert!(keras.val.is_none() && keras.test.is_some());
        assert!(medical.val.is_some() && medical.test.is_none());
    }
}

#[test]
fn what_is_missing_in_an_archive_is_named_with_what_it_has() {
    let (images, labels) = (npy("|u1", "(2, 1, 1)", &[7, 8]), two_labels());
    let half = npz(&[("x_train", images.clone())], CompressionMethod::Stored);
    let other = npz(&[("pictures", images), ("y_test", labels)], CompressionMethod::Stored);

    for (bytes, name) in [(&half, "y_train"), (&other, "x_test")] {
        let error = read_npz(bytes, Stated::default()).unwrap_err();
        assert!(
            matches!(&error, DataError::MissingArray { name: missing, .. } if missing == name),
            "{error}"
        );
    }
}

#[test]
fn a_damaged_archive_is_an_error_wherever_it_is_damaged() {
    let arrays = [("x_train", npy("|u1", "(2, 1, 1)", &[7, 8])), ("y_train", two_labels())];
    let whole = npz(&arrays, CompressionMethod::Deflated);

    for cut in 0..whole.len() {
        assert!(read_npz(&whole[..cut], Stated::default()).is_err(), "{cut}");
    }
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        // Dates and the like may change unnoticed; what counts is that nothing panics and no pixel changes.
        if let Ok(found) = read_npz(&bytes, Stated::default()) {
            assert_eq!(found.train.part.pixels().unwrap()[..], [7, 8], "{at}");
        }
    }
}
