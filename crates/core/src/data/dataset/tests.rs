use super::*;
use crate::data::digits;
use crate::scenario::{
    BatchesPerStep, CnnSpec, DataSource, HostChoice, Normalise, OptimizerConfig, SplitSpec, SynthImages, ValBatches,
};

/// The data side of `digits_baseline` without augmentation.
pub(crate) fn digits_task() -> TaskSpec {
    let optimizer = OptimizerConfig::Sgd {
        lr: 0.01,
        momentum: 0.9,
        weight_decay: 5e-4,
    };
    TaskSpec {
        name: "digits".into(),
        classes: 10,
        data: DataSource::Digits,
        split: SplitSpec {
            seed: 0,
            val_permille: 200,
            test_permille: 100,
        },
        normalise: Normalise::Constants {
            mean: vec![0.305],
            std: vec![0.376],
        },
        augment: None,
        host: HostChoice::Cnn(CnnSpec {
            in_channels: 1,
            base_channels: 4,
            input_hw: 8,
            ..CnnSpec::default()
        }),
        weights: None,
        freeze: None,
        slots: vec![crate::growth::SlotId::new(0, 0)],
        max_seeds: 3,
        batch_size: 64,
        batches_per_step: BatchesPerStep::Full,
        val_batch_size: None,
        val_batches_per_step: ValBatches::Full,
        max_steps: 100,
        host_opt: optimizer,
        seed_opt: optimizer,
        max_grad_norm: Some(1.0),
        label_smoothing: 0.0,
        success_accuracy: 96.0,
    }
}

/// A handful of 8×8 images of three channels and two classes.
pub(crate) fn small_colour_task() -> TaskSpec {
    TaskSpec {
        classes: 2,
        data: DataSource::SynthImages(SynthImages {
            classes: 2,
            height: 8,
            width: 8,
            train: 6,
            val: 4,
            test: 2,
            ..SynthImages::default()
        }),
        normalise: Normalise::Auto,
        host: HostChoice::Cnn(CnnSpec {
            base_channels: 4,
            input_hw: 8,
            ..CnnSpec::default()
        }),
        batch_size: 3,
        ..digits_task()
    }
}

fn class_means(part: &Part, classes: usize, size: usize) -> Vec<Vec<f64>> {
    let mut sums = vec![vec![0.0; size]; classes];
    let mut counts = vec![0.0; classes];
    for (image, &label) in part.pixels().unwrap().chunks_exact(size).zip(&part.labels) {
        counts[label as usize] += 1.0;
        for (sum, &pixel) in sums[label as usize].iter_mut().zip(image) {
            *sum += f64::from(pixel);
        }
    }
    for (mean, count) in sums.iter_mut().zip(counts) {
        mean.iter_mut().for_each(|sum| *sum /= count);
    }
    sums
}

fn nearest_mean_hits(means: &[Vec<f64>], part: &Part, size: usize) -> usize {
    let distance = |mean: &[f64], image: &[u8]| -> f64 {
        mean.iter()
            .zip(image)
            .map(|(mean, &pixel)| (mean - f64::from(pixel)).powi(2))
            .sum()
    };
    let is_hit = |(image, label): &(&[u8], &i64)| {
        let nearest =
            (0..means.len()).min_by(|&i, &j| distance(&means[i], image).total_cmp(&distance(&means[j], image)));
        nearest == Some(**label as usize)
    };
    let pixels = part.pixels().unwrap();
    pixels.chunks_exact(size).zip(&part.labels).filter(is_hit).count()
}

#[test]
fn digits_are_as_separable_as_published() {
    let data = load(&digits_task(), None, &DataRegistry::default()).unwrap();

    let means = class_means(&data.train, 10, 64);

    assert_eq!(nearest_mean_hits(&means, &data.val, 64), 321);
    assert_eq!(nearest_mean_hits(&means, &data.test, 64), 155);
}

#[test]
fn measured_moments_of_digits_are_the_published_ones() {
    let data = load(&digits_task(), None, &DataRegistry::default()).unwrap();

    let moments = normalise::measure(&data.train, 1, 16.0).unwrap();

    assert!((moments.mean[0] - 0.305_094_79).abs() < 1e-7);
    assert!((moments.std[0] - 0.376_165_32).abs() < 1e-7);
    // The value of a black pixel, which padding has too.
    assert!((data.b[0] + 0.811_17).abs() < 1e-5);
}

#[test]
fn the_hash_tells_data_sets_apart_and_is_stable() {
    let digits = load(&digits_task(), None, &DataRegistry::default()).unwrap();
    let again = load(&digits_task(), None, &DataRegistry::default()).unwrap();
    let other_split = TaskSpec {
        split: SplitSpec {
            seed: 1,
            ..digits_task().split
        },
        ..digits_task()
    };

    assert_eq!(digits.hash, again.hash);
    assert_eq!(digits.hash.len(), 64);
    assert_ne!(
        digits.hash,
        load(&other_split, None, &DataRegistry::default()).unwrap().hash
    );
}

#[test]
fn a_host_that_does_not_fit_the_data_is_refused() {
    let digits = load(&digits_task(), None, &DataRegistry::default()).unwrap();
    let reads = |channels, side| digits.check_host(Features { channels, side });

    assert!(reads(1, 8).is_ok());
    for (refused, wrong) in [(reads(3, 8), "in_channels"), (reads(1, 32), "input_hw")] {
        assert!(matches!(refused, Err(DataError::ShapeMismatch { key, .. }) if key == wrong));
    }
}

#[test]
fn labels_outside_the_classes_and_absent_classes_are_refused() {
    let few = TaskSpec {
        classes: 9,
        ..digits_task()
    };
    let many = TaskSpec {
        classes: 11,
        ..digits_task()
    };

    // Digit 9 first occurs at row 9 of the source.
    assert!(matches!(
        load(&few, None, &DataRegistry::default()),
        Err(DataError::LabelOutOfRange {
            index: 9,
            label: 9,
            classes: 9,
            ..
        })
    ));
    assert!(matches!(
        load(&many, None, &DataRegistry::default()),
        Err(DataError::EmptyClass {
            class: 10,
            part: "train",
            ..
        })
    ));
}

#[test]
fn a_users_idx_pair_is_found_beside_the_scenario() {
    // Given the digits as files of the user's own.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pixels"), digits::IMAGES).unwrap();
    std::fs::write(folder.path().join("labels"), digits::LABELS).unwrap();
    let task = |images: &str| TaskSpec {
        data: DataSource::Idx {
            images: images.into(),
            labels: "labels".into(),
            scale: 16.0,
            test_images: None,
            test_labels: None,
        },
        ..digits_task()
    };

    let loaded = load(&task("pixels"), Some(folder.path()), &DataRegistry::default()).unwrap();
    let missing = load(&task("pixel"), Some(folder.path()), &DataRegistry::default()).unwrap_err();

    let digits = load(&digits_task(), None, &DataRegistry::default()).unwrap();
    assert_eq!(loaded.train.pixels().unwrap(), digits.train.pixels().unwrap());
    assert_eq!(loaded.train.labels, digits.train.labels);
    assert!(matches!(&missing, DataError::MissingFile { name, .. } if name == "pixel"));
    assert!(missing.to_string().contains("digits_*"), "{missing}");
}

#[test]
fn files_of_a_test_part_stay_the_test_part_and_the_share_that_they_make_idle_is_told() {
    // Given the digits as training files, and as test files too.
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("train-images-idx3-ubyte", digits::IMAGES),
        ("train-labels-idx1-ubyte", digits::LABELS),
        ("t10k-images-idx3-ubyte", digits::IMAGES),
        ("t10k-labels-idx1-ubyte", digits::LABELS),
    ] {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let task = TaskSpec {
        data: DataSource::IdxFolder {
            path: ".".into(),
            scale: 16.0,
        },
        ..digits_task()
    };

    let data = load(&task, Some(folder.path()), &DataRegistry::default()).unwrap();

    // A fifth of every class, drawn as without test files; the tenth for test stays where it is.
    assert_eq!((data.train.len(), data.val.len(), data.test.len()), (1442, 355, 1797));
    assert_eq!(data.val.labels.iter().filter(|&&label| label == 0).count(), 35);
    assert_eq!(data.notes.len(), 1);
    assert!(
        data.notes[0].contains("100 permille of task.split for test stay in the training part"),
        "{:?}",
        data.notes
    );
}

#[test]
fn a_pool_is_divided_as_the_split_says_without_losing_an_image() {
    let pool = Part {
        images: (0..12).collect::<Vec<u8>>().into(),
        labels: vec![0, 1, 0, 1, 0, 1],
    };
    let split = Split {
        train: vec![0, 3, 5],
        val: vec![1, 4],
        test: vec![2],
    };

    let parts = take(pool, &split);

    assert_eq!(parts.train.pixels().unwrap()[..], [0, 1, 6, 7, 10, 11]);
    assert_eq!(parts.val.pixels().unwrap()[..], [2, 3, 8, 9]);
    assert_eq!(parts.test.pixels().unwrap()[..], [4, 5]);
    assert_eq!(
        (parts.train.labels, parts.val.labels, parts.test.labels),
        (vec![0, 1, 1], vec![1, 0], vec![0])
    );
}

#[test]
fn too_small_a_set_is_reported_with_the_class_that_is_missing_in_one_part() {
    // Given 15 images of each class, of which a twentieth is none.
    let folder = tempfile::tempdir().unwrap();
    crate::data::formats::cifar::tests::write_folder(folder.path(), 30, 10);
    let task = TaskSpec {
        data: DataSource::Cifar10 { path: ".".into() },
        split: SplitSpec {
            seed: 0,
            val_permille: 50,
            test_permille: 0,
        },
        normalise: Normalise::Auto,
        ..digits_task()
    };

    let error = load(&task, Some(folder.path()), &DataRegistry::default()).unwrap_err();

    assert!(
        matches!(error, DataError::EmptyPart { part: "validation", .. }),
        "{error}"
    );
}
