//! Blocks in evaluation, their norm folded into the weights.

use super::*;

proptest! {
    #![proptest_config(drawn())]

    #[test]
    fn a_folded_block_equals_the_block_in_evaluation(images in images(), pooled: bool, adds: bool) {
        let pooled = pooled && !adds;
        prop_assume!(!pooled || (images.height >= 2 && images.width >= 2));
        assert_folding(images, pooled, adds)?;
    }
}

/// Compares with the norm with running statistics, unfolded.
fn assert_folding(images: Images, pooled: bool, adds: bool) -> Result<(), TestCaseError> {
    let norm = BatchNorm {
        scale: images.per_output(2),
        shift: images.per_output(3),
        running_mean: images.per_output(4),
        running_var: images.per_output(5).abs() + 0.1,
    };
    let (x, weight) = (images.x(), images.weight());
    let residual = adds.then(|| images.tensor(&images.out_shape(false), 0));
    let block = FoldedBlock::new(&weight).expect("memory");
    block.refill(&weight, &norm, NORM_EPS).expect("shapes fit");
    let end = block_end(residual.as_ref(), pooled);

    let ours = block.forward(&x, end).expect("shapes fit");

    let [x, weight] = [x, weight].map(|tensor| tensor.to_kind(Kind::Double));
    let exact = before_relu_by_libtorch([&x, &weight], 1, &norm, false, residual.as_ref());
    let exact = relu_and_pool_by_libtorch(&exact, pooled);
    prop_assert!(largest(&(&ours - &exact)) <= 1e-5 * largest(&exact).max(1.0));
    prop_assert!(is_channels_last(&ours));
    Ok(())
}

#[test]
fn a_folded_block_over_large_images_equals_the_block_in_evaluation() {
    for (side, channels) in [(32, 16), (16, 32), (8, 64)] {
        let images = Images::square([3, side, channels, channels, 3], 5);
        for (pooled, adds) in [(true, false), (false, false), (false, true)] {
            assert_folding(images, pooled, adds).expect("equal");
        }
    }
}

/// Tiles subtract inputs from each other, so all outputs of a 4×4 tile are NaN (∞ − ∞) if one input of its window is infinite.
/// Direct sums break only the outputs that read the input, and keep its sign.
#[test]
fn by_tiles_an_infinite_value_breaks_the_tile_that_reads_it_and_no_other() {
    let images = Images::square([2, 32, 16, 16, 3], 5);
    let (x, weight, scale, shift) = (images.x(), images.weight(), images.per_output(2), images.per_output(3));
    let block = FoldedBlock::new(&weight).expect("memory");
    let norm = new_norm(&scale, &shift);
    block.refill(&weight, &norm, NORM_EPS).expect("shapes fit");
    let of = |x: &Tensor| block.forward(x, BlockEnd::Relu).expect("shapes fit");
    let sound = of(&x);
    let one = x.narrow(0, 1, 1).narrow(1, 3, 1).narrow(2, 10, 1).narrow(3, 10, 1);
    let _ = one.shallow_clone().fill_(f64::INFINITY);

    let reached = of(&x);

    let per_channel = |numbers: &Tensor| numbers.view([1, -1, 1, 1]);
    let direct = x.conv2d(&weight, None::<&Tensor>, 1, 1, 1, 1) * per_channel(&scale) + per_channel(&shift);
    let count = |of: &Tensor| i64::try_from(of.sum(Kind::Int64)).expect("a number");
    let broken = |y: &Tensor| count(&y.isfinite().logical_not());
    let changed = reached.ne_tensor(&sound);
    let tile = changed.narrow(0, 1, 1).narrow(2, 8, 4).narrow(3, 8, 4);
    assert_eq!([count(&changed), count(&tile)], [16 * 16; 2]);
    assert!(broken(&reached) > broken(&direct.relu()));
}
