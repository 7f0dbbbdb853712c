//! A network in one file: safetensors, with everything but the tensors as JSON in its metadata, and a checksum over both.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{DataCard, GrownNetwork, Measures, NetworkError, Origin, SeedHistory};
use crate::graph::Graph;
use crate::hash::sha256_of;
use crate::health::AtPath;
use crate::storage::replace_synced;
use crate::torch::{PlainTensor, decode_described, encode_described};

/// Key of the metadata, and ending of the files.
const KEY: &str = "simic_engine";
const FORMAT: u32 = 1;

/// What stands in the metadata, behind the checksum.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    format: u32,
    graph: Graph,
    measures: Measures,
    data: DataCard,
    origin: Origin,
    growth: Vec<SeedHistory>,
}

/// The one thing that every format has.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

impl GrownNetwork {
    /// Writes the network to `path`, where it appears whole or not at all.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), NetworkError> {
        Ok(replace_synced(path, &self.to_bytes().at(path)?).at(path)?)
    }

    /// What its file holds.
    ///
    /// # Errors
    /// More tensors than the format can describe.
    pub fn to_bytes(&self) -> std::io::Result<Vec<u8>> {
        let description = serde_json::to_string(&Description {
            format: FORMAT,
            graph: self.graph.clone(),
            measures: self.measures,
            data: self.data.clone(),
            origin: self.origin.clone(),
            growth: self.growth.clone(),
        })?;
        let checksum = checksum(&description, &self.parameters);
        let text = format!("{checksum} {description}");
        let tensors = self.parameters.iter().map(|(name, tensor)| (name.as_str(), tensor));
        encode_described(tensors, KEY, text).map_err(std::io::Error::other)
    }

    /// The network in the file at `path`.
    ///
    /// # Errors
    /// A file that cannot be read, is none, is damaged, or was written by a later version.
    pub fn load(path: &Path) -> Result<Self, NetworkError> {
        let not_one = |why: &dyn std::fmt::Display| NetworkError::NotOne {
            path: path.into(),
            why: why.to_string(),
        };
        let bytes = std::fs::read(path).at(path)?;
        let (parameters, text) = decode_described(&bytes, KEY).map_err(|error| not_one(&error))?;
        let text = text.ok_or_else(|| not_one(&"it is a safetensors file that this engine did not write"))?;
        let (sum, description) = text.split_once(' ').unwrap_or(("", &text));
        if checksum(description, &parameters) != sum {
            return Err(NetworkError::Damaged(path.into()));
        }
        let Version { format } = serde_json::from_str(description).map_err(|error| not_one(&error))?;
        if format != FORMAT {
            return Err(not_one(&format!(
                "it has format {format}, this version reads format {FORMAT}"
            )));
        }
        let Description {
            graph,
            measures,
            data,
            origin,
            growth,
            ..
        } = serde_json::from_str(description).map_err(|error| not_one(&error))?;
        Ok(Self {
            graph,
            parameters,
            measures,
            data,
            origin,
            growth,
        })
    }
}

/// Of the description and of all tensors with their names.
fn checksum(description: &str, parameters: &BTreeMap<String, PlainTensor>) -> String {
    let tensors = parameters.iter().flat_map(|(name, tensor)| {
        let head = format!("{name} {tensor:?} ").into_bytes();
        [Cow::Owned(head), Cow::Borrowed(tensor.bytes())]
    });
    sha256_of(std::iter::once(Cow::Borrowed(description.as_bytes())).chain(tensors))
}

#[cfg(test)]
mod tests;
