//! Between the presets and the file of a task on custom images: fields that the data settle may be left out.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::catalog::Catalog;
use super::host::HostChoice;
use super::presets::OWN_IMAGES;
use super::problem::Problem;
use super::task::{Normalise, TaskOverrides};
use super::tree::{Node, Value};
use crate::growth::SlotId;

/// What a task of the preset for own images leaves to its data, and to its host. The data are looked at only
/// if the task does not say both the classes and what the host reads, and the catalog knows images; `folder` is where relative
/// paths begin.
///
/// `None` for any other task, and where nothing can be said before the task is sound.
pub(super) fn settled(root: &Node, catalog: &Catalog, folder: Option<&Path>) -> Option<Result<TaskOverrides, Problem>> {
    let task = root.field("task").filter(|task| task.choice() == Some("preset"))?;
    let Value::Tuple(_, items) = &task.value else {
        return None;
    };
    let [name, fields] = &items[..] else {
        return None;
    };
    if !matches!(&name.value, Value::Text(name) if name.eq_ignore_ascii_case(OWN_IMAGES)) {
        return None;
    }
    let said = |key| fields.field(key).filter(|node| !node.is_none());
    // `--set` of a field of a host that is not chosen leaves a host without a choice.
    let (data, host) = (said("data")?, said("host").filter(|host| host.choice().is_some()));
    let mut settled = TaskOverrides::default();
    let says_all = said("classes").is_some() && host.is_some_and(says_input);
    if let (Some(known), false) = (&catalog.images, says_all) {
        let family = host.map_or("cnn", |host| host.choice().unwrap_or_default());
        match known.settle(&read(data)?, folder, family) {
            Ok(own) => {
                settled = TaskOverrides {
                    data: Some(own.data),
                    classes: Some(own.classes),
                    host: own.host,
                    normalise: Some(Normalise::Auto),
                    split: Some(own.split),
                    batch_size: Some(own.batch_size),
                    batches_per_step: Some(own.batches_per_step),
                    ..settled
                }
            }
            Err(message) => return Some(Err(Problem::error(data.span, "task.data", message))),
        }
    }
    settled.slots = host.and_then(read).and_then(|host| slots(&host, catalog, folder));
    Some(Ok(settled))
}

/// A family says what it reads by two of its fields, all other hosts by their names.
fn says_input(host: &Node) -> bool {
    let Value::Tuple(Some(family), items) = &host.value else {
        return false;
    };
    let says = |key: &str| items.first().is_some_and(|fields| fields.field(key).is_some());
    !matches!(family.text.as_str(), "cnn" | "resnet" | "vgg") || (says("in_channels") && says("input_hw"))
}

/// Before each pool of a convolutional host, at the end of each stage of any other.
fn slots(host: &HostChoice, catalog: &Catalog, folder: Option<&Path>) -> Option<Vec<SlotId>> {
    // How many classes there are does not matter to the places.
    let places = catalog.hosts.outline(host, 2, folder).ok()?.injections;
    let slots = || places.iter().map(|place| place.slot);
    let is_cnn = matches!(host, HostChoice::Cnn(_));
    let chosen = slots().filter(|slot| {
        let is_last = !slots().any(|other| other.row == slot.row && other.col > slot.col);
        if is_cnn { slot.row == 0 } else { is_last }
    });
    let chosen: Vec<SlotId> = chosen.collect();
    (!chosen.is_empty()).then_some(chosen)
}

fn read<T: DeserializeOwned>(node: &Node) -> Option<T> {
    T::deserialize(node).ok()
}
