//! Given weights: a safetensors file with the tensor names of the host, or with those of torchvision's residual networks and
//! of its VGG with batch norm.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tch::Kind;

use super::file::{check_values, some_of};
use super::registry::find;
use super::{GrownNetwork, NetworkError};
use crate::files::counted;
use crate::graph::{Graph, LayerGraph};
use crate::host::{Host, HostPlan};
use crate::random::{Domain, RunRng};
use crate::scenario::stands_for;
use crate::torch::{Backend, PlainTensor};

/// Weights of a host, all of its tensors or some.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GivenWeights {
    /// Tensors by the host's own names; f32, of its shapes.
    pub tensors: BTreeMap<String, PlainTensor>,
    /// Names of the host's other tensors.
    pub absent: Vec<String>,
    /// Classes of the head in the file, where they are not the host's: it is left out then.
    pub other_classes: Option<usize>,
    /// Notes on tensors that are not given, and on those of the file that are not taken.
    pub notes: Vec<String>,
}

impl GivenWeights {
    /// The weights that the file called `name` has for the host; relative paths begin in `folder`.
    ///
    /// # Errors
    /// A file that is missing or doesn't hold tensors; all tensors that do not fit; one from whose values no network can start.
    pub fn read(name: &str, folder: Option<&Path>, plan: &HostPlan) -> Result<Self, NetworkError> {
        let path = find(name, folder)?;
        let file = GrownNetwork::load_any(&path)?.map_or_else(|weights| weights, |network| network.parameters);
        let host = plan.build(&mut RunRng::new(0, Domain::HostInit, &[]), Backend::CPU)?;
        Self::fit(path, file, &*host, &plan.graph())
    }

    /// Returns whether nothing is absent but of the last layer, the head.
    pub fn has_body(&self, plan: &HostPlan) -> bool {
        let layers = plan.outline().layers;
        let is_of_head = |name: &String| layers.last().is_some_and(|head| stands_for(head, name));
        self.absent.iter().all(is_of_head)
    }

    fn fit(
        path: PathBuf,
        file: BTreeMap<String, PlainTensor>,
        host: &dyn Host,
        graph: &Graph,
    ) -> Result<Self, NetworkError> {
        let expected: BTreeMap<&str, _> = host.params().all().map(|param| (&*param.name, &param.tensor)).collect();
        let (torchvision, is_vgg) = (torchvision_names(graph), is_vgg(graph));
        let own_name = |name: &str| {
            if expected.contains_key(name) {
                return Some(name.to_owned());
            }
            let (layer, part) = name.rsplit_once('.')?;
            let own = format!("{}.{part}", torchvision.get(layer)?);
            expected.contains_key(&*own).then_some(own)
        };
        let is_ignored = |name: &str| is_vgg && name.starts_with("classifier.");
        let is_plain = is_vgg && !file.keys().any(|name| name.ends_with("running_var"));
        let prefix = prefix_of(&file, |name| is_ignored(name) || own_name(name).is_some()).to_owned();
        let layers = expected.keys().filter_map(|name| Some(name.rsplit_once('.')?.0));
        let layers: BTreeSet<&str> = layers.chain(torchvision.keys().map(String::as_str)).collect();
        let alike: BTreeSet<String> = layers.iter().map(|layer| uncounted(layer)).collect();
        let shapes = file
            .iter()
            .map(|(name, tensor)| (own_name(&name[prefix.len()..]), tensor.shape()));
        let other = other_head(shapes.filter_map(|(own, shape)| Some((own?, shape))), graph);
        let is_of_other = |own: &str| other.is_some_and(|(head, ..)| stands_for(head, own));
        let (mut tensors, mut ignored) = (BTreeMap::new(), Vec::new());
        let (mut kinds, mut wrong) = (BTreeSet::new(), Vec::new());
        for (name, tensor) in file {
            let known = &name[prefix.len()..];
            if known.ends_with("num_batches_tracked") {
                continue;
            }
            let Some(own) = own_name(known) else {
                let layer = known.rsplit_once('.').map_or("", |(layer, _)| layer);
                if !layers.contains(layer) && alike.contains(&uncounted(layer)) {
                    let kind = match is_plain {
                        true => "it has no norms after its convolutions, but the host does",
                        false => "it has another depth, with layers that the host doesn't have",
                    };
                    kinds.insert(kind.to_owned());
                }
                let third = layer.strip_suffix("conv3");
                if third.is_some_and(|block| torchvision.contains_key(&format!("{block}conv2"))) {
                    kinds.insert("its residual blocks have three convolutions, the host's have two".to_owned());
                }
                match is_ignored(known) {
                    true => ignored.push(name),
                    false => wrong.push(format!("`{name}` doesn't belong to any layer")),
                }
                continue;
            };
            if is_of_other(&own) {
                continue;
            }
            let place = expected[&*own];
            match as_f32(&tensor)?.filter(|tensor| tensor.fits(place)) {
                Some(tensor) => {
                    check_values(&path, &name, &tensor)?;
                    if tensors.insert(own, tensor).is_some() {
                        wrong.push(format!("`{name}` is also there under another name"));
                    }
                }
                None => {
                    kinds.extend(kind_of(&own, tensor.shape(), graph));
                    wrong.push(format!("`{name}` is {tensor:?}, expected F32 {:?}", place.size()));
                }
            }
        }
        let is_absent = |name: &&str| !tensors.contains_key(*name);
        let absent = expected.keys().copied().filter(is_absent).map(String::from);
        let absent: Vec<String> = absent.collect();
        if tensors.is_empty() {
            kinds.insert("it has nothing for this host".into());
        }
        let wrong: Vec<String> = kinds.into_iter().chain(wrong).collect();
        if !wrong.is_empty() {
            return Err(NetworkError::Weights {
                path,
                fitting: tensors.len(),
                wrong,
                absent,
            });
        }
        let (mut notes, path) = (Vec::new(), path.display());
        if !prefix.is_empty() {
            notes.push(format!("the prefix `{prefix}` of the names in {path} is ignored"));
        }
        if let Some((_, size, classes)) = other {
            notes.push(format!(
                "the head in {path} is for {size} classes, but the data have {classes}: episodes start with a new head"
            ));
        }
        let missing: Vec<&String> = absent.iter().filter(|own| !is_of_other(own)).collect();
        if !missing.is_empty() {
            let some = some_of(&missing, ", ");
            notes.push(format!(
                "{path} has nothing for {some}: these start with random weights"
            ));
        }
        if !ignored.is_empty() {
            notes.push(format!(
                "{} of {path} are not used: the host has one linear layer instead of three",
                some_of(&ignored, ", ")
            ));
        }
        Ok(Self {
            tensors,
            absent,
            other_classes: other.map(|(_, size, _)| size),
            notes,
        })
    }
}

/// The head among tensors, by the host's names, if it is for other classes and fits otherwise: its layer, its classes, and
/// the host's.
fn other_head<'g, 't>(
    shapes: impl Iterator<Item = (String, &'t [usize])>,
    graph: &'g Graph,
) -> Option<(&'g str, usize, i64)> {
    let head = graph.layers.last()?;
    let LayerGraph::Head { inputs, classes } = head.layer else {
        return None;
    };
    let mut found = None;
    for (own, shape) in shapes.filter(|(own, _)| stands_for(&head.name, own)) {
        let size = match (own.ends_with(".weight"), shape) {
            (true, &[size, width]) if width as i64 == inputs => size,
            (false, &[size]) => size,
            _ => return None,
        };
        if *found.get_or_insert(size) != size {
            return None;
        }
    }
    let size = found.filter(|&size| size as i64 != classes)?;
    Some((&*head.name, size, classes))
}

/// Prefix of every name, up to a dot, if no name is known with it and some name is without it: a wrapper of a network
/// adds it.
fn prefix_of(file: &BTreeMap<String, PlainTensor>, is_known: impl Fn(&str) -> bool) -> &str {
    let first = file.keys().next().map_or("", String::as_str);
    let ends = first.match_indices('.').map(move |(end, _)| &first[..=end]);
    let shared = ends.take_while(|prefix| file.keys().all(|name| name.starts_with(*prefix)));
    let serves = |prefix: &&str| file.keys().any(|name| is_known(&name[prefix.len()..]));
    std::iter::once("").chain(shared).find(serves).unwrap_or_default()
}

/// The name of a layer without the numbers that count layers of its kind, except those of its parts: a third convolution in
/// a block doesn't make a network deeper.
fn uncounted(layer: &str) -> String {
    let (place, part) = layer.rsplit_once('.').unwrap_or(("", layer));
    let part = if part.parse::<u32>().is_ok() { "" } else { part };
    format!("{}.{part}", place.replace(|digit: char| digit.is_ascii_digit(), ""))
}

/// Describes the network that a tensor of another shape belongs to, if its shape shows that.
fn kind_of(own: &str, shape: &[usize], graph: &Graph) -> Option<String> {
    let named = graph.layers.iter().find(|named| stands_for(&named.name, own))?;
    match (&named.layer, shape) {
        (LayerGraph::Conv { inputs, .. }, &[_, reads, _, _])
            if *inputs == graph.channels && reads as i64 != graph.channels =>
        {
            Some(format!(
                "it reads {}, the host reads {inputs}",
                counted(reads, "channel")
            ))
        }
        _ => None,
    }
}

/// `None` for numbers other than f64, f32, f16 and bf16.
fn as_f32(tensor: &PlainTensor) -> Result<Option<PlainTensor>, NetworkError> {
    let Ok(values) = tensor.to_tensor() else {
        return Ok(None);
    };
    if !matches!(values.kind(), Kind::Double | Kind::Float | Kind::Half | Kind::BFloat16) {
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
