//! Given weights: a safetensors file whose tensors are called as the host calls them, or as torchvision calls those of its
//! residual networks and of its VGG with batch norm.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use tch::Kind;

use super::NetworkError;
use super::registry::find;
use crate::data::open_file;
use crate::graph::{Graph, LayerGraph};
use crate::health::AtPath;
use crate::host::{Host, HostPlan};
use crate::random::{Domain, RunRng};
use crate::torch::{Backend, PlainTensor, decode_plain};

/// Names that a message lists at most.
const LISTED: usize = 8;

/// Weights of a host, all of its tensors or some.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenWeights {
    /// By the host's own names; f32, of its shapes.
    pub tensors: BTreeMap<String, PlainTensor>,
    /// What is not given, and what of the file is not taken.
    pub notes: Vec<String>,
}

impl GivenWeights {
    /// What the file called `name` has for the host; relative paths begin in `folder`.
    ///
    /// # Errors
    /// A file that is missing or is none; all tensors that do not fit.
    pub fn read(name: &str, folder: Option<&Path>, plan: &HostPlan) -> Result<Self, NetworkError> {
        let path = find(name, folder)?;
        let file = tensors_in(&path)?;
        let host = plan.build(&mut RunRng::new(0, Domain::HostInit, &[]), Backend::CPU)?;
        Self::fit(path, file, &*host, &plan.graph())
    }

    fn fit(
        path: PathBuf,
        file: BTreeMap<String, PlainTensor>,
        host: &dyn Host,
        graph: &Graph,
    ) -> Result<Self, NetworkError> {
        let expected: BTreeMap<&str, _> = host.params().all().map(|param| (&*param.name, &param.tensor)).collect();
        let (torchvision, is_vgg) = (torchvision_names(graph), is_vgg(graph));
        let (mut tensors, mut wrong, mut ignored) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (name, tensor) in file {
            if name.ends_with("num_batches_tracked") {
                continue;
            }
            let translated = || {
                let (layer, part) = name.rsplit_once('.')?;
                Some(format!("{}.{part}", torchvision.get(layer)?))
            };
            let own = match expected.contains_key(&*name) {
                true => name.clone(),
                false => translated().unwrap_or_else(|| name.clone()),
            };
            let Some(place) = expected.get(&*own) else {
                match is_vgg && name.starts_with("classifier.") {
                    true => ignored.push(name),
                    false => wrong.push(format!("`{name}` belongs to no layer")),
                }
                continue;
            };
            match as_f32(&tensor)?.filter(|tensor| tensor.fits(place)) {
                Some(tensor) => {
                    if tensors.insert(own, tensor).is_some() {
                        wrong.push(format!("`{name}` is there under another name, too"));
                    }
                }
                None => wrong.push(format!("`{name}` is {tensor:?}, expected F32 {:?}", place.size())),
            }
        }
        let is_absent = |name: &&str| !tensors.contains_key(*name);
        let absent: Vec<&str> = expected.keys().copied().filter(is_absent).collect();
        if tensors.is_empty() {
            wrong.push("it has nothing for this host".into());
        }
        if !wrong.is_empty() {
            let absent = if absent.is_empty() {
                "none".into()
            } else {
                some_of(&absent)
            };
            return Err(NetworkError::Weights { path, wrong, absent });
        }
        let mut notes = Vec::new();
        if !absent.is_empty() {
            notes.push(format!(
                "{} has nothing for {}: episodes start as without it there",
                path.display(),
                some_of(&absent)
            ));
        }
        if !ignored.is_empty() {
            let ignored: Vec<&str> = ignored.iter().map(String::as_str).collect();
            notes.push(format!(
                "{} of {} are not taken: the host has one linear layer in place of three",
                some_of(&ignored),
                path.display()
            ));
        }
        Ok(Self { tensors, notes })
    }
}

/// The first names, and how many more there are.
fn some_of(names: &[&str]) -> String {
    let listed = names.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

fn tensors_in(path: &Path) -> Result<BTreeMap<String, PlainTensor>, NetworkError> {
    let mut bytes = Vec::new();
    open_file(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .at(path)?;
    // Behind the eight bytes of its length a safetensors file has JSON.
    let is_pickle = bytes.get(8) != Some(&b'{') && (bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(&[0x80]));
    if is_pickle {
        return Err(NetworkError::Pickle(path.into()));
    }
    decode_plain(&bytes).map_err(|error| NetworkError::NotOne {
        path: path.into(),
        why: error.to_string(),
    })
}

/// `None` of other numbers than f32, f16 and bf16.
fn as_f32(tensor: &PlainTensor) -> Result<Option<PlainTensor>, NetworkError> {
    let Ok(values) = tensor.to_tensor() else {
        return Ok(None);
    };
    if !matches!(values.kind(), Kind::Float | Kind::Half | Kind::BFloat16) {
        return Ok(None);
    }
    Ok(Some(PlainTensor::of(&values.f_to_kind(Kind::Float)?)?))
}

/// VGG's convolutions have biases, those of other families have none.
fn is_vgg(graph: &Graph) -> bool {
    let first = graph.layers.first().map(|named| &named.layer);
    matches!(first, Some(LayerGraph::Conv { bias: true, .. }))
}

/// Names of layers, their tensors' without the last part: torchvision's to the host's.
fn torchvision_names(graph: &Graph) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let mut add = |theirs: String, ours: String| {
        names.insert(theirs, ours);
    };
    if is_vgg(graph) {
        let mut place = 0;
        for named in &graph.layers {
            match named.layer {
                LayerGraph::Conv { .. } => {
                    add(format!("features.{place}"), format!("{}.conv", named.name));
                    add(format!("features.{}", place + 1), format!("{}.norm", named.name));
                    place += 3;
                }
                LayerGraph::Pool => place += 1,
                _ => {}
            }
        }
        return names;
    }
    for named in &graph.layers {
        let ours = &named.name;
        match named.layer {
            LayerGraph::Conv { .. } if ours == "stem" => {
                add("conv1".into(), "stem.conv".into());
                add("bn1".into(), "stem.norm".into());
            }
            LayerGraph::Head { .. } => add("fc".into(), ours.clone()),
            LayerGraph::Residual { .. } => {
                let place = ours.strip_prefix("stage").and_then(|rest| rest.split_once(".block"));
                let Some((Ok(stage), block)) = place.map(|(stage, block)| (stage.parse::<usize>(), block)) else {
                    continue;
                };
                let theirs = format!("layer{}.{block}", stage + 1);
                for (part, own) in [
                    ("conv1", "first.conv"),
                    ("bn1", "first.norm"),
                    ("conv2", "second.conv"),
                    ("bn2", "second.norm"),
                    ("downsample.0", "shortcut.conv"),
                    ("downsample.1", "shortcut.norm"),
                ] {
                    add(format!("{theirs}.{part}"), format!("{ours}.{own}"));
                }
            }
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests;
