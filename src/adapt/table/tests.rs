use std::collections::BTreeMap;
use std::sync::Arc;

use tch::{Device, Kind, Tensor};

use super::*;
use crate::adapt::methods::Width;
use crate::host::HostDesign;
use crate::network::fixtures::drawn;
use crate::scenario::CnnSpec;
use crate::torch::PlainTensor;

/// By method, the values that it adds to a network of 1000 parameters, and how many of 100 images it classifies correctly.
const OUTCOMES: [(Method, i64, usize); 4] = [
    (Method::Copy, 1, 99),
    (Method::Seeds(Width::Wide), 900, 92),
    (Method::Seeds(Width::Middle), 200, 90),
    (Method::Norms, 50, 88),
];

fn adapted(budget: f64) -> Result<Adapted, GrowError> {
    let mut given = drawn(&(Arc::new(CnnSpec::default()) as Arc<dyn HostDesign>), 3, 1);
    (given.measures.parameters, given.parameters) = (1000, BTreeMap::new());
    let outcomes = OUTCOMES.map(|(method, added, right)| {
        let mut network = given.clone();
        let own = PlainTensor::of(&Tensor::zeros([added], (Kind::Float, Device::Cpu))).unwrap();
        network.parameters.insert("own".into(), own);
        Outcome {
            method,
            rate: 0.1,
            follows_head: false,
            right: (0..100).map(|image| image < right).collect(),
            network,
            seconds: 0.0,
        }
    });
    table(("night", budget), given, outcomes.into(), None, None)
}

#[test]
fn the_smallest_addition_within_one_standard_error_of_the_best_within_the_budget_is_written() {
    let free = adapted(1.0).unwrap();

    let added: Vec<u64> = free.rows.iter().map(|row| row.added).collect();
    assert_eq!(added, [50, 200, 900, 1000], "a copy is a network more");
    // At 92 of 100 the standard error is 2.7 points.
    assert_eq!(free.written, "seeds");
    let why = "the smallest addition within 2.7 points of the best, wide seeds, by cross-validation";
    assert!(free.why.ends_with(why), "{}", free.why);
    assert!(
        free.better[0].starts_with("`fine-tuned` is ahead of it by 9.0 points"),
        "{:?}",
        free.better
    );
    assert_eq!(free.network.domains["night"].parameters["own"].numel(), 200);
    assert_eq!(adapted(0.1).unwrap().written, "norms, head");
    let refused = adapted(0.01).err().unwrap().to_string();
    assert!(refused.contains("nothing fits into a budget of 0.01x"), "{refused}");
}
