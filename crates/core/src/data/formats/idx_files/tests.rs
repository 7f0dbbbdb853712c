use super::*;
use crate::data::digits;
use crate::data::locate::tests::{assert_refused, folder_of, packed};

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
fn without_test_files_the_test_part_is_drawn_and_that_is_told() {
    let folder = folder_of(train());

    let found = read_folder(folder.path(), 16.0).unwrap();

    assert!(found.test.is_none());
    let told = "has no t10k-images-idx3-ubyte; the test part is drawn from the training files";
    assert!(found.notes[0].ends_with(told), "{:?}", found.notes);
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

    let told = "train-labels-idx1-ubyte.gz (unpacked)': label 77 of sample 5 (byte 13)";
    assert_refused(found.train.check_labels("idx_folder", 10), told);
}
