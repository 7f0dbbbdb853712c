//! Designs of hosts: the fields of a family, or a function of an application.

use std::collections::BTreeMap;

use super::HostPlan;
use crate::scenario::{HostChoice, HostProblem};
use crate::torch::PlainTensor;

/// Design of a host, for any number of classes. Functions from the number of classes to a [`HostPlan`] are designs.
///
/// ```
/// # extern crate simic_core as simic_engine;
/// use std::sync::Arc;
///
/// use simic_engine::extend::{Conv, HostChoice, HostName};
/// use simic_engine::prelude::{HostPlan, HostRegistry};
///
/// let mut hosts = HostRegistry::default();
/// let plan = |classes| HostPlan::new(1, 8).layer("block", Conv::new(4, 3)).slot(0, 0).head(classes);
/// hosts.register("tiny", "one block", Arc::new(plan));
/// let choice = HostChoice::Named(HostName("tiny".into()));
/// let tiny = hosts.of(&choice, None)?;
/// assert_eq!(tiny.plan(10).outline().parameters, 36 + 8 + 50);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait HostDesign: Send + Sync {
    /// The host for `classes` classes. Must be cheap: scenarios are checked against it.
    fn plan(&self, classes: i64) -> HostPlan;

    /// Faults of the design's fields. Faults of the plan itself need not be listed.
    fn problems(&self) -> Vec<HostProblem> {
        Vec::new()
    }

    /// Its form in a scenario, with all sizes, where it is of one of the engine's families.
    fn family(&self) -> Option<HostChoice> {
        None
    }

    /// Initial values of its parameters and buffers, by name. The others are drawn.
    fn weights(&self) -> Option<&BTreeMap<String, PlainTensor>> {
        None
    }
}

impl<F: Fn(i64) -> HostPlan + Send + Sync> HostDesign for F {
    fn plan(&self, classes: i64) -> HostPlan {
        self(classes)
    }
}
