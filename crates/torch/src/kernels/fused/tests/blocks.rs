//! Convolution, batch norm and the end of a block, as one node.

use super::*;

/// Images for blocks that leave out positions.
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
        inputs.push(images.tensor(&images.out_shape(false), 4));
    }
    inputs
}

/// The result of a block in front of its ReLU.
fn before_relu(inputs: &[Tensor], stride: i64) -> Tensor {
    let norm = new_norm(&inputs[2], &inputs[3]);
    before_relu_by_libtorch([&inputs[0], &inputs[1]], stride, &norm, true, inputs.get(4))
}

/// Returns whether rounding could decide the path of a gradient: a ReLU at its bend, or two equal values of a pool.
fn is_undecided(inputs: &[Tensor], stride: i64, pooled: bool) -> bool {
    const MARGIN: f64 = 2e-5;
    let inputs: Vec<Tensor> = inputs.iter().map(|input| input.to_kind(Kind::Double)).collect();
    let y = before_relu(&inputs, stride);
    let smallest = |tensor: Tensor| f64::try_from(tensor.min()).expect("a number");
    if smallest(y.abs()) < MARGIN {
        return true;
    }
    if !pooled {
        return false;
    }
    let (height, width) = (y.size()[2] / 2 * 2, y.size()[3] / 2 * 2);
    let pooled = y.narrow(2, 0, height).narrow(3, 0, width);
    let windows = pooled.unfold(2, 2, 2).unfold(3, 2, 2).flatten(4, 5);
    let (two, _) = windows.topk(2, -1, true, true);
    smallest(two.select(-1, 0) - two.select(-1, 1)) < MARGIN
}

fn assert_block(images: Images, pooled: bool, adds: bool) -> Result<(), TestCaseError> {
    let (inputs, stride) = (block_inputs(images, adds), images.stride);
    prop_assume!(!is_undecided(&inputs, stride, pooled));
    let own = |inputs: &[Tensor]| {
        let (norm, end) = (new_norm(&inputs[2], &inputs[3]), block_end(inputs.get(4), pooled));
        conv_block(&inputs[0], &inputs[1], stride, &norm, MOMENTUM, NORM_EPS, end).expect("shapes fit")
    };
    let libtorch = |inputs: &[Tensor]| relu_and_pool_by_libtorch(&before_relu(inputs, stride), pooled);
    assert_kernel(&own, &libtorch, &inputs, &images.out_shape(pooled))
}

proptest! {
    #![proptest_config(drawn())]

    #[test]
    fn a_block_is_as_exact_as_libtorchs_operators(images in images(), pooled: bool) {
        prop_assume!(images.batch * images.height * images.width >= 16);
        prop_assume!(!pooled || (images.height >= 2 && images.width >= 2));
        assert_block(images, pooled, false)?;
    }

    #[test]
    fn a_block_that_adds_a_residual_is_as_exact_as_libtorchs_operators(images in images()) {
        prop_assume!(images.batch * images.height * images.width >= 16);
        assert_block(images, false, true)?;
    }

    #[test]
    fn a_block_at_every_second_position_is_as_exact_as_libtorchs_operators(images in strided_images(), adds: bool) {
        let shape = images.out_shape(false);
        prop_assume!(shape[0] * shape[2] * shape[3] >= 16);
        assert_block(images, false, adds)?;
    }
}

/// Tests the presets' own shapes and others larger than the drawn ones: several chunks of images, tails of tiles, strips.
#[test]
fn blocks_of_the_presets_are_as_exact_as_libtorchs_operators() {
    for (shape, pooled) in [
        ([64, 8, 1, 4, 3], true),
        ([64, 4, 4, 8, 3], true),
        ([64, 2, 8, 16, 3], true),
        ([64, 8, 1, 1, 1], true),
        ([64, 4, 1, 2, 1], true),
        ([8, 32, 3, 8, 3], true),
        ([8, 16, 8, 16, 3], true),
        ([8, 8, 16, 32, 3], false),
        ([8, 8, 32, 64, 3], false),
        ([3, 32, 16, 16, 3], false),
        ([5, 16, 32, 32, 3], false),
        ([7, 8, 64, 64, 3], false),
        ([2, 12, 48, 32, 3], false),
        ([2, 40, 16, 16, 3], false),
        ([3, 16, 32, 32, 3], true),
    ] {
        let [.., inputs, outputs, _] = shape;
        for adds in [false, true] {
            // Convolutions of residual blocks end in both ways.
            if adds && (pooled || inputs != outputs) {
                continue;
            }
            let images = (0..500)
                .map(|draw| Images::square(shape, draw))
                .find(|&images| !is_undecided(&block_inputs(images, adds), 1, pooled))
                .expect("one of many draws is decided");
            assert_block(images, pooled, adds).expect("as exact, and the same bits");
        }
    }
}

#[test]
fn running_statistics_move_as_libtorchs_do() {
    let (x, weight) = (values(&[8, 3, 5, 5], 1), values(&[6, 3, 3, 3], 2));
    let norm = new_norm(&values(&[6], 3), &values(&[6], 4));
    let _ = conv_block(&x, &weight, 1, &norm, MOMENTUM, NORM_EPS, BlockEnd::Relu).expect("shapes fit");

    let double = |tensor: &Tensor| tensor.to_kind(Kind::Double);
    let z = double(&x).conv2d(&double(&weight), None::<&Tensor>, 1, 1, 1, 1);
    let (var, mean) = z.var_mean_dim([0_i64, 2, 3].as_slice(), true, false);
    let expected_var = var * MOMENTUM + (1.0 - MOMENTUM);
    assert!(largest(&(double(&norm.running_mean) - mean * MOMENTUM)) < 1e-6);
    assert!(largest(&(double(&norm.running_var) - expected_var)) < 1e-6);
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
