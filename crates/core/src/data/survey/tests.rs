use super::*;
use crate::data::digits;
use crate::data::formats::cifar;
use crate::data::formats::npy::tests::npy;
use crate::data::locate::tests::{assert_refused, folder_of, packed};

fn survey_of(path: &Path, labels: Option<&Path>, known: Known) -> Result<Survey, DataError> {
    match survey(path, labels, known)? {
        Surveyed::Images(survey) => Ok(survey),
        Surveyed::Text(text) => panic!("{text:?} isn't a set of images"),
    }
}

fn look(path: &Path) -> Result<Survey, DataError> {
    survey_of(path, None, Known::default())
}

fn pair(images: Vec<u8>, labels: Vec<u8>, known: Known) -> Result<Survey, DataError> {
    let folder = folder_of([("i", images), ("l", labels)]);
    survey_of(&folder.path().join("i"), Some(&folder.path().join("l")), known)
}

#[test]
fn a_pair_of_packed_idx_files_is_described_with_classes_and_moments() {
    let known = Known {
        scale: Some(16.0),
        ..Known::default()
    };
    let survey = pair(packed(digits::IMAGES), digits::LABELS.to_vec(), known).unwrap();

    assert_eq!((survey.format.as_str(), survey.parts[0].images), ("idx", 1797));
    assert_eq!((survey.height, survey.width, survey.channels), (8, 8, 1));
    let counts: Vec<usize> = survey.classes.iter().map(|class| class.images[0]).collect();
    assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
    // The sum of all pixels is 561 718.
    assert!((survey.parts[0].mean[0] - 561_718.0 / (1797.0 * 64.0 * 16.0)).abs() < 1e-12);

    let refused = pair(npy("|u1", "(1, 1, 1)", &[17]), npy("|u1", "(1,)", &[0]), known);
    let expected = "data 'npy' in the train part: the value 17 is outside 0..=16; correct it or task.data.scale";
    assert_refused(refused, expected);
}

#[test]
fn formats_are_recognised_by_their_content() {
    let mut llm_c: Vec<u8> = [20_240_520_u32, 1, 3].map(u32::to_le_bytes).concat();
    llm_c.resize(1024, 0);
    llm_c.extend([1, 0, 2, 0, 1, 0]);
    let (images, labels) = (npy("|u1", "(2, 1, 1)", &[7, 8]), npy("|u1", "(2,)", &[0, 1]));
    let folder = folder_of([
        ("i", images.clone()),
        ("text", b"not data".to_vec()),
        ("A.TXT", b"PK, not data".to_vec()),
        ("tokens.bin", llm_c),
    ]);
    let at = |name: &str| folder.path().join(name);

    let arrays = pair(images, labels, Known::default()).unwrap();

    assert_eq!(arrays.format, "npy");
    assert_refused(
        look(&at("i")),
        "/i holds images without labels; give the file of the labels",
    );
    assert_refused(
        look(&at("text")),
        "/text isn't a data set of a known format: its first bytes",
    );
    assert_refused(look(&at("nothing")), "/nothing' was not found");
    let said = look(folder.path()).unwrap_err().to_string();
    assert!(said.contains("put the images of each class into a folder"), "{said}");
    for (name, format, tokens) in [("A.TXT", "text", 12), ("tokens.bin", "token_files", 3)] {
        let Surveyed::Text(text) = survey(&at(name), None, Known::default()).unwrap() else {
            panic!("{name} is a text");
        };
        assert_eq!((text.format, text.tokens), (format, tokens));
    }
}

#[test]
fn a_folder_of_cifar_is_described_with_its_test_part() {
    let folder = tempfile::tempdir().unwrap();
    cifar::tests::write_folder(folder.path(), 10, 10);

    let survey = look(folder.path()).unwrap();

    assert_eq!(survey.format, "cifar10");
    let images: Vec<usize> = survey.parts.iter().map(|part| part.images).collect();
    assert_eq!(images, [50, 10]);
    assert_eq!(survey.classes[3].images, [5, 1]);
    let repeated = [
        "cifar10: 49 of the 50 images of the train part are copies of others in it; a split may put them into other parts",
        "cifar10: 45 of the 50 images of the train part appeared earlier with another label",
        "cifar10: 10 of the 10 images of the test part are in an earlier part as well",
        "cifar10: 9 of the 10 images of the test part appeared earlier with another label",
    ];
    assert_eq!(survey.notes[survey.notes.len() - 4..], repeated);
}

#[test]
fn guesses_about_arrays_are_stated() {
    let floats = [0.0_f32, 0.25, 0.5, 0.75, 1.0, 0.0, 0.0, 0.0].map(f32::to_le_bytes);
    let images = npy("<f4", "(2, 1, 2, 2)", &floats.concat());
    let labels = npy("|u1", "(2,)", &[0, 1]);

    let Stated { layout, scale } = pair(images, labels, Known::default()).unwrap().stated;

    assert_eq!((layout, scale), (Some(ArrayLayout::Nchw), Some(1.0)));
}

#[test]
fn a_pickle_and_a_folder_around_the_data_are_named_for_what_they_are() {
    let folder = folder_of([("data_batch_1", b"\x80\x02}q\x01")]);
    let pickle = "data_batch_1 is the cifar10 set in its version with Python pickles";
    assert_refused(look(&folder.path().join("data_batch_1")), pickle);

    let around = tempfile::tempdir().unwrap();
    for part in ["train", "val"] {
        std::fs::create_dir_all(around.path().join("pets").join(part).join("cat")).unwrap();
    }
    let expected = "pets/train and the like are folders inside that of a class (give that one if ";
    assert_refused(look(around.path()), expected);
    std::fs::write(around.path().join("pets/data_batch_1"), b"\x80\x02}q\x01").unwrap();
    assert_refused(look(around.path()), "the data are in a folder inside it; give ");
}

#[test]
fn a_folder_of_tokens_isnt_a_set_of_images() {
    let tokens = [7_u16, 8, 9].map(u16::to_le_bytes).concat();
    let folder = folder_of([("train.bin", &tokens), ("val.bin", &tokens)]);

    assert_refused(look(folder.path()), "for text or tokens, give the file");
}

#[test]
fn labels_with_gaps_are_refused_with_a_list_that_fits_on_a_screen_and_so_is_one_class() {
    let labels = [7_u32, 1001, 40_000].map(u32::to_le_bytes).concat();
    let (images, labels) = (npy("|u1", "(3, 1, 1)", &[1, 2, 3]), npy("<u4", "(3,)", &labels));

    let expected = "class 0, 1, 2, 3, 4, 5, 6, 8, 9, 10 and 39988 more has no sample in the train part";
    assert_refused(pair(images.clone(), labels, Known::default()), expected);
    let labels = npy("|u1", "(3,)", &[0; 3]);
    assert_refused(pair(images, labels, Known::default()), "of one class");
}

#[test]
fn what_is_given_without_use_is_refused() {
    let folder = folder_of([("a.txt", b"a text")]);
    let path = folder.path().join("a.txt");
    let default = Known::default();
    let (scale, vocab, layout) = (Some(1.0), Some(300), Some(ArrayLayout::Nchw));
    let of_images = Known { scale, ..default };
    let of_arrays = Known { layout, ..default };
    let of_text = Known { vocab, ..default };
    let check = |labels: Option<&Path>, known| survey(&path, labels, known);

    assert_refused(check(None, of_images), "a.txt: --scale doesn't apply to its format");
    assert_refused(check(None, of_arrays), "--layout doesn't apply");
    assert_refused(check(Some(&path), default), "a second file doesn't apply");
    assert!(check(None, of_text).is_ok());
    let pair = pair(packed(digits::IMAGES), digits::LABELS.to_vec(), of_text);
    assert_refused(pair, "--vocab doesn't apply");
}

#[cfg(unix)]
#[test]
fn devices_arent_data_files() {
    for format in [None, Some(Format::Npz), Some(Format::Text), Some(Format::Cifar10)] {
        let known = Known {
            format,
            ..Known::default()
        };
        let endless = survey(Path::new("/dev/zero"), None, known);
        assert_refused(endless, "/dev/zero: reading failed (it isn't a regular file)");
    }
}

#[test]
fn labels_that_no_task_can_have_are_out_of_range() {
    for label in [-1_i32, 70_000] {
        let (images, labels) = (npy("|u1", "(1, 1, 1)", &[7]), npy("<i4", "(1,)", &label.to_le_bytes()));

        let refused = pair(images, labels, Known::default());

        assert_refused(refused, &format!("label {label} of sample 0 (byte 128) is outside "));
    }
}
