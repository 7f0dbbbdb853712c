//! Convolution, batch norm and what follows, as one node.

use super::*;

/// For blocks that leave out positions.
fn strided_images() -> impl Strategy<Value = Images> {
    (images(), 1..5_i64, 1..5_i64).prop_map(|(images, inputs, outputs)| Images {
        inputs: 16 * inputs,
        outputs: 16 * outputs,
        stride: 2,
        ..images
    })
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
    #![proptest_config(drawn())]

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
