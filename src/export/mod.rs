//! Networks to take away: a folder of plain PyTorch, which needs nothing of the engine.
//!
//! The input is a [`GrownNetwork`] with the bytes of its file. The output is its sources in Python, its tensors by the names of
//! these sources, a card that describes it, and the file itself. For a policy it is sources and tensors. Everything is made
//! before anything is written, and the folder appears whole or not at all.

mod card;
mod library;
mod policy;
mod python;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::json;

use crate::hash::{sha256, sha256_of};
use crate::health::{AtPath, FileError};
use crate::network::{GrownNetwork, NetworkError};
use crate::storage::{read_dir, replace_folder};
use crate::torch::{Backend, PlainTensor, TorchError};
use card::{card, markdown};
use python::Names;

pub use policy::export_policy;

/// The table of a `grow`, next to the network that it chose.
pub const GROWTH_FILE: &str = "grow.json";
/// Images and logits of the given network, in the export of a network with domains.
const CERTIFICATE_FILE: &str = "certificate.safetensors";
/// The table of an `adapt`, next to the network.
pub const ADAPTATION_FILE: &str = "adapt.json";
/// The same as a page.
pub const REPORT_FILE: &str = "report.html";
/// The scenario that plays that network again.
pub const SCENARIO_FILE: &str = "scenario.ron";

/// The names of all files of an export, and of files that Python leaves next to them.
const FILES: [&str; 9] = [
    CERTIFICATE_FILE,
    "network.py",
    "network.safetensors",
    "card.json",
    "card.md",
    "kept.safetensors",
    "policy.py",
    "policy.safetensors",
    "__pycache__",
];

/// The reason why something is not exported.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ExportError {
    /// A custom layer or seed of an application, or tensors that do not fit.
    #[error("the network cannot be exported: {0}")]
    Network(#[from] NetworkError),
    /// Weights that cannot be read back.
    #[error("the policy cannot be exported: {0}")]
    Policy(#[from] TorchError),
    /// Something else is there.
    #[error("{} {why}", folder.display())]
    Occupied { folder: PathBuf, why: String },
    /// Tensors that cannot be written as a file.
    #[error("the tensors cannot be exported: {0}")]
    Tensors(#[from] safetensors::SafeTensorError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Files of a written folder: names and contents.
pub type Files = Vec<(&'static str, Vec<u8>)>;

/// The files of a network. `kept` is the content of its own file, `choice` a sentence on the reason for its choice.
///
/// # Errors
/// A network that no Python can be written for.
pub fn export_network(network: &GrownNetwork, kept: Vec<u8>, choice: Option<&str>) -> Result<Files, ExportError> {
    // Names and shapes fit, and the application has added nothing to it.
    network.build(Backend::CPU)?;
    for domain in network.domains.values() {
        domain.build(Backend::CPU)?;
    }
    let names = Names::of(&network.graph);
    let tensors = tensors_of(network, &names)?;
    let mut card = card(network, &tensors, choice);
    let mut files = Vec::new();
    if !network.domains.is_empty() {
        let (certificate, hash) = certificate_of(network, &names)?;
        card["certificate"] = json!({ "sha256": hash, "images_sha256": sha256(&certificate) });
        files.push((CERTIFICATE_FILE, certificate));
    }
    files.extend([
        ("network.py", python::network_py(network, &names).into_bytes()),
        ("network.safetensors", tensors),
        ("card.json", format!("{card:#}\n").into_bytes()),
        ("card.md", markdown(network, &card).into_bytes()),
        ("kept.safetensors", kept),
    ]);
    Ok(files)
}

/// Checks that an export may be put at `folder`: nothing is there, or an earlier export.
///
/// # Errors
/// [`ExportError::Occupied`], a folder that cannot be read.
pub fn check_place(folder: &Path, force: bool) -> Result<(), ExportError> {
    let occupied = |why: String| {
        let folder = folder.into();
        Err(ExportError::Occupied { folder, why })
    };
    // A path without a last part, such as `..`.
    if folder.file_name().is_none() {
        return occupied("isn't a name for a new folder; give the export its own folder".into());
    }
    let names = match read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return occupied("isn't a folder; give the export its own folder".into());
        }
        names => names.at(folder)?,
    };
    let foreign = names
        .iter()
        .find(|name| !FILES.iter().any(|file| name.as_os_str() == *file));
    match foreign {
        Some(name) if !force => occupied(format!(
            "holds {}, which isn't part of an export; give another folder, or --force to remove its content",
            name.display()
        )),
        _ => Ok(()),
    }
}

/// Writes the files into `folder`, and replaces all of its content.
///
/// # Errors
/// A folder that cannot be written; it is then what it was.
pub fn write(folder: &Path, files: &Files) -> Result<(), ExportError> {
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, content)| (*name, content.as_slice()))
        .collect();
    Ok(replace_folder(folder, &files).at(folder)?)
}

/// Batches that a batch norm has seen. Its `state_dict` counts them, but nothing reads the number while momentum is fixed.
const BATCHES_SEEN: [u8; 8] = 0_i64.to_le_bytes();

/// The file of the `state_dict`. For domains, it has the tensors that they don't share with the given network, by the name
/// `{domain}::{tensor}`.
fn tensors_of(network: &GrownNetwork, names: &Names) -> Result<Vec<u8>, ExportError> {
    let mut views = Vec::new();
    let given = network
        .parameters
        .iter()
        .map(|(name, tensor)| (names.of_tensor(name), tensor));
    let mut tensors: Vec<(String, &PlainTensor)> = given.collect();
    for (domain, adapted) in &network.domains {
        let own_names = Names::of(&adapted.graph);
        for (name, tensor) in &adapted.parameters {
            let own = own_names.of_tensor(name);
            if network.parameters.get(name) != Some(tensor) || own != names.of_tensor(name) {
                tensors.push((format!("{domain}::{own}"), tensor));
            }
        }
    }
    for (name, tensor) in tensors {
        if let Some(norm) = name.strip_suffix("running_mean") {
            let counter = TensorView::new(Dtype::I64, Vec::new(), &BATCHES_SEEN)?;
            views.push((format!("{norm}num_batches_tracked"), counter));
        }
        views.push((
            name,
            TensorView::new(Dtype::F32, tensor.shape().to_vec(), tensor.bytes())?,
        ));
    }
    Ok(serialize(views, None)?)
}

/// Images of a certificate.
const CERTIFIED: i64 = 16;

/// Drawn images with the outputs of the given network, and the SHA-256 of its weights, by their names in Python.
fn certificate_of(network: &GrownNetwork, names: &Names) -> Result<(Vec<u8>, String), ExportError> {
    let [images, logits] = network.on_drawn_images(CERTIFIED)?;
    let views = [("images", Dtype::U8, &images), ("logits", Dtype::F32, &logits)].map(|(name, kind, tensor)| {
        let view = TensorView::new(kind, tensor.shape().to_vec(), tensor.bytes());
        view.map(|view| (name, view))
    });
    let views = views.into_iter().collect::<Result<Vec<_>, _>>()?;
    let by_name: BTreeMap<String, &[u8]> = network
        .parameters
        .iter()
        .map(|(name, tensor)| (names.of_tensor(name), tensor.bytes()))
        .collect();
    let hash = sha256_of(by_name.iter().flat_map(|(name, bytes)| [name.as_bytes(), *bytes]));
    Ok((serialize(views, None)?, hash))
}
