//! The width of a widened host. The tests of the program cover the played rows.

use super::*;
use crate::engine::Prepared;
use crate::engine::built_in_names;
use crate::host::{Conv, HostDesign, HostPlan};
use crate::network::HostRegistry;
use crate::scenario::{CnnSpec, HostChoice, HostName};

fn experiment() -> Experiment {
    let text = r#"(task: preset("digits_minimal"))"#;
    let prepared = Prepared::from_ron("test", text, &[], &built_in_names()).unwrap();
    prepared.experiment(1)
}

#[test]
fn a_host_is_widened_until_it_has_no_fewer_parameters() {
    let mut widened = experiment();
    let before = experiment().task;
    let hosts = HostRegistry::default();

    let ratio = widen(&mut widened, &hosts, 3.0).unwrap();

    let (HostChoice::Cnn(base), HostChoice::Cnn(host)) = (before.host, widened.task.host) else {
        panic!("both are CNNs")
    };
    let count = |base_channels| {
        let spec = CnnSpec {
            base_channels,
            ..base.clone()
        };
        spec.plan(before.classes).outline().parameters as f64
    };
    let of = |base_channels| count(base_channels) / count(base.base_channels);
    assert!(ratio >= 3.0 && of(host.base_channels - 1) < 3.0, "{ratio}");
    assert_eq!(ratio, of(host.base_channels));
    let [before, after] = [experiment().layout, widened.layout].map(|layout| layout.slots()[0].channels);
    assert_ne!(before, after, "slots are as wide as the host");
}

#[test]
fn a_policy_that_grew_nothing_needs_no_wider_host() {
    let mut same = experiment();
    assert_eq!(widen(&mut same, &HostRegistry::default(), 1.0).unwrap(), 1.0);
    assert_eq!(same.task.host, experiment().task.host);
}

#[test]
fn a_host_of_an_application_has_no_wider_form() {
    let mut own = experiment();
    let mut hosts = HostRegistry::default();
    let plan = |classes| {
        let block = HostPlan::new(1, 8).layer("block", Conv::new(4, 3));
        block.slot(0, 0).head(classes)
    };
    hosts.register("own", "an application's", std::sync::Arc::new(plan));
    own.task.host = HostChoice::Named(HostName("own".into()));

    let error = widen(&mut own, &hosts, 2.0).unwrap_err().to_string();

    assert!(error.contains("`own` has no wider form"), "{error}");
}
