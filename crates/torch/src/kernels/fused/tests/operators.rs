//! Operators of seeds and heads.

use super::*;

proptest! {
    #![proptest_config(drawn())]

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
        inputs.push(images.tensor(&shape, 9));
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
        let per_input = |which: u64| images.tensor(&[images.inputs], which);
        let inputs = [images.x(), per_input(1), per_input(2), images.tensor(&[1], 0)];
        let own = |inputs: &[Tensor]| {
            let norm = GroupNormOf { scale: &inputs[1], shift: &inputs[2], groups, epsilon: NORM_EPS };
            norm_residual(&inputs[0], norm, &inputs[3]).expect("shapes fit")
        };
        let libtorch = |inputs: &[Tensor]| {
            let x = inputs[0].contiguous();
            let normalised = x.group_norm(groups, Some(&inputs[1]), Some(&inputs[2]), NORM_EPS, false);
            (normalised - &inputs[0]) * inputs[3].tanh()
        };
        assert_kernel(&own, &libtorch, &inputs, &inputs[0].size())?;
    }

    #[test]
    fn squeeze_and_excitation_is_as_exact_as_libtorchs_operators(images in images()) {
        let hidden = (images.inputs / 4).max(1);
        let inputs = [
            images.x(),
            images.tensor(&[hidden, images.inputs], 1),
            images.tensor(&[images.inputs, hidden], 2),
            images.tensor(&[images.inputs], 3),
        ];
        let own = |inputs: &[Tensor]| {
            squeeze_excite(&inputs[0], &inputs[1], &inputs[2], &inputs[3]).expect("shapes fit")
        };
        let libtorch = |inputs: &[Tensor]| {
            let means = inputs[0].mean_dim([2_i64, 3].as_slice(), false, None);
            let gate = means.linear(&inputs[1], None::<&Tensor>).silu().linear(&inputs[2], Some(&inputs[3]));
            &inputs[0] * gate.tanh().unsqueeze(-1).unsqueeze(-1)
        };
        assert_kernel(&own, &libtorch, &inputs, &inputs[0].size())?;
    }

    #[test]
    fn a_head_is_as_exact_as_libtorchs_operators(images in images(), classes in 2..40_i64) {
        let inputs = [
            images.x(),
            images.tensor(&[classes, images.inputs], 1),
            images.tensor(&[classes], 2),
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
        let results = |operator: Operator| result_and_gradients(operator, &[images.x()], &slope, Kind::Float);
        for (ours, theirs) in results(&own).iter().zip(&results(&libtorch)) {
            prop_assert!(ours.equal(theirs));
        }
        assert_same_bits_at_every_level(&own, &[images.x()], &shape)?;
    }
}
