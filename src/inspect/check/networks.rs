//! The networks that a run has kept: each is what was written, where it belongs, and can be built.

use std::path::Path;

use super::Part;
use crate::files::name_of;
use crate::keep::{KeptFile, NetworkShelf};
use crate::network::{GrownNetwork, NetworkError};
use crate::torch::Backend;

/// `None` of a run that has kept none.
pub(super) fn check(folder: &Path) -> Option<Part> {
    let mut part = Part::new("networks");
    let kept = match NetworkShelf::of(folder).list() {
        Ok(kept) if kept.is_empty() => return None,
        Ok(kept) => kept,
        Err(error) => {
            part.problem("networks", error.to_string());
            return Some(part);
        }
    };
    for file in &kept {
        let name = format!("networks/{}", name_of(&file.path));
        match look_at(file) {
            Ok(network) if (network.origin.round, network.origin.env) == (file.round, file.env) => {}
            Ok(network) => {
                let (round, env) = (u64::from(network.origin.round) + 1, network.origin.env);
                part.problem(name, format!("it holds the network of round {round}, env {env}"));
            }
            Err(error) => part.problem(name, error.to_string()),
        }
    }
    part.seen = format!("{} kept, each can be built", kept.len());
    Some(part)
}

fn look_at(file: &KeptFile) -> Result<GrownNetwork, NetworkError> {
    let network = GrownNetwork::load(&file.path)?;
    network.build(Backend::CPU)?;
    Ok(network)
}
