use super::*;
use crate::nn::fixtures::largest;
use crate::random::{Domain, RunRng};
use crate::torch::NoGrad;
use crate::torch::fixtures::{on_device, test_backend, test_device};

const INIT: AttentionInit = AttentionInit {
    weight: Init::FanIn(4),
    bias: Init::FanIn(4),
    out: Init::FanIn(4),
};

fn attention(reach: Reach, rotary: Option<Rotary>) -> CausalAttention {
    let mut params = ParamSet::new(test_backend());
    let attention = CausalAttention::new(&mut params, "attention", (8, 2), INIT, (reach, rotary)).unwrap();
    params.initialise(&mut RunRng::new(5, Domain::SeedInit, &[])).unwrap();
    assert_eq!(params.count(), CausalAttention::param_count(8));
    attention
}

fn text(tokens: i64) -> Tensor {
    let angles = Tensor::arange(2 * tokens * 8, (Kind::Float, test_device())) * 0.7;
    angles.sin().view([2, tokens, 8])
}

/// Computes the attention by its definition, one query at a time.
fn by_definition(attention: &CausalAttention, x: &Tensor, width: i64) -> Tensor {
    let (_, tokens, _) = x.size3().unwrap();
    let parts = attention.qkv.forward(x).unwrap().chunk(3, -1);
    let heads = [0, 1].map(|head| {
        let [q, k, v] = [0, 1, 2].map(|part| parts[part].narrow(2, 4 * head, 4));
        let row = |t: i64| {
            let first = (t + 1 - width).max(0);
            let seen = |part: &Tensor| part.narrow(1, first, t + 1 - first);
            let scores = q.narrow(1, t, 1).matmul(&seen(&k).transpose(1, 2)) / 2.0;
            scores.softmax(-1, Kind::Float).matmul(&seen(&v))
        };
        Tensor::cat(&(0..tokens).map(row).collect::<Vec<_>>(), 1)
    });
    attention.out.forward(&Tensor::cat(&heads, 2)).unwrap()
}

#[test]
fn every_position_sees_those_up_to_its_own_or_a_window_of_them_in_texts_of_any_length() {
    let _no_grad = NoGrad::new();
    let windows = [7, 3, 2, 1].map(|width| (Reach::Window(width), width));
    for (reach, width) in [(Reach::All, 7)].into_iter().chain(windows) {
        let attention = attention(reach, None);
        for tokens in [7, 5, 3, 6, 6] {
            let x = text(tokens);
            let difference = attention.forward(&x).unwrap() - by_definition(&attention, &x, width);
            assert!(largest(&difference) < 1e-5, "{reach:?} of {tokens} tokens");
        }
    }
}

#[test]
fn products_of_turned_vectors_depend_on_their_distance_alone() {
    let rotary = Rotary::new(16, 4, test_device()).unwrap();
    let vectors = [[0.3_f32, -1.0, 0.7, 0.2], [1.1, 0.4, -0.6, 0.9]];
    let constant = vectors.map(|values| on_device(Tensor::from_slice(&values)).expand([1, 1, 16, 4], true));

    let [q, k] = constant.map(|vectors| rotary.turn(&vectors).unwrap().reshape([16, 4]));

    let products = q.matmul(&k.transpose(0, 1));
    let of = |(row, column): (i64, i64)| f64::try_from(products.get(row).get(column)).unwrap();
    for (a, b) in [((3, 1), (9, 7)), ((5, 5), (0, 0)), ((12, 2), (15, 5))] {
        assert!((of(a) - of(b)).abs() < 1e-5, "{a:?} and {b:?}");
    }
    assert!((of((3, 1)) - of((1, 3))).abs() > 1e-2);
}
