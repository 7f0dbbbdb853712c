//! Equal terms for comparing growth with something else: the size of a wider host in its place, and the compute.

use std::path::Path;

use crate::env::Experiment;
use crate::health::Failure;
use crate::host::{HostError, HostPlan, SlotLayout, widened};
use crate::network::{HostRegistry, NetworkError};
use crate::scenario::HostChoice;

/// The number of steps that come nearest to `budget`, if each takes `step`. At least one.
pub fn equal_steps(budget: f64, step: f64) -> u32 {
    ((budget / step).round() as u32).max(1)
}

/// The narrowest host of the same kind that has at least this many parameters, or the widest that there is.
///
/// # Errors
/// A host that comes in one size, but has fewer.
pub fn wider(
    host: &HostChoice,
    classes: i64,
    parameters: f64,
    hosts: &HostRegistry,
    folder: Option<&Path>,
) -> Result<HostChoice, NetworkError> {
    let mut found = host.clone();
    loop {
        let design = hosts.of(&found, folder)?;
        if design.plan(classes).outline().parameters as f64 >= parameters {
            return Ok(found);
        }
        match design.family().and_then(widened) {
            Some(wider) => found = wider,
            None if found == *host => return Err(HostError::NoWider(host.label().into()).into()),
            None => return Ok(found),
        }
    }
}

/// Widens the host until it has at least `ratio` times its parameters, or to the largest width that there is, and returns the
/// ratio that it then has.
pub(super) fn widen(experiment: &mut Experiment, hosts: &HostRegistry, ratio: f64) -> Result<f64, Failure> {
    let (task, folder) = (&mut experiment.task, experiment.folder.as_deref());
    let plan = |host: &HostChoice| -> Result<HostPlan, NetworkError> { Ok(hosts.of(host, folder)?.plan(task.classes)) };
    let before = plan(&task.host)?.outline().parameters as f64;
    let host = wider(&task.host, task.classes, ratio * before, hosts, folder)?;
    let wider = plan(&host)?;
    let widened = wider.outline().parameters as f64 / before;
    task.host = host;
    let injections = wider.injection_specs();
    let slots: Vec<_> = experiment.layout.slots().iter().map(|spec| spec.slot).collect();
    experiment.layout = SlotLayout::new(&injections, &slots);
    Ok(widened)
}

#[cfg(test)]
mod tests;
