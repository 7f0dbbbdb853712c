use tch::{Device, Kind, Tensor};

use crate::fixtures::{largest, perturb};
use crate::growth::{AlphaAlgorithm, Topology};
use crate::kernels::incubate;
use crate::nn::Mode;
use crate::random::{Domain, RunRng};
use crate::seed::{BlueprintError, BlueprintRegistry, GateNetwork, SeedInstance, SeedModule};
use crate::torch::{Backend, HostSyncCounter, NoGrad};

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

fn build(id: &str, dim: i64, draw: u64) -> Box<dyn SeedModule> {
    let registry = registry();
    let index = registry.names().position(|name| name == id).unwrap();
    let mut rng = RunRng::new(draw, Domain::SeedInit, &[]);
    registry.get(index).unwrap().build(dim, &mut rng, Backend::CPU).unwrap()
}

fn random_text(rows: i64, tokens: i64, dim: i64) -> Tensor {
    Tensor::randn([rows, tokens, dim], (Kind::Float, Device::Cpu))
}

#[test]
fn parameter_counts_are_those_of_the_table() {
    let registry = registry();
    for (id, narrow, wide) in IDS {
        let (_, blueprint) = registry.iter().find(|(_, blueprint)| blueprint.id() == id).unwrap();
        for (dim, count) in [(64, narrow), (384, wide)] {
            assert_eq!(blueprint.param_count(dim), count, "{id} at {dim}");
            assert_eq!(build(id, dim, 0).params().count(), count, "{id} built at {dim}");
        }
    }
}

#[test]
fn indices_are_those_of_the_table_and_shared_with_images() {
    let registry = registry();
    let indices: Vec<(usize, &str)> = registry
        .iter()
        .map(|(index, blueprint)| (index, blueprint.id()))
        .collect();

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
    assert_eq!(indices, expected);
    assert_eq!(registry.len(), BlueprintRegistry::default().len());
    assert_eq!(registry.name_of(1), "");
    registry
        .check(&[16, 64], Backend::CPU, &HostSyncCounter::default())
        .unwrap();
}

/// Identity at birth, life within three steps, shape kept.
#[test]
fn every_new_seed_is_an_identity_and_alive() {
    tch::manual_seed(7);
    for (id, ..) in IDS {
        for dim in [4, 8, 64] {
            for draw in 0..if dim == 64 { 3 } else { 50 } {
                assert_alive_at_birth(&*build(id, dim, draw), dim, id);
            }
        }
    }
}

fn assert_alive_at_birth(module: &dyn SeedModule, dim: i64, id: &str) {
    let params = module.params().trainable();
    let mut untouched: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
    for step in 0..3 {
        let h = random_text(3, 6, dim);
        let delta = module.delta(&h, Mode::Train).unwrap().unwrap();
        assert_eq!(delta.size(), h.size());
        if step == 0 {
            assert_eq!(largest(&delta), 0.0, "{id} at width {dim}");
        }
        let loss = (incubate(&h, &delta).unwrap() - random_text(3, 6, dim))
            .square()
            .mean(Kind::Float);
        loss.backward();
        let _no_grad = NoGrad::new();
        for param in params {
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
        "{id} at width {dim}: no gradient for {untouched:?}"
    );
}

#[test]
fn what_stands_behind_a_position_does_not_touch_it() {
    let _no_grad = NoGrad::new();
    for (id, ..) in IDS {
        let module = build(id, 8, 1);
        perturb(module.params().trainable());
        let x = random_text(2, 10, 8);
        let changed = x.copy();
        let _ = changed.narrow(1, 6, 4).fill_(0.5);
        let delta = |x: &Tensor| module.delta(x, Mode::Eval).unwrap().unwrap().narrow(1, 0, 6);

        assert!(largest(&(delta(&x) - delta(&changed))) < 1e-6, "{id}");
    }
}

#[test]
fn a_window_shows_its_own_positions_only() {
    let _no_grad = NoGrad::new();
    let far_and_near = |id: &str| {
        let module = build(id, 8, 1);
        perturb(module.params().trainable());
        let x = random_text(1, 70, 8);
        let changed = x.copy();
        let _ = changed.narrow(1, 0, 1).fill_(0.5);
        let delta = |x: &Tensor| module.delta(x, Mode::Eval).unwrap().unwrap();
        let difference = delta(&x) - delta(&changed);
        // The first position is the 64th up to number 63 and beyond the window from number 64 on.
        (
            largest(&difference.narrow(1, 63, 1)),
            largest(&difference.narrow(1, 64, 6)),
        )
    };

    let (near, far) = far_and_near("flex_attention");
    assert!(near > 0.0 && far == 0.0, "{near} {far}");
    let (near, far) = far_and_near("attention");
    assert!(near > 0.0 && far > 0.0, "{near} {far}");
}

#[test]
fn heads_that_do_not_divide_the_width_are_refused() {
    let registry = registry();
    let mut rng = RunRng::new(0, Domain::SeedInit, &[]);
    for index in [2, 12] {
        let refused = registry.get(index).unwrap().build(6, &mut rng, Backend::CPU);
        assert!(matches!(refused, Err(BlueprintError::Unfit { dim: 6, .. })));
    }
}

#[test]
fn options_change_what_is_built_and_its_exact_count() {
    const DIM: i64 = 6;
    let _no_grad = NoGrad::new();
    let mut lifecycle = crate::scenario::fixtures::slow_lifecycle();
    let options = &mut lifecycle.blueprints;
    (options.lora.rank, options.lora_large.rank) = (3, 5);
    (options.mlp_small.expansion, options.mlp.expansion) = (1, 3);
    options.attention.heads = 2;
    (options.flex_attention.heads, options.flex_attention.window) = (1, 2);
    let mut registry = registry();
    registry.configure(&lifecycle);

    for (id, count) in [
        ("lora", 36),
        ("lora_large", 60),
        ("mlp_small", 84),
        ("mlp", 240),
        ("attention", 168),
        ("flex_attention", 168),
    ] {
        let (_, blueprint) = registry.iter().find(|(_, blueprint)| blueprint.id() == id).unwrap();
        let mut rng = RunRng::new(1, Domain::SeedInit, &[]);
        let module = blueprint.build(DIM, &mut rng, Backend::CPU).unwrap();
        assert_eq!(blueprint.param_count(DIM), count, "{id}");
        assert_eq!(module.params().count(), count, "{id}");

        perturb(module.params().trainable());
        let x = random_text(1, 4, DIM);
        let changed = x.copy();
        let _ = changed.narrow(1, 0, 1).fill_(0.5);
        let delta = |x: &Tensor| module.delta(x, Mode::Eval).unwrap().unwrap();
        let difference = delta(&x) - delta(&changed);
        let reached = [1, 2].map(|position| largest(&difference.narrow(1, position, 1)) > 0.0);
        let expected = match id {
            "attention" => [true, true],
            "flex_attention" => [true, false],
            _ => [false, false],
        };
        assert_eq!(reached, expected, "{id}");
    }
}

#[test]
fn a_gate_has_a_value_a_token_from_that_token_alone() {
    let _no_grad = NoGrad::new();
    let mut rng = RunRng::new(0, Domain::SeedInit, &[]);
    let gate = GateNetwork::new(Topology::Tokens, 8, &mut rng, Backend::CPU).unwrap();
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
        let seed = SeedInstance::germinate(&registry(), 10, 8, algorithm, &mut rng, Backend::CPU).unwrap();
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
