use std::sync::Arc;

use super::*;
use crate::host::HostDesign;
use crate::network::fixtures::{drawn, samples};
use crate::scenario::CnnSpec;

#[test]
fn measured_statistics_are_those_of_the_samples_and_of_nothing_before() {
    let mut network = drawn(&(Arc::new(CnnSpec::default()) as Arc<dyn HostDesign>), 3, 1);
    let samples = samples(&network, CHUNK + 100);
    let mut domain = network.clone();

    domain.measure_statistics(&samples).unwrap();

    let mut again = domain.clone();
    again.measure_statistics(&samples).unwrap();
    assert_eq!(again.parameters, domain.parameters);
    network.domains.insert("measured".into(), domain);
    assert_eq!(network.domain_of(&samples).unwrap(), Some(Some("measured")));
}
