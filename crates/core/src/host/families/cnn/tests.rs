use tch::{Device, Kind, Tensor};

use crate::fixtures::largest;
use crate::growth::{InjectionSpec, SlotId};
use crate::host::{Host, HostDesign, HostError};
use crate::nn::Mode;
use crate::random::{Domain, RunRng};
use crate::scenario::CnnSpec;
use crate::torch::{Backend, NoGrad, is_channels_last};

fn spec(base_channels: i64, n_blocks: usize, kernel_size: i64, pool_layers: usize) -> CnnSpec {
    CnnSpec {
        in_channels: 3,
        base_channels,
        n_blocks,
        kernel_size,
        pool_layers,
        input_hw: 32,
        ..CnnSpec::default()
    }
}

fn build(spec: &CnnSpec) -> Box<dyn Host> {
    crate::host::build(spec, 10, &mut RunRng::new(1, Domain::HostInit, &[0, 0]), Backend::CPU).unwrap()
}

fn injection_specs(spec: &CnnSpec) -> Vec<InjectionSpec> {
    spec.plan(10).injection_specs()
}

/// A tensor of a host by its name.
fn tensor(host: &dyn Host, name: &str) -> Tensor {
    let found = host.params().all().find(|param| param.name == name);
    found.unwrap().tensor.shallow_clone()
}

fn images(batch: i64, spec: &CnnSpec) -> Tensor {
    let side = spec.input_hw;
    let nhwc = Tensor::randn([batch, side, side, spec.in_channels], (Kind::Float, Device::Cpu));
    nhwc.permute([0, 3, 1, 2])
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

    let host = build(&spec(8, 3, 3, 3));
    let part = |prefix: &str| -> usize {
        let params = host.params().trainable().iter();
        params
            .filter(|param| param.name.starts_with(prefix))
            .map(|param| param.tensor.numel())
            .sum()
    };
    assert_eq!(
        [part("block0"), part("block1"), part("block2"), part("head")],
        [232, 1_184, 4_672, 330]
    );
}

#[test]
fn evaluation_can_be_split_anywhere_without_changing_a_bit() {
    let spec = spec(8, 3, 3, 3);
    let host = build(&spec);
    let x = images(4, &spec);
    let whole = host.run(0..7, &x, Mode::Eval).unwrap();

    for split in 0..=7 {
        let features = host.run(0..split, &x, Mode::Eval).unwrap();
        assert!(
            host.run(split..7, &features, Mode::Eval).unwrap().equal(&whole),
            "split at {split}"
        );
    }
}

#[test]
fn slots_execute_by_depth_and_are_numbered_by_row() {
    let spec = spec(8, 3, 3, 3);
    let host = build(&spec);
    let specs = injection_specs(&spec);
    assert_eq!(host.injection_specs(), specs.as_slice());

    let by_order: Vec<String> = specs.iter().map(|spec| spec.slot.to_string()).collect();
    assert_eq!(by_order, ["r0c0", "r0c1", "r0c2", "r1c0", "r1c1", "r1c2"]);
    assert_eq!(
        specs.iter().map(|spec| spec.order).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4, 5]
    );

    let mut by_depth = specs.clone();
    by_depth.sort_by_key(|spec| spec.boundary);
    let names: Vec<String> = by_depth.iter().map(|spec| spec.slot.to_string()).collect();
    assert_eq!(names, ["r0c0", "r1c0", "r0c1", "r1c1", "r0c2", "r1c2"]);
    let x = images(2, &spec);
    let shapes = [
        [2, 8, 32, 32],
        [2, 8, 16, 16],
        [2, 16, 16, 16],
        [2, 16, 8, 8],
        [2, 32, 8, 8],
        [2, 32, 4, 4],
    ];
    for (injection, shape) in by_depth.iter().zip(shapes) {
        let features = host.run(0..injection.boundary, &x, Mode::Eval).unwrap();
        assert_eq!(features.size(), shape, "{}", injection.slot);
        assert_eq!(injection.channels, shape[1]);
        let positions = host.op_costs()[injection.boundary - 1].positions;
        assert_eq!(positions, (shape[2] * shape[3]) as u64);
    }
}

#[test]
fn a_host_without_pools_has_only_the_first_row_of_slots() {
    let specs = injection_specs(&spec(2, 3, 1, 0));

    let slots: Vec<SlotId> = specs.iter().map(|spec| spec.slot).collect();
    assert_eq!(slots, [SlotId::new(0, 0), SlotId::new(0, 1), SlotId::new(0, 2)]);
    assert_eq!(specs.iter().map(|spec| spec.boundary).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn surplus_pools_are_dropped() {
    assert_eq!(build(&spec(8, 3, 3, 9)).num_ops(), 7);
}

#[test]
fn a_range_outside_the_host_is_an_error_and_an_empty_one_the_identity() {
    let spec = spec(8, 3, 3, 3);
    let host = build(&spec);
    let x = images(1, &spec);

    #[expect(clippy::reversed_empty_ranges, reason = "the mistake under test")]
    let reversed = host.run(3..2, &x, Mode::Eval);
    assert!(matches!(
        reversed,
        Err(HostError::BadRange {
            start: 3,
            end: 2,
            ops: 7
        })
    ));
    assert!(matches!(
        host.run(0..8, &x, Mode::Eval),
        Err(HostError::BadRange { .. })
    ));
    assert!(host.run(2..2, &x, Mode::Eval).unwrap().equal(&x));
}

/// Every op, forward and for the gradients that reach the parameters, keeps NHWC.
#[test]
fn no_op_falls_back_from_channels_last() {
    for (spec, mode) in [spec(8, 3, 3, 3), spec(1, 3, 1, 3), spec(2, 3, 1, 0)]
        .into_iter()
        .flat_map(|spec| [(spec.clone(), Mode::Train), (spec, Mode::Eval)])
    {
        let host = build(&spec);
        let mut features = images(16, &spec);
        for op in 0..host.num_ops() - 1 {
            features = host.run(op..op + 1, &features, mode).unwrap();
            assert!(is_channels_last(&features), "op {op} of {spec:?} in {mode:?}");
        }
        let logits = host.run(host.num_ops() - 1..host.num_ops(), &features, mode).unwrap();
        logits.square().sum(Kind::Float).backward();
        for param in host.params().trainable().iter().filter(|param| param.tensor.dim() == 4) {
            assert!(
                is_channels_last(&param.tensor) && is_channels_last(&param.tensor.grad()),
                "{}",
                param.name
            );
        }
    }
}

#[test]
fn reinitialising_writes_fresh_values_into_the_old_storage() {
    let spec = spec(8, 3, 3, 3);
    let mut host = build(&spec);
    let storages = |host: &dyn Host| {
        host.params()
            .all()
            .map(|param| param.tensor.data_ptr() as usize)
            .collect::<Vec<_>>()
    };
    let before = storages(&*host);
    let fresh = host.run(0..7, &images(4, &spec).zeros_like(), Mode::Eval).unwrap();
    let _ = host.run(0..7, &images(4, &spec), Mode::Train).unwrap();
    let mean = tensor(&*host, "block0.norm.running_mean");
    assert!(largest(&mean) > 0.0);

    host.reinitialise(&mut RunRng::new(1, Domain::HostInit, &[0, 1]))
        .unwrap();
    assert_eq!(storages(&*host), before);
    assert_eq!(largest(&mean), 0.0);
    let other = host.run(0..7, &images(4, &spec).zeros_like(), Mode::Eval).unwrap();
    assert!(!other.equal(&fresh));

    host.reinitialise(&mut RunRng::new(1, Domain::HostInit, &[0, 0]))
        .unwrap();
    assert!(
        host.run(0..7, &images(4, &spec).zeros_like(), Mode::Eval)
            .unwrap()
            .equal(&fresh)
    );
}

/// U(±1/√fan_in), independent of libtorch's defaults.
#[test]
fn weights_are_uniform_within_the_fan_in_bound() {
    let host = build(&spec(32, 3, 3, 3));
    let weight = &tensor(&*host, "block2.conv.weight");

    let bound = 1.0 / (64.0_f64 * 9.0).sqrt();
    let furthest = largest(weight);
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
        let weight = tensor(&*host, "block0.conv.weight");
        let padding = spec.kernel_size / 2;
        let plain = x
            .contiguous()
            .conv2d(&weight.contiguous(), None::<&Tensor>, 1, padding, 1, 1);
        let mean = plain.mean_dim([0_i64, 2, 3].as_slice(), true, Kind::Float);
        let variance = (&plain - &mean)
            .square()
            .mean_dim([0_i64, 2, 3].as_slice(), true, Kind::Float);
        let expected = ((&plain - mean) / (variance + 1e-5).sqrt()).relu();

        let features = host.run(0..1, &x, Mode::Train).unwrap();
        assert!(largest(&(features - expected)) < 1e-4, "{spec:?}");
    }
}

#[test]
fn folding_equals_the_unfolded_host_and_follows_it_in_place() {
    let spec = spec(8, 3, 3, 3);
    let mut host = build(&spec);
    host.refill().unwrap();
    let x = images(8, &spec);
    let _no_grad = NoGrad::new();
    let difference = |host: &dyn Host| {
        let expected = host.run(0..7, &x, Mode::Eval).unwrap();
        let logits = host.evaluate(0..7, &x).unwrap();
        assert!(matches!(host.evaluate(0..8, &x), Err(HostError::BadRange { .. })));
        largest(&(logits - expected))
    };
    assert!(difference(&*host) <= 1e-5);

    for _ in 0..5 {
        let _ = host.run(0..7, &(images(32, &spec) * 3.0), Mode::Train).unwrap();
    }
    assert!(difference(&*host) > 1e-3);
    host.refill().unwrap();
    assert!(difference(&*host) <= 1e-5);
}
