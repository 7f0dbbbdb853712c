use tch::{Device, Kind, Tensor};

use crate::host::{self, Host, HostDesign, HostError};
use crate::nn::Mode;
use crate::random::{Domain, RunRng};
use crate::scenario::{Positions, TransformerSpec};
use crate::torch::{Backend, NoGrad};

/// Of the reference system: 50 257 tokens, 256 at a time.
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
        segments: 2,
        positions,
    }
}

fn build(design: &TransformerSpec, vocab: i64) -> Box<dyn Host> {
    host::build(design, vocab, &mut RunRng::new(3, Domain::HostInit, &[0]), Backend::CPU).unwrap()
}

fn text(rows: i64, tokens: i64, vocab: i64) -> Tensor {
    (Tensor::arange(rows * tokens, (Kind::Int, Device::Cpu)) * 7)
        .remainder(vocab)
        .to_kind(Kind::Int)
        .view([rows, tokens])
}

#[test]
fn parameters_are_those_of_the_published_table() {
    let parameters = |spec: &TransformerSpec, vocab| spec.plan(vocab).outline().parameters;
    let bytes = TransformerSpec {
        width: 128,
        block: 128,
        ..TransformerSpec::default()
    };

    assert_eq!(parameters(&TransformerSpec::default(), 64), 158_272);
    assert_eq!(parameters(&TransformerSpec::default(), 256), 170_560);
    assert_eq!(parameters(&bytes, 257), 644_352);
    assert_eq!(parameters(&stories(), 50_257), 30_044_544);
    assert_eq!(build(&TransformerSpec::default(), 64).params().count(), 158_272);
    let rotary = TransformerSpec {
        positions: Positions::Rotary,
        ..TransformerSpec::default()
    };
    assert_eq!(parameters(&rotary, 64), 158_272 - 64 * 64);
}

#[test]
fn slots_stand_behind_the_segments() {
    let boundaries = |spec: &TransformerSpec| -> Vec<(String, usize)> {
        let places = spec.plan(64).injection_specs();
        places
            .iter()
            .map(|place| (place.slot.to_string(), place.boundary))
            .collect()
    };

    let expected = [("r0c0".to_owned(), 3), ("r0c1".to_owned(), 5), ("r0c2".to_owned(), 7)];
    assert_eq!(boundaries(&stories()), expected);
    assert_eq!(stories().plan(64).outline().ops, 8);
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
        let whole = host.run(0..ops, &x, Mode::Eval).unwrap();
        assert!(host.evaluate(0..ops, &x).unwrap().equal(&whole));
        for split in 0..=ops {
            let front = host.run(0..split, &x, Mode::Eval).unwrap();
            assert!(
                host.run(split..ops, &front, Mode::Eval).unwrap().equal(&whole),
                "{split}"
            );
            let front = host.evaluate(0..split, &x).unwrap();
            assert!(
                host.evaluate(split..ops, &front).unwrap().equal(&whole),
                "evaluated, {split}"
            );
        }
        assert!(matches!(
            host.run(0..ops + 1, &x, Mode::Eval),
            Err(HostError::BadRange { .. })
        ));
    }
}

#[test]
fn what_stands_behind_a_position_does_not_touch_it() {
    let _no_grad = NoGrad::new();
    for positions in [Positions::Learned, Positions::Rotary] {
        let host = build(&tiny(positions), 20);
        let x = text(2, 12, 20);
        let changed = x.copy();
        let _ = changed.narrow(1, 7, 5).fill_(3);
        let logits = |x: &Tensor| host.run(0..host.num_ops(), x, Mode::Eval).unwrap();

        let (before, after) = (logits(&x), logits(&changed));

        assert!(
            before
                .narrow(1, 0, 7)
                .allclose(&after.narrow(1, 0, 7), 1e-6, 1e-6, false)
        );
        assert!(
            !before
                .narrow(1, 7, 5)
                .allclose(&after.narrow(1, 7, 5), 1e-6, 1e-6, false)
        );
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
fn contradictory_shapes_are_told() {
    let fields = |spec: TransformerSpec| -> Vec<&str> {
        let problems = spec.problems();
        problems
            .iter()
            .filter_map(|problem| problem.fields.first().copied())
            .collect()
    };
    let spec = TransformerSpec::default();

    assert_eq!(fields(spec.clone()), [""; 0]);
    assert_eq!(
        fields(TransformerSpec {
            heads: 5,
            ..spec.clone()
        }),
        ["heads"]
    );
    assert_eq!(
        fields(TransformerSpec {
            segments: 2,
            ..spec.clone()
        }),
        ["segments"]
    );
    let odd = TransformerSpec {
        width: 12,
        heads: 4,
        positions: Positions::Rotary,
        ..spec
    };
    assert_eq!(fields(odd), ["heads"]);
}
