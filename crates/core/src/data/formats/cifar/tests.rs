use std::io::Cursor;

use proptest::prelude::*;

use super::*;
use crate::data::locate::tests::{assert_refused, folder_of, packed};

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
    let labels = (0..count).map(|index| (index % classes) as u8);
    labels.flat_map(|label| record(&[label])).collect()
}

/// CIFAR-10 with `each` records in each file.
pub(crate) fn write_folder(folder: &Path, each: usize, classes: usize) {
    for name in CIFAR10.members() {
        std::fs::write(folder.join(name), records(each, classes)).unwrap();
    }
}

fn tar_of(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        let path = format!("cifar-10-batches-bin/{name}");
        builder.append_data(&mut header, path, &bytes[..]).unwrap();
    }
    builder.into_inner().unwrap()
}

/// An archive with 10 records in each file, in an order like that of the published one.
fn archive() -> Vec<(&'static str, Vec<u8>)> {
    let names: Vec<&str> = CIFAR10.members().collect();
    let classes = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
    let mut files: Vec<_> = [4, 0, 2, 5, 1, 3].map(|index| (names[index], records(10, 10))).into();
    files.push(("batches.meta.txt", classes.into()));
    files
}

fn read_archive(name: &str, bytes: &[u8]) -> Result<Found, DataError> {
    let folder = folder_of([(name, bytes)]);
    CIFAR10.read(&folder.path().join(name))
}

fn read_files(files: &[(&str, Vec<u8>)]) -> Result<Found, DataError> {
    read_archive("set.tar.gz", &packed(&tar_of(files)))
}

#[test]
fn records_that_are_cut_short_or_have_a_label_out_of_range_are_refused_with_their_place() {
    let read = |set: &Cifar, bytes: &[u8]| set.read_records("batch", &mut { bytes }, |_| ());
    let ten = [record(&[0]), record(&[9]), record(&[10])].concat();

    let cut = "data file batch: record 2 at byte 6146 has 3072 of 3073 bytes";
    assert_refused(read(&CIFAR10, &ten[..9218]), cut);
    let label = "data 'batch': label 10 of sample 2 (byte 6146) is outside 0..10";
    assert_refused(read(&CIFAR10, &ten), label);
    let [coarse, fine] = [[20, 0], [0, 100]].map(|labels| read(&CIFAR100, &record(&labels)));
    assert_refused(coarse, "label 20 of sample 0 (byte 0) is outside 0..20");
    assert_refused(fine, "label 100 of sample 0 (byte 1) is outside 0..100");
    // The fine label is learnt.
    assert_eq!(read(&CIFAR100, &record(&[19, 99])).unwrap(), [99]);
}

#[test]
fn damage_that_only_the_checksum_of_gzip_shows_is_refused() {
    let mut bytes = packed(&tar_of(&archive()));
    // The checksum of what is unpacked, then its length.
    let checksum = bytes.len() - 8;
    bytes[checksum] ^= 1;

    let error = read_archive("set.tar.gz", &bytes).unwrap_err();

    assert!(error.to_string().contains("reading failed at byte "), "{error}");
}

#[test]
fn names_that_an_archive_stores_as_entries_are_not_read() {
    let mut header = tar::Header::new_gnu();
    let name = vec![b'x'; 1 << 20];
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_size(name.len() as u64);
    let mut builder = tar::Builder::new(Vec::new());
    builder.append_data(&mut header, "././@LongLink", &name[..]).unwrap();
    let mut bytes = builder.into_inner().unwrap();
    // Without the blocks that end an archive.
    bytes.truncate(bytes.len() - 1024);
    bytes.extend(tar_of(&archive()));

    assert_eq!(read_archive("set.tar", &bytes).unwrap().train.part.len(), 50);
}

#[test]
fn a_folder_of_pickles_is_named_with_the_archive_to_fetch() {
    let folder = folder_of([("data_batch_1", b"\x80\x02}q\x01")]);

    assert!(CIFAR10.is_in(folder.path()));
    let read = || CIFAR10.read(folder.path());
    assert_refused(read(), "is the cifar10 set in its version with Python pickles");
    assert_refused(read(), "cifar-10-binary.tar.gz, from https://");
}

#[test]
fn files_of_other_programs_with_the_same_names_are_not_the_set() {
    let tokens = vec![7; 50_000];
    let others = folder_of([("train.bin", &tokens[..]), ("test.bin", &tokens), ("train", b"a text")]);
    assert!(!CIFAR100.is_in(others.path()));
    assert!(!CIFAR100.owns("train.bin", 50_000));

    // One of them is enough: what is wrong with the other is reported when it is read.
    let cut = folder_of([("train.bin", record(&[1, 2])), ("test.bin", tokens)]);
    assert!(CIFAR100.is_in(cut.path()));
    assert!(CIFAR100.owns("train.bin", 2 * 3074));
    assert!(CIFAR100.is_in(folder_of([("train.bin", packed(b"of unknown size"))]).path()));
}

#[test]
fn an_archive_is_read_in_the_order_of_its_batches_and_unusual_counts_are_noted() {
    let mut files = archive();
    // The first record of batch 1, which the archive has after batches 5 and 3, is a truck.
    let batch = files.iter_mut().find(|(name, _)| *name == "data_batch_1.bin").unwrap();
    batch.1[0] = 9;

    let found = read_files(&files).unwrap();

    assert_eq!(found.train.part.labels[..3], [9, 1, 2]);
    assert_eq!(found.train.part.labels[10], 0);
    let pixels = found.train.part.pixels().unwrap();
    assert_eq!(pixels.len(), 50 * 3072);
    // The first pixel is red, green, blue at row 0, column 0, the last at row 31, column 31.
    assert_eq!((&pixels[..3], &pixels[3069..3072]), (&[1, 2, 3][..], &[4, 5, 6][..]));
    assert_eq!((found.train.part.len(), found.test.unwrap().part.len()), (50, 10));
    assert_eq!(found.class_names[9], "truck");
    let expected = [
        "cifar10: 50 training images; the published set has 50000",
        "cifar10: 10 test images; the published set has 10000",
    ];
    assert_eq!(found.notes, expected);
}

#[test]
fn a_folder_is_read_like_the_archive_that_it_came_from() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("cifar-10-batches-bin");
    std::fs::create_dir(&inner).unwrap();
    for (name, bytes) in archive() {
        std::fs::write(inner.join(name), bytes).unwrap();
    }

    let [outer, mut inner] = [folder.path(), &inner].map(|path| CIFAR10.read(path).unwrap());

    assert_eq!(outer, inner);
    let mut archived = read_files(&archive()).unwrap();
    for found in [&mut inner, &mut archived] {
        for pool in [Some(&mut found.train), found.test.as_mut()].into_iter().flatten() {
            pool.part = pool.part.clone().in_memory().unwrap();
        }
    }
    assert!(inner == archived);
}

#[test]
fn what_is_missing_in_an_archive_or_twice_in_it_is_named() {
    let mut incomplete = archive();
    incomplete.retain(|(name, _)| *name != "data_batch_4.bin");
    let mut twice = archive();
    twice.push(("test_batch.bin", records(10, 10)));
    let pickles = [("data_batch_1", b"\x80\x02}q\x01".to_vec())];

    let missing = "has no file data_batch_4.bin, which cifar10 needs";
    assert_refused(read_files(&incomplete), missing);
    assert_refused(read_files(&twice), "set.tar.gz: test_batch.bin is there twice");
    assert_refused(read_files(&pickles), "Python pickles");
}

#[test]
fn a_plain_archive_that_ends_between_two_records_is_refused() {
    let tar = tar_of(&[("data_batch_1.bin", records(10, 10))]);

    // The header of the archive has 512 bytes.
    let cut = read_archive("set.tar", &tar[..512 + 3 * 3073]);

    assert_refused(cut, " has 9219 bytes, its header implies 30730 bytes");
}

proptest! {
    #[test]
    fn what_was_written_is_read(labels in prop::collection::vec(0u8..10, 0..6), pixel: u8) {
        let bytes: Vec<u8> = labels.iter().flat_map(|&label| [vec![label], vec![pixel; PIXELS]].concat()).collect();

        let mut read = Vec::new();
        let targets = CIFAR10.read_records("any", &mut Cursor::new(bytes), |planes| read.extend_from_slice(planes));

        prop_assert_eq!(targets.unwrap(), labels.iter().map(|&label| i64::from(label)).collect::<Vec<_>>());
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
        let mut bytes = tar_of(&[("data_batch_1.bin", records(10, 10))]);
        let (at, cut) = (at % bytes.len(), cut % bytes.len());
        bytes[at] = with;
        bytes.truncate(cut);
        prop_assert!(read_archive("damaged.tar", &bytes).is_err());
    }
}
