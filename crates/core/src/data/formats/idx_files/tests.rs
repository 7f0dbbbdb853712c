use super::*;
use crate::data::digits;
use crate::data::locate::tests::packed;

fn folder_with(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

fn train() -> [(&'static str, Vec<u8>); 2] {
    [
        ("train-images-idx3-ubyte", digits::IMAGES.to_vec()),
        ("train-labels-idx1-ubyte.gz", packed(digits::LABELS)),
    ]
}

#[test]
fn the_four_published_files_are_found_packed_or_not() {
    let test = [
        ("t10k-images-idx3-ubyte.gz", packed(digits::IMAGES)),
        ("t10k-labels-idx1-ubyte", digits::LABELS.to_vec()),
    ];
    let folder = folder_with(&[train(), test].concat());

    let found = read_folder(folder.path(), 16.0).unwrap();

    assert_eq!(found.train.part.len(), 1797);
    let [train, test] = [found.train.part, found.test.unwrap().part];
    assert_eq!(
        (train.pixels().unwrap(), &train.labels),
        (test.pixels().unwrap(), &test.labels)
    );
    assert!(found.notes.is_empty() && found.val.is_none());
}

#[test]
fn without_test_files_the_test_part_is_drawn_and_that_is_told() {
    let folder = folder_with(&train());

    let found = read_folder(folder.path(), 16.0).unwrap();

    assert!(found.test.is_none());
    assert!(
        found.notes[0].ends_with("has no t10k-images-idx3-ubyte; the test part is drawn from the training files"),
        "{:?}",
        found.notes
    );
}

#[test]
fn half_a_pair_is_reported_with_the_file_that_is_missing() {
    let labels = [("t10k-labels-idx1-ubyte", digits::LABELS.to_vec())];
    let without_images = folder_with(&[&train()[..], &labels].concat());
    let without_train = folder_with(&labels);

    for (folder, member) in [
        (without_images, "t10k-images-idx3-ubyte"),
        (without_train, "t10k-images-idx3-ubyte"),
    ] {
        let error = read_folder(folder.path(), 16.0).unwrap_err();
        assert!(
            matches!(error, DataError::MissingMember { member: found, .. } if found == member),
            "{error}"
        );
    }
}

#[test]
fn a_packed_label_out_of_range_is_named_by_its_unpacked_byte() {
    let mut labels = digits::LABELS.to_vec();
    labels[8 + 5] = 77;
    let folder = folder_with(&[train()[0].clone(), ("train-labels-idx1-ubyte.gz", packed(&labels))]);

    let found = read_folder(folder.path(), 16.0).unwrap();
    let error = found.train.check_labels("idx_folder", 10).unwrap_err().to_string();

    assert!(
        error.contains("train-labels-idx1-ubyte.gz (unpacked)': label 77 of sample 5 (byte 13)"),
        "{error}"
    );
}
