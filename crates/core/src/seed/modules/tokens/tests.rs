use std::ops::Range;

use tch::{Kind, Tensor};

use crate::fixtures::{largest, perturb};
use crate::graph::ModuleGraph;
use crate::growth::{AlphaAlgorithm, Topology};
use crate::nn::Mode;
use crate::random::{Domain, RunRng};
use crate::seed::fixtures::{assert_new_and_alive, blueprint_named, build, build_counted};
use crate::seed::{BlueprintRegistry, GateNetwork, SeedInstance, SeedModule};
use crate::torch::fixtures::{test_backend, test_device};
use crate::torch::{HostSyncCounter, NoGrad};

const IDS: [(&str, u64, u64); 7] = [
    ("norm", 129, 769),
    ("lora", 1_024, 6_144),
    ("lora_large", 4_096, 24_576),
    ("attention", 16_640, 591_360),
    ("mlp_small", 16_576, 590_976),
    ("mlp", 33_088, 1_181_568),
    ("flex_attention", 16_640, 591_360),
];

fn registry() -> BlueprintRegistry {
    let mut registry = BlueprintRegistry::default();
    registry.serve(Topology::Tokens);
    registry
}

fn random_text(rows: i64, tokens: i64, dim: i64) -> Tensor {
    Tensor::randn([rows, tokens, dim], (Kind::Float, test_device()))
}

#[test]
fn parameter_counts_are_those_of_the_table() {
    for (id, narrow, wide) in IDS {
        let registry = registry();
        build_counted(&registry, id, 64, narrow);
        assert_eq!(blueprint_named(&registry, id).param_count(384), wide, "{id}");
    }
}

#[test]
fn indices_are_those_of_the_table_and_shared_with_images() {
    let registry = registry();
    let indices = registry.iter().map(|(index, blueprint)| (index, blueprint.id()));

    let expected = [
        (0, "noop"),
        (2, "attention"),
        (3, "norm"),
        (8, "lora"),
        (9, "lora_large"),
        (10, "mlp_small"),
        (11, "mlp"),
        (12, "flex_attention"),
    ];
    assert_eq!(indices.collect::<Vec<_>>(), expected);
    assert_eq!(registry.len(), BlueprintRegistry::default().len());
    assert_eq!(registry.name_of(1), "");
    let checked = registry.check(&[16, 64], test_backend(), &HostSyncCounter::default());
    assert!(checked.is_ok(), "{checked:?}");
}

#[test]
fn every_new_seed_is_an_identity_and_alive() {
    tch::manual_seed(7);
    let registry = registry();
    for (id, ..) in IDS {
        for (dim, draws) in [(4, 5), (8, 5), (64, 1)] {
            for draw in 0..draws {
                let module = build(blueprint_named(&registry, id), dim, draw);
                assert_new_and_alive(&*module, || random_text(3, 6, dim), &format!("{id} at width {dim}"));
            }
        }
    }
}

/// The difference that a change of these positions makes to δ of a text, `[1, tokens, channels]`.
fn reached(module: &dyn SeedModule, [tokens, dim]: [i64; 2], changed: Range<i64>) -> Tensor {
    let _no_grad = NoGrad::new();
    perturb(module.params().trainable());
    let x = random_text(1, tokens, dim);
    let other = x.copy();
    let _ = other.narrow(1, changed.start, changed.end - changed.start).fill_(0.5);
    let [before, after] = [x, other].map(|text| module.delta(&text, Mode::Eval).unwrap().unwrap());
    after - before
}

#[test]
fn later_positions_do_not_affect_earlier_ones() {
    for (id, ..) in IDS {
        let module = build(blueprint_named(&registry(), id), 8, 1);
        let difference = reached(&*module, [10, 8], 6..10);
        assert!(largest(&difference.narrow(1, 0, 6)) < 1e-6, "{id}");
    }
}

#[test]
fn a_window_shows_its_own_positions_only() {
    // The first position is the 64th up to number 63 and beyond the window from number 64 on.
    for (id, is_seen_from_afar) in [("flex_attention", false), ("attention", true)] {
        let module = build(blueprint_named(&registry(), id), 8, 1);
        let difference = reached(&*module, [70, 8], 0..1);
        let [near, far] = [(63, 1), (64, 6)].map(|(first, count)| largest(&difference.narrow(1, first, count)));
        assert!(near > 0.0 && (far > 0.0) == is_seen_from_afar, "{id}: {near} {far}");
    }
}

/// 4 heads where they divide the channels, else 3, 2 or 1; the parameters are as many.
#[test]
fn an_attention_has_as_many_heads_as_divide_its_channels() {
    let registry = registry();
    for (dim, expected) in [(64, 4), (6, 3), (10, 2), (7, 1)] {
        for id in ["attention", "flex_attention"] {
            let graph = blueprint_named(&registry, id).graph(dim);
            assert!(
                matches!(graph, ModuleGraph::Attention { heads, .. } if heads == expected),
                "{graph:?}"
            );
        }
        let checked = registry.check(&[dim], test_backend(), &HostSyncCounter::default());
        assert!(checked.is_ok(), "{checked:?}");
    }
}

#[test]
fn a_gate_has_a_value_a_token_from_that_token_alone() {
    let _no_grad = NoGrad::new();
    let mut rng = RunRng::new(0, Domain::SeedInit, &[]);
    let gate = GateNetwork::new(Topology::Tokens, 8, &mut rng, test_backend()).unwrap();
    assert_eq!(gate.params().count(), GateNetwork::param_count(8));
    perturb(gate.params().trainable());
    let x = random_text(2, 5, 8);
    let changed = x.copy();
    let _ = changed.narrow(1, 3, 2).fill_(0.5);

    let (before, after) = (gate.forward(&x).unwrap(), gate.forward(&changed).unwrap());

    assert_eq!(before.size(), [2, 5, 1]);
    assert!(before.narrow(1, 0, 3).equal(&after.narrow(1, 0, 3)));
    assert!(!before.narrow(1, 3, 2).equal(&after.narrow(1, 3, 2)));
}

/// Values of y for h + a·δ, h·(1 + a·tanh δ) and h + a·g·δ.
#[test]
fn every_operator_blends_texts_by_its_formula() {
    let _no_grad = NoGrad::new();
    let h = random_text(2, 5, 8);
    for algorithm in AlphaAlgorithm::ALL {
        let mut rng = RunRng::new(4, Domain::SeedInit, &[]);
        let seed = SeedInstance::germinate(&registry(), 10, 8, algorithm, &mut rng, test_backend()).unwrap();
        assert!(seed.blend(&h, 0.4, algorithm, true, Mode::Eval).unwrap().equal(&h));
        perturb(seed.module.params().trainable());
        let delta = seed.module.delta(&h, Mode::Eval).unwrap().unwrap();
        let expected = match algorithm {
            AlphaAlgorithm::Add => &h + 0.4 * &delta,
            AlphaAlgorithm::Multiply => &h * (1.0 + 0.4 * delta.tanh()),
            AlphaAlgorithm::Gate => &h + 0.4 * 0.5 * &delta,
        };

        let blended = seed.blend(&h, 0.4, algorithm, false, Mode::Eval).unwrap();

        assert!(largest(&(blended - expected)) < 1e-5, "{algorithm}");
    }
}
