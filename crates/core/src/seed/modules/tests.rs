use proptest::prelude::*;
use tch::{Device, Kind, Tensor};

use crate::fixtures::{largest, perturb};
use crate::growth::Topology;
use crate::kernels::incubate;
use crate::nn::{GroupNormLayer, Mode, ParamSet, group_count};
use crate::random::{Domain, RunRng};
use crate::scenario::LifecycleConfig;
use crate::seed::{BlueprintRegistry, GateNetwork, SeedModule};
use crate::torch::{Backend, HostSyncCounter, NoGrad, is_channels_last};

const WIDTHS: [i64; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

fn build(id: &str, dim: i64, draw: u64) -> Box<dyn SeedModule> {
    let registry = BlueprintRegistry::default();
    let index = registry.names().position(|name| name == id).unwrap();
    let mut rng = RunRng::new(draw, Domain::SeedInit, &[]);
    let blueprint = registry.get(index).unwrap();
    blueprint.build(dim, &mut rng, Backend::CPU).unwrap()
}

fn random_features(batch: i64, channels: i64, side: i64) -> Tensor {
    let nhwc = Tensor::randn([batch, side, side, channels], (Kind::Float, Device::Cpu));
    nhwc.permute([0, 3, 1, 2])
}

#[test]
fn parameter_counts_are_those_of_the_table() {
    let table: [(&str, [u64; 8]); 7] = [
        ("norm", [3, 5, 9, 17, 33, 65, 129, 257]),
        ("attention", [3, 6, 12, 40, 144, 544, 2_112, 8_320]),
        ("depthwise", [12, 26, 60, 152, 432, 1_376, 4_800, 17_792]),
        ("bottleneck", [594, 612, 648, 720, 864, 1_152, 4_480, 17_664]),
        ("conv_small", [3, 8, 24, 80, 288, 1_088, 4_224, 16_640]),
        ("conv_light", [11, 40, 152, 592, 2_336, 9_280, 36_992, 147_712]),
        ("conv_heavy", [22, 80, 304, 1_184, 4_672, 18_560, 73_984, 295_424]),
    ];
    let registry = BlueprintRegistry::default();

    for (id, counts) in table {
        let (_, blueprint) = registry.iter().find(|(_, blueprint)| blueprint.id() == id).unwrap();
        for (width, count) in WIDTHS.into_iter().zip(counts) {
            assert_eq!(blueprint.param_count(width), count, "{id} at {width}");
            assert_eq!(build(id, width, 0).params().count(), count, "{id} built at {width}");
        }
    }
}

#[test]
fn gate_parameter_counts_are_those_of_the_table() {
    let counts = [25, 33, 49, 81, 145, 273, 1_057, 4_161];

    for (width, count) in WIDTHS.into_iter().zip(counts) {
        let mut rng = RunRng::new(0, Domain::SeedInit, &[]);
        let gate = GateNetwork::new(Topology::Image, width, &mut rng, Backend::CPU).unwrap();
        assert_eq!((GateNetwork::param_count(width), gate.params().count()), (count, count));
    }
}

#[test]
fn groups_leave_at_least_sixteen_channels_each() {
    let table = [
        (1, 1),
        (2, 1),
        (4, 1),
        (8, 1),
        (16, 1),
        (24, 1),
        (32, 2),
        (48, 2),
        (64, 4),
        (80, 4),
        (96, 4),
        (128, 8),
        (256, 16),
        (512, 32),
    ];

    for (channels, expected) in table {
        assert_eq!(group_count(channels), expected, "{channels} channels");
    }
}

#[test]
fn noop_has_no_residual_and_no_parameters() {
    let noop = build("noop", 8, 0);

    assert!(noop.delta(&random_features(2, 8, 4), Mode::Train).unwrap().is_none());
    assert_eq!(noop.params().count(), 0);
}

/// Identity at initialisation, life within three steps, shape and layout kept.
#[test]
fn every_new_seed_is_an_identity_and_alive() {
    tch::manual_seed(7);
    let registry = BlueprintRegistry::default();
    for (_, blueprint) in registry.iter().filter(|(_, blueprint)| blueprint.param_count(8) > 0) {
        for width in WIDTHS {
            let sides: &[i64] = if width >= 32 { &[8, 1] } else { &[8] };
            for &side in sides {
                // Wide modules take long, and their draws differ in nothing that matters here.
                let draws = if width <= 16 { 100 } else { 4 };
                for draw in 0..draws {
                    let module = build(blueprint.id(), width, draw);
                    assert_alive_at_birth(&*module, width, side, blueprint.id());
                }
            }
        }
    }
}

fn assert_alive_at_birth(module: &dyn SeedModule, width: i64, side: i64, id: &str) {
    let mut untouched: Vec<&str> = module
        .params()
        .trainable()
        .iter()
        .map(|param| param.name.as_str())
        .collect();
    for step in 0..3 {
        let h = random_features(4, width, side);
        let delta = module.delta(&h, Mode::Train).unwrap().unwrap();
        assert_eq!(delta.size(), h.size());
        assert!(is_channels_last(&delta), "{id} at width {width}, side {side}");
        if step == 0 {
            assert_eq!(largest(&delta), 0.0, "{id} at width {width}");
        }
        let target = random_features(4, width, side);
        let loss = (incubate(&h, &delta).unwrap() - target).square().mean(Kind::Float);
        loss.backward();
        let _no_grad = NoGrad::new();
        for param in module.params().trainable() {
            let mut gradient = param.tensor.grad();
            if gradient.defined() {
                if largest(&gradient) > 0.0 {
                    untouched.retain(|name| *name != param.name);
                }
                let _ = param.tensor.shallow_clone().g_sub_(&(&gradient * 0.1));
                let _ = gradient.zero_();
            }
        }
    }
    assert!(
        untouched.is_empty(),
        "{id} at width {width}, side {side}: no gradient for {untouched:?}"
    );
}

#[test]
fn one_key_always_draws_the_same_weights() {
    let (first, second, other) = (
        build("conv_heavy", 8, 3),
        build("conv_heavy", 8, 3),
        build("conv_heavy", 8, 4),
    );

    let weights = |module: &dyn SeedModule| module.params().trainable()[0].tensor.shallow_clone();
    assert!(weights(&*first).equal(&weights(&*second)));
    assert!(!weights(&*first).equal(&weights(&*other)));
}

/// Few channels take another kernel; the values must not show it.
#[test]
fn group_norm_is_the_same_with_few_and_many_channels() {
    for channels in [1, 4, 8, 32] {
        let mut params = ParamSet::new(Backend::CPU);
        let norm = GroupNormLayer::new(&mut params, "norm", channels, 1.0).unwrap();
        params.initialise(&mut RunRng::new(0, Domain::SeedInit, &[])).unwrap();
        perturb(params.trainable());
        let x = random_features(3, channels, 5);

        let [weight, bias] = [0, 1].map(|index| &params.trainable()[index].tensor);
        let expected = x
            .contiguous()
            .group_norm(group_count(channels), Some(weight), Some(bias), 1e-5, true);
        assert!(
            largest(&(norm.forward(&x).unwrap() - expected)) < 1e-5,
            "{channels} channels"
        );
    }
}

fn configured(change: impl FnOnce(&mut LifecycleConfig)) -> BlueprintRegistry {
    let mut lifecycle = crate::scenario::fixtures::slow_lifecycle();
    change(&mut lifecycle);
    let mut registry = BlueprintRegistry::default();
    registry.configure(&lifecycle);
    registry
}

#[test]
fn options_change_parameter_counts_exactly() {
    let registry = configured(|lifecycle| {
        lifecycle.blueprints.attention.reduction = 8;
        lifecycle.blueprints.bottleneck.reduction = 2;
        lifecycle.blueprints.bottleneck.min_waist = 4;
    });

    // 2·64·8 + 64; waist 32: 2·64·32 + 9·32² + 2·64; waist 4: 2·4·4 + 9·4² + 2·4.
    for (id, dim, count) in [
        ("attention", 64, 1_088),
        ("bottleneck", 64, 13_440),
        ("bottleneck", 4, 184),
    ] {
        let (_, blueprint) = registry.iter().find(|(_, blueprint)| blueprint.id() == id).unwrap();
        let module = blueprint
            .build(dim, &mut RunRng::new(5, Domain::SeedInit, &[]), Backend::CPU)
            .unwrap();
        assert_eq!(
            (blueprint.param_count(dim), module.params().count()),
            (count, count),
            "{id}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For any width and options: the contract that registered blueprints must keep.
    #[test]
    fn every_configuration_keeps_the_contract(dim in 1_i64..48, reduction in 1_i64..70, min_waist in 1_i64..20) {
        let registry = configured(|lifecycle| {
            lifecycle.blueprints.attention.reduction = reduction;
            lifecycle.blueprints.bottleneck.reduction = reduction;
            lifecycle.blueprints.bottleneck.min_waist = min_waist;
        });
        let checked = registry.check(&[dim], Backend::CPU, &HostSyncCounter::default());
        prop_assert!(checked.is_ok(), "{:?}", checked);
    }
}
