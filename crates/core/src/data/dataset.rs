//! The data set of a run: loaded once, fully checked, split and hashed. Images that need not be in memory for that are not.

use std::path::Path;
use std::sync::Arc;

use crate::files::counted;
use crate::host::Features;
use crate::scenario::{SplitSpec, TaskSpec};

use super::error::listed;
use super::formats::{self, Found};
use super::part::{Images, Part, Pool, Repeats};
use super::shape::Shape;
use super::split::{Split, stratified};
use super::{DataError, DataRegistry, normalise};

/// Everything a run trains and measures on.
#[derive(Clone, Debug)]
pub struct DataSet {
    /// As errors and manifests call it.
    pub name: String,
    /// Shape of an image.
    pub shape: Shape,
    /// The part that updates parameters, shared with the threads that read it while a run trains.
    pub train: Arc<Part>,
    /// Feeds reward, observation and governor.
    pub val: Part,
    /// Read only by the final evaluation. May be empty.
    pub test: Part,
    /// blake3 over name, shape and all bytes, in hexadecimal: resuming with other data is an error.
    pub hash: String,
    /// Normalisation `x = pixel·a + b` per channel.
    pub a: Vec<f32>,
    /// The offset of that normalisation, per channel.
    pub b: Vec<f32>,
    /// The pixel that the scenario's normalisation reads as 1.
    pub full: f64,
    /// Unusual properties of the files that aren't errors.
    pub notes: Vec<String>,
    /// Names in the order of their labels. Empty if the files name none.
    pub class_names: Vec<String>,
    /// The samples of the training files that make the other parts.
    pub drawn: Drawn,
}

/// Places of samples in the training files, from 0. `None` for a part that has files of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Indices of the validation part.
    pub val: Option<Vec<usize>>,
    /// Indices of the test part.
    pub test: Option<Vec<usize>>,
}

impl DataSet {
    /// Checks that a host reads images like these.
    ///
    /// # Errors
    /// Its field that does not agree.
    pub fn check_host(&self, input: Features) -> Result<(), DataError> {
        let [height, width, channels] = self.shape.dimensions();
        let Features { channels: read, side } = input;
        let (key, host, data) = if read != channels {
            let [channels, read] = [channels, read].map(|count| counted(count, "channel"));
            let data = format!("made of images of {channels}");
            ("host.in_channels", format!("images of {read}"), data)
        } else if [height, width] != [side; 2] {
            let data = format!("made of {height}x{width} images");
            ("host.input_hw", format!("{side}x{side} images"), data)
        } else {
            return Ok(());
        };
        Err(DataError::host(key, host, &self.name, data))
    }
}

/// Loads, checks, splits and normalises the data of `task`. Relative paths are looked up in `scenario_dir`, then in the
/// folder that `SIMIC_ENGINE_DATA` names, then in `data/`. Nothing is ever downloaded. `sets` are those of applications.
///
/// # Errors
/// Every [`DataError`] of start-up but that of [`DataSet::check_host`]: after this the run need not check a label again.
pub fn load(task: &TaskSpec, scenario_dir: Option<&Path>, sets: &DataRegistry) -> Result<DataSet, DataError> {
    let found = formats::read(&task.data, scenario_dir, sets)?;
    found.check_images()?;
    if let Some(classes) = found.classes.filter(|&classes| classes as i64 != task.classes) {
        let (name, asked) = (found.format, task.classes);
        return Err(DataError::new(
            format!("data '{name}' has {classes} classes, but task.classes is {asked}"),
            format!("write `classes: {classes}` next to `data` in the task, or give `--set task.classes={classes}`"),
        ));
    }
    found
        .parts()
        .try_for_each(|(_, pool)| pool.check_labels(&found.format, task.classes))?;

    let unused = unused_share(&found, task.split);
    let (shape, scale) = (found.train.shape, found.scale);
    let Found {
        format: name,
        class_names,
        mut notes,
        train,
        val,
        test,
        ..
    } = found;
    notes.extend(unused);
    let (parts, drawn) = divide(train.part, [val, test], task);
    for (part_name, part) in [("train", &parts[0]), ("validation", &parts[1])] {
        check_classes(&name, part_name, &part.histogram(task.classes as usize), &class_names)?;
    }
    let affine = normalise::resolve(&name, &task.normalise, &parts[0], shape.channels, scale)?;
    let is_made = task.data.part_sizes(&task.split).is_some();
    let (hash, repeated) = content_hash(&name, shape, &parts, is_made)?;
    notes.extend(repeated);
    let [train, val, test] = parts;
    Ok(DataSet {
        hash,
        name,
        shape,
        train: Arc::new(train),
        val,
        test,
        a: affine.a,
        b: affine.b,
        full: scale,
        notes,
        class_names,
        drawn,
    })
}

/// Says that a share of the split goes unused, because the files bring the part that it was for.
fn unused_share(found: &Found, split: SplitSpec) -> Option<String> {
    let brought = found.test.is_some() && split.test_permille > 0;
    brought.then(|| {
        format!(
            "{}: the files contain a test part; the {} permille of task.split for test stay in the training part",
            found.format, split.test_permille
        )
    })
}

/// Draws the parts that don't have files from the training files: training, validation and test.
fn divide(pool: Part, [val, test]: [Option<Pool>; 2], task: &TaskSpec) -> ([Part; 3], Drawn) {
    let share = |permille, part: Option<&_>| if part.is_some() { 0 } else { permille };
    let spec = SplitSpec {
        seed: task.split.seed,
        val_permille: share(task.split.val_permille, val.as_ref()),
        test_permille: share(task.split.test_permille, test.as_ref()),
    };
    let split = stratified(&pool.labels, task.classes, spec);
    let [train, drawn_val, drawn_test] = take(pool, &split);
    let drawn = Drawn {
        val: val.is_none().then_some(split.val),
        test: test.is_none().then_some(split.test),
    };
    let part = |brought: Option<Pool>, drawn| brought.map_or(drawn, |pool| pool.part);
    ([train, part(val, drawn_val), part(test, drawn_test)], drawn)
}

/// Splits a pool.
fn take(pool: Part, split: &Split) -> [Part; 3] {
    let indices = [&split.train, &split.val, &split.test];
    let size = pool.image_bytes();
    let images = match pool.images {
        Images::Memory(bytes) => take_bytes(bytes, size, split).map(Images::Memory),
        Images::Files(records) => indices.map(|indices| Images::Files(records.choose(indices))),
    };
    let [train, val, test] = images;
    let part = |images, indices: &[usize]| Part {
        images,
        labels: indices.iter().map(|&index| pool.labels[index]).collect(),
    };
    [
        part(train, &split.train),
        part(val, &split.val),
        part(test, &split.test),
    ]
}

/// Moves the training part to the front of the memory that it is in: large sets are not there twice.
fn take_bytes(mut images: Vec<u8>, size: usize, split: &Split) -> [Vec<u8>; 3] {
    let copy = |indices: &[usize]| -> Vec<u8> {
        let mut copied = Vec::with_capacity(indices.len() * size);
        for &index in indices {
            copied.extend_from_slice(&images[index * size..(index + 1) * size]);
        }
        copied
    };
    let (val, test) = (copy(&split.val), copy(&split.test));
    // Indices ascend, so nothing is overwritten before it has moved.
    for (to, &from) in split.train.iter().enumerate() {
        images.copy_within(from * size..(from + 1) * size, to * size);
    }
    images.truncate(split.train.len() * size);
    images.shrink_to_fit();
    [images, val, test]
}

/// Checks that every class has samples in a part. `counts` are those of the classes.
///
/// # Errors
/// The classes that have none.
pub(super) fn check_classes(name: &str, part: &str, counts: &[usize], class_names: &[String]) -> Result<(), DataError> {
    let empty = (0..counts.len()).filter(|&class| counts[class] == 0);
    let empty: Vec<String> = empty
        .map(|class| match class_names.get(class) {
            Some(name) => format!("{class} ({name})"),
            None => class.to_string(),
        })
        .collect();
    match empty.len() {
        0 => Ok(()),
        all if all == counts.len() => Err(DataError::empty_part(name, part)),
        _ => {
            let (classes, more) = (listed(empty), "give more samples of it, or change task.split");
            let remedy = match class_names {
                [] => format!("number the labels from 0 without a gap, {more}"),
                _ => more.into(),
            };
            let fault = format!("data '{name}': class {classes} has no sample in the {part} part");
            Err(DataError::new(fault, remedy))
        }
    }
}

/// The hash of all content and, unless the program makes it itself, notes on images that are in several parts: each is
/// read once for both.
fn content_hash(
    name: &str,
    shape: Shape,
    parts: &[Part; 3],
    is_made: bool,
) -> Result<(String, Vec<String>), DataError> {
    let (mut hasher, mut repeats, mut notes) = (blake3::Hasher::new(), Repeats::default(), Vec::new());
    hasher.update(name.as_bytes());
    for (part_name, part) in ["train", "validation", "test"].into_iter().zip(parts) {
        for size in [part.len(), shape.height, shape.width, shape.channels] {
            hasher.update(&(size as u64).to_le_bytes());
        }
        let mut labels = part.labels.iter();
        part.for_each_image(|image| {
            hasher.update(image);
            if !is_made {
                repeats.see(part_name, labels.next(), image);
            }
        })?;
        for label in &part.labels {
            hasher.update(&label.to_le_bytes());
        }
        notes.extend(repeats.end(name, part_name, part.len(), false));
    }
    Ok((hasher.finalize().to_hex().to_string(), notes))
}

#[cfg(test)]
pub(crate) mod tests;
