use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tch::{Device, Kind};

use super::*;
use crate::torch::{Autocast, ForcedKernels, NORM_EPS, channels_last, is_channels_last, kernel_levels};

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

/// Result and gradients of an operator over inputs, weighted by `slope`; inputs in `kind`.
fn result_and_gradients(
    operator: &dyn Fn(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
    slope: &Tensor,
    kind: Kind,
) -> Vec<Tensor> {
    let leaves: Vec<Tensor> = inputs
        .iter()
        .map(|input| input.to_kind(kind).copy().set_requires_grad(true))
        .collect();
    let out = operator(&leaves);
    (&out * slope.to_kind(kind)).sum(kind).backward();
    let gradients = leaves.iter().map(Tensor::grad);
    std::iter::once(out.detach()).chain(gradients).collect()
}

fn largest(tensor: &Tensor) -> f64 {
    f64::try_from(tensor.to_kind(Kind::Double).abs().max()).expect("a number")
}

/// The engine's operator against the same in libtorch, in f32 and in f64: result and every gradient lie at most twice as
/// far from the f64 ones as libtorch's own f32, or within the rounding of values of their size.
fn assert_as_exact_as_libtorch(
    own: &dyn Fn(&[Tensor]) -> Tensor,
    libtorch: &dyn Fn(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
    out_shape: &[i64],
) -> Result<(), TestCaseError> {
    let slope = values(out_shape, 77);
    let exact = result_and_gradients(libtorch, inputs, &slope, Kind::Double);
    let theirs = result_and_gradients(libtorch, inputs, &slope, Kind::Float);
    let ours = result_and_gradients(own, inputs, &slope, Kind::Float);
    for (index, ((ours, theirs), exact)) in ours.iter().zip(&theirs).zip(&exact).enumerate() {
        prop_assert_eq!(ours.size(), exact.size());
        let error = |tensor: &Tensor| largest(&(tensor.to_kind(Kind::Double) - exact));
        let rounding = 64.0 * f64::from(f32::EPSILON) * largest(exact).max(1.0);
        prop_assert!(
            error(ours) <= 2.0 * error(theirs) + rounding,
            "tensor {}: {:e} away, libtorch {:e}",
            index,
            error(ours),
            error(theirs)
        );
    }
    Ok(())
}

/// The same bits at every level that this CPU has; what it lacks is told.
fn assert_same_bits_at_every_level(
    own: &dyn Fn(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
    out_shape: &[i64],
) -> Result<(), TestCaseError> {
    let slope = values(out_shape, 78);
    let mut first: Option<Vec<Tensor>> = None;
    for level in kernel_levels() {
        let Some(_forced) = ForcedKernels::new(level) else {
            println!("skipped: this CPU has no {}", level.name);
            continue;
        };
        let results = result_and_gradients(own, inputs, &slope, Kind::Float);
        let expected = first.get_or_insert_with(|| results.iter().map(Tensor::shallow_clone).collect());
        for (result, expected) in results.iter().zip(expected.iter()) {
            prop_assert!(result.equal(expected), "{} differs", level.name);
        }
    }
    Ok(())
}

fn assert_kernel(
    own: &dyn Fn(&[Tensor]) -> Tensor,
    libtorch: &dyn Fn(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
    out_shape: &[i64],
) -> Result<(), TestCaseError> {
    assert_as_exact_as_libtorch(own, libtorch, inputs, out_shape)?;
    assert_same_bits_at_every_level(own, inputs, out_shape)
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
    /// Of a block.
    stride: i64,
    draw: u64,
}

fn images() -> impl Strategy<Value = Images> {
    let width = || prop::sample::select(WIDTHS.as_slice());
    (1..6_i64, 1..9_i64, 1..9_i64, width(), width(), 0..2_i64, any::<u64>()).prop_map(
        |(batch, height, width, inputs, outputs, half, draw)| Images {
            batch,
            height,
            width,
            inputs,
            outputs,
            kernel: 2 * half + 1,
            stride: 1,
            draw,
        },
    )
}

/// For blocks that leave out positions.
fn strided_images() -> impl Strategy<Value = Images> {
    (images(), 1..5_i64, 1..5_i64).prop_map(|(images, inputs, outputs)| Images {
        inputs: 16 * inputs,
        outputs: 16 * outputs,
        stride: 2,
        ..images
    })
}

impl Images {
    fn x(&self) -> Tensor {
        values(&[self.batch, self.inputs, self.height, self.width], self.draw)
    }

    fn weight(&self) -> Tensor {
        let fan_in = (self.inputs * self.kernel * self.kernel) as f64;
        let drawn = values(
            &[self.outputs, self.inputs, self.kernel, self.kernel],
            self.draw.wrapping_add(1),
        );
        // None is close to zero: a norm would blow up what such a weight lets through, and its rounding.
        (&drawn + drawn.sign() * 0.25) / fan_in.sqrt()
    }

    fn per_output(&self, which: u64) -> Tensor {
        values(&[self.outputs], self.draw.wrapping_add(which))
    }

    fn out_shape(&self, pooled: bool) -> [i64; 4] {
        let side = |side: i64| match pooled {
            true => (side + self.stride - 1) / self.stride / 2,
            false => (side + self.stride - 1) / self.stride,
        };
        [self.batch, self.outputs, side(self.height), side(self.width)]
    }
}

fn statistics(channels: i64, kind: Kind) -> [Tensor; 2] {
    let options = (kind, Device::Cpu);
    [Tensor::zeros([channels], options), Tensor::ones([channels], options)]
}

/// With statistics as at birth.
fn new_norm(scale: &Tensor, shift: &Tensor) -> BatchNorm {
    let [running_mean, running_var] = statistics(scale.size1().expect("a vector"), Kind::Float);
    BatchNorm {
        scale: scale.shallow_clone(),
        shift: shift.shallow_clone(),
        running_mean,
        running_var,
    }
}

/// Image, weight, γ and β; a block that adds a residual has it as the fifth.
fn block_inputs(images: Images, adds: bool) -> Vec<Tensor> {
    let mut inputs = vec![images.x(), images.weight(), images.per_output(2), images.per_output(3)];
    if adds {
        inputs.push(values(&images.out_shape(false), images.draw.wrapping_add(4)));
    }
    inputs
}

fn own_block(inputs: &[Tensor], stride: i64, pooled: bool) -> Tensor {
    let norm = new_norm(&inputs[2], &inputs[3]);
    let end = match inputs.get(4) {
        Some(residual) => BlockEnd::AddAndRelu(residual),
        None if pooled => BlockEnd::ReluAndPool,
        None => BlockEnd::Relu,
    };
    conv_block(&inputs[0], &inputs[1], stride, &norm, MOMENTUM, NORM_EPS, end).expect("shapes fit")
}

/// In front of the ReLU.
fn before_relu_by_libtorch(inputs: &[Tensor], stride: i64) -> Tensor {
    let normalised = normalised_by_libtorch(inputs, stride);
    match inputs.get(4) {
        Some(residual) => normalised + residual,
        None => normalised,
    }
}

fn normalised_by_libtorch(inputs: &[Tensor], stride: i64) -> Tensor {
    let padding = inputs[1].size()[2] / 2;
    let [mean, var] = statistics(inputs[2].size1().expect("a vector"), inputs[0].kind());
    inputs[0]
        .conv2d(&inputs[1], None::<&Tensor>, stride, padding, 1, 1)
        .batch_norm(
            Some(&inputs[2]),
            Some(&inputs[3]),
            Some(&mean),
            Some(&var),
            true,
            MOMENTUM,
            NORM_EPS,
            false,
        )
}

fn block_by_libtorch(inputs: &[Tensor], stride: i64, pooled: bool) -> Tensor {
    let active = before_relu_by_libtorch(inputs, stride).relu();
    if pooled {
        active.max_pool2d(2, 2, 0, 1, false)
    } else {
        active
    }
}

/// Whether rounding could decide which way a gradient takes: a ReLU at its bend, or two values of a pool alike.
fn is_undecided(inputs: &[Tensor], stride: i64, pooled: bool) -> bool {
    const MARGIN: f64 = 2e-5;
    let inputs: Vec<Tensor> = inputs.iter().map(|input| input.to_kind(Kind::Double)).collect();
    let y = before_relu_by_libtorch(&inputs, stride);
    let smallest = |tensor: Tensor| f64::try_from(tensor.min()).expect("a number");
    if smallest(y.abs()) < MARGIN {
        return true;
    }
    if !pooled {
        return false;
    }
    let (height, width) = (y.size()[2] / 2 * 2, y.size()[3] / 2 * 2);
    let windows = y
        .narrow(2, 0, height)
        .narrow(3, 0, width)
        .unfold(2, 2, 2)
        .unfold(3, 2, 2)
        .flatten(4, 5);
    let (two, _) = windows.topk(2, -1, true, true);
    smallest(two.select(-1, 0) - two.select(-1, 1)) < MARGIN
}

proptest! {
    // Always the same draws: among many, some meet a bend of a ReLU within rounding whatever the margin.
    #![proptest_config(ProptestConfig {
        cases: 48,
        max_global_rejects: 4096,
        rng_seed: RngSeed::Fixed(7),
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_block_is_as_exact_as_libtorchs_operators(images in images(), pooled: bool) {
        prop_assume!(images.batch * images.height * images.width >= 16);
        prop_assume!(!pooled || (images.height >= 2 && images.width >= 2));
        let inputs = block_inputs(images, false);
        prop_assume!(!is_undecided(&inputs, 1, pooled));
        assert_kernel(
            &|inputs| own_block(inputs, 1, pooled),
            &|inputs| block_by_libtorch(inputs, 1, pooled),
            &inputs,
            &images.out_shape(pooled),
        )?;
    }

    #[test]
    fn a_block_that_adds_a_residual_is_as_exact_as_libtorchs_operators(images in images()) {
        prop_assume!(images.batch * images.height * images.width >= 16);
        let inputs = block_inputs(images, true);
        prop_assume!(!is_undecided(&inputs, 1, false));
        let shape = images.out_shape(false);
        let libtorch = |inputs: &[Tensor]| block_by_libtorch(inputs, 1, false);
        assert_kernel(&|inputs| own_block(inputs, 1, false), &libtorch, &inputs, &shape)?;
    }

    #[test]
    fn a_block_at_every_second_position_is_as_exact_as_libtorchs_operators(images in strided_images(), adds: bool) {
        let shape = images.out_shape(false);
        prop_assume!(shape[0] * shape[2] * shape[3] >= 16);
        let inputs = block_inputs(images, adds);
        prop_assume!(!is_undecided(&inputs, 2, false));
        let libtorch = |inputs: &[Tensor]| block_by_libtorch(inputs, 2, false);
        assert_kernel(&|inputs| own_block(inputs, 2, false), &libtorch, &inputs, &shape)?;
    }

    #[test]
    fn a_layer_of_a_seed_is_as_exact_as_libtorchs_operators(
        images in images(),
        square: bool,
        depthwise: bool,
        norm: bool,
        before_norm: bool,
        after_norm: bool,
        alpha in 0.01..1.0,
    ) {
        prop_assume!(images.height * images.width >= 4);
        let images = if square { Images { inputs: images.outputs, ..images } } else { images };
        let images = if depthwise { Images { inputs: 1, ..images } } else { images };
        let groups = [4, 3, 2].into_iter().find(|groups| images.outputs % groups == 0).unwrap_or(1);
        let x = if depthwise { Images { inputs: images.outputs, ..images }.x() } else { images.x() };
        let mut inputs = vec![x, images.weight()];
        if norm {
            inputs.extend([images.per_output(2), images.per_output(3)]);
        }
        let result = |inputs: &[Tensor], onto: Option<Onto>| {
            let norm = norm.then(|| GroupNormOf { scale: &inputs[2], shift: &inputs[3], groups, epsilon: NORM_EPS });
            conv_layer(&inputs[0], &inputs[1], norm, Silu { before_norm, after_norm }, onto).expect("shapes fit")
        };
        let by_libtorch = |inputs: &[Tensor]| {
            let convolution_groups = if depthwise { images.outputs } else { 1 };
            let mut y = inputs[0].conv2d(&inputs[1], None::<&Tensor>, 1, images.kernel / 2, 1, convolution_groups);
            if before_norm {
                y = y.silu();
            }
            if norm {
                // libtorch's channels-last kernels crash where an input needs no gradient, and are slow.
                y = y.contiguous().group_norm(groups, Some(&inputs[2]), Some(&inputs[3]), NORM_EPS, false);
                if after_norm {
                    y = y.silu();
                }
            }
            y
        };
        let shape = images.out_shape(false);
        assert_kernel(&|inputs| result(inputs, None), &by_libtorch, &inputs, &shape)?;

        // Its result added onto its own input, then onto other features.
        if inputs[0].size() == shape {
            assert_kernel(
                &|inputs| result(inputs, Some(Onto::Added { features: &inputs[0], alpha })),
                &|inputs| &inputs[0] + by_libtorch(inputs) * alpha,
                &inputs,
                &shape,
            )?;
        }
        inputs.push(values(&shape, images.draw.wrapping_add(9)));
        assert_kernel(
            &|inputs| result(inputs, Some(Onto::Added { features: &inputs[inputs.len() - 1], alpha })),
            &|inputs| &inputs[inputs.len() - 1] + by_libtorch(inputs) * alpha,
            &inputs,
            &shape,
        )?;
        assert_kernel(
            &|inputs| result(inputs, Some(Onto::StraightThrough { features: &inputs[inputs.len() - 1] })),
            &|inputs| {
                let residual = by_libtorch(inputs);
                &inputs[inputs.len() - 1] + &residual - residual.detach()
            },
            &inputs,
            &shape,
        )?;
    }

    #[test]
    fn a_norm_alone_is_as_exact_as_libtorchs_operators(images in images()) {
        prop_assume!(images.height * images.width >= 4);
        let groups = [4, 3, 2].into_iter().find(|groups| images.inputs % groups == 0).unwrap_or(1);
        let per_input = |which: u64| values(&[images.inputs], images.draw.wrapping_add(which));
        let inputs = [images.x(), per_input(1), per_input(2), values(&[1], images.draw)];
        let own = |inputs: &[Tensor]| {
            let norm = GroupNormOf { scale: &inputs[1], shift: &inputs[2], groups, epsilon: NORM_EPS };
            norm_residual(&inputs[0], norm, &inputs[3]).expect("shapes fit")
        };
        let libtorch = |inputs: &[Tensor]| {
            let normalised = inputs[0]
                .contiguous()
                .group_norm(groups, Some(&inputs[1]), Some(&inputs[2]), NORM_EPS, false);
            (normalised - &inputs[0]) * inputs[3].tanh()
        };
        assert_kernel(&own, &libtorch, &inputs, &Images { outputs: images.inputs, ..images }.out_shape(false))?;
    }

    #[test]
    fn squeeze_and_excitation_is_as_exact_as_libtorchs_operators(images in images()) {
        let hidden = (images.inputs / 4).max(1);
        let inputs = [
            images.x(),
            values(&[hidden, images.inputs], images.draw.wrapping_add(1)),
            values(&[images.inputs, hidden], images.draw.wrapping_add(2)),
            values(&[images.inputs], images.draw.wrapping_add(3)),
        ];
        let own = |inputs: &[Tensor]| {
            squeeze_excite(&inputs[0], &inputs[1], &inputs[2], &inputs[3]).expect("shapes fit")
        };
        let libtorch = |inputs: &[Tensor]| {
            let gate = inputs[0]
                .mean_dim([2_i64, 3].as_slice(), false, None)
                .linear(&inputs[1], None::<&Tensor>)
                .silu()
                .linear(&inputs[2], Some(&inputs[3]))
                .tanh();
            &inputs[0] * gate.unsqueeze(-1).unsqueeze(-1)
        };
        assert_kernel(&own, &libtorch, &inputs, &Images { outputs: images.inputs, ..images }.out_shape(false))?;
    }

    #[test]
    fn a_head_is_as_exact_as_libtorchs_operators(images in images(), classes in 2..40_i64) {
        let inputs = [
            images.x(),
            values(&[classes, images.inputs], images.draw.wrapping_add(1)),
            values(&[classes], images.draw.wrapping_add(2)),
        ];
        let own = |inputs: &[Tensor]| head(&inputs[0], &inputs[1], &inputs[2]).expect("shapes fit");
        let libtorch = |inputs: &[Tensor]| {
            let means = inputs[0].mean_dim([2_i64, 3].as_slice(), false, None);
            means.linear(&inputs[1], Some(&inputs[2]))
        };
        assert_kernel(&own, &libtorch, &inputs, &[images.batch, classes])?;
    }

    #[test]
    fn a_pool_passes_values_and_gradients_on_unchanged(images in images()) {
        prop_assume!(images.height >= 2 && images.width >= 2);
        let own = |inputs: &[Tensor]| max_pool(&inputs[0]).expect("images");
        let libtorch = |inputs: &[Tensor]| inputs[0].max_pool2d(2, 2, 0, 1, false);
        let shape = Images { outputs: images.inputs, ..images }.out_shape(true);
        let slope = values(&shape, 5);
        let results = |operator: &dyn Fn(&[Tensor]) -> Tensor| {
            result_and_gradients(operator, &[images.x()], &slope, Kind::Float)
        };
        for (ours, theirs) in results(&own).iter().zip(&results(&libtorch)) {
            prop_assert!(ours.equal(theirs));
        }
        assert_same_bits_at_every_level(&own, &[images.x()], &shape)?;
    }

    #[test]
    fn a_folded_block_equals_the_block_in_evaluation(images in images(), pooled: bool, adds: bool) {
        let pooled = pooled && !adds;
        prop_assume!(!pooled || (images.height >= 2 && images.width >= 2));
        assert_folding(images, pooled, adds)?;
    }
}

/// Against the norm with running statistics, unfolded.
fn assert_folding(images: Images, pooled: bool, adds: bool) -> Result<(), TestCaseError> {
    let norm = BatchNorm {
        scale: images.per_output(2),
        shift: images.per_output(3),
        running_mean: images.per_output(4),
        running_var: images.per_output(5).abs() + 0.1,
    };
    let (x, weight) = (images.x(), images.weight());
    let block = FoldedBlock::new(&weight).expect("memory");
    block.refill(&weight, &norm, NORM_EPS).expect("shapes fit");
    let residual = values(&images.out_shape(false), images.draw);
    let end = match (adds, pooled) {
        (true, _) => BlockEnd::AddAndRelu(&residual),
        (false, true) => BlockEnd::ReluAndPool,
        (false, false) => BlockEnd::Relu,
    };
    let ours = block.forward(&x, end).expect("shapes fit");

    let double = |tensor: &Tensor| tensor.to_kind(Kind::Double);
    let exact = double(&x)
        .conv2d(&double(&weight), None::<&Tensor>, 1, images.kernel / 2, 1, 1)
        .batch_norm(
            Some(&double(&norm.scale)),
            Some(&double(&norm.shift)),
            Some(&double(&norm.running_mean)),
            Some(&double(&norm.running_var)),
            false,
            MOMENTUM,
            NORM_EPS,
            false,
        );
    let exact = if adds { exact + double(&residual) } else { exact }.relu();
    let exact = if pooled {
        exact.max_pool2d(2, 2, 0, 1, false)
    } else {
        exact
    };
    prop_assert!(largest(&(double(&ours) - &exact)) <= 1e-5 * largest(&exact).max(1.0));
    prop_assert!(is_channels_last(&ours));
    Ok(())
}

#[test]
fn a_folded_block_over_large_images_equals_the_block_in_evaluation() {
    for (side, channels) in [(32, 16), (16, 32), (8, 64)] {
        let images = Images {
            batch: 3,
            height: side,
            width: side,
            inputs: channels,
            outputs: channels,
            kernel: 3,
            stride: 1,
            draw: 5,
        };
        for (pooled, adds) in [(true, false), (false, false), (false, true)] {
            assert_folding(images, pooled, adds).expect("equal");
        }
    }
}

/// Of the presets' own shapes and others larger than the drawn ones: several chunks of images, tails of tiles, strips.
#[test]
fn blocks_of_the_presets_are_as_exact_as_libtorchs_operators() {
    let shapes = [
        (64, 8, 1, 4, 3, true),
        (64, 4, 4, 8, 3, true),
        (64, 2, 8, 16, 3, true),
        (64, 8, 1, 1, 1, true),
        (64, 4, 1, 2, 1, true),
        (8, 32, 3, 8, 3, true),
        (8, 16, 8, 16, 3, true),
        (8, 8, 16, 32, 3, false),
        (8, 8, 32, 64, 3, false),
        (3, 32, 16, 16, 3, false),
        (5, 16, 32, 32, 3, false),
        (7, 8, 64, 64, 3, false),
        (2, 12, 48, 32, 3, false),
        (2, 40, 16, 16, 3, false),
        (3, 16, 32, 32, 3, true),
    ];
    // Those of residual blocks end in both ways.
    let shapes = shapes.into_iter().flat_map(|shape| {
        let (.., inputs, outputs, _, pooled) = shape;
        let ends: &[bool] = if inputs == outputs && !pooled {
            &[false, true]
        } else {
            &[false]
        };
        ends.iter().map(move |&adds| (shape, adds))
    });
    for ((batch, side, inputs, outputs, kernel, pooled), adds) in shapes {
        let images = |draw| Images {
            batch,
            height: side,
            width: side,
            inputs,
            outputs,
            kernel,
            stride: 1,
            draw,
        };
        let decided = (0..500)
            .map(images)
            .find(|&images| !is_undecided(&block_inputs(images, adds), 1, pooled))
            .expect("one of many draws is decided");
        let inputs = block_inputs(decided, adds);
        let own = |inputs: &[Tensor]| own_block(inputs, 1, pooled);
        let shape = decided.out_shape(pooled);
        let libtorch = |inputs: &[Tensor]| block_by_libtorch(inputs, 1, pooled);
        assert_kernel(&own, &libtorch, &inputs, &shape).expect("as exact, and the same bits");
    }
}

#[test]
fn running_statistics_move_as_libtorchs_do() {
    let (x, weight) = (values(&[8, 3, 5, 5], 1), values(&[6, 3, 3, 3], 2));
    let norm = new_norm(&values(&[6], 3), &values(&[6], 4));
    let _ = conv_block(&x, &weight, 1, &norm, MOMENTUM, NORM_EPS, BlockEnd::Relu).expect("shapes fit");

    let z = x
        .to_kind(Kind::Double)
        .conv2d(&weight.to_kind(Kind::Double), None::<&Tensor>, 1, 1, 1, 1);
    let (var, mean) = z.var_mean_dim([0_i64, 2, 3].as_slice(), true, false);
    let expected_mean = mean * MOMENTUM;
    let expected_var = var * MOMENTUM + (1.0 - MOMENTUM);
    assert!(largest(&(norm.running_mean.to_kind(Kind::Double) - expected_mean)) < 1e-6);
    assert!(largest(&(norm.running_var.to_kind(Kind::Double) - expected_var)) < 1e-6);
}

#[test]
fn running_statistics_stay_where_a_batch_has_none() {
    let weight = values(&[6, 3, 3, 3], 2);
    let broken = values(&[2, 3, 4, 4], 1) / 0.0;
    let of_one_value = values(&[1, 3, 1, 1], 1);
    for x in [broken, of_one_value] {
        let norm = new_norm(&values(&[6], 3), &values(&[6], 4));
        let _ = conv_block(&x, &weight, 1, &norm, MOMENTUM, NORM_EPS, BlockEnd::Relu).expect("shapes fit");
        assert_eq!((largest(&norm.running_mean), largest(&norm.running_var)), (0.0, 1.0));
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

#[test]
fn other_types_and_autocast_are_left_to_libtorch() {
    let x = values(&[2, 4, 4, 4], 0);
    assert!(is_served(&x));
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
