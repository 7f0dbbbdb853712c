use tch::Kind;

use super::{Graft, GraftKind, forward, graft_kind};
use crate::fixtures::{images, largest, perturb};
use crate::growth::{AlphaAlgorithm, SeedStage};
use crate::host::{self, Host};
use crate::nn::Mode;
use crate::random::{Domain, RunRng};
use crate::scenario::CnnSpec;
use crate::seed::{BlueprintRegistry, Isolation, SeedInstance};
use crate::torch::fixtures::test_backend;
use crate::torch::is_channels_last;

fn host() -> Box<dyn Host> {
    let spec = CnnSpec {
        in_channels: 1,
        base_channels: 4,
        input_hw: 8,
        ..CnnSpec::default()
    };
    let mut rng = RunRng::new(1, Domain::HostInit, &[0]);
    host::build(&spec, 10, &mut rng, test_backend()).unwrap()
}

fn seed(id: &str, dim: i64) -> SeedInstance {
    let registry = BlueprintRegistry::default();
    let index = registry.names().position(|name| name == id).unwrap();
    let mut rng = RunRng::new(2, Domain::SeedInit, &[0]);
    let backend = test_backend();
    let seed = SeedInstance::germinate(&registry, index, dim, AlphaAlgorithm::Gate, &mut rng, backend).unwrap();
    perturb(seed.params());
    seed
}

#[test]
fn the_table_of_contributions_is_documented() {
    use SeedStage::*;
    let kind = |stage, alpha, mode| graft_kind(stage, alpha, AlphaAlgorithm::Add, Isolation::Isolated, mode);
    let blend = |alpha, isolated| {
        Some(GraftKind::Blend {
            alpha,
            algorithm: AlphaAlgorithm::Add,
            isolated,
        })
    };

    for stage in [Unknown, Dormant, Germinated, Pruned, Embargoed, Resetting] {
        assert_eq!([Mode::Train, Mode::Eval].map(|mode| kind(stage, 0.5, mode)), [None; 2]);
    }
    for stage in [Training, Blending] {
        let kinds = [Mode::Train, Mode::Eval].map(|mode| kind(stage, 0.0, mode));
        assert_eq!(kinds, [Some(GraftKind::StraightThrough), None]);
    }
    for mode in [Mode::Train, Mode::Eval] {
        assert_eq!(kind(Blending, 0.3, mode), blend(0.3, true));
        assert_eq!(kind(Holding, 0.7, mode), blend(0.7, true));
        assert_eq!(kind(Committed, 1.0, mode), blend(1.0, false));
    }
}

#[test]
fn without_seeds_the_grafted_forward_is_the_hosts() {
    let host = host();
    let x = images(4, 1, 8);

    let grafted = forward(&*host, &[], &x, Mode::Eval).unwrap();
    assert!(grafted.equal(&host.run(0..host.num_ops(), &x, Mode::Eval).unwrap()));
}

/// An incubating seed changes neither logits nor any host gradient.
#[test]
fn incubation_leaves_the_host_bit_for_bit_alone() {
    let x = images(16, 1, 8);
    let (alone, incubating) = (host(), host());
    let seed = seed("conv_light", 8);
    let slots = [Graft {
        boundary: 3,
        instance: &seed,
        kind: GraftKind::StraightThrough,
    }];

    let expected = forward(&*alone, &[], &x, Mode::Train).unwrap();
    expected.square().sum(Kind::Float).backward();
    let logits = forward(&*incubating, &slots, &x, Mode::Train).unwrap();
    logits.square().sum(Kind::Float).backward();

    assert!(logits.equal(&expected));
    let [own, expected] = [&incubating, &alone].map(|host| host.params().trainable());
    for (own, expected) in own.iter().zip(expected) {
        assert!(own.tensor.grad().equal(&expected.tensor.grad()));
    }
    for param in seed.module.params().trainable() {
        assert!(largest(&param.tensor.grad()) > 0.0, "{}", param.name);
    }
}

#[test]
fn no_blend_falls_back_from_channels_last() {
    let host = host();
    let x = images(16, 1, 8);
    let convolutions = ["depthwise", "bottleneck", "conv_small", "conv_light", "conv_heavy"];
    for id in ["norm", "attention"].into_iter().chain(convolutions) {
        let seed = seed(id, 4);
        for mode in [Mode::Train, Mode::Eval] {
            let features = || host.run(0..1, &x, mode).unwrap();
            let incubated = seed.incubate(&features(), mode).unwrap();
            assert!(is_channels_last(&incubated), "{id} incubating in {mode:?}");
            for algorithm in AlphaAlgorithm::ALL {
                for isolated in [true, false] {
                    let y = seed.blend(&features(), 0.5, algorithm, isolated, mode).unwrap();
                    assert!(is_channels_last(&y), "{id} {algorithm} in {mode:?}");
                    let logits = host.run(1..host.num_ops(), &y, mode).unwrap();
                    logits.square().sum(Kind::Float).backward();
                }
            }
        }
        let params = seed.module.params().trainable();
        for param in params.iter().filter(|param| param.tensor.dim() == 4) {
            let is_kept = is_channels_last(&param.tensor.grad());
            assert!(is_kept, "gradient of {id} {}", param.name);
        }
    }
}
