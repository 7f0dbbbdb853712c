use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tch::{Device, Kind};

use super::*;
use crate::kernels::{ForcedKernels, kernel_levels};
use crate::nn::NORM_EPS;
use crate::torch::{Autocast, channels_last, is_channels_last};

mod blocks;
mod folding;
mod operators;

const WIDTHS: [i64; 14] = [1, 2, 3, 4, 5, 7, 8, 12, 16, 20, 24, 32, 48, 64];
const MOMENTUM: f64 = 0.1;

/// Values of mixed sign and size, the same for the same `draw`.
fn values(shape: &[i64], draw: u64) -> Tensor {
    let count: i64 = shape.iter().product();
    let mut state = draw.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678_9ABC_DEF1;
    let drawn: Vec<f32> = (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
        })
        .collect();
    let tensor = Tensor::from_slice(&drawn).view(shape);
    if shape.len() == 4 {
        channels_last(&tensor).expect("four dimensions")
    } else {
        tensor
    }
}

type Operator<'a> = &'a dyn Fn(&[Tensor]) -> Tensor;

/// Result and gradients of an operator over inputs, weighted by `slope`; inputs in `kind`.
fn result_and_gradients(operator: Operator, inputs: &[Tensor], slope: &Tensor, kind: Kind) -> Vec<Tensor> {
    let leaf = |input: &Tensor| input.to_kind(kind).copy().set_requires_grad(true);
    let leaves: Vec<Tensor> = inputs.iter().map(leaf).collect();
    let out = operator(&leaves);
    (&out * slope.to_kind(kind)).sum(kind).backward();
    let gradients = leaves.iter().map(Tensor::grad);
    std::iter::once(out.detach()).chain(gradients).collect()
}

fn largest(tensor: &Tensor) -> f64 {
    f64::try_from(tensor.to_kind(Kind::Double).abs().max()).expect("a number")
}

/// Compares the engine's operator with libtorch's in f32 and in f64: result and every gradient lie at most twice as
/// far from the f64 ones as libtorch's own f32, or within the rounding of values of their size. They are the same bits at
/// every level.
fn assert_kernel(own: Operator, libtorch: Operator, inputs: &[Tensor], out_shape: &[i64]) -> Result<(), TestCaseError> {
    let slope = values(out_shape, 77);
    let exact = result_and_gradients(libtorch, inputs, &slope, Kind::Double);
    let theirs = result_and_gradients(libtorch, inputs, &slope, Kind::Float);
    let ours = result_and_gradients(own, inputs, &slope, Kind::Float);
    for (index, ((ours, theirs), exact)) in ours.iter().zip(&theirs).zip(&exact).enumerate() {
        prop_assert_eq!(ours.size(), exact.size());
        let [ours, theirs] = [ours, theirs].map(|tensor| largest(&(tensor.to_kind(Kind::Double) - exact)));
        let rounding = 64.0 * f64::from(f32::EPSILON) * largest(exact).max(1.0);
        let is_exact = ours <= 2.0 * theirs + rounding;
        prop_assert!(is_exact, "tensor {index}: {ours:e} away, libtorch {theirs:e}");
    }
    assert_same_bits_at_every_level(own, inputs, out_shape)
}

/// Checks that bits are equal at every level that this CPU has; levels that it does not have are printed.
fn assert_same_bits_at_every_level(own: Operator, inputs: &[Tensor], out_shape: &[i64]) -> Result<(), TestCaseError> {
    let slope = values(out_shape, 78);
    let mut first: Option<Vec<Tensor>> = None;
    for level in kernel_levels() {
        let Some(_forced) = ForcedKernels::new(level) else {
            println!("skipped: this CPU has no {}", level.name);
            continue;
        };
        let results = result_and_gradients(own, inputs, &slope, Kind::Float);
        let expected = first.get_or_insert_with(|| results.iter().map(Tensor::shallow_clone).collect());
        let are_equal = results
            .iter()
            .zip(&*expected)
            .all(|(result, expected)| result.equal(expected));
        prop_assert!(are_equal, "{} differs", level.name);
    }
    Ok(())
}

/// The seed draws; sizes small enough for many cases.
#[derive(Clone, Copy, Debug)]
struct Images {
    batch: i64,
    height: i64,
    width: i64,
    inputs: i64,
    outputs: i64,
    kernel: i64,
    /// Stride of a block.
    stride: i64,
    draw: u64,
}

/// One of eight is large enough for several chunks, or for tiles.
fn images() -> impl Strategy<Value = Images> {
    let width = || prop::sample::select(WIDTHS.as_slice());
    let small = (1..6_i64, 1..9_i64, 1..9_i64, width(), width(), 0..2_i64, any::<u64>()).prop_map(
        |(batch, height, width, inputs, outputs, half, draw)| Images {
            width,
            ..Images::square([batch, height, inputs, outputs, 2 * half + 1], draw)
        },
    );
    let wide = || prop::sample::select(vec![8, 16, 32]);
    let large = (wide(), wide(), wide(), any::<u64>())
        .prop_map(|(side, inputs, outputs, draw)| Images::square([3, side, inputs, outputs, 3], draw));
    prop_oneof![7 => small, 1 => large]
}

impl Images {
    fn square([batch, side, inputs, outputs, kernel]: [i64; 5], draw: u64) -> Self {
        Self {
            batch,
            height: side,
            width: side,
            inputs,
            outputs,
            kernel,
            stride: 1,
            draw,
        }
    }

    /// Another tensor for each `which`.
    fn tensor(&self, shape: &[i64], which: u64) -> Tensor {
        values(shape, self.draw.wrapping_add(which))
    }

    fn x(&self) -> Tensor {
        self.tensor(&[self.batch, self.inputs, self.height, self.width], 0)
    }

    fn weight(&self) -> Tensor {
        let fan_in = (self.inputs * self.kernel * self.kernel) as f64;
        let drawn = self.tensor(&[self.outputs, self.inputs, self.kernel, self.kernel], 1);
        // None is close to zero: a norm would blow up what such a weight lets through, and its rounding.
        (&drawn + drawn.sign() * 0.25) / fan_in.sqrt()
    }

    fn per_output(&self, which: u64) -> Tensor {
        self.tensor(&[self.outputs], which)
    }

    fn out_shape(&self, pooled: bool) -> [i64; 4] {
        let side = |side: i64| (side + self.stride - 1) / self.stride / (1 + i64::from(pooled));
        [self.batch, self.outputs, side(self.height), side(self.width)]
    }
}

/// A norm with statistics as at initialisation.
fn new_norm(scale: &Tensor, shift: &Tensor) -> BatchNorm {
    BatchNorm {
        scale: scale.shallow_clone(),
        shift: shift.shallow_clone(),
        running_mean: scale.zeros_like(),
        running_var: scale.ones_like(),
    }
}

fn block_end(residual: Option<&Tensor>, pooled: bool) -> BlockEnd<'_> {
    match residual {
        Some(residual) => BlockEnd::AddAndRelu(residual),
        None if pooled => BlockEnd::ReluAndPool,
        None => BlockEnd::Relu,
    }
}

/// A block in front of its ReLU, in the kind of `x`; by the statistics of the batch or by the running ones.
fn before_relu_by_libtorch(
    [x, weight]: [&Tensor; 2],
    stride: i64,
    norm: &BatchNorm,
    by_batch: bool,
    residual: Option<&Tensor>,
) -> Tensor {
    let convolved = x.conv2d(weight, None::<&Tensor>, stride, weight.size()[2] / 2, 1, 1);
    let [scale, shift, mean, var] =
        [&norm.scale, &norm.shift, &norm.running_mean, &norm.running_var].map(|of| Some(of.to_kind(x.kind())));
    let normalised = convolved.batch_norm(scale, shift, mean, var, by_batch, MOMENTUM, NORM_EPS, false);
    match residual {
        Some(residual) => normalised + residual,
        None => normalised,
    }
}

fn relu_and_pool_by_libtorch(y: &Tensor, pooled: bool) -> Tensor {
    match pooled {
        true => y.relu().max_pool2d(2, 2, 0, 1, false),
        false => y.relu(),
    }
}

/// Always the same draws: among many, some meet a bend of a ReLU within rounding at any margin.
fn drawn() -> ProptestConfig {
    ProptestConfig {
        cases: 48,
        max_global_rejects: 4096,
        rng_seed: RngSeed::Fixed(7),
        ..ProptestConfig::default()
    }
}

#[test]
fn results_and_gradients_are_channels_last_and_in_the_weights_own_layout() {
    let x = values(&[2, 4, 4, 4], 0).set_requires_grad(true);
    let weight = values(&[8, 4, 3, 3], 3).set_requires_grad(true);

    let y = conv_layer(&x, &weight, None, Silu::default(), None).expect("shapes fit");
    y.sum(Kind::Float).backward();

    assert!(is_channels_last(&y) && is_channels_last(&x.grad()));
    assert_eq!(weight.grad().stride(), weight.stride());
}

#[test]
fn images_in_another_layout_give_the_same_result() {
    let (x, weight) = (values(&[2, 4, 5, 3], 0), values(&[8, 4, 3, 3], 3));

    let of = |x: &Tensor| conv_layer(x, &weight, None, Silu::default(), None).expect("shapes fit");

    assert!(of(&x.contiguous()).equal(&of(&x)));
}

#[test]
fn incubation_shows_the_host_and_passes_its_gradient_to_both() {
    let h = values(&[2, 4, 3, 3], 0).set_requires_grad(true);
    let delta = (values(&[2, 4, 3, 3], 1) / 0.0).set_requires_grad(true);
    let slope = values(&[2, 4, 3, 3], 2);

    let y = incubate(&h, &delta).expect("shapes fit");
    (&y * &slope).sum(Kind::Float).backward();

    assert!(y.equal(&h) && h.grad().equal(&slope) && delta.grad().equal(&slope));
}

#[test]
fn what_does_not_fit_is_refused() {
    let x = values(&[2, 4, 4, 4], 0);
    let refused = |weight: Tensor| conv_layer(&x, &weight, None, Silu::default(), None).is_err();

    assert!(refused(values(&[8, 3, 3, 3], 0)));
    assert!(refused(values(&[8, 4, 2, 2], 0)));
    assert!(refused(values(&[8, 4, 3, 3], 0).to_kind(Kind::Double)));
    assert!(!refused(values(&[8, 4, 3, 3], 0)));
}

/// Results of every operator on images, with the weight where the operator has one.
fn of_every_operator(x: &Tensor, weight: &Tensor) -> [(&'static str, Result<Tensor, TchError>); 7] {
    let channels = x.size()[1];
    let of_channels = |rows: i64| values(&[rows, channels], 1);
    let eight = values(&[8], 2);
    let [scale, shift] = [3, 4].map(|draw| values(&[channels], draw));
    let group_norm = GroupNormOf {
        scale: &scale,
        shift: &shift,
        groups: 1,
        epsilon: NORM_EPS,
    };
    let block = conv_block(
        x,
        weight,
        1,
        &new_norm(&eight, &eight),
        MOMENTUM,
        NORM_EPS,
        BlockEnd::Relu,
    );
    let folded = FoldedBlock::new(weight).and_then(|block| block.forward(x, BlockEnd::Relu));
    let gated = squeeze_excite(x, &of_channels(2), &values(&[channels, 2], 2), &shift);
    [
        ("block", block),
        ("folded block", folded),
        ("layer", conv_layer(x, weight, None, Silu::default(), None)),
        ("norm", norm_residual(x, group_norm, &values(&[1], 0))),
        ("gate", gated),
        ("head", head(x, &of_channels(8), &eight)),
        ("pool", max_pool(x)),
    ]
}

#[test]
fn images_without_positions_or_channels_are_refused_where_kernels_would_divide_by_them() {
    let images = |sizes: [i64; 4]| Tensor::zeros(sizes, (Kind::Float, Device::Cpu));
    for sizes in [[2, 4, 0, 0], [2, 4, 0, 3], [2, 4, 3, 0], [2, 0, 3, 3]] {
        for (name, result) in of_every_operator(&images(sizes), &values(&[8, sizes[1], 3, 3], 1)) {
            let error = result.expect_err(name).to_string();
            let is_named = error.contains("images with channels and positions");
            assert!(is_named, "{name} of {sizes:?}: {error}");
        }
    }
    for (name, result) in of_every_operator(&images([0, 4, 4, 4]), &values(&[8, 4, 3, 3], 1)) {
        assert!(result.is_ok(), "{name} of an empty batch");
    }
    let without_outputs = images([0, 4, 3, 3]);
    assert!(conv_layer(&values(&[2, 4, 4, 4], 0), &without_outputs, None, Silu::default(), None).is_err());
}

#[test]
fn a_layer_that_enters_no_features_has_no_use_for_a_factor() {
    let x = values(&[2, 4, 4, 4], 0);
    let weight_grad = |alpha: f64| {
        let weight = values(&[8, 4, 3, 3], 3).set_requires_grad(true);
        let (x, no) = (x.as_ptr(), std::ptr::null());
        // SAFETY: both tensors outlive the call; null pointers say that there is no norm, and nothing to enter.
        let y = operator(|out| unsafe {
            ffi::simic_layer(x, weight.as_ptr(), no, no, 1, 0.0, false, false, no, alpha, false, out)
        });
        y.expect("shapes fit").sum(Kind::Float).backward();
        weight.grad()
    };

    assert!(weight_grad(0.5).equal(&weight_grad(1.0)));
}

#[test]
fn other_types_and_autocast_are_left_to_libtorch() {
    let x = values(&[2, 4, 4, 4], 0);
    assert!(is_served(&x));
    assert!(!is_served(&Tensor::new()));
    assert!(!is_served(&x.to_kind(Kind::BFloat16)));
    let _autocast = Autocast::new(Device::Cpu, Kind::BFloat16).expect("the mode exists");
    assert!(!is_served(&x));
}

#[test]
fn a_second_derivative_is_refused() {
    let x = values(&[2, 4, 4, 4], 0);
    let weight = values(&[8, 4, 3, 3], 3).set_requires_grad(true);
    let y = conv_layer(&x, &weight, None, Silu::default(), None).expect("shapes fit");

    let error = Tensor::f_run_backward(&[y.sum(Kind::Float)], &[&weight], true, true).expect_err("there is none");

    assert!(error.to_string().contains("second derivative"), "{error}");
}
