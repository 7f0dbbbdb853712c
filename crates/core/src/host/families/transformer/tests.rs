use tch::{Kind, Tensor};

use crate::fixtures::largest;
use crate::growth::SlotId;
use crate::host::{self, Host, HostDesign, HostError};
use crate::nn::Mode;
use crate::random::{Domain, RunRng};
use crate::scenario::{Positions, TransformerSpec};
use crate::torch::NoGrad;
use crate::torch::fixtures::{test_backend, test_device};

/// The data of the reference system: 50 257 tokens, 256 at a time.
fn stories() -> TransformerSpec {
    TransformerSpec {
        width: 384,
        heads: 6,
        layers: 6,
        block: 256,
        ..TransformerSpec::default()
    }
}

fn tiny(positions: Positions) -> TransformerSpec {
    TransformerSpec {
        width: 16,
        heads: 2,
        layers: 4,
        block: 12,
        positions,
    }
}

fn build(design: &TransformerSpec, vocab: i64) -> Box<dyn Host> {
    let mut rng = RunRng::new(3, Domain::HostInit, &[0]);
    host::build(design, vocab, &mut rng, test_backend()).unwrap()
}

fn text(rows: i64, tokens: i64, vocab: i64) -> Tensor {
    let count = Tensor::arange(rows * tokens, (Kind::Int, test_device())) * 7;
    count.remainder(vocab).to_kind(Kind::Int).view([rows, tokens])
}

#[test]
fn parameters_are_those_of_the_published_table() {
    let parameters = |spec: &TransformerSpec, vocab| spec.plan(vocab).outline().parameters;
    let mut spec = TransformerSpec::default();
    assert_eq!(build(&spec, 64).params().count(), 158_272);
    assert_eq!(parameters(&spec, 64), 158_272);
    assert_eq!(parameters(&spec, 256), 170_560);
    assert_eq!(parameters(&stories(), 50_257), 30_044_544);
    spec.positions = Positions::Rotary;
    assert_eq!(parameters(&spec, 64), 158_272 - 64 * 64);
    let (width, block) = (128, 128);
    let bytes = TransformerSpec {
        width,
        block,
        ..TransformerSpec::default()
    };
    assert_eq!(parameters(&bytes, 257), 644_352);
}

#[test]
fn slots_follow_the_segments() {
    let plan = stories().plan(64);
    let places = plan.injection_specs();
    let places: Vec<_> = places.iter().map(|place| (place.slot, place.boundary)).collect();

    let expected = [(0, 3), (1, 5), (2, 7)].map(|(column, boundary)| (SlotId::new(0, column), boundary));
    assert_eq!(places, expected);
    assert_eq!(plan.outline().ops, 8);
}

#[test]
fn activations_grow_with_the_tokens_and_not_with_their_square() {
    let outputs = tiny(Positions::Learned).plan(20).outline().op_outputs;

    assert_eq!(outputs, [192, 192, 192, 192, 192, 240]);
}

/// Weights of another size make the first loss hundreds of nats.
#[test]
fn the_first_loss_is_that_of_guessing() {
    let _no_grad = NoGrad::new();
    for vocab in [64, 257] {
        let host = build(&TransformerSpec::default(), vocab);
        let x = text(8, 64, vocab);
        let logits = host.run(0..host.num_ops(), &x, Mode::Eval).unwrap();
        let targets = (x.to_kind(Kind::Int64) * 3 + 1).remainder(vocab).view([-1]);
        let loss = f64::try_from(logits.view([-1, vocab]).cross_entropy_for_logits(&targets)).unwrap();
        assert!((loss - (vocab as f64).ln()).abs() < 0.3, "{loss} of {vocab} tokens");
    }
}

#[test]
fn a_line_runs_in_parts_as_in_one_piece() {
    let _no_grad = NoGrad::new();
    for positions in [Positions::Learned, Positions::Rotary] {
        let host = build(&tiny(positions), 20);
        let x = text(3, 12, 20);
        let ops = host.num_ops();
        let run = |ops, x: &Tensor| host.run(ops, x, Mode::Eval).unwrap();
        let evaluate = |ops, x: &Tensor| host.evaluate(ops, x).unwrap();
        let whole = run(0..ops, &x);
        assert!(evaluate(0..ops, &x).equal(&whole));
        for split in 0..=ops {
            assert!(run(split..ops, &run(0..split, &x)).equal(&whole), "{split}");
            let evaluated = evaluate(split..ops, &evaluate(0..split, &x));
            assert!(evaluated.equal(&whole), "evaluated, {split}");
        }
    }
}

#[test]
fn later_positions_do_not_affect_earlier_ones() {
    let _no_grad = NoGrad::new();
    for positions in [Positions::Learned, Positions::Rotary] {
        let host = build(&tiny(positions), 20);
        let x = text(2, 12, 20);
        let changed = x.copy();
        let _ = changed.narrow(1, 7, 5).fill_(3);
        let logits = |x: &Tensor| host.run(0..host.num_ops(), x, Mode::Eval).unwrap();

        let difference = logits(&x) - logits(&changed);

        assert!(largest(&difference.narrow(1, 0, 7)) < 1e-6);
        assert!(largest(&difference.narrow(1, 7, 5)) > 1e-5);
    }
}

#[test]
fn shorter_texts_are_read_and_longer_ones_refused() {
    let _no_grad = NoGrad::new();
    let host = build(&tiny(Positions::Rotary), 20);
    let run = |tokens| host.run(0..host.num_ops(), &text(2, tokens, 20), Mode::Eval);

    assert_eq!(run(5).unwrap().size(), [2, 5, 20]);
    assert!(matches!(run(13), Err(HostError::TextTooLong { tokens: 13, block: 12 })));
}

#[test]
fn contradictory_shapes_are_reported() {
    let fields = |change: fn(&mut TransformerSpec)| -> Vec<&str> {
        let mut spec = TransformerSpec::default();
        change(&mut spec);
        spec.problems().iter().map(|problem| problem.fields[0]).collect()
    };

    assert_eq!(fields(|_| {}), [""; 0]);
    assert_eq!(fields(|spec| spec.heads = 5), ["heads"]);
    let odd_heads = fields(|spec| (spec.width, spec.heads, spec.positions) = (12, 4, Positions::Rotary));
    assert_eq!(odd_heads, ["heads"]);
}
