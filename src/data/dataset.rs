//! The data set of a run on the host: loaded once, fully checked, split and hashed (spec 02 §3.6, §4).

use std::path::{Path, PathBuf};

use crate::scenario::{CnnSpec, DataSource, SynthImages, TaskSpec};

use super::idx::{self, IdxImages};
use super::synth::SynthPart;
use super::{DataError, digits, normalise, split, synth};

/// Where relative data paths are looked up after the scenario's own folder.
const DATA_FOLDER_VARIABLE: &str = "SIMIC_ENGINE_DATA";

/// Images and labels of one part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// `u8 [n, height, width, channels]`.
    pub images: Vec<u8>,
    /// `i64 [n]`, each in `0..classes`.
    pub labels: Vec<i64>,
}

impl Part {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}

/// Everything a run trains and measures on.
#[derive(Clone, Debug)]
pub struct DataSet {
    pub name: String,
    pub classes: i64,
    pub channels: usize,
    pub height: usize,
    pub width: usize,
    /// Pixel value that means 1.0.
    pub scale: f64,
    /// Updates parameters.
    pub train: Part,
    /// Feeds reward, observation and governor.
    pub val: Part,
    /// Read by the final evaluation alone; may be empty.
    pub test: Part,
    /// blake3 over name, shape and all bytes, in hexadecimal: resuming with other data is an error.
    pub hash: String,
    /// Normalisation `x = pixel·a + b` per channel.
    pub a: Vec<f32>,
    pub b: Vec<f32>,
}

/// Loads, checks, splits and normalises the data of `task`. Relative paths are looked up in `scenario_dir`, then in the
/// folder that `SIMIC_ENGINE_DATA` names, then in `data/`. Nothing is ever downloaded.
///
/// # Errors
/// Every [`DataError`] of start-up: after this the run need not check a label or a shape again.
pub fn load(task: &TaskSpec, scenario_dir: Option<&Path>) -> Result<DataSet, DataError> {
    let raw = match &task.data {
        DataSource::Digits => {
            let images = idx::parse_images("digits", digits::IMAGES)?;
            let labels = idx::parse_labels("digits", digits::LABELS)?;
            Raw::from_pool(task, "digits", images, labels, digits::SCALE)?
        }
        DataSource::SynthImages(params) => Raw::from_generator(params)?,
        DataSource::Idx { images, labels, scale } => {
            let pixels = idx::parse_images(images, &read(images, scenario_dir)?)?;
            let targets = idx::parse_labels(labels, &read(labels, scenario_dir)?)?;
            Raw::from_pool(task, "idx", pixels, targets, *scale)?
        }
    };
    raw.check(task)?;
    let affine = normalise::resolve(raw.name, &task.normalise, &raw.train.images, raw.channels, raw.scale)?;
    Ok(DataSet {
        hash: raw.content_hash(),
        name: raw.name.into(),
        classes: task.classes,
        channels: raw.channels,
        height: raw.height,
        width: raw.width,
        scale: raw.scale,
        train: raw.train,
        val: raw.val,
        test: raw.test,
        a: affine.a,
        b: affine.b,
    })
}

fn read(name: &str, scenario_dir: Option<&Path>) -> Result<Vec<u8>, DataError> {
    // Joining an absolute path yields that path, so one list serves both.
    let mut looked_at: Vec<PathBuf> = scenario_dir
        .map(PathBuf::from)
        .into_iter()
        .chain(std::env::var_os(DATA_FOLDER_VARIABLE).map(PathBuf::from))
        .chain([PathBuf::from("data")])
        .map(|folder| folder.join(name))
        .collect();
    looked_at.dedup();
    let Some(path) = looked_at.iter().find(|path| path.exists()) else {
        return Err(DataError::MissingFile {
            name: name.into(),
            looked_at,
        });
    };
    std::fs::read(path).map_err(|cause| DataError::Io {
        path: path.clone(),
        cause,
    })
}

/// Loaded parts before they are checked against the task.
struct Raw {
    name: &'static str,
    channels: usize,
    height: usize,
    width: usize,
    scale: f64,
    train: Part,
    val: Part,
    test: Part,
}

impl Raw {
    /// Splits one pool of labelled images.
    fn from_pool(
        task: &TaskSpec,
        name: &'static str,
        pool: IdxImages,
        labels: Vec<i64>,
        scale: f64,
    ) -> Result<Self, DataError> {
        if pool.count != labels.len() {
            return Err(DataError::LengthMismatch {
                name: name.into(),
                images: pool.count,
                labels: labels.len(),
            });
        }
        if !(scale.is_finite() && scale > 0.0) {
            return Err(DataError::OutOfRange {
                name: name.into(),
                key: "scale",
                rule: format!("scale is {scale}, it must be finite and above 0"),
            });
        }
        check_labels(name, &labels, task.classes)?;
        let split = split::stratified(&labels, task.classes, task.split)?;
        let size = pool.channels * pool.height * pool.width;
        let part = |indices: &[usize]| Part {
            images: indices
                .iter()
                .flat_map(|&index| &pool.pixels[index * size..(index + 1) * size])
                .copied()
                .collect(),
            labels: indices.iter().map(|&index| labels[index]).collect(),
        };
        Ok(Self {
            name,
            channels: pool.channels,
            height: pool.height,
            width: pool.width,
            scale,
            train: part(&split.train),
            val: part(&split.val),
            test: part(&split.test),
        })
    }

    /// Procedural data brings its own parts.
    fn from_generator(params: &SynthImages) -> Result<Self, DataError> {
        synth::check(params)?;
        let part = |part: SynthPart, count: usize| Part {
            images: synth::generate(params, part, count),
            labels: (0..count).map(|index| synth::label(params, index)).collect(),
        };
        Ok(Self {
            name: "synth_images",
            channels: params.channels,
            height: params.height,
            width: params.width,
            scale: synth::SCALE,
            train: part(SynthPart::Train, params.train),
            val: part(SynthPart::Val, params.val),
            test: part(SynthPart::Test, params.test),
        })
    }

    fn check(&self, task: &TaskSpec) -> Result<(), DataError> {
        for (name, part) in [("train", &self.train), ("validation", &self.val)] {
            if part.is_empty() {
                return Err(DataError::EmptyPart {
                    name: self.name.into(),
                    part: name,
                });
            }
            check_labels(self.name, &part.labels, task.classes)?;
            let mut present = vec![false; task.classes as usize];
            for &label in &part.labels {
                present[label as usize] = true;
            }
            if let Some(class) = present.iter().position(|&is_present| !is_present) {
                return Err(DataError::EmptyClass {
                    name: self.name.into(),
                    class: class as i64,
                    part: name,
                });
            }
        }
        self.check_host(&task.host)
    }

    fn check_host(&self, host: &CnnSpec) -> Result<(), DataError> {
        let mismatch = |key, host: String, data: String| {
            Err(DataError::ShapeMismatch {
                name: self.name.into(),
                key,
                host,
                data,
            })
        };
        if host.in_channels != self.channels as i64 {
            return mismatch(
                "in_channels",
                format!("{} input channels", host.in_channels),
                format!("{}", self.channels),
            );
        }
        if (self.height as i64, self.width as i64) != (host.input_hw, host.input_hw) {
            return mismatch(
                "input_hw",
                format!("{0}x{0} images", host.input_hw),
                format!("{}x{} images", self.height, self.width),
            );
        }
        Ok(())
    }

    fn content_hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.name.as_bytes());
        for part in [&self.train, &self.val, &self.test] {
            for size in [part.len(), self.height, self.width, self.channels] {
                hasher.update(&(size as u64).to_le_bytes());
            }
            hasher.update(&part.images);
            for label in &part.labels {
                hasher.update(&label.to_le_bytes());
            }
        }
        hasher.finalize().to_hex().to_string()
    }
}

fn check_labels(name: &str, labels: &[i64], classes: i64) -> Result<(), DataError> {
    if classes < 2 {
        return Err(DataError::OutOfRange {
            name: name.into(),
            key: "task.classes",
            rule: format!("{classes} classes cannot be told apart, at least 2 are needed"),
        });
    }
    match labels.iter().position(|label| !(0..classes).contains(label)) {
        None => Ok(()),
        Some(index) => Err(DataError::LabelOutOfRange {
            name: name.into(),
            index,
            label: labels[index] as u64,
            classes,
        }),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::scenario::{BatchesPerStep, Normalise, OptimizerConfig, SplitSpec, ValBatches};

    /// The data side of `digits_baseline` without augmentation (spec 02 §1.2).
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
            host: CnnSpec {
                in_channels: 1,
                base_channels: 4,
                n_blocks: 3,
                kernel_size: 3,
                pool_layers: 3,
                input_hw: 8,
            },
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
            baseline_loss: 2.3,
            target_loss: 0.1,
            typical_loss_delta_std: 0.05,
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
            host: CnnSpec {
                in_channels: 3,
                ..digits_task().host
            },
            batch_size: 3,
            ..digits_task()
        }
    }

    fn class_means(part: &Part, classes: usize, size: usize) -> Vec<Vec<f64>> {
        let mut sums = vec![vec![0.0; size]; classes];
        let mut counts = vec![0.0; classes];
        for (image, &label) in part.images.chunks_exact(size).zip(&part.labels) {
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
        part.images.chunks_exact(size).zip(&part.labels).filter(is_hit).count()
    }

    #[test]
    fn digits_are_as_separable_as_published() {
        let data = load(&digits_task(), None).unwrap();

        let means = class_means(&data.train, 10, 64);

        assert_eq!(nearest_mean_hits(&means, &data.val, 64), 321);
        assert_eq!(nearest_mean_hits(&means, &data.test, 64), 155);
    }

    #[test]
    fn measured_moments_of_digits_are_the_published_ones() {
        let data = load(&digits_task(), None).unwrap();

        let moments = normalise::measure(&data.train.images, 1, 16.0);

        assert!((moments.mean[0] - 0.305_094_79).abs() < 1e-7);
        assert!((moments.std[0] - 0.376_165_32).abs() < 1e-7);
        // The value of a black pixel, which padding has too (spec 02 Check 2).
        assert!((data.b[0] + 0.811_17).abs() < 1e-5);
    }

    #[test]
    fn the_hash_tells_data_sets_apart_and_is_stable() {
        let digits = load(&digits_task(), None).unwrap();
        let again = load(&digits_task(), None).unwrap();
        let other_split = TaskSpec {
            split: SplitSpec {
                seed: 1,
                ..digits_task().split
            },
            ..digits_task()
        };

        assert_eq!(digits.hash, again.hash);
        assert_eq!(digits.hash.len(), 64);
        assert_ne!(digits.hash, load(&other_split, None).unwrap().hash);
    }

    #[test]
    fn a_host_that_does_not_fit_the_data_is_refused() {
        let mut coloured = digits_task();
        coloured.host.in_channels = 3;
        let mut large = digits_task();
        large.host.input_hw = 32;

        for (task, wrong) in [(coloured, "in_channels"), (large, "input_hw")] {
            assert!(matches!(
                load(&task, None),
                Err(DataError::ShapeMismatch { key, .. }) if key == wrong
            ));
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

        // Digit 9 first stands at row 9 of the source.
        assert!(matches!(
            load(&few, None),
            Err(DataError::LabelOutOfRange {
                index: 9,
                label: 9,
                classes: 9,
                ..
            })
        ));
        assert!(matches!(
            load(&many, None),
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
            },
            ..digits_task()
        };

        let loaded = load(&task("pixels"), Some(folder.path())).unwrap();
        let missing = load(&task("pixel"), Some(folder.path())).unwrap_err();

        assert_eq!(loaded.train, load(&digits_task(), None).unwrap().train);
        assert!(matches!(&missing, DataError::MissingFile { name, .. } if name == "pixel"));
        assert!(missing.to_string().contains("digits_*"), "{missing}");
    }
}
