use tch::{Device, Kind};

use super::*;
use crate::torch::{Backend, Conv2d, NoGrad, ParamSet, channels_last, is_channels_last};

/// Values that differ from each other and stay exact in sums: multiples of 1/8 in [-1, 1].
fn values(shape: &[i64], shift: i64) -> Tensor {
    let count: i64 = shape.iter().product();
    let steps: Vec<f32> = (0..count).map(|i| ((i * 7 + shift) % 17 - 8) as f32 / 8.0).collect();
    let tensor = Tensor::from_slice(&steps).view(shape);
    channels_last(&tensor).expect("four dimensions")
}

/// The definition, in f64 and NCHW: every product of a pixel and a weight counted once.
fn by_definition(x: &Tensor, weight: &Tensor) -> Tensor {
    let (x, weight) = (x.to_kind(Kind::Double), weight.to_kind(Kind::Double));
    let (n, _, h, w) = x.size4().expect("images");
    let (outputs, inputs, kernel, _) = weight.size4().expect("weights");
    let pad = kernel / 2;
    let padded = x.constant_pad_nd([pad, pad, pad, pad]);
    let mut out = Tensor::zeros([n, outputs, h, w], (Kind::Double, Device::Cpu));
    for (dy, dx) in (0..kernel).flat_map(|dy| (0..kernel).map(move |dx| (dy, dx))) {
        for input in 0..inputs {
            let pixels = padded.narrow(1, input, 1).narrow(2, dy, h).narrow(3, dx, w);
            let weights = weight
                .select(3, dx)
                .select(2, dy)
                .select(1, input)
                .view([1, outputs, 1, 1]);
            out += pixels * weights;
        }
    }
    out
}

#[track_caller]
fn assert_equal(actual: &Tensor, expected: &Tensor) {
    let difference = (actual.to_kind(Kind::Double) - expected).abs().max();
    assert_eq!(f64::try_from(difference).expect("a number"), 0.0);
}

/// All products are multiples of 1/64 and small, so f32 sums are exact in any order.
#[test]
fn values_and_gradients_equal_the_definition() {
    for (inputs, outputs, height, width, kernel) in [
        (1, 4, 8, 8, 3),
        (4, 4, 8, 8, 3),
        (4, 8, 5, 13, 3),
        (8, 16, 2, 2, 3),
        (16, 4, 1, 3, 5),
        (8, 8, 3, 1, 1),
    ] {
        let x = values(&[3, inputs, height, width], 1).set_requires_grad(inputs != 1);
        let weight = values(&[outputs, inputs, kernel, kernel], 4).set_requires_grad(true);
        let slope = values(&[3, outputs, height, width], 9);
        assert!(is_narrow_conv(&x, &weight, None));

        let y = narrow_conv(&x, &weight, None).expect("convolve");
        (&y * &slope).sum(Kind::Float).backward();

        let (x_ref, weight_ref) = (
            x.detach().set_requires_grad(true),
            weight.detach().set_requires_grad(true),
        );
        let expected = by_definition(&x_ref, &weight_ref);
        (&expected * &slope).sum(Kind::Double).backward();
        assert_equal(&y, &expected);
        assert_equal(&weight.grad(), &weight_ref.grad().to_kind(Kind::Double));
        if inputs != 1 {
            assert_equal(&x.grad(), &x_ref.grad().to_kind(Kind::Double));
        }
    }
}

#[test]
fn a_bias_is_added_in_inference() {
    let (x, weight) = (values(&[2, 4, 4, 4], 0), values(&[8, 4, 3, 3], 3));
    let bias = Tensor::arange(8, (Kind::Float, Device::Cpu));

    let y = narrow_conv(&x, &weight, Some(&bias)).expect("convolve");

    assert_equal(&y, &(by_definition(&x, &weight) + bias.view([1, 8, 1, 1])));
}

#[test]
fn results_and_gradients_are_channels_last() {
    let x = values(&[2, 4, 4, 4], 0).set_requires_grad(true);
    let weight = values(&[8, 4, 3, 3], 3).set_requires_grad(true);

    let y = narrow_conv(&x, &weight, None).expect("convolve");
    y.sum(Kind::Float).backward();

    assert!(is_channels_last(&y) && is_channels_last(&x.grad()) && is_channels_last(&weight.grad()));
    assert_eq!(weight.grad().stride(), weight.stride());
}

#[test]
fn other_widths_kinds_and_gradients_to_odd_widths_are_not_served() {
    let image = |channels| values(&[2, channels, 4, 4], 0);
    let weight = |outputs, inputs| values(&[outputs, inputs, 3, 3], 0);
    assert!(is_narrow_conv(&image(3), &weight(8, 3), None));
    assert!(!is_narrow_conv(&image(3).set_requires_grad(true), &weight(8, 3), None));
    assert!(!is_narrow_conv(&image(4), &weight(6, 4), None));
    assert!(!is_narrow_conv(&image(4), &weight(8, 2), None));
    assert!(!is_narrow_conv(&image(4).to_kind(Kind::BFloat16), &weight(8, 4), None));
    let _no_grad = NoGrad::new();
    assert!(is_narrow_conv(&image(3).set_requires_grad(true), &weight(8, 3), None));
}

/// The kernels carry no gradient to a bias: where one is recorded, libtorch computes the convolution.
#[test]
fn a_convolution_with_a_bias_learns_it_at_every_width() {
    for outputs in [3, 8] {
        let x = values(&[2, 4, 4, 4], 0).set_requires_grad(true);
        let bias = Tensor::arange(outputs, (Kind::Float, Device::Cpu)).set_requires_grad(true);
        let mut params = ParamSet::new(Backend::CPU);
        let conv = Conv2d::new(&mut params, "weight".into(), 4, outputs, 3, 1).expect("allocate");
        let weight = values(&[outputs, 4, 3, 3], 3).set_requires_grad(true);
        let conv = conv.with_weight(weight.shallow_clone());
        let slope = values(&[2, outputs, 4, 4], 9);

        let y = conv.forward(&x, Some(&bias)).expect("convolve");
        (&y * &slope).sum(Kind::Float).backward();

        let expected = by_definition(&x, &weight) + bias.view([1, outputs, 1, 1]);
        assert_equal(&y, &expected);
        let positions = [0_i64, 2, 3].as_slice();
        assert_equal(&bias.grad(), &slope.sum_dim_intlist(positions, false, Kind::Double));
        assert!(weight.grad().defined() && x.grad().defined());
    }
}

#[test]
fn a_bias_that_would_lose_its_gradient_is_refused() {
    let (x, weight) = (values(&[2, 4, 4, 4], 0), values(&[8, 4, 3, 3], 3));
    let bias = Tensor::zeros([8], (Kind::Float, Device::Cpu)).set_requires_grad(true);

    assert!(!is_narrow_conv(&x, &weight, Some(&bias)));
    let error = narrow_conv(&x, &weight, Some(&bias)).expect_err("no gradient would reach it");

    assert!(error.to_string().contains("bias"), "{error}");
}

#[test]
fn a_second_derivative_is_refused() {
    let x = values(&[2, 4, 4, 4], 0);
    let weight = values(&[8, 4, 3, 3], 3).set_requires_grad(true);
    let y = narrow_conv(&x, &weight, None).expect("convolve");

    let error = Tensor::f_run_backward(&[y.sum(Kind::Float)], &[&weight], true, true).expect_err("there is none");

    assert!(error.to_string().contains("second derivative"), "{error}");
}
