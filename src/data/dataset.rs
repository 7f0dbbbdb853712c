//! The data set of a run on the host: loaded once, fully checked, split and hashed.

use std::path::{Path, PathBuf};

use crate::host::Features;
use crate::scenario::{DataSource, SynthImages, TaskSpec};

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

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}

/// Everything a run trains and measures on.
#[derive(Clone, Debug)]
pub struct DataSet {
    /// As errors and manifests call it.
    pub name: String,
    /// Channels of an image.
    pub channels: usize,
    /// Rows of an image.
    pub height: usize,
    /// Columns of an image.
    pub width: usize,
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
    /// The offset of that normalisation, per channel.
    pub b: Vec<f32>,
}

impl DataSet {
    /// Whether a host reads images like these.
    ///
    /// # Errors
    /// [`DataError::ShapeMismatch`].
    pub fn check_host(&self, input: Features) -> Result<(), DataError> {
        let mismatch = |key, host: String, data: String| {
            Err(DataError::ShapeMismatch {
                name: self.name.clone(),
                key,
                host,
                data,
            })
        };
        if input.channels != self.channels as i64 {
            return mismatch(
                "in_channels",
                format!("{} input channels", input.channels),
                format!("{}", self.channels),
            );
        }
        if (self.height as i64, self.width as i64) != (input.side, input.side) {
            return mismatch(
                "input_hw",
                format!("{0}x{0} images", input.side),
                format!("{}x{} images", self.height, self.width),
            );
        }
        Ok(())
    }
}

/// Loads, checks, splits and normalises the data of `task`. Relative paths are looked up in `scenario_dir`, then in the
/// folder that `SIMIC_ENGINE_DATA` names, then in `data/`. Nothing is ever downloaded.
///
/// # Errors
/// Every [`DataError`] of start-up but that of [`DataSet::check_host`]: after this the run need not check a label again.
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
        DataSource::SynthTokens(_) | DataSource::Text(_) => return Err(DataError::NoImages),
    };
    raw.check(task)?;
    let affine = normalise::resolve(raw.name, &task.normalise, &raw.train.images, raw.channels, raw.scale)?;
    Ok(DataSet {
        hash: raw.content_hash(),
        name: raw.name.into(),
        channels: raw.channels,
        height: raw.height,
        width: raw.width,
        train: raw.train,
        val: raw.val,
        test: raw.test,
        a: affine.a,
        b: affine.b,
    })
}

/// The bytes of a data file, wherever it is looked up.
pub(super) fn read(name: &str, scenario_dir: Option<&Path>) -> Result<Vec<u8>, DataError> {
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
        check_labels(name, &labels, task.classes)?;
        let split = split::stratified(&labels, task.classes, task.split);
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
        let part = |part: SynthPart, count: usize| -> Result<Part, DataError> {
            Ok(Part {
                images: synth::generate(params, part, count)?,
                labels: (0..count).map(|index| synth::label(params, index)).collect(),
            })
        };
        Ok(Self {
            name: "synth_images",
            channels: params.channels,
            height: params.height,
            width: params.width,
            scale: synth::SCALE,
            train: part(SynthPart::Train, params.train)?,
            val: part(SynthPart::Val, params.val)?,
            test: part(SynthPart::Test, params.test)?,
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
pub(crate) mod tests;
