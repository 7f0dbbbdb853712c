use super::*;
use crate::data::digits;
use crate::data::formats::cifar;
use crate::data::formats::npy::tests::npy;
use crate::data::locate::tests::packed;

fn written(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

fn survey_of(path: &Path, labels: Option<&Path>, known: Known) -> Result<Survey, DataError> {
    match survey(path, labels, known)? {
        Surveyed::Images(survey) => Ok(survey),
        Surveyed::Text(text) => panic!("{text:?} is no set of images"),
    }
}

fn look(path: &Path, labels: Option<&Path>) -> Result<Survey, DataError> {
    survey_of(path, labels, Known::default())
}

#[test]
fn a_pair_of_packed_idx_files_is_told_with_classes_and_moments() {
    let folder = written(&[("images", packed(digits::IMAGES)), ("labels", digits::LABELS.to_vec())]);
    let [images, labels] = ["images", "labels"].map(|name| folder.path().join(name));

    let known = Known {
        scale: Some(16.0),
        ..Known::default()
    };
    let survey = survey_of(&images, Some(&labels), known).unwrap();

    assert_eq!((survey.format.as_str(), survey.height, survey.channels), ("idx", 8, 1));
    let counts: Vec<usize> = survey.classes.iter().map(|class| class.images[0]).collect();
    assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
    // The sum of all pixels is 561 718.
    assert!((survey.parts[0].mean[0] - 561_718.0 / (1797.0 * 64.0 * 16.0)).abs() < 1e-12);
}

#[test]
fn formats_are_told_apart_by_their_content() {
    let mut llm_c: Vec<u8> = [20_240_520_u32, 1, 3].map(u32::to_le_bytes).concat();
    llm_c.resize(1024, 0);
    llm_c.extend([1, 0, 2, 0, 1, 0]);
    let folder = written(&[
        ("i", npy("|u1", "(2, 1, 1)", &[7, 8])),
        ("l", npy("|u1", "(2,)", &[1, 2])),
        ("text", b"not data".to_vec()),
        ("a.txt", b"not data".to_vec()),
        ("tokens.bin", llm_c),
    ]);
    let at = |name: &str| folder.path().join(name);

    let arrays = look(&at("i"), Some(&at("l"))).unwrap();

    assert_eq!(arrays.format, "npy");
    assert_eq!(arrays.notes, ["npy: no training image has the label 0"]);
    assert!(matches!(look(&at("i"), None), Err(DataError::LabelsNotNamed { .. })));
    assert!(matches!(look(&at("text"), None), Err(DataError::UnknownFormat { .. })));
    let texts = [("a.txt", "text", 8), ("tokens.bin", "token_files", 3)];
    for (name, format, tokens) in texts {
        let Surveyed::Text(text) = survey(&at(name), None, Known::default()).unwrap() else {
            panic!("{name} is a text");
        };
        assert_eq!((text.format, text.tokens), (format, tokens));
    }
    assert!(matches!(look(&at("nothing"), None), Err(DataError::MissingFile { .. })));
    assert!(matches!(
        look(folder.path(), None),
        Err(DataError::UnknownFormat { .. })
    ));
}

#[test]
fn a_folder_of_cifar_is_told_with_its_test_part() {
    let folder = tempfile::tempdir().unwrap();
    cifar::tests::write_folder(folder.path(), 10, 10);

    let survey = look(folder.path(), None).unwrap();

    assert_eq!(survey.format, "cifar10");
    assert_eq!(
        survey.parts.iter().map(|part| part.images).collect::<Vec<_>>(),
        [50, 10]
    );
    assert_eq!(survey.classes[3].images, [5, 1]);
}

#[test]
fn what_arrays_do_not_say_is_told_as_it_was_guessed() {
    let floats = [0.0_f32, 0.25, 0.5, 0.75, 1.0, 0.0, 0.0, 0.0]
        .map(f32::to_le_bytes)
        .concat();
    let folder = written(&[
        ("i", npy("<f4", "(2, 1, 2, 2)", &floats)),
        ("l", npy("|u1", "(2,)", &[0, 1])),
    ]);
    let [images, labels] = ["i", "l"].map(|name| folder.path().join(name));

    let survey = look(&images, Some(&labels)).unwrap();

    let guessed = Stated {
        layout: Some(ArrayLayout::Nchw),
        scale: Some(1.0),
    };
    assert_eq!(survey.stated, guessed);
}

#[test]
fn a_pickle_and_a_folder_around_the_data_are_named_for_what_they_are() {
    let folder = written(&[("data_batch_1", b"\x80\x02}q\x01".to_vec())]);
    let pickle = look(&folder.path().join("data_batch_1"), None).unwrap_err().to_string();
    assert!(
        pickle.contains("data_batch_1 is the cifar10 set in its version with Python pickles"),
        "{pickle}"
    );

    let around = tempfile::tempdir().unwrap();
    for part in ["train", "val"] {
        std::fs::create_dir_all(around.path().join("pets").join(part).join("cat")).unwrap();
    }
    let nested = look(around.path(), None).unwrap_err().to_string();
    let told = "pets (it holds folders: give it itself, if they are classes, or parts called train, val and test) holds no image";
    assert!(nested.contains(told), "{nested}");
}

#[cfg(unix)]
#[test]
fn devices_are_no_data_files() {
    for format in [None, Some(Format::Npz), Some(Format::Text), Some(Format::Cifar10)] {
        let known = Known {
            format,
            ..Known::default()
        };
        let error = survey(Path::new("/dev/zero"), None, known).unwrap_err().to_string();
        assert!(
            error.contains("/dev/zero: reading failed (it is no regular file)"),
            "{error}"
        );
    }
}

#[test]
fn labels_that_no_task_can_have_are_out_of_range() {
    for (descr, label) in [("<i4", (-1i32).to_le_bytes()), ("<i4", 70_000i32.to_le_bytes())] {
        let folder = written(&[("i", npy("|u1", "(1, 1, 1)", &[7])), ("l", npy(descr, "(1,)", &label))]);
        let [images, labels] = ["i", "l"].map(|name| folder.path().join(name));

        let error = look(&images, Some(&labels)).unwrap_err();

        assert!(
            matches!(error, DataError::LabelOutOfRange { byte: Some(128), .. }),
            "{error}"
        );
    }
}
