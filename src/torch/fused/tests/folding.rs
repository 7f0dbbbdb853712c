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
