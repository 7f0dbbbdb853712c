use super::*;
use crate::data::locate::tests::assert_refused;

#[test]
fn constants_become_factor_and_offset_and_without_them_pixels_are_only_scaled() {
    // The CIFAR-10 constants; b is what a black pixel becomes.
    let (mean, std) = (vec![0.4914, 0.4822, 0.4465], vec![0.2470, 0.2435, 0.2616]);
    let cifar = Normalise::Constants { mean, std };

    let affine = resolve("cifar", &cifar, &Part::default(), 3, 255.0).unwrap();

    for (found, expected) in affine.b.iter().zip([-1.989_473_7, -1.980_287_5, -1.706_804_3]) {
        assert!((found - expected).abs() < 1e-6, "{found}");
    }
    assert!((affine.a[0] - 0.015_876_8).abs() < 1e-7, "{}", affine.a[0]);
    let plain = resolve("plain", &Normalise::None, &Part::default(), 1, 16.0).unwrap();
    assert_eq!((plain.a[0], plain.b[0]), (0.0625, 0.0));
}

#[test]
fn a_constant_channel_and_a_wrong_count_are_refused() {
    // Channel 1 is constant.
    let (images, labels) = (vec![0, 7, 9, 7].into(), vec![0, 1]);
    let flat = resolve("flat", &Normalise::Auto, &Part { images, labels }, 2, 255.0);
    assert_refused(flat, "the standard deviation of channel 1 of 'flat' is ");

    let (mean, std) = (vec![0.5], vec![0.25; 3]);
    let constants = Normalise::Constants { mean, std };
    let short = resolve("short", &constants, &Part::default(), 3, 255.0);
    assert_refused(short, "mean has 1 value, but the data 'short' has 3 channels");
}
