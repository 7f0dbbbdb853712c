//! The data of a run, of either kind: loaded, and on a device.

use std::path::Path;
use std::sync::Arc;

use super::formats::idx;
use super::geometry::Geometry;
use super::locate::{find, open_unpacked};
use super::tokens::{ResidentTokens, TokenSet, load_tokens};
use super::{DataError, DataRegistry, DataSet, EvalSet, FeedArithmetic, Readers, ResidentData, dataset};
use crate::growth::Topology;
use crate::host::Features;
use crate::scenario::{AugmentSpec, DataSource, PartSizes, TaskSpec};
use crate::torch::Backend;

/// Everything that a run trains and measures on. Data that needn't be in memory stay in their files.
#[derive(Clone, Debug)]
pub enum TaskData {
    /// Labelled images.
    Images(Box<DataSet>),
    /// A text.
    Tokens(TokenSet),
}

impl TaskData {
    /// Loads, checks and splits the data of `task`. Relative paths are looked up in `scenario_dir`, then in the folder that
    /// `SIMIC_ENGINE_DATA` names, then in `data/`. Nothing is ever downloaded. `sets` are those of applications.
    ///
    /// # Errors
    /// Every [`DataError`] of start-up but that of [`Self::check_host`].
    pub fn load(task: &TaskSpec, scenario_dir: Option<&Path>, sets: &DataRegistry) -> Result<Self, DataError> {
        Ok(match load_tokens(task, scenario_dir)? {
            Some(set) => Self::Tokens(set),
            None => Self::Images(Box::new(dataset::load(task, scenario_dir, sets)?)),
        })
    }

    /// As errors and manifests call it.
    pub fn name(&self) -> &str {
        match self {
            Self::Images(set) => &set.name,
            Self::Tokens(set) => &set.name,
        }
    }

    /// blake3, in hexadecimal: resuming with other data is an error.
    pub fn hash(&self) -> &str {
        match self {
            Self::Images(set) => &set.hash,
            Self::Tokens(set) => &set.hash,
        }
    }

    /// Unusual properties of the files that aren't errors.
    pub fn notes(&self) -> &[String] {
        match self {
            Self::Images(set) => &set.notes,
            Self::Tokens(_) => &[],
        }
    }

    /// Returns whether all classes are called as in `known`, the names that the given network has learnt; the first that
    /// isn't is noted.
    pub fn compare_classes(&mut self, known: &[String]) -> bool {
        let Self::Images(set) = self else { return true };
        let mut classes = set.class_names.iter().zip(known).enumerate();
        let Some((class, (here, there))) = classes.find(|(_, (here, there))| here != there) else {
            return true;
        };
        let name = &set.name;
        set.notes.push(format!(
            "{name}: class {class} is {here}, but was {there} in the given network, whose head starts unchanged"
        ));
        false
    }

    /// Samples of each part.
    pub fn sizes(&self) -> PartSizes {
        match self {
            Self::Images(set) => PartSizes {
                train: set.train.len(),
                val: set.val.len(),
                test: set.test.len(),
            },
            Self::Tokens(set) => set.sizes(),
        }
    }

    /// Returns whether the training part is read from its files when it is needed.
    pub fn is_in_files(&self) -> bool {
        match self {
            Self::Images(set) => set.train.is_in_files(),
            Self::Tokens(set) => set.is_in_files(),
        }
    }

    /// Bytes of the training part in the memory of the machine.
    pub fn train_bytes(&self) -> u128 {
        match self {
            Self::Images(set) => set.train.len() as u128 * set.train.image_bytes() as u128,
            Self::Tokens(set) => set.bytes(),
        }
    }

    /// Bytes of the training part on a device, images padded and mirrored as `augment` asks.
    pub fn resident_bytes(&self, augment: Option<AugmentSpec>) -> u128 {
        match self {
            Self::Images(set) => Geometry::new(set, augment).stored_bytes(),
            Self::Tokens(set) => set.bytes(),
        }
    }

    /// The same data with the training part in memory.
    ///
    /// # Errors
    /// The errors of reading it, or too little memory.
    pub fn in_memory(self) -> Result<Self, DataError> {
        Ok(match self {
            Self::Images(mut set) => {
                let train = Arc::unwrap_or_clone(std::mem::take(&mut set.train));
                set.train = Arc::new(train.in_memory()?);
                Self::Images(set)
            }
            Self::Tokens(set) => Self::Tokens(set.in_memory()?),
        })
    }

    /// Checks that a host reads data like these.
    ///
    /// # Errors
    /// The property in which host and data disagree.
    pub fn check_host(&self, topology: Topology, input: Features) -> Result<(), DataError> {
        let other_kind = |host, data| Err(DataError::host("host", host, self.name(), data));
        match (self, topology) {
            (Self::Images(set), Topology::Image) => set.check_host(input),
            (Self::Tokens(set), Topology::Tokens) => set.check_host(input.channels, input.side),
            (Self::Images(_), Topology::Tokens) => other_kind("text", "images"),
            (Self::Tokens(_), Topology::Image) => other_kind("images", "text"),
        }
    }

    /// Batch counts and sizes of every env and step.
    ///
    /// # Errors
    /// The errors of [`FeedArithmetic::new`].
    pub fn arithmetic(&self, task: &TaskSpec, n_envs: usize) -> Result<FeedArithmetic, DataError> {
        let sizes = self.sizes();
        Ok(FeedArithmetic {
            units_per_sample: match self {
                Self::Images(_) => 1,
                Self::Tokens(set) => set.block,
            },
            ..FeedArithmetic::new(task, sizes.train, sizes.val, n_envs)?
        })
    }
}

/// Refuses to stream what has to be unpacked first: all of it would be in memory by then. Files that are not there, and formats
/// without records, are reported elsewhere.
///
/// # Errors
/// A file that is packed, or cannot be read.
pub fn refuse_packed(source: &DataSource, scenario_dir: Option<&Path>) -> Result<(), DataError> {
    let name = match source {
        DataSource::Cifar10 { path } | DataSource::Cifar100 { path } | DataSource::IdxFolder { path, .. } => path,
        DataSource::Idx { images, .. } | DataSource::Npy { images, .. } => images,
        DataSource::Text(text) => &text.path,
        DataSource::TokenFiles(files) => &files.train,
        _ => return Ok(()),
    };
    let Ok(place) = find(name, scenario_dir, None) else {
        return Ok(());
    };
    let file = match source {
        DataSource::IdxFolder { .. } => idx::training_images(&place),
        _ => place.is_file().then_some(place),
    };
    // One file of CIFAR is an archive, packed or not.
    let is_archive = matches!(source, DataSource::Cifar10 { .. } | DataSource::Cifar100 { .. });
    match file {
        Some(file) if is_archive || open_unpacked(&file)?.is_none() => {
            let file = file.display();
            Err(DataError::new(
                format!(
                    "data.residency: stream is not possible, as {file} is packed and can only be read from its start"
                ),
                "unpack it, or write data.residency: auto, device or host",
            ))
        }
        _ => Ok(()),
    }
}

/// The data on one device.
#[derive(Debug)]
pub enum Resident {
    /// Images.
    Images(ResidentData),
    /// A text.
    Tokens(ResidentTokens),
}

impl Resident {
    /// Uploads all parts, but the training part where `readers` are to fetch it; `augment` decides how training images are
    /// padded and mirrored.
    ///
    /// # Errors
    /// A device that cannot hold the data, or the errors of reading them.
    pub fn upload(
        data: &TaskData,
        augment: Option<AugmentSpec>,
        backend: Backend,
        readers: Option<&Readers>,
    ) -> Result<Self, DataError> {
        Ok(match data {
            TaskData::Images(set) => Self::Images(ResidentData::upload(set, augment, backend, readers)?),
            TaskData::Tokens(set) => Self::Tokens(ResidentTokens::upload(set, backend, readers)?),
        })
    }

    /// The validation part.
    pub fn val(&self) -> &EvalSet {
        match self {
            Self::Images(data) => &data.val,
            Self::Tokens(data) => &data.val,
        }
    }

    /// The part that only the final evaluation of an episode reads.
    pub fn test(&self) -> &EvalSet {
        match self {
            Self::Images(data) => &data.test,
            Self::Tokens(data) => &data.test,
        }
    }
}
