//! A round that is being played, laid open: plain values and tensors by name, as a checkpoint inside the round keeps them.
//!
//! While it exists as a resource, the works of [`SaveRound`](crate::schedule::SaveRound) fill it, or those of
//! [`RestoreRound`](crate::schedule::RestoreRound) put what it holds back where it was. Everything that is drawn follows from
//! seed, round and step, so there is no random state in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bevy_ecs::prelude::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tch::Tensor;

use crate::files::{self, RonError, read_ron};
use crate::health::{AtPath, Failure, FileError};
use crate::storage::write_synced;
use crate::torch::{PlainTensor, TorchError, copy_into, decode_plain, encode_plain};

/// The values, one per line: its name, a colon, and what it is in RON.
const VALUES_FILE: &str = "round.txt";
/// The tensors, by name.
pub const TENSORS_FILE: &str = "round.safetensors";
const SEPARATOR: &str = ": ";

/// State that lasts from step to step of the round that is being played.
#[derive(Resource, Debug, Default)]
pub struct UnfinishedRound {
    values: BTreeMap<String, String>,
    tensors: BTreeMap<String, PlainTensor>,
}

/// The reason why a round cannot be kept or resumed. A run that cannot continue inside a round can be resumed from the
/// checkpoint before the round.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum UnfinishedRoundError {
    /// A component kept by [`keep_in_rounds`](crate::env::KeepInRounds::keep_in_rounds) holds what RON cannot say.
    #[error("`{name}` cannot be saved: {why}")]
    Unspeakable { name: String, why: ron::Error },
    /// The checkpoint was made without the plugin that keeps this: resume with the plugins that the run was started with.
    #[error("`{0}` is missing in the checkpoint of the unfinished round")]
    Missing(String),
    /// The checkpoint was made by a version of the plugin that keeps this in another form.
    #[error("`{name}` of the unfinished round cannot be read: {why}")]
    Unreadable { name: String, why: String },
    /// The tensor to be restored has another shape or kind than when it was kept.
    #[error("tensor `{name}` of the unfinished round is {found}, expected {expected}")]
    OtherTensor {
        name: String,
        found: String,
        expected: String,
    },
    /// The file was damaged: `simic-engine check` says what else is.
    #[error("{path}: line {line} is not `name: value`")]
    Line { path: PathBuf, line: usize },
    /// The file of tensors was damaged.
    #[error("{path}: {why}")]
    Tensors { path: PathBuf, why: TorchError },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// libtorch failed.
    #[error(transparent)]
    Torch(#[from] TorchError),
}

impl UnfinishedRound {
    /// Keeps a value, in the place of one that has the name already.
    ///
    /// # Errors
    /// A value that RON cannot say.
    pub fn put(&mut self, name: impl Into<String>, value: &impl Serialize) -> Result<(), UnfinishedRoundError> {
        let name = name.into();
        let text = ron::to_string(value).map_err(|why| UnfinishedRoundError::Unspeakable {
            name: name.clone(),
            why,
        })?;
        self.values.insert(name, text);
        Ok(())
    }

    /// The value of that name.
    ///
    /// # Errors
    /// There is none, or it isn't a `T`.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, UnfinishedRoundError> {
        let text = self.values.get(name);
        let text = text.ok_or_else(|| UnfinishedRoundError::Missing(name.into()))?;
        read_ron(text).map_err(|RonError(why)| UnfinishedRoundError::Unreadable {
            name: name.into(),
            why: why.to_string(),
        })
    }

    /// Keeps what a tensor of any shape and kind holds now, in the place of one that has the name already; waits for its device, in the order of
    /// the stream that is entered.
    ///
    /// # Errors
    /// A device error.
    pub fn put_tensor(&mut self, name: impl Into<String>, tensor: &Tensor) -> Result<(), UnfinishedRoundError> {
        self.tensors.insert(name.into(), PlainTensor::of(tensor)?);
        Ok(())
    }

    /// Values of the tensor of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn tensor(&self, name: &str) -> Result<&PlainTensor, UnfinishedRoundError> {
        let tensor = self.tensors.get(name);
        tensor.ok_or_else(|| UnfinishedRoundError::Missing(name.into()))
    }

    /// Gives `target`, of any shape and kind, the values of the tensor of that name, in place.
    ///
    /// # Errors
    /// There is none, one of another shape or kind, or a device error; `target` is then as it was.
    pub fn copy_to(&self, name: &str, target: &Tensor) -> Result<(), UnfinishedRoundError> {
        let kept = self.tensor(name)?;
        if !kept.fits(target) {
            return Err(UnfinishedRoundError::OtherTensor {
                name: name.into(),
                found: format!("{kept:?}"),
                expected: format!("{:?} {:?}", target.kind(), target.size()),
            });
        }
        Ok(copy_into(target, &kept.to_tensor()?, false)?)
    }

    /// Writes everything into two files of `folder`.
    ///
    /// # Errors
    /// A device error, or a file that cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), Failure> {
        let line = |(name, value): (&String, &String)| format!("{name}{SEPARATOR}{value}\n");
        let values: String = self.values.iter().map(line).collect();
        write_synced(&folder.join(VALUES_FILE), values.as_bytes())?;
        let tensors = self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor));
        Ok(write_synced(&folder.join(TENSORS_FILE), &encode_plain(tensors)?)?)
    }

    /// The state that [`write`](Self::write) has written into `folder`.
    ///
    /// # Errors
    /// A file that cannot be read, or holds something else.
    pub fn read(folder: &Path) -> Result<Self, UnfinishedRoundError> {
        let path = folder.join(VALUES_FILE);
        let text = files::read_text(&path).at(&path)?;
        let values = text.lines().enumerate().map(|(line, text)| {
            let (name, value) = text.split_once(SEPARATOR).ok_or(UnfinishedRoundError::Line {
                path: path.clone(),
                line: line + 1,
            })?;
            Ok((name.into(), value.into()))
        });
        let values = values.collect::<Result<_, UnfinishedRoundError>>()?;
        let path = folder.join(TENSORS_FILE);
        let tensors = decode_plain(&files::read(&path).at(&path)?);
        let tensors = tensors.map_err(|why| UnfinishedRoundError::Tensors { path, why })?;
        Ok(Self { values, tensors })
    }
}

#[cfg(test)]
mod tests;
