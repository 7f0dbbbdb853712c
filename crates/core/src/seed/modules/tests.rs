use proptest::prelude::*;

use crate::fixtures::{images, largest, perturb};
use crate::growth::Topology;
use crate::nn::{GroupNormLayer, Mode, ParamSet, group_count};
use crate::random::{Domain, RunRng};
use crate::seed::fixtures::{assert_new_and_alive, blueprint_named, build, build_counted};
use crate::seed::{BlueprintRegistry, GateNetwork};
use crate::torch::HostSyncCounter;
use crate::torch::fixtures::test_backend;

const WIDTHS: [i64; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// The built-in blueprints, those on request among them.
fn all() -> BlueprintRegistry {
    let mut registry = BlueprintRegistry::default();
    registry.request(|_| true).unwrap();
    registry
}

#[test]
fn parameter_counts_are_those_of_the_table() {
    let table: [(&str, [u64; 8]); 12] = [
        ("norm", [3, 5, 9, 17, 33, 65, 129, 257]),
        ("attention", [3, 6, 12, 40, 144, 544, 2_112, 8_320]),
        ("depthwise", [12, 26, 60, 152, 432, 1_376, 4_800, 17_792]),
        ("bottleneck", [594, 612, 648, 720, 864, 1_152, 4_480, 17_664]),
        ("conv_small", [3, 8, 24, 80, 288, 1_088, 4_224, 16_640]),
        ("conv_light", [11, 40, 152, 592, 2_336, 9_280, 36_992, 147_712]),
        ("conv_heavy", [22, 80, 304, 1_184, 4_672, 18_560, 73_984, 295_424]),
        ("conv_rank2", [20, 76, 148, 292, 580, 1_156, 2_308, 4_612]),
        ("conv_rank4", [20, 76, 296, 584, 1_160, 2_312, 4_616, 9_224]),
        ("conv_quarter", [20, 38, 74, 292, 1_160, 4_624, 18_464, 73_792]),
        ("conv_half", [20, 38, 148, 584, 2_320, 9_248, 36_928, 147_584]),
        ("conv_full", [20, 76, 296, 1_168, 4_640, 18_496, 73_856, 295_168]),
    ];
    let registry = all();

    for (id, counts) in table {
        for (width, count) in WIDTHS.into_iter().zip(counts) {
            build_counted(&registry, id, width, count);
        }
    }
}

#[test]
fn gate_parameter_counts_are_those_of_the_table() {
    let counts = [25, 33, 49, 81, 145, 273, 1_057, 4_161];

    for (width, count) in WIDTHS.into_iter().zip(counts) {
        let mut rng = RunRng::new(0, Domain::SeedInit, &[]);
        let gate = GateNetwork::new(Topology::Image, width, &mut rng, test_backend()).unwrap();
        assert_eq!((GateNetwork::param_count(width), gate.params().count()), (count, count));
    }
}

#[test]
fn groups_leave_at_least_sixteen_channels_each() {
    let widths = [1, 2, 4, 8, 16, 24, 32, 48, 64, 80, 96, 128, 256, 512];

    assert_eq!(widths.map(group_count), [1, 1, 1, 1, 1, 1, 2, 2, 4, 4, 4, 8, 16, 32]);
}

#[test]
fn noop_has_no_residual_and_no_parameters() {
    let noop = build_counted(&BlueprintRegistry::default(), "noop", 8, 0);

    assert!(noop.delta(&images(2, 8, 4), Mode::Train).unwrap().is_none());
}

/// Identity at initialisation, life within three steps, shape and layout kept.
#[test]
fn every_new_seed_is_an_identity_and_alive() {
    tch::manual_seed(7);
    let registry = all();
    for (_, blueprint) in registry.iter().filter(|(_, blueprint)| blueprint.param_count(8) > 0) {
        for width in WIDTHS {
            let sides: &[i64] = if width >= 32 { &[8, 1] } else { &[8] };
            for &side in sides {
                // Wide modules take long, and their draws differ in nothing that matters here.
                let draws = if width <= 16 { 5 } else { 1 };
                for draw in 0..draws {
                    let what = format!("{} at width {width}, side {side}", blueprint.id());
                    let features = || images(4, width, side);
                    assert_new_and_alive(&*build(blueprint, width, draw), features, &what);
                }
            }
        }
    }
}

#[test]
fn one_key_always_draws_the_same_weights() {
    let registry = BlueprintRegistry::default();
    let [first, second, other] = [3, 3, 4].map(|draw| {
        let module = build(blueprint_named(&registry, "conv_heavy"), 8, draw);
        module.params().trainable()[0].tensor.shallow_clone()
    });

    assert!(first.equal(&second) && !first.equal(&other));
}

/// Few channels take another kernel; the values must not show it.
#[test]
fn group_norm_is_the_same_with_few_and_many_channels() {
    for channels in [1, 4, 8, 32] {
        let mut params = ParamSet::new(test_backend());
        let norm = GroupNormLayer::new(&mut params, "norm", channels, 1.0).unwrap();
        params.initialise(&mut RunRng::new(0, Domain::SeedInit, &[])).unwrap();
        perturb(params.trainable());
        let x = images(3, channels, 5);

        let [weight, bias] = [0, 1].map(|index| &params.trainable()[index].tensor);
        let groups = group_count(channels);
        let expected = x.contiguous().group_norm(groups, Some(weight), Some(bias), 1e-5, true);
        let difference = largest(&(norm.forward(&x).unwrap() - expected));
        assert!(difference < 1e-5, "{channels} channels");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Tests the contract that registered blueprints must keep, for any width.
    #[test]
    fn every_width_keeps_the_contract(dim in 1_i64..48) {
        let checked = all().check(&[dim], test_backend(), &HostSyncCounter::default());
        prop_assert!(checked.is_ok(), "{:?}", checked);
    }
}
