//! The counterfactual pass draws nothing from libtorch's generator.

use simic_engine::internals::growth::AlphaAlgorithm;
use simic_engine::internals::host;
use simic_engine::internals::random::{Domain, RunRng};
use simic_engine::internals::scenario::CnnSpec;
use simic_engine::internals::seed::{BlueprintRegistry, SeedInstance};
use simic_engine::internals::torch::fixtures::{test_backend, test_device};
use simic_engine::internals::validation::{CoalitionPlan, CoalitionTree, LiveSlot, coalition_forward};
use tch::{Kind, Tensor};

/// The state of the generator is the same before and after.
#[test]
fn the_pass_leaves_the_random_generator_alone() {
    let spec = CnnSpec {
        in_channels: 1,
        base_channels: 4,
        n_blocks: 3,
        kernel_size: 3,
        pool_layers: 3,
        input_hw: 8,
        ..CnnSpec::default()
    };
    let mut rng = RunRng::new(1, Domain::HostInit, &[]);
    let mut host = host::build(&spec, 10, &mut rng, test_backend()).expect("the host is sound");
    host.refill().expect("it can be folded");
    let seed = SeedInstance::germinate(
        &BlueprintRegistry::default(),
        1,
        4,
        AlphaAlgorithm::Gate,
        &mut rng,
        test_backend(),
    )
    .expect("the blueprint exists");
    let live = [LiveSlot {
        slot: 0,
        boundary: host.injection_specs()[0].boundary,
        instance: &seed,
        alpha: 0.5,
        algorithm: AlphaAlgorithm::Gate,
    }];
    let plan = CoalitionPlan {
        players: [0].into_iter().collect(),
        masks: vec![1, 0],
    };
    let tree = CoalitionTree::new(&plan, &live);
    let x = Tensor::ones([2, 1, 8, 8], (Kind::Float, test_device()));

    tch::manual_seed(5);
    let expected = Tensor::rand([4], (Kind::Float, test_device()));
    tch::manual_seed(5);
    let _ = coalition_forward(&*host, &live, &tree, &x).expect("the pass succeeds");
    assert!(Tensor::rand([4], (Kind::Float, test_device())).equal(&expected));
}
