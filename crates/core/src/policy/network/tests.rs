//! Sizes, initial values and the agreement of step and sequence.

use std::collections::BTreeMap;

use tch::{Kind, Tensor};

use super::*;
use crate::policy::ParamGroup;
use crate::policy::fixtures::{
    FEATURES, SLOTS, assert_close, blueprints, distance, network, normal, sized, small, values,
};
use crate::random::RunRng;
use crate::scenario::{HeadConditioning, NetConfig};
use crate::torch::NoGrad;
use crate::torch::fixtures::{on_device, test_device};

fn known(kind: &str, slots: usize, config: NetConfig) -> Box<dyn ActorCritic> {
    sized(kind, [23 + 31 * slots, slots, 13], config, 42)
}

/// Values by the first part of their names.
fn parts(net: &dyn ActorCritic) -> BTreeMap<String, usize> {
    let mut parts = BTreeMap::new();
    for param in net.params().iter() {
        let name = param.name.replace("head.blueprint", "blueprint");
        let part = name.split('.').next().unwrap_or_default();
        *parts.entry(part.to_string()).or_insert(0) += param.tensor.numel();
    }
    parts
}

/// One row of blueprints for all slots.
fn sized_alike(width: usize) -> NetConfig {
    NetConfig {
        hidden_dim: width,
        head_conditioning: HeadConditioning::PerOp,
        ..NetConfig::default()
    }
}

/// Sizes for three slots: blueprints, core, embedding, features, other heads, values; the core of a GRU; in all with five slots.
fn assert_sizes(config: NetConfig, sizes: [usize; 6], of_gru: usize, of_five: u64) {
    let names = ["blueprint", "core", "emb", "feature", "head", "value"].map(String::from);
    let sizes: BTreeMap<String, usize> = names.into_iter().zip(sizes).collect();
    assert_eq!(parts(&*known("lstm", 3, config)), sizes);
    assert_eq!(parts(&*known("gru", 3, config))["core"], of_gru);
    assert_eq!(known("lstm", 5, config).params().count(), of_five);
}

/// 247,294 with three slots.
#[test]
fn networks_have_known_numbers_of_parameters_in_all_and_in_each_part() {
    let sizes = [25_613, 132_352, 56, 16_768, 61_432, 11_073];
    assert_sizes(sized_alike(128), sizes, 99_328, 256_904);
}

#[test]
#[ignore = "long tier"]
fn networks_of_the_prior_art_s_size_have_its_numbers_of_parameters() {
    let sizes = [397_325, 2_102_272, 56, 67_072, 933_688, 173_313];
    assert_sizes(sized_alike(512), sizes, 1_576_960, 3_712_136);
}

#[test]
fn names_are_stable_and_every_tensor_has_the_group_of_its_part() {
    let net = network("lstm", small(), 1);
    let names: Vec<String> = net.params().iter().map(|param| param.name).collect();
    let stable = "emb.weight feature.0.weight feature.1.bias core.0.lstm.weight_ih core.0.ln.weight \
                  head.op.2.bias head.blueprint.4.weight value.8.weight";
    for name in stable.split(' ') {
        let is_there = names.iter().any(|found| found == name);
        assert!(is_there, "{name} is missing from {names:?}");
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
    match weight.size()[..] {
        [rows, columns] if rows <= columns => weight.matmul(&weight.tr()),
        _ => weight.tr().matmul(weight),
    }
}

#[test]
fn weights_start_orthogonal_with_the_gain_of_their_place() {
    let net = network("lstm", small(), 1);
    for (name, squared_gain) in [
        ("feature.0.weight", 2.0),
        ("core.0.lstm.weight_ih", 1.0),
        ("core.0.lstm.weight_hh", 1.0),
        ("head.style.0.weight", 2.0),
        ("head.style.2.weight", 1e-4),
        ("head.blueprint.4.weight", 1e-4),
        ("value.8.weight", 1e-2),
    ] {
        let found = gram(&param(&*net, name));
        let identity = Tensor::eye(found.size()[0], (Kind::Float, test_device())) * squared_gain;
        assert!(distance(&found, &identity) < 1e-4 * squared_gain, "{name}");
    }
}

#[test]
fn an_lstm_starts_to_remember_by_its_forget_gate_alone() {
    for (layers, forget) in [(1, 1.0), (4, 2.386_294)] {
        let net = network("lstm", NetConfig { layers, ..small() }, 1);
        let expected = [[0.0; 32], [forget; 32], [0.0; 32], [0.0; 32]].concat();
        assert_close(&values(&param(&*net, "core.0.lstm.bias_ih")), &expected, 1e-6);
        assert_eq!(values(&param(&*net, "core.0.lstm.bias_hh")), [0.0; 128]);
    }
    let gru = network("gru", small(), 1);
    assert_eq!(values(&param(&*gru, "core.0.gru.bias_ih")), [0.0; 96]);
}

#[test]
fn a_fresh_policy_is_nearly_uniform_and_expects_little() {
    let mut rng = RunRng::from_seed(3);
    for kind in ["lstm", "gru", "mlp", "window"] {
        let net = network(kind, small(), 1);
        let output = net.step(&input(&mut rng, &[64]), &net.zero_state(64)).unwrap();
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

/// One step where `shape` is a number of rows, sequences where it is rows and steps.
fn input(rng: &mut RunRng, shape: &[i64]) -> PolicyInput {
    PolicyInput {
        observations: on_device(normal(rng, &[shape, &[FEATURES as i64]].concat())),
        blueprints: on_device(blueprints(rng, &[shape, &[SLOTS as i64]].concat())),
    }
}

fn sequences(rows: i64, steps: i64, stream: u64) -> PolicyInput {
    input(&mut RunRng::from_seed(stream), &[rows, steps])
}

fn at(sequences: &PolicyInput, step: i64) -> PolicyInput {
    PolicyInput {
        observations: sequences.observations.select(1, step),
        blueprints: sequences.blueprints.select(1, step),
    }
}

/// Runs the sequences from the state of a fresh episode.
fn run(net: &dyn ActorCritic, sequences: &PolicyInput, lengths: &[i64]) -> NetOutput {
    let sequences = NetSequence {
        observations: &sequences.observations,
        blueprints: &sequences.blueprints,
        lengths,
        initial: &net.zero_state(lengths.len() as i64),
    };
    net.sequence(&sequences).unwrap()
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
    let sequences = sequences(1, 20, 6);
    let whole = run(&*net, &sequences, &[20]);
    let _ = sequences.observations.narrow(1, 0, 3).fill_(1.0);

    let changed = run(&*net, &sequences, &[20]);

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
        let sequences = sequences(4, 20, 6);
        for lengths in [[20, 20, 20, 20], [7, 20, 1, 13]] {
            let whole = run(&*net, &sequences, &lengths);
            let mut state = net.zero_state(4);
            for step in 0..20 {
                let output = net.step(&at(&sequences, step), &state).unwrap();
                for row in (0..4).filter(|&row| step < lengths[row as usize]) {
                    let assert_equal = |whole: &Tensor, single: &Tensor, dim| {
                        let difference = distance(&whole.select(dim, row), &single.select(dim, row));
                        assert!(difference < 1e-4, "{kind}: {difference}");
                    };
                    assert_equal(&whole.logits.select(1, step), &output.logits, 0);
                    assert_equal(&whole.value.select(1, step), &output.value, 0);
                    if step + 1 == lengths[row as usize] {
                        let pairs = whole.state.0.iter().zip(&output.state.0);
                        pairs.for_each(|(whole, single)| assert_equal(whole, single, 1));
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
        let sequences = sequences(2, 8, 7);
        let mut state = net.zero_state(2);
        for step in 0..4 {
            state = net.step(&at(&sequences, step), &state).unwrap().state;
        }
        state.reset(&[1]);
        let after = net.step(&at(&sequences, 4), &state).unwrap();
        let fresh = net.step(&at(&sequences, 4), &net.zero_state(2)).unwrap();
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
        let sequences = sequences(3, 6, 8);
        let lengths = [6, 4, 6];
        let before = run(&*net, &sequences, &lengths);

        let order = on_device(Tensor::from_slice(&[2i64, 0, 1]));
        let permuted = PolicyInput {
            observations: sequences.observations.index_select(0, &order),
            blueprints: sequences.blueprints.index_select(0, &order),
        };
        let after = run(&*net, &permuted, &[6, 6, 4]);
        let moved = distance(&before.logits.index_select(0, &order), &after.logits);
        assert!(moved < 1e-5, "{kind}: {moved}");

        let _ = sequences.observations.select(0, 0).fill_(0.5);
        let changed = run(&*net, &sequences, &lengths);
        let others = |output: &NetOutput| output.logits.narrow(0, 1, 2);
        let moved = distance(&others(&before), &others(&changed));
        let allowed = if kind == "mlp" { 0.0 } else { 1e-5 };
        assert!(moved <= allowed, "{kind}: {moved}");
        assert!(distance(&before.logits.select(0, 0), &changed.logits.select(0, 0)) > 1e-6);
    }
}

#[test]
fn every_parameter_gets_a_gradient() {
    let net = network("lstm", small(), 5);
    let sequences = sequences(2, 5, 9);
    let output = run(&*net, &sequences, &[5, 3]);
    let total = output.logits.square().sum(Kind::Float) + output.value.sum(Kind::Float);
    total.backward();
    for param in net.params().iter() {
        assert!(param.tensor.grad().defined(), "{}", param.name);
        assert!(values(&param.tensor.grad()).iter().all(|value| value.is_finite()));
    }
}

#[test]
fn a_fresh_network_prefers_the_ops_that_its_configuration_prefers() {
    let mut config = small();
    (config.op_bias.germinate, config.op_bias.prune) = (2.0, -1.0);
    let logits_of = |config: NetConfig| {
        let net = network("lstm", config, 3);
        let input = input(&mut RunRng::from_seed(5), &[2]);
        let output = net.step(&input, &net.zero_state(2)).unwrap();
        output.logits.narrow(-1, 0, 6).select(0, 0)
    };
    let shifts = logits_of(config) - logits_of(small());
    assert_close(&values(&shifts), &[0.0, 2.0, 0.0, -1.0, 0.0, 0.0], 1e-5);
}
