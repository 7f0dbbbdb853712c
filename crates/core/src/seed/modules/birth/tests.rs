use proptest::prelude::*;
use tch::{Device, Kind, Tensor};

use super::*;
use crate::nn::Mode;
use crate::random::{Domain, RunRng};
use crate::scenario::{LifecycleConfig, SeedInit};
use crate::seed::{BirthBatch, Blueprint, BlueprintRegistry, SeedModule};
use crate::torch::{Backend, HostSyncCounter, NoGrad, read_f64};

fn configured(change: impl FnOnce(&mut LifecycleConfig)) -> BlueprintRegistry {
    let mut lifecycle = crate::scenario::fixtures::slow_lifecycle();
    change(&mut lifecycle);
    let mut registry = BlueprintRegistry::default();
    registry.configure(&lifecycle);
    registry
}

fn blueprint<'a>(registry: &'a BlueprintRegistry, id: &str) -> &'a dyn Blueprint {
    let found = registry.iter().find(|(_, blueprint)| blueprint.id() == id);
    found.expect("the blueprint is built in").1
}

fn build(registry: &BlueprintRegistry, id: &str, dim: i64) -> Box<dyn SeedModule> {
    let mut rng = RunRng::new(5, Domain::SeedInit, &[]);
    blueprint(registry, id).build(dim, &mut rng, Backend::CPU).unwrap()
}

fn noise(draw: u64, shape: [i64; 4]) -> Tensor {
    let [batch, dim, height, width] = shape;
    let mut values = vec![0.0_f32; shape.iter().product::<i64>() as usize];
    crate::random::Draw::fill_normal(&mut RunRng::new(draw, Domain::SeedInit, &[]), &mut values, 1.0);
    let nhwc = Tensor::from_slice(&values).view([batch, height, width, dim]);
    nhwc.permute([0, 3, 1, 2])
}

/// Features as a host yields them behind a ReLU, and a gradient.
fn birth(dim: i64) -> BirthBatch {
    let shape = [16, dim, 4, 4];
    BirthBatch {
        features: noise(1, shape).relu(),
        gradient: noise(2, shape),
    }
}

/// The value of a tensor of one.
fn number(tensor: &Tensor) -> f64 {
    read_f64(tensor, &HostSyncCounter::default()).unwrap()[0]
}

/// Norm of the first gradient of a new module's zero factor: no other weight has one, and biases, which no init changes, do
/// not count.
fn first_gradient(module: &dyn SeedModule, birth: &BirthBatch) -> f64 {
    let delta = module.delta(&birth.features, Mode::Train).unwrap().unwrap();
    (delta * &birth.gradient).sum(Kind::Float).backward();
    let _no_grad = NoGrad::new();
    let weights = module
        .params()
        .trainable()
        .iter()
        .filter(|param| param.name.ends_with("weight"));
    let squares = weights.filter_map(|param| {
        let gradient = param.tensor.grad();
        gradient.defined().then(|| number(&gradient.square().sum(Kind::Double)))
    });
    squares.sum::<f64>().sqrt()
}

const WITH_MAPS: [&str; 6] = [
    "conv_light",
    "attention",
    "depthwise",
    "bottleneck",
    "conv_small",
    "conv_heavy",
];

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
        assert_eq!(blueprint(&registry, id).param_count(dim), count, "{id}");
        assert_eq!(build(&registry, id, dim).params().count(), count, "{id}");
    }
}

#[test]
fn zero_output_has_no_norm_at_the_end() {
    let registry = configured(|lifecycle| lifecycle.seed_init = SeedInit::ZeroOutput);

    for (id, count) in [
        ("conv_light", 9 * 64),
        ("depthwise", 9 * 8 + 64),
        ("bottleneck", 2 * 64 + 9 * 64),
        ("conv_small", 64),
        ("conv_heavy", 18 * 64 + 16),
        ("attention", 40),
    ] {
        assert_eq!(blueprint(&registry, id).param_count(8), count, "{id}");
    }
    assert!(!blueprint(&registry, "norm").offers(SeedInit::ZeroOutput));
}

#[test]
fn gradmax_makes_the_first_gradient_larger_than_chance() {
    let registry = configured(|lifecycle| lifecycle.seed_init = SeedInit::Gradmax);
    for id in WITH_MAPS {
        for dim in [8, 32] {
            let birth = birth(dim);
            let drawn = first_gradient(&*build(&registry, id, dim), &birth);
            let module = build(&registry, id, dim);
            module.adapt(SeedInit::Gradmax, &birth).unwrap();
            let turned = first_gradient(&*module, &birth);

            println!("{id} {dim}: {:.2}", turned / drawn);
            assert!(turned > 1.3 * drawn, "{id} at {dim}: {turned} after {drawn}");
        }
    }
}

#[test]
fn statistics_gives_every_map_a_mean_square_of_one() {
    let registry = configured(|lifecycle| lifecycle.seed_init = SeedInit::Statistics);
    let birth = birth(8);
    let module = build(&registry, "conv_small", 8);

    module.adapt(SeedInit::Statistics, &birth).unwrap();

    let _no_grad = NoGrad::new();
    let weight = &module.params().trainable()[0].tensor;
    let output = birth.features.conv2d::<Tensor>(weight, None, 1, 0, 1, 1);
    let mean_square = number(&output.square().mean(Kind::Double));
    assert!((mean_square - 1.0).abs() < 1e-4, "{mean_square}");
}

#[test]
fn a_dead_batch_leaves_drawn_weights_as_they_are() {
    for init in [SeedInit::Gradmax, SeedInit::Statistics] {
        let registry = configured(|lifecycle| lifecycle.seed_init = init);
        for id in WITH_MAPS {
            let (module, drawn) = (build(&registry, id, 8), build(&registry, id, 8));
            let zeros = || Tensor::zeros([4, 8, 4, 4], (Kind::Float, Device::Cpu));
            let dead = BirthBatch {
                features: zeros(),
                gradient: zeros(),
            };

            module.adapt(init, &dead).unwrap();

            for (left, right) in module.params().trainable().iter().zip(drawn.params().trainable()) {
                assert!(left.tensor.equal(&right.tensor), "{id}: {}", left.name);
            }
        }
    }
}

#[test]
fn leading_directions_are_the_singular_vectors_on_the_side_of_forward() {
    let matrix = Tensor::from_slice(&[3.0_f32, 0.0, 0.0, 0.0, 0.0, -2.0, 0.0, 1.0, 0.0]).view([3, 3]);
    let forward = Tensor::from_slice(&[-1.0_f32, 1.0, 1.0]);

    let found = leading_directions(&matrix, 2, &forward).unwrap();

    let expected = Tensor::from_slice(&[-3.0_f32, 0.0, 0.0, 0.0, 0.0, 2.0]).view([2, 3]);
    assert!(found.allclose(&expected, 1e-6, 1e-6, false), "{found:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For any width, options and init: the contract that registered blueprints must keep.
    #[test]
    fn every_configuration_keeps_the_contract(
        dim in 1_i64..48,
        reduction in 1_i64..70,
        min_waist in 1_i64..20,
        init in 0..SeedInit::ALL.len(),
    ) {
        let registry = configured(|lifecycle| {
            lifecycle.seed_init = SeedInit::ALL[init];
            lifecycle.blueprints.attention.reduction = reduction;
            lifecycle.blueprints.bottleneck.reduction = reduction;
            lifecycle.blueprints.bottleneck.min_waist = min_waist;
        });
        let checked = registry.check(&[dim], Backend::CPU, &HostSyncCounter::default());
        prop_assert!(checked.is_ok(), "{:?}", checked);
    }
}
