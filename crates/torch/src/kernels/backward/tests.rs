use tch::{Device, Kind, Tensor};

use super::backward;
use crate::kernels::{BatchNorm, BlockEnd, GroupNormOf, Onto, Silu, conv_block, conv_layer, head, incubate};
use crate::nn::NORM_EPS;
use crate::scenario::Kernels;
use crate::torch::Backend;

/// Values of mixed sign, the same for the same `seed`.
fn leaf(shape: &[i64], seed: i64) -> Tensor {
    let count: i64 = shape.iter().product();
    let values = Tensor::arange(count, (Kind::Float, Device::Cpu)) * 0.37 + seed;
    let leaf = values.sin().view(shape);
    let leaf = match shape {
        [_, _, _, _] => leaf.permute([0, 2, 3, 1]).contiguous().permute([0, 3, 1, 2]),
        _ => leaf,
    };
    leaf.set_requires_grad(true)
}

/// A host of one block with a seed that incubates and one that is blended in, and operators of libtorch: features that
/// several read, a value that is broadcast, weights that are used twice.
fn objective(params: &[Tensor]) -> Tensor {
    let [x, conv, scale, shift, of_seed, gain, bias, weight, offset, amplitude] = params else {
        panic!("ten tensors");
    };
    let norm = BatchNorm {
        scale: scale.abs() + 0.5,
        shift: shift.abs(),
        running_mean: Tensor::zeros([4], (Kind::Float, Device::Cpu)),
        running_var: Tensor::ones([4], (Kind::Float, Device::Cpu)),
    };
    let group_norm = GroupNormOf {
        groups: 2,
        scale: gain,
        shift: bias,
        epsilon: NORM_EPS,
    };
    let silu = Silu {
        before_norm: true,
        after_norm: false,
    };
    let block = |x: &Tensor, end: BlockEnd| conv_block(x, conv, 1, &norm, 0.1, NORM_EPS, end).expect("fits");
    let layer_onto = |x: &Tensor, onto| conv_layer(x, of_seed, Some(group_norm), silu, onto).expect("fits");
    let layer = |x: &Tensor| layer_onto(x, None);

    let features = block(&(x * 0.5), BlockEnd::ReluAndPool);
    // Its own input, that of the block in front, then another path's, whose gradient arrives from elsewhere too.
    let features = block(&features, BlockEnd::AddAndRelu(&features));
    let features = block(&block(&features, BlockEnd::Relu), BlockEnd::AddAndRelu(&features));
    let features = block(&layer(&features), BlockEnd::AddAndRelu(&features)) * features.sigmoid();
    let features = incubate(&features, &layer(&features)).expect("fits");
    let features = &features + layer(&features) * amplitude;
    let onto = |features| Some(Onto::StraightThrough { features });
    let features = layer_onto(&features.detach(), onto(&features));
    let onto = |features| Some(Onto::Added { features, alpha: 0.7 });
    // Their own input, then features that are read elsewhere too, then features of another path.
    let features = layer_onto(&features, onto(&features));
    let features = layer_onto(&features, onto(&features)) * features.sigmoid();
    let features = layer_onto(&layer(&features), onto(&features));
    let features = &features * features.sigmoid();
    let logits = head(&features, weight, offset).expect("fits");
    let penalty = (weight * weight).sum(Kind::Float) * 1e-3;
    logits.log_softmax(1, Kind::Float).square().mean(Kind::Float) + penalty
}

fn params() -> Vec<Tensor> {
    let (images, weight): (&[i64], &[i64]) = (&[3, 4, 6, 6], &[4, 4, 3, 3]);
    let shapes: [&[i64]; 10] = [images, weight, &[4], &[4], weight, &[4], &[4], &[5, 4], &[5], &[]];
    shapes.iter().zip(1..).map(|(shape, seed)| leaf(shape, seed)).collect()
}

fn largest(tensor: &Tensor) -> f64 {
    f64::try_from(tensor.abs().max()).expect("a number")
}

#[test]
fn gradients_are_those_of_libtorchs_engine_and_laid_out_as_their_parameters() {
    let (ours, theirs) = (params(), params());

    // Runs twice, so that the second pass adds to the gradients of the first.
    for _ in 0..2 {
        backward(&objective(&ours), Backend::CPU).expect("a graph");
        objective(&theirs).f_backward().expect("a graph");
    }

    for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        let size = largest(&theirs.grad());
        let difference = largest(&(ours.grad() - theirs.grad()));
        assert!(size > 1e-3, "tensor {index} has no gradient to speak of");
        assert!(difference <= 1e-6 * size, "tensor {index}: {difference} of {size}");
        assert_eq!(ours.grad().stride(), ours.stride(), "tensor {index}");
    }
}

/// Libtorch's engine walks the graph as on CUDA, where the engine has no kernels.
#[test]
fn a_graph_of_libtorchs_operators_alone_is_walked_as_by_libtorchs_engine() {
    let shapes: [&[i64]; 6] = [&[3, 4, 6, 6], &[4, 4, 3, 3], &[4], &[4], &[5, 4], &[7, 5]];
    for kind in [Kind::Float, Kind::Double] {
        let params = || -> Vec<Tensor> {
            let leaves = shapes.iter().zip(1..).map(|(shape, seed)| leaf(shape, seed).detach());
            leaves.map(|leaf| leaf.to_kind(kind).set_requires_grad(true)).collect()
        };
        let objective = |params: &[Tensor]| {
            let [x, conv, gain, bias, weight, table] = params else {
                panic!("six tensors")
            };
            let features = x.conv2d(conv, None::<&Tensor>, 1, 1, 1, 1);
            let features = features
                .contiguous()
                .group_norm(2, Some(gain), Some(bias), NORM_EPS, false)
                .silu()
                + x;
            let pooled = features
                .max_pool2d(2, 2, 0, 1, false)
                .mean_dim([2_i64, 3].as_slice(), false, kind);
            let read = table.index_select(0, &Tensor::from_slice(&[6_i64, 0, 6]));
            let logits = pooled.matmul(&weight.transpose(0, 1)) * read.sigmoid();
            logits.log_softmax(1, kind).square().mean(kind) + (weight * weight).sum(kind)
        };
        let (ours, theirs) = (params(), params());

        backward(&objective(&ours), Backend::CPU).expect("a graph");
        objective(&theirs).f_backward().expect("a graph");

        for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let size = largest(&theirs.grad());
            assert!(size > 1e-4, "tensor {index} has no gradient to speak of");
            assert!(largest(&(ours.grad() - theirs.grad())) <= 1e-6 * size, "tensor {index}");
        }
    }
}

/// The gradient of a sum reaches a view and another operand, both of which see one tensor.
#[test]
fn a_gradient_that_several_see_is_not_added_to_in_place() {
    let through_a_view = |a: &Tensor, b: &Tensor| (a.view(-1) + b).square().sum(Kind::Float);
    let alone = |a: &Tensor| (a * a).sum(Kind::Float) * 5.0;
    type Objective<'a> = &'a dyn Fn(&Tensor, &Tensor) -> Tensor;
    let view_first = |a: &Tensor, b: &Tensor| through_a_view(a, &(b * 3.0)) + alone(a);
    let view_last = |a: &Tensor, b: &Tensor| alone(a) + through_a_view(a, &(b * 3.0));
    let objectives: [Objective; 4] = [
        &|a, b| through_a_view(&(a * 2.0), &(b * 3.0)) + alone(a),
        &view_last,
        &|a, b| view_first(&(a * 2.0), b),
        &|a, b| view_last(&(a * 2.0), b),
    ];
    for (index, objective) in objectives.iter().enumerate() {
        let [ours, theirs] = [(); 2].map(|()| [leaf(&[2, 3], 1), leaf(&[6], 2)]);

        backward(&objective(&ours[0], &ours[1]), Backend::CPU).expect("a graph");
        objective(&theirs[0], &theirs[1]).f_backward().expect("a graph");

        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!(largest(&(ours.grad() - theirs.grad())) < 1e-5, "objective {index}");
        }
    }
}

#[test]
fn a_graph_is_walked_once() {
    let params = params();
    let objective = objective(&params);

    assert!(backward(&objective, Backend::CPU).is_ok());
    assert!(backward(&objective, Backend::CPU).is_err());
}

#[test]
fn a_number_that_was_computed_from_no_parameter_is_refused() {
    let number = Tensor::from(1.0_f32);

    for kernels in [Kernels::Own, Kernels::Libtorch] {
        assert!(backward(&number, Backend::new(Device::Cpu, kernels)).is_err());
    }
}

#[test]
fn a_tensor_changed_since_the_forward_pass_is_refused() {
    let params = params();
    let objective = objective(&params);
    {
        let _no_grad = crate::torch::NoGrad::new();
        let _ = params[1].shallow_clone().fill_(0.0);
    }

    let error = backward(&objective, Backend::CPU).expect_err("the block's weights have changed");

    assert!(error.to_string().contains("changed in place"), "{error}");
}
