//! How wide a widened host is; what is played is tested with the program.

use super::*;
use crate::engine::Prepared;
use crate::scenario::Override;

fn experiment() -> Experiment {
    let catalog = crate::engine::catalog(crate::run::NO_EXTENSION).unwrap();
    let nothing: [Override; 0] = [];
    let prepared = Prepared::from_ron("test", r#"(task: preset("digits_minimal"))"#, &nothing, &catalog).unwrap();
    prepared.experiment(1).unwrap()
}

#[test]
fn a_host_is_widened_until_it_has_no_fewer_parameters() {
    let mut widened = experiment();
    let before = experiment().task.host;

    let ratio = widen(&mut widened, 3.0).unwrap();

    let (host, classes) = (&widened.task.host, widened.task.classes);
    let of = |channels| {
        let spec = crate::scenario::CnnSpec {
            base_channels: channels,
            ..before
        };
        spec.parameters(classes) as f64 / before.parameters(classes) as f64
    };
    assert!(ratio >= 3.0 && of(host.base_channels - 1) < 3.0, "{ratio}");
    assert_eq!(ratio, of(host.base_channels));
    let channels = widened.layout.slots()[0].channels;
    assert_ne!(
        channels,
        experiment().layout.slots()[0].channels,
        "slots are as wide as the host"
    );
}

#[test]
fn a_policy_that_grew_nothing_needs_no_wider_host() {
    let mut same = experiment();
    assert_eq!(widen(&mut same, 1.0).unwrap(), 1.0);
    assert_eq!(same.task.host, experiment().task.host);
}
