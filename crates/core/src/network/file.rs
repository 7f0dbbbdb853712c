//! A network in one file: safetensors, with everything but the tensors as JSON in its metadata, and a checksum over both.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;
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

/// The metadata after the checksum.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    format: u32,
    graph: Graph,
    measures: Measures,
    data: DataCard,
    origin: Origin,
    growth: Vec<SeedHistory>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    domains: BTreeMap<String, Description>,
}

impl Description {
    fn of(network: &GrownNetwork) -> Self {
        let domains = network.domains.iter();
        Self {
            format: FORMAT,
            graph: network.graph.clone(),
            measures: network.measures,
            data: network.data.clone(),
            origin: network.origin.clone(),
            growth: network.growth.clone(),
            domains: domains.map(|(name, domain)| (name.clone(), Self::of(domain))).collect(),
        }
    }

    /// The network with these tensors. Tensors of a domain carry its name. What it has in common with the given network is there
    /// once.
    fn with(self, mut parameters: BTreeMap<String, PlainTensor>) -> GrownNetwork {
        let domains = self.domains.into_iter().map(|(name, domain)| {
            let prefix = in_domain(&name, "");
            let is_own = |name: &String, _: &mut PlainTensor| name.starts_with(&prefix);
            let own: Vec<_> = parameters.extract_if(.., is_own).collect();
            let own = own
                .into_iter()
                .map(|(name, tensor)| (name[prefix.len()..].to_owned(), tensor));
            (name, domain, own.collect::<BTreeMap<_, _>>())
        });
        let domains: Vec<_> = domains.collect();
        let domains = domains.into_iter().map(|(name, domain, own)| {
            let mut whole = parameters.clone();
            whole.extend(own);
            (name, domain.with(whole))
        });
        GrownNetwork {
            domains: domains.collect(),
            graph: self.graph,
            parameters,
            measures: self.measures,
            data: self.data,
            origin: self.origin,
            growth: self.growth,
        }
    }
}

/// The name in a file of the tensor `tensor` of a domain.
fn in_domain(domain: &str, tensor: &str) -> String {
    format!("{domain}::{tensor}")
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

    /// Content of its file.
    ///
    /// # Errors
    /// More tensors than the format can describe.
    pub fn to_bytes(&self) -> std::io::Result<Vec<u8>> {
        let description = serde_json::to_string(&Description::of(self))?;
        let own = self.domains.iter().flat_map(|(domain, network)| {
            let own = network.own(self);
            own.map(move |(name, tensor)| (in_domain(domain, name), tensor))
        });
        let mut tensors: BTreeMap<String, &PlainTensor> = own.collect();
        tensors.extend(self.parameters.iter().map(|(name, tensor)| (name.clone(), tensor)));
        let checksum = checksum(&description, tensors.iter().map(|(name, tensor)| (name, *tensor)));
        let text = format!("{checksum} {description}");
        let tensors = tensors.iter().map(|(name, tensor)| (name.as_str(), *tensor));
        encode_described(tensors, KEY, text).map_err(std::io::Error::other)
    }

    /// The network in the file at `path`.
    ///
    /// # Errors
    /// A file that can't be read, isn't a network, is damaged, or was written by a later version.
    pub fn load(path: &Path) -> Result<Self, NetworkError> {
        Self::load_any(path)?.map_err(|_| NetworkError::NotOne {
            path: path.into(),
            why: "it has only weights; name it in task.weights".into(),
        })
    }

    /// The network in the file at `path`, or the tensors of a file that has only weights.
    ///
    /// # Errors
    /// Those of [`Self::load`], except the one about a file with only weights.
    pub fn load_any(path: &Path) -> Result<Result<Self, BTreeMap<String, PlainTensor>>, NetworkError> {
        let not_one = |why: &dyn std::fmt::Display| NetworkError::NotOne {
            path: path.into(),
            why: why.to_string(),
        };
        let bytes = read_tensors(path)?;
        let (parameters, text) = decode_described(&bytes, KEY)
            .map_err(|error| not_one(&format_args!("it isn't a complete safetensors file ({error})")))?;
        let Some(text) = text else {
            return Ok(Err(parameters));
        };
        let (sum, description) = text.split_once(' ').unwrap_or(("", &text));
        if checksum(description, parameters.iter()) != sum {
            return Err(NetworkError::Damaged(path.into()));
        }
        let Version { format } = serde_json::from_str(description).map_err(|error| not_one(&error))?;
        if format != FORMAT {
            return Err(not_one(&format!(
                "it has format {format}, this version reads format {FORMAT}"
            )));
        }
        let description: Description = serde_json::from_str(description).map_err(|error| not_one(&error))?;
        if let Some(name) = description.domains.keys().find(|name| !Self::is_domain_name(name)) {
            return Err(not_one(&format!("a domain cannot be called {name:?}")));
        }
        Ok(Ok(description.with(parameters)))
    }
}

/// The bytes of a file of tensors. Nothing is read from a pipe or a device, which may never begin or never end.
fn read_tensors(path: &Path) -> Result<Vec<u8>, NetworkError> {
    let file = crate::files::open(path).at(path)?;
    let length = file.metadata().at(path)?.len();
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).at(path)?;
    // A safetensors file has JSON after the eight bytes of its length.
    let is_pickle = bytes.get(8) != Some(&b'{') && (bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(&[0x80]));
    if is_pickle {
        return Err(NetworkError::Pickle(path.into()));
    }
    let length = bytes.first_chunk::<8>().map_or(0, |length| u64::from_le_bytes(*length));
    let header = bytes.get(8..).and_then(|rest| rest.get(..length as usize));
    let header = header.unwrap_or_default();
    let tensors = header.windows(7).filter(|part| *part == b"\"dtype\"").count();
    // With more, the names alone would take minutes to read.
    if header.len() > 64 << 20 || tensors > 1 << 16 {
        let why = format!("a header of {length} bytes and {tensors} tensors; valid: up to 64 MiB and 65536 tensors");
        return Err(NetworkError::NotOne { path: path.into(), why });
    }
    Ok(bytes)
}

/// Refuses a tensor, f32, with a value that is not finite, or a variance below 0.
pub(super) fn check_values(path: &Path, name: &str, tensor: &PlainTensor) -> Result<(), NetworkError> {
    let is_variance = name.ends_with("running_var");
    let (values, _) = tensor.bytes().as_chunks::<4>();
    let mut values = values.iter().map(|bytes| f32::from_le_bytes(*bytes));
    let wrong = values.find(|value| !value.is_finite() || (is_variance && *value < 0.0));
    wrong.map_or(Ok(()), |value| {
        let (path, name) = (path.into(), name.into());
        Err(NetworkError::Value { path, name, value })
    })
}

/// The first of them, each a line at most, and how many more there are.
pub(super) fn some_of<T: AsRef<str>>(texts: &[T], separator: &str) -> String {
    let short = |text: &T| text.as_ref().chars().take(200).collect::<String>();
    let listed: Vec<String> = texts.iter().take(8).map(short).collect();
    match texts.len() - listed.len() {
        _ if texts.is_empty() => "none".into(),
        0 => listed.join(separator),
        more => format!("{} and {more} more", listed.join(separator)),
    }
}

/// Hash of the description and of all tensors with their names.
fn checksum<'t>(description: &str, tensors: impl Iterator<Item = (&'t String, &'t PlainTensor)>) -> String {
    let tensors = tensors.flat_map(|(name, tensor)| {
        let head = format!("{name} {tensor:?} ").into_bytes();
        [Cow::Owned(head), Cow::Borrowed(tensor.bytes())]
    });
    sha256_of(std::iter::once(Cow::Borrowed(description.as_bytes())).chain(tensors))
}

#[cfg(test)]
mod tests;
