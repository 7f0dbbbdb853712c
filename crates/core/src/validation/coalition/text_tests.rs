//! The coalition pass over a language model with seeds for texts.

use smallvec::SmallVec;
use tch::{Kind, Tensor};

use super::fixtures::{Planted, live, separate};
use crate::fixtures::{largest, perturb};
use crate::growth::{AlphaAlgorithm, Topology};
use crate::host;
use crate::random::{Domain, RunRng};
use crate::scenario::TransformerSpec;
use crate::seed::{BlueprintRegistry, SeedInstance};
use crate::torch::fixtures::{test_backend, test_device, tolerance};
use crate::validation::{CoalitionPlan, CoalitionTree, coalition_forward};

const VOCAB: i64 = 20;
const KINDS: [(&str, AlphaAlgorithm, f64); 3] = [
    ("attention", AlphaAlgorithm::Add, 0.4),
    ("mlp_small", AlphaAlgorithm::Gate, 0.7),
    ("lora", AlphaAlgorithm::Multiply, 1.0),
];

#[test]
fn every_configuration_of_a_language_model_equals_its_separate_evaluation() {
    let spec = TransformerSpec {
        width: 16,
        block: 12,
        ..TransformerSpec::default()
    };
    let mut rng = RunRng::new(1, Domain::HostInit, &[0]);
    let host = host::build(&spec, VOCAB, &mut rng, test_backend()).unwrap();
    let mut registry = BlueprintRegistry::default();
    registry.serve(Topology::Tokens);
    let places = host.injection_specs().to_vec().into_iter().zip(KINDS).enumerate();
    let plant = |(slot, (place, (id, algorithm, alpha)))| {
        let index = registry.names().position(|name| name == id).unwrap();
        let mut rng = RunRng::new(2, Domain::SeedInit, &[index as u64]);
        let instance = SeedInstance::germinate(&registry, index, 16, algorithm, &mut rng, test_backend()).unwrap();
        perturb(instance.params());
        Planted {
            slot,
            place,
            instance,
            algorithm,
            alpha,
        }
    };
    let seeds: Vec<Planted> = places.map(plant).collect();
    let live = live(&seeds);
    let x = (Tensor::arange(5 * 12, (Kind::Int, test_device())) * 7)
        .remainder(VOCAB)
        .to_kind(Kind::Int)
        .view([5, 12]);
    for players in [&[0, 1, 2][..], &[1], &[0, 2], &[]] {
        let plan = CoalitionPlan {
            players: SmallVec::from_slice(players),
            masks: (0..1 << players.len()).rev().collect(),
        };
        let tree = CoalitionTree::new(&plan, &live);

        let logits = coalition_forward(&*host, &live, &tree, &x).unwrap();

        assert_eq!(logits.size(), [5 * plan.masks.len() as i64, 12, VOCAB]);
        for (k, &mask) in plan.masks.iter().enumerate() {
            let block = logits.narrow(0, 5 * tree.places()[k] as i64, 5);
            let difference = largest(&(block - separate(&*host, &seeds, &plan, mask, &x)));
            assert!(
                difference <= tolerance(1e-5, 1e-4),
                "mask {mask:#b} of {players:?} is off by {difference}"
            );
        }
    }
}
