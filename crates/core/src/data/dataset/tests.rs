use super::*;
use crate::data::locate::tests::{assert_refused, folder_of};
use crate::data::{StepKey, TaskData, digits};
use crate::scenario::{AugmentSpec, DataSource, Normalise, SynthImages, task_presets};

/// The first step of a run.
pub(crate) const FIRST_STEP: StepKey = StepKey {
    seed: 42,
    round: 0,
    step: 1,
};

/// A built-in task.
pub(crate) fn task(name: &str) -> TaskSpec {
    let mut tasks = task_presets().into_iter().map(|preset| preset.spec);
    tasks.find(|task| task.name == name).unwrap()
}

/// `digits_baseline` without augmentation.
pub(crate) fn digits_task() -> TaskSpec {
    let mut task = task("digits_baseline");
    task.augment = None;
    task
}

pub(crate) fn augmentation(pad: u32, flip_p: f64, cutout: Option<u32>) -> AugmentSpec {
    AugmentSpec { pad, flip_p, cutout }
}

/// A handful of 8×8 images of three channels and two classes.
pub(crate) fn small_colour_task() -> TaskSpec {
    let mut task = digits_task();
    task.data = DataSource::SynthImages(SynthImages {
        classes: 2,
        height: 8,
        width: 8,
        train: 6,
        val: 4,
        test: 2,
        ..SynthImages::default()
    });
    (task.classes, task.batch_size, task.normalise) = (2, 3, Normalise::Auto);
    task
}

/// The data of a task that needs no file.
pub(crate) fn loaded(task: &TaskSpec) -> DataSet {
    load(task, None, &DataRegistry::default()).unwrap()
}

fn load_in(folder: &tempfile::TempDir, task: &TaskSpec) -> Result<DataSet, DataError> {
    load(task, Some(folder.path()), &DataRegistry::default())
}

#[test]
fn sizes_and_moments_of_digits_are_the_published_ones() {
    let data = loaded(&digits_task());

    let moments = normalise::measure(&data.train, 1, 16.0).unwrap();

    assert_eq!((data.train.len(), data.val.len(), data.test.len()), (1266, 355, 176));
    assert!((moments.mean[0] - 0.305_094_79).abs() < 1e-7);
    assert!((moments.std[0] - 0.376_165_32).abs() < 1e-7);
    // The value of a black pixel, which padding has too.
    assert!((data.b[0] + 0.811_17).abs() < 1e-5);
}

#[test]
fn the_hash_tells_data_sets_apart_and_is_stable() {
    let hash = |seed: u64| {
        let mut task = digits_task();
        task.split.seed = seed;
        loaded(&task).hash
    };

    assert_eq!(hash(0), hash(0));
    assert_eq!(hash(0).len(), 64);
    assert_ne!(hash(0), hash(1));
}

#[test]
fn a_host_that_does_not_fit_the_data_is_refused() {
    let digits = loaded(&digits_task());
    let reads = |channels, side| digits.check_host(Features { channels, side });

    assert!(reads(1, 8).is_ok());
    for (refused, wrong) in [(reads(3, 8), "in_channels"), (reads(1, 32), "input_hw")] {
        assert_refused(refused, &format!("make task.host.{wrong} agree with the data"));
    }
}

#[test]
fn labels_outside_the_classes_and_absent_classes_are_refused() {
    let with = |classes: i64| {
        let mut task = digits_task();
        task.classes = classes;
        load(&task, None, &DataRegistry::default())
    };

    // Digit 9 first occurs at row 9 of the source.
    assert_refused(with(9), "data 'digits': label 9 of sample 9 (byte 17) is outside 0..9");
    assert_refused(with(11), "class 10 has no sample in the train part; number");
}

#[test]
fn a_users_idx_pair_is_found_next_to_the_scenario() {
    // Given the digits as files of the user's own.
    let folder = folder_of([("pixels", digits::IMAGES), ("labels", digits::LABELS)]);
    let task = |images: &str| TaskSpec {
        data: DataSource::Idx {
            images: images.into(),
            labels: "labels".into(),
            scale: 16.0,
        },
        ..digits_task()
    };

    let found = load_in(&folder, &task("pixels")).unwrap();

    let digits = loaded(&digits_task());
    assert_eq!(found.train.pixels().unwrap(), digits.train.pixels().unwrap());
    assert_eq!(found.train.labels, digits.train.labels);
    let missing = || load_in(&folder, &task("pixel"));
    assert_refused(missing(), "data file 'pixel' was not found");
    assert_refused(missing(), "or choose a task that needs none (digits_*, synth_*)");
}

#[test]
fn files_of_a_test_part_stay_the_test_part_and_a_note_names_the_share_that_they_make_idle() {
    // Given the digits as training files, and as test files too.
    let folder = folder_of([
        ("train-images-idx3-ubyte", digits::IMAGES),
        ("train-labels-idx1-ubyte", digits::LABELS),
        ("t10k-images-idx3-ubyte", digits::IMAGES),
        ("t10k-labels-idx1-ubyte", digits::LABELS),
    ]);
    let mut task = digits_task();
    let (path, scale) = (".".into(), 16.0);
    task.data = DataSource::IdxFolder { path, scale };

    let data = load_in(&folder, &task).unwrap();

    // A fifth of every class, drawn as without test files; the tenth for test stays where it is.
    assert_eq!((data.train.len(), data.val.len(), data.test.len()), (1442, 355, 1797));
    assert_eq!(data.val.labels.iter().filter(|&&label| label == 0).count(), 35);
    let idle = "the files contain a test part; the 100 permille of task.split for test stay in the training part";
    let notes = [
        idle,
        "1797 of the 1797 images of the test part are in an earlier part as well",
    ];
    assert_eq!(data.notes, notes.map(|note| format!("idx_folder: {note}")));
}

#[test]
fn a_class_that_a_given_network_knows_by_another_name_is_noted() {
    let mut set = loaded(&small_colour_task());
    set.class_names = ["ant", "bee"].map(String::from).into();
    set.notes.clear();
    let mut data = TaskData::Images(Box::new(set));

    assert!(data.compare_classes(&["ant", "bee"].map(String::from)));
    assert!(data.compare_classes(&[]));
    assert!(data.notes().is_empty());
    assert!(!data.compare_classes(&["bee", "ant"].map(String::from)));

    let expected = "class 0 is ant, but was bee in the given network, whose head starts unchanged";
    assert_eq!(data.notes(), [format!("synth_images: {expected}")]);
}

#[test]
fn copies_in_several_parts_are_noted_where_the_split_has_drawn_them_as_well() {
    // Given one image again and again.
    let folder = tempfile::tempdir().unwrap();
    crate::data::formats::cifar::tests::write_folder(folder.path(), 10, 10);
    let mut task = digits_task();
    task.data = DataSource::Cifar10 { path: ".".into() };
    task.normalise = Normalise::Auto;

    let notes = load_in(&folder, &task).unwrap().notes;

    let said = [
        "10 of the 10 images of the validation part are in an earlier part as well",
        "9 of the 10 images of the test part appeared earlier with another label",
    ];
    for said in said {
        assert!(notes.contains(&format!("cifar10: {said}")), "{notes:?}");
    }
}

#[test]
fn a_pool_is_divided_as_the_split_says_without_losing_an_image() {
    let (images, labels) = ((0..12).collect::<Vec<u8>>().into(), vec![0, 1, 0, 1, 0, 1]);
    let (train, val, test) = (vec![0, 3, 5], vec![1, 4], vec![2]);
    let split = Split { train, val, test };

    let parts = take(Part { images, labels }, &split);

    let parts = parts.map(|part| (part.pixels().unwrap().into_owned(), part.labels));
    let expected = [
        (vec![0, 1, 6, 7, 10, 11], vec![0, 1, 1]),
        (vec![2, 3, 8, 9], vec![1, 0]),
        (vec![4, 5], vec![0]),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn too_small_a_set_is_reported_with_the_class_that_is_missing_in_one_part() {
    // Given 15 images of each class: a twentieth of them rounds down to 0.
    let folder = tempfile::tempdir().unwrap();
    crate::data::formats::cifar::tests::write_folder(folder.path(), 30, 10);
    let mut task = digits_task();
    task.data = DataSource::Cifar10 { path: ".".into() };
    (task.split.val_permille, task.split.test_permille) = (50, 0);
    task.normalise = Normalise::Auto;

    let empty = "data 'cifar10': the validation part is empty";
    assert_refused(load_in(&folder, &task), empty);
}
