use tch::Kind;

use crate::fixtures::largest;
use crate::growth::SlotId;
use crate::host::families::tests::{Parts, build, images};
use crate::host::{Host, HostDesign, HostError};
use crate::nn::Mode;
use crate::random::{Domain, RunRng};
use crate::scenario::CnnSpec;
use crate::torch::is_channels_last;

fn spec(base_channels: i64, n_blocks: usize, kernel_size: i64, pool_layers: usize) -> CnnSpec {
    CnnSpec {
        base_channels,
        n_blocks,
        kernel_size,
        pool_layers,
        ..CnnSpec::default()
    }
}

#[test]
fn parameter_counts_are_those_of_the_table() {
    let table = [
        (spec(8, 3, 3, 3), 6_418),
        (spec(8, 5, 3, 5), 99_922),
        (spec(16, 3, 3, 3), 24_346),
        (spec(1, 3, 1, 3), 77),
        (spec(2, 3, 1, 0), 164),
        (spec(2, 5, 1, 5), 1_140),
        (spec(32, 3, 3, 3), 94_762),
    ];
    for (spec, count) in table {
        assert_eq!(build(&spec).params().count(), count, "{spec:?}");
    }
}

#[test]
fn slots_execute_by_depth_and_are_numbered_by_row_and_surplus_pools_are_dropped() {
    let places = |spec: &CnnSpec| -> Vec<_> {
        let places = spec.plan(10).injection_specs();
        let of = places
            .iter()
            .map(|place| (place.slot, place.order, place.boundary, place.channels));
        of.collect()
    };
    let pooled = [
        (SlotId::new(0, 0), 0, 1, 8),
        (SlotId::new(0, 1), 1, 3, 16),
        (SlotId::new(0, 2), 2, 5, 32),
        (SlotId::new(1, 0), 3, 2, 8),
        (SlotId::new(1, 1), 4, 4, 16),
        (SlotId::new(1, 2), 5, 6, 32),
    ];
    let plain = [
        (SlotId::new(0, 0), 0, 1, 2),
        (SlotId::new(0, 1), 1, 2, 4),
        (SlotId::new(0, 2), 2, 3, 8),
    ];

    assert_eq!(places(&spec(8, 3, 3, 3)), pooled);
    assert_eq!(places(&spec(8, 3, 3, 9)), pooled);
    assert_eq!(places(&spec(2, 3, 1, 0)), plain);
}

#[test]
fn a_range_outside_the_host_is_an_error_and_an_empty_one_the_identity() {
    let spec = spec(8, 3, 3, 3);
    let host = build(&spec);
    let x = images(1, &spec);
    let out_of_range = |ops| match host.run(ops, &x, Mode::Eval) {
        Err(HostError::BadRange { start, end, ops }) => Some((start, end, ops)),
        _ => None,
    };

    #[expect(clippy::reversed_empty_ranges, reason = "the mistake under test")]
    let reversed = out_of_range(3..2);
    assert_eq!(reversed, Some((3, 2, 7)));
    assert_eq!(out_of_range(0..8), Some((0, 8, 7)));
    assert!(host.run(2..2, &x, Mode::Eval).unwrap().equal(&x));
}

/// For the gradients that reach the parameters, as for the features.
#[test]
fn no_weight_falls_back_from_channels_last() {
    for spec in [spec(8, 3, 3, 3), spec(1, 3, 1, 3), spec(2, 3, 1, 0)] {
        for mode in [Mode::Train, Mode::Eval] {
            let host = build(&spec);
            let logits = host.run(0..host.num_ops(), &images(16, &spec), mode).unwrap();
            logits.square().sum(Kind::Float).backward();
            for param in host.params().trainable().iter().filter(|param| param.tensor.dim() == 4) {
                let [value, gradient] = [&param.tensor, &param.tensor.grad()].map(is_channels_last);
                assert!(value && gradient, "{} of {spec:?} in {mode:?}", param.name);
            }
        }
    }
}

#[test]
fn reinitialising_writes_fresh_values_into_the_old_storage() {
    let spec = spec(8, 3, 3, 3);
    let mut host = build(&spec);
    let mean = Parts(&*host).tensor("block0.norm.running_mean");
    let storages = |host: &dyn Host| {
        host.params()
            .all()
            .map(|param| param.tensor.data_ptr())
            .collect::<Vec<_>>()
    };
    let of_zeros = |host: &dyn Host| host.run(0..7, &images(4, &spec).zeros_like(), Mode::Eval).unwrap();
    let (before, fresh) = (storages(&*host), of_zeros(&*host));
    let _ = host.run(0..7, &images(4, &spec), Mode::Train).unwrap();
    assert!(largest(&mean) > 0.0);

    host.reinitialise(&mut RunRng::new(3, Domain::HostInit, &[1])).unwrap();
    assert_eq!(storages(&*host), before);
    assert_eq!(largest(&mean), 0.0);
    assert!(!of_zeros(&*host).equal(&fresh));

    host.reinitialise(&mut RunRng::new(3, Domain::HostInit, &[0])).unwrap();
    assert!(of_zeros(&*host).equal(&fresh));
}

/// U(±1/√fan_in), independent of libtorch's defaults.
#[test]
fn weights_are_uniform_within_the_fan_in_bound() {
    let host = build(&spec(32, 3, 3, 3));
    let weight = Parts(&*host).tensor("block2.conv.weight");

    let bound = 1.0 / (64.0_f64 * 9.0).sqrt();
    let furthest = largest(&weight);
    assert!(furthest <= bound && furthest > 0.999 * bound);
    let deviation = f64::try_from(weight.std(true)).unwrap();
    assert!((deviation / (bound / 3.0_f64.sqrt()) - 1.0).abs() < 0.01);
}

/// Blocks of few channels and 1×1 kernels on small batches take other kernels; the values must not show it.
#[test]
fn blocks_equal_the_plain_formula_for_any_shape() {
    for (spec, batch) in [
        (spec(4, 3, 3, 3), 8),
        (spec(8, 3, 1, 3), 4),
        (spec(4, 3, 1, 3), 8),
        (spec(1, 3, 1, 3), 8),
    ] {
        let host = build(&spec);
        let x = images(batch, &spec);
        let parts = Parts(&*host);
        let convolved = parts.conv(&x, "block0.conv.weight", 1);
        let expected = parts.norm(&convolved, "block0.norm").relu();

        let features = host.run(0..1, &x, Mode::Train).unwrap();
        assert!(largest(&(features - expected)) < 1e-4, "{spec:?}");
    }
}
