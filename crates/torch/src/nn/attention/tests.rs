use super::*;
use crate::nn::fixtures::largest;
use crate::random::{Domain, RunRng};
use crate::torch::{Backend, NoGrad};

const INIT: AttentionInit = AttentionInit {
    weight: Init::FanIn(4),
    bias: Init::FanIn(4),
    out: Init::FanIn(4),
};

fn attention(reach: Reach, rotary: Option<Rotary>) -> CausalAttention {
    let mut params = ParamSet::new(Backend::CPU);
    let attention = CausalAttention::new(&mut params, "attention", (8, 2), INIT, (reach, rotary)).unwrap();
    params.initialise(&mut RunRng::new(5, Domain::SeedInit, &[])).unwrap();
    assert_eq!(params.count(), CausalAttention::param_count(8));
    attention
}

fn text(tokens: i64) -> Tensor {
    let count = 2 * tokens * 8;
    (Tensor::arange(count, (Kind::Float, Device::Cpu)) * 0.7)
        .sin()
        .view([2, tokens, 8])
}

/// By its definition, one query at a time.
fn by_definition(attention: &CausalAttention, x: &Tensor, width: i64) -> Tensor {
    let (_, tokens, _) = x.size3().unwrap();
    let parts = attention.qkv.forward(x).unwrap().chunk(3, -1);
    let heads: Vec<Tensor> = (0..2)
        .map(|head| {
            let [q, k, v] = [0, 1, 2].map(|part| parts[part].narrow(2, 4 * head, 4));
            let rows: Vec<Tensor> = (0..tokens)
                .map(|t| {
                    let first = (t + 1 - width).max(0);
                    let seen = |part: &Tensor| part.narrow(1, first, t + 1 - first);
                    let scores = q.narrow(1, t, 1).matmul(&seen(&k).transpose(1, 2)) / 2.0;
                    scores.softmax(-1, Kind::Float).matmul(&seen(&v))
                })
                .collect();
            Tensor::cat(&rows, 1)
        })
        .collect();
    attention.out.forward(&Tensor::cat(&heads, 2)).unwrap()
}

#[test]
fn every_position_sees_those_up_to_its_own_or_a_window_of_them() {
    let _no_grad = NoGrad::new();
    let x = text(7);
    for (reach, width) in [
        (Reach::All, 7),
        (Reach::Window(7), 7),
        (Reach::Window(3), 3),
        (Reach::Window(1), 1),
    ] {
        let attention = attention(reach, None);
        let difference = attention.forward(&x).unwrap() - by_definition(&attention, &x, width);
        assert!(largest(&difference) < 1e-5, "{reach:?}");
    }
}

#[test]
fn a_text_of_another_length_gets_its_own_mask() {
    let _no_grad = NoGrad::new();
    let attention = attention(Reach::Window(2), None);
    for tokens in [5, 3, 6, 6] {
        let x = text(tokens);
        let difference = attention.forward(&x).unwrap() - by_definition(&attention, &x, 2);
        assert!(largest(&difference) < 1e-5, "{tokens} tokens");
    }
}

#[test]
fn products_of_turned_vectors_depend_on_their_distance_alone() {
    let rotary = Rotary::new(16, 4, Device::Cpu).unwrap();
    let constant = |values: [f32; 4]| {
        Tensor::from_slice(&values)
            .view([1, 1, 1, 4])
            .expand([1, 1, 16, 4], true)
    };
    let (q, k) = (constant([0.3, -1.0, 0.7, 0.2]), constant([1.1, 0.4, -0.6, 0.9]));

    let (q, k) = (rotary.turn(&q).unwrap(), rotary.turn(&k).unwrap());

    let products = q
        .squeeze_dim(0)
        .squeeze_dim(0)
        .matmul(&k.squeeze_dim(0).squeeze_dim(0).transpose(0, 1));
    let of = |(row, column): (i64, i64)| f64::try_from(products.get(row).get(column)).unwrap();
    for (a, b) in [((3, 1), (9, 7)), ((5, 5), (0, 0)), ((12, 2), (15, 5))] {
        assert!((of(a) - of(b)).abs() < 1e-5, "{a:?} and {b:?}");
    }
    assert!((of((3, 1)) - of((1, 3))).abs() > 1e-2);
}
