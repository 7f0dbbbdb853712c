use std::io::Cursor;

use proptest::prelude::*;

use super::*;
use crate::data::locate::tests::packed;

/// A record whose red, green and blue planes begin with 1, 2 and 3 and end with 4, 5 and 6; all else is 0.
fn record(labels: &[u8]) -> Vec<u8> {
    let mut bytes = labels.to_vec();
    for plane in 0..3 {
        let mut pixels = vec![0; PLANE];
        pixels[0] = plane + 1;
        pixels[PLANE - 1] = plane + 4;
        bytes.extend(pixels);
    }
    bytes
}

fn records(count: usize, classes: usize) -> Vec<u8> {
    (0..count)
        .flat_map(|index| record(&[(index % classes) as u8]))
        .collect()
}

/// CIFAR-10 with `each` records in each file.
pub(crate) fn write_folder(folder: &Path, each: usize, classes: usize) {
    for name in CIFAR10.members() {
        std::fs::write(folder.join(name), records(each, classes)).unwrap();
    }
}

fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, format!("cifar-10-batches-bin/{name}"), *bytes)
            .unwrap();
    }
    builder.into_inner().unwrap()
}

/// An archive with 10 records in each file, in an order like that of the published one.
fn archive() -> Vec<(&'static str, Vec<u8>)> {
    let order = [4, 0, 2, 5, 1, 3];
    let names: Vec<&str> = CIFAR10.members().collect();
    let mut files: Vec<_> = order.map(|index| (names[index], records(10, 10))).into();
    files.push((
        "batches.meta.txt",
        b"airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n".to_vec(),
    ));
    files
}

fn read_files(files: &[(&'static str, Vec<u8>)]) -> Result<Found, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.tar.gz");
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
    std::fs::write(&path, packed(&tar_of(&files))).unwrap();
    CIFAR10.read(&path)
}

#[test]
fn planes_become_pixels() {
    let found = read_files(&archive()).unwrap();
    let pixels = found.train.part.pixels().unwrap();

    assert_eq!(pixels.len(), 50 * 3072);
    // The first pixel is red, green, blue at row 0, column 0, the last at row 31, column 31.
    assert_eq!((&pixels[..3], &pixels[3069..3072]), (&[1, 2, 3][..], &[4, 5, 6][..]));
}

#[test]
fn a_label_out_of_range_is_refused_with_record_and_byte() {
    let bytes: Vec<u8> = [0, 9, 10].into_iter().flat_map(|label| record(&[label])).collect();

    let error = CIFAR10.read_records("batch", &mut &bytes[..], |_| ()).unwrap_err();

    assert!(
        matches!(
            error,
            DataError::LabelOutOfRange {
                index: 2,
                byte: Some(6146),
                label: 10,
                classes: 10,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_record_cut_short_is_refused_with_its_place() {
    let bytes = &records(3, 10)[..9218];

    let error = CIFAR10
        .read_records("batch", &mut &bytes[..], |_| ())
        .unwrap_err()
        .to_string();

    assert!(
        error.starts_with("data file batch: record 2 at byte 6146 has 3072 of 3073 bytes"),
        "{error}"
    );
}

#[test]
fn cifar_100_learns_the_fine_label_and_checks_both() {
    let read = |coarse: u8, fine: u8| CIFAR100.read_records("train", &mut &record(&[coarse, fine])[..], |_| ());

    assert_eq!(read(19, 99).unwrap(), [99]);
    for (coarse, fine, wrong) in [(20, 0, 0), (0, 100, 1)] {
        let error = read(coarse, fine).unwrap_err();
        assert!(
            matches!(error, DataError::LabelOutOfRange { byte: Some(byte), .. } if byte == wrong),
            "{error}"
        );
    }
}

#[test]
fn damage_that_only_the_checksum_of_gzip_shows_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.tar.gz");
    let files = archive();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
    let mut bytes = packed(&tar_of(&files));
    // The checksum of what is unpacked, then its length.
    let checksum = bytes.len() - 8;
    bytes[checksum] ^= 1;
    std::fs::write(&path, bytes).unwrap();

    let error = CIFAR10.read(&path).unwrap_err();

    assert!(matches!(error, DataError::Unreadable { .. }), "{error}");
}

#[test]
fn names_that_an_archive_stores_as_entries_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.tar");
    let mut header = tar::Header::new_gnu();
    let name = vec![b'x'; 1 << 20];
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_size(name.len() as u64);
    let mut builder = tar::Builder::new(Vec::new());
    builder.append_data(&mut header, "././@LongLink", &name[..]).unwrap();
    let mut bytes = builder.into_inner().unwrap();
    // Without the blocks that end an archive.
    bytes.truncate(bytes.len() - 1024);
    let files = archive();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
    bytes.extend(tar_of(&files));
    std::fs::write(&path, bytes).unwrap();

    assert_eq!(CIFAR10.read(&path).unwrap().train.part.len(), 50);
}

#[test]
fn a_folder_of_pickles_is_named_with_the_archive_to_fetch() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("data_batch_1"), "").unwrap();

    assert!(CIFAR10.is_in(folder.path()));
    let error = CIFAR10.read(folder.path()).unwrap_err().to_string();
    assert!(
        error.contains("is the cifar10 set in its version with Python pickles")
            && error.contains("cifar-10-binary.tar.gz, from https://"),
        "{error}"
    );
}

#[test]
fn an_archive_is_read_in_the_order_of_its_batches_and_unusual_counts_are_told() {
    let mut files = archive();
    // The first record of batch 1, which the archive has behind batches 5 and 3, is a truck.
    let batch = files.iter_mut().find(|(name, _)| *name == "data_batch_1.bin").unwrap();
    batch.1[0] = 9;

    let found = read_files(&files).unwrap();

    assert_eq!(found.train.part.labels[..3], [9, 1, 2]);
    assert_eq!(found.train.part.labels[10], 0);
    assert_eq!((found.train.part.len(), found.test.unwrap().part.len()), (50, 10));
    assert_eq!(found.class_names[9], "truck");
    assert_eq!(
        found.notes,
        [
            "cifar10: 50 training images; the published set has 50000",
            "cifar10: 10 test images; the published set has 10000"
        ]
    );
}

#[test]
fn a_folder_is_read_like_the_archive_that_it_came_from() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("cifar-10-batches-bin");
    std::fs::create_dir(&inner).unwrap();
    for (name, bytes) in archive() {
        std::fs::write(inner.join(name), bytes).unwrap();
    }

    let [outer, inner] = [folder.path(), &inner].map(|path| CIFAR10.read(path).unwrap());

    assert_eq!(outer, inner);
    let in_memory = |mut found: Found| {
        for pool in [Some(&mut found.train), found.test.as_mut()].into_iter().flatten() {
            pool.part = pool.part.clone().in_memory().unwrap();
        }
        found
    };
    assert!(in_memory(inner) == read_files(&archive()).unwrap());
}

#[test]
fn what_is_missing_in_an_archive_or_twice_in_it_is_named() {
    let mut incomplete = archive();
    incomplete.retain(|(name, _)| *name != "data_batch_4.bin");
    let mut twice = archive();
    twice.push(("test_batch.bin", records(10, 10)));
    let pickles = [("data_batch_1", b"\x80\x02}q\x01".to_vec())];

    let [incomplete, twice, pickles] =
        [&incomplete[..], &twice, &pickles].map(|files| read_files(files).unwrap_err().to_string());

    assert!(
        incomplete.contains("has no file data_batch_4.bin, which cifar10 needs"),
        "{incomplete}"
    );
    assert!(twice.contains("set.tar.gz: test_batch.bin is there twice"), "{twice}");
    assert!(pickles.contains("Python pickles"), "{pickles}");
}

#[test]
fn a_plain_archive_that_ends_between_two_records_is_refused() {
    let (name, bytes) = ("data_batch_1.bin", records(10, 10));
    let tar = tar_of(&[(name, &bytes)]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.tar");
    // The header of the archive has 512 bytes.
    std::fs::write(&path, &tar[..512 + 3 * 3073]).unwrap();

    let error = CIFAR10.read(&path).unwrap_err();

    assert!(
        matches!(
            error,
            DataError::SizeMismatch {
                expected: 30_730,
                found: 9219,
                ..
            }
        ),
        "{error}"
    );
}

proptest! {
    #[test]
    fn what_was_written_is_read(labels in prop::collection::vec(0u8..10, 0..6), pixel: u8) {
        let bytes: Vec<u8> = labels
            .iter()
            .flat_map(|&label| std::iter::once(label).chain(std::iter::repeat_n(pixel, PIXELS)))
            .collect();

        let mut read = Vec::new();
        let targets = CIFAR10
            .read_records("any", &mut Cursor::new(bytes), |planes| read.extend_from_slice(planes))
            .unwrap();

        prop_assert_eq!(targets, labels.iter().map(|&label| i64::from(label)).collect::<Vec<_>>());
        prop_assert!(read.iter().all(|&value| value == pixel));
    }

    #[test]
    fn a_cut_is_refused_unless_it_lies_between_records(cut in 0usize..9219) {
        let bytes = &records(3, 10)[..cut];
        let read = CIFAR10.read_records("cut", &mut &bytes[..], |_| ());
        prop_assert_eq!(read.is_ok(), cut % 3073 == 0);
    }

    #[test]
    fn no_archive_makes_the_reader_fail_otherwise_than_by_an_error(at in 0usize..31_744, with: u8, cut in 0usize..31_744) {
        let mut bytes = tar_of(&[("data_batch_1.bin", &records(10, 10))]);
        let (at, cut) = (at % bytes.len(), cut % bytes.len());
        bytes[at] = with;
        bytes.truncate(cut);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("damaged.tar");
        std::fs::write(&path, bytes).unwrap();
        prop_assert!(CIFAR10.read(&path).is_err());
    }
}
