//! Sizes, initial values and the agreement of step and sequence.

use std::collections::BTreeMap;

use tch::{Device, Kind, Tensor};

use super::*;
use crate::policy::fixtures::{FEATURES, SLOTS, blueprints, distance, nets, network, normal, small, values};
use crate::policy::{ParamGroup, RecurrentState};
use crate::random::RunRng;
use crate::scenario::{HeadConditioning, NetConfig, OpBias};
use crate::torch::NoGrad;

fn sized(kind: &str, slots: usize, config: NetConfig) -> Box<dyn ActorCritic> {
    let context = NetContext {
        spec: NetSpec {
            kind: kind.into(),
            observation: 23 + 31 * slots,
            slots,
            blueprints: 13,
            config,
        },
        device: Device::Cpu,
        seed: 42,
    };
    nets().build(context, &crate::schema::Settings::default()).unwrap()
}

/// Values by the first part of their names.
fn parts(net: &dyn ActorCritic) -> BTreeMap<String, usize> {
    let mut parts = BTreeMap::new();
    for param in net.params().iter() {
        let mut names = param.name.split('.');
        let part = match (names.next(), names.next()) {
            (Some("head"), Some("blueprint")) => "blueprint",
            (Some(first), _) => first,
            _ => "",
        };
        *parts.entry(part.to_string()).or_insert(0) += param.tensor.numel();
    }
    parts
}

/// A network of the prior art's size, one row of blueprints for all slots.
fn wide() -> NetConfig {
    NetConfig {
        feature_dim: 512,
        hidden_dim: 512,
        head_conditioning: HeadConditioning::PerOp,
        ..NetConfig::default()
    }
}

/// Of the sizes that do not need the large matrices of many slots.
#[test]
fn a_wide_network_has_a_known_number_of_parameters() {
    let net = sized("lstm", 3, wide());
    assert_eq!(net.params().count(), 3_673_726);
    let expected = [
        ("blueprint", 397_325),
        ("core", 2_102_272),
        ("emb", 56),
        ("feature", 67_072),
        ("head", 933_688),
        ("value", 173_313),
    ];
    assert_eq!(
        parts(&*net),
        expected.map(|(part, count)| (part.to_string(), count)).into()
    );
    assert_eq!(parts(&*sized("gru", 3, wide()))["core"], 1_576_960);
}

#[test]
fn other_numbers_of_slots_and_layers_have_known_numbers_of_parameters() {
    for (slots, count) in [(1, 3_635_316), (5, 3_712_136), (10, 3_808_161)] {
        assert_eq!(sized("lstm", slots, wide()).params().count(), count);
    }
    let four = NetConfig { layers: 4, ..wide() };
    assert_eq!(sized("lstm", 3, four).params().count(), 9_980_542);
    let small = NetConfig {
        feature_dim: 128,
        hidden_dim: 128,
        ..wide()
    };
    assert_eq!(sized("lstm", 3, small).params().count(), 247_294);
}

#[test]
fn names_are_stable_and_every_tensor_has_the_group_of_its_part() {
    let net = network("lstm", small(), 1);
    let names: Vec<String> = net.params().iter().map(|param| param.name).collect();
    for name in [
        "emb.weight",
        "feature.0.weight",
        "feature.1.bias",
        "core.in.weight",
        "core.0.lstm.weight_ih",
        "core.0.ln.weight",
        "head.op.2.bias",
        "head.blueprint.4.weight",
        "value.8.weight",
    ] {
        assert!(
            names.iter().any(|found| found == name),
            "{name} is missing from {names:?}"
        );
    }
    for param in net.params().iter() {
        let expected = match param.name.split('.').next() {
            Some("head") => ParamGroup::ActorHeads,
            Some("value") => ParamGroup::Critic,
            _ => ParamGroup::Shared,
        };
        assert_eq!(param.group, expected, "{}", param.name);
        assert!(param.tensor.is_leaf() && param.tensor.requires_grad());
    }
}

fn param(net: &dyn ActorCritic, name: &str) -> Tensor {
    let found = net.params().iter().find(|param| param.name == name);
    found.map(|param| param.tensor.detach()).unwrap()
}

/// `W·Wᵀ` over the shorter side.
fn gram(weight: &Tensor) -> Tensor {
    let [rows, columns] = weight.size()[..] else {
        panic!("no matrix")
    };
    if rows <= columns {
        weight.matmul(&weight.tr())
    } else {
        weight.tr().matmul(weight)
    }
}

#[test]
fn weights_start_orthogonal_with_the_gain_of_their_place() {
    let net = network("lstm", small(), 1);
    for (name, squared_gain) in [
        ("feature.0.weight", 2.0),
        ("core.in.weight", 2.0),
        ("core.0.lstm.weight_ih", 1.0),
        ("core.0.lstm.weight_hh", 1.0),
        ("head.style.0.weight", 2.0),
        ("head.style.2.weight", 1e-4),
        ("head.blueprint.4.weight", 1e-4),
        ("value.8.weight", 1e-2),
    ] {
        let found = gram(&param(&*net, name));
        let identity = Tensor::eye(found.size()[0], (Kind::Float, Device::Cpu)) * squared_gain;
        assert!(distance(&found, &identity) < 1e-4 * squared_gain, "{name}");
    }
}

#[test]
fn an_lstm_starts_to_remember_by_its_forget_gate_alone() {
    for (layers, forget) in [(1, 1.0), (4, 2.386_294)] {
        let config = NetConfig { layers, ..small() };
        let net = network("lstm", config, 1);
        let bias = values(&param(&*net, "core.0.lstm.bias_ih"));
        assert!(bias[32..64].iter().all(|value| (value - forget).abs() < 1e-6));
        assert!(bias[..32].iter().chain(&bias[64..]).all(|&value| value == 0.0));
        assert!(
            values(&param(&*net, "core.0.lstm.bias_hh"))
                .iter()
                .all(|&value| value == 0.0)
        );
    }
    let gru = network("gru", small(), 1);
    assert!(
        values(&param(&*gru, "core.0.gru.bias_ih"))
            .iter()
            .all(|&value| value == 0.0)
    );
}

#[test]
fn a_fresh_policy_is_nearly_uniform_and_expects_little() {
    let mut rng = RunRng::from_seed(3);
    for kind in ["lstm", "gru", "mlp", "window"] {
        let net = network(kind, small(), 1);
        let output = net.step(&input(&mut rng, 64), &net.zero_state(64)).unwrap();
        let ops = output.logits.narrow(1, 0, 6).softmax(-1, Kind::Float);
        assert!(values(&ops).iter().all(|p| (p - 1.0 / 6.0).abs() < 0.02), "{kind}");
        assert!(values(&output.value).iter().all(|value| value.abs() < 1.0), "{kind}");
    }
}

#[test]
fn one_seed_gives_one_network_and_seeds_differ() {
    let build = |seed| param(&*network("lstm", small(), seed), "head.op.0.weight");
    assert!(build(1).equal(&build(1)));
    assert!(!build(1).equal(&build(2)));
}

fn input(rng: &mut RunRng, rows: i64) -> PolicyInput {
    PolicyInput {
        observations: normal(rng, &[rows, FEATURES as i64]),
        blueprints: blueprints(rng, &[rows, SLOTS as i64]),
    }
}

struct Sequences {
    observations: Tensor,
    blueprints: Tensor,
}

impl Sequences {
    fn new(rows: i64, steps: i64, stream: u64) -> Self {
        let mut rng = RunRng::from_seed(stream);
        Self {
            observations: normal(&mut rng, &[rows, steps, FEATURES as i64]),
            blueprints: blueprints(&mut rng, &[rows, steps, SLOTS as i64]),
        }
    }

    fn at(&self, step: i64) -> PolicyInput {
        PolicyInput {
            observations: self.observations.select(1, step),
            blueprints: self.blueprints.select(1, step),
        }
    }

    fn run(&self, net: &dyn ActorCritic, lengths: &[i64], initial: &RecurrentState) -> SequenceOutput {
        net.sequence(&NetSequence {
            observations: &self.observations,
            blueprints: &self.blueprints,
            lengths,
            initial,
        })
        .unwrap()
    }
}

fn variants() -> Vec<(&'static str, NetConfig)> {
    let two_layers = NetConfig { layers: 2, ..small() };
    vec![
        ("lstm", small()),
        ("lstm", two_layers),
        ("gru", two_layers),
        ("mlp", small()),
        ("window", small()),
    ]
}

#[test]
fn a_window_sees_sixteen_steps_and_none_before() {
    let _no_grad = NoGrad::new();
    let net = network("window", small(), 5);
    let sequences = Sequences::new(1, 20, 6);
    let lengths = [20];
    let whole = sequences.run(&*net, &lengths, &net.zero_state(1));
    let _ = sequences.observations.narrow(1, 0, 3).fill_(1.0);

    let changed = sequences.run(&*net, &lengths, &net.zero_state(1));

    // The third step is seen up to the eighteenth.
    let difference = |step| distance(&whole.logits.select(1, step), &changed.logits.select(1, step));
    assert!(difference(17) > 1e-6);
    assert!(difference(18) == 0.0 && difference(19) == 0.0);
}

/// Rows of one length, and rows with padding, whose state is that after their last step.
#[test]
fn steps_one_after_another_equal_the_sequence() {
    let _no_grad = NoGrad::new();
    for (kind, config) in variants() {
        let net = network(kind, config, 5);
        let sequences = Sequences::new(4, 20, 6);
        for lengths in [[20, 20, 20, 20], [7, 20, 1, 13]] {
            let whole = sequences.run(&*net, &lengths, &net.zero_state(4));
            let mut state = net.zero_state(4);
            for step in 0..20 {
                let output = net.step(&sequences.at(step), &state).unwrap();
                for row in (0..4).filter(|&row| step < lengths[row as usize]) {
                    let pairs = [
                        (whole.logits.select(1, step), &output.logits),
                        (whole.value.select(1, step), &output.value),
                    ];
                    for (whole, single) in pairs {
                        assert!(distance(&whole.select(0, row), &single.select(0, row)) < 1e-4, "{kind}");
                    }
                    if step + 1 == lengths[row as usize] {
                        for (whole, single) in whole.state.0.iter().zip(&output.state.0) {
                            assert!(distance(&whole.select(1, row), &single.select(1, row)) < 1e-4, "{kind}");
                        }
                    }
                }
                state = output.state;
            }
        }
    }
}

#[test]
fn a_forgotten_row_continues_as_a_new_segment() {
    let _no_grad = NoGrad::new();
    for (kind, config) in variants() {
        let net = network(kind, config, 5);
        let sequences = Sequences::new(2, 8, 7);
        let mut state = net.zero_state(2);
        for step in 0..4 {
            state = net.step(&sequences.at(step), &state).unwrap().state;
        }
        state.reset(&[1]);
        let after = net.step(&sequences.at(4), &state).unwrap();
        let fresh = net.step(&sequences.at(4), &net.zero_state(2)).unwrap();
        assert!(distance(&after.logits.select(0, 1), &fresh.logits.select(0, 1)) < 1e-6);
        if kind != "mlp" {
            assert!(distance(&after.logits.select(0, 0), &fresh.logits.select(0, 0)) > 1e-6);
        }
    }
}

#[test]
fn rows_do_not_influence_each_other() {
    let _no_grad = NoGrad::new();
    for (kind, config) in variants() {
        let net = network(kind, config, 5);
        let sequences = Sequences::new(3, 6, 8);
        let lengths = [6, 4, 6];
        let before = sequences.run(&*net, &lengths, &net.zero_state(3));

        let order = Tensor::from_slice(&[2i64, 0, 1]);
        let permuted = Sequences {
            observations: sequences.observations.index_select(0, &order),
            blueprints: sequences.blueprints.index_select(0, &order),
        };
        let after = permuted.run(&*net, &[6, 6, 4], &net.zero_state(3));
        assert!(
            distance(&before.logits.index_select(0, &order), &after.logits) < 1e-5,
            "{kind}"
        );

        let _ = sequences.observations.select(0, 0).fill_(0.5);
        let changed = sequences.run(&*net, &lengths, &net.zero_state(3));
        let others = |output: &SequenceOutput| output.logits.narrow(0, 1, 2);
        let moved = distance(&others(&before), &others(&changed));
        let allowed = if kind == "mlp" { 0.0 } else { 1e-5 };
        assert!(moved <= allowed, "{kind}: {moved}");
        assert!(distance(&before.logits.select(0, 0), &changed.logits.select(0, 0)) > 1e-6);
    }
}

#[test]
fn every_parameter_gets_a_gradient() {
    let net = network("lstm", small(), 5);
    let sequences = Sequences::new(2, 5, 9);
    let output = sequences.run(&*net, &[5, 3], &net.zero_state(2));
    let total = output.logits.square().sum(Kind::Float) + output.value.sum(Kind::Float);
    total.backward();
    for param in net.params().iter() {
        assert!(param.tensor.grad().defined(), "{}", param.name);
        assert!(values(&param.tensor.grad()).iter().all(|value| value.is_finite()));
    }
}

#[test]
fn a_fresh_network_prefers_the_ops_that_its_configuration_prefers() {
    let config = NetConfig {
        op_bias: OpBias {
            wait: 2.0,
            prune: -1.0,
            commit: 0.0,
            ..OpBias::default()
        },
        ..small()
    };
    let logits_of = |config: NetConfig| {
        let net = network("lstm", config, 3);
        let input = PolicyInput {
            observations: normal(&mut RunRng::from_seed(5), &[2, FEATURES as i64]),
            blueprints: Tensor::full([2, SLOTS as i64], -1, (Kind::Int64, Device::Cpu)),
        };
        let output = net.step(&input, &net.zero_state(2)).unwrap();
        values(&output.logits.narrow(-1, 0, 6).select(0, 0))
    };
    let pairs = logits_of(config).into_iter().zip(logits_of(small()));
    let shifts: Vec<f64> = pairs.map(|(biased, plain)| biased - plain).collect();
    for (shift, expected) in shifts.iter().zip([2.0, 0.0, 0.0, -1.0, 0.0, 0.0]) {
        assert!((shift - expected).abs() < 1e-5, "{shifts:?}");
    }
}
