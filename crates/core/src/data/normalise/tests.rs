use super::*;

#[test]
fn constants_become_factor_and_offset() {
    // The CIFAR-10 constants; b is what a black pixel becomes.
    let cifar = Normalise::Constants {
        mean: vec![0.4914, 0.4822, 0.4465],
        std: vec![0.2470, 0.2435, 0.2616],
    };

    let affine = resolve("cifar", &cifar, &Part::default(), 3, 255.0).unwrap();

    for (found, expected) in affine.b.iter().zip([-1.989_473_7, -1.980_287_5, -1.706_804_3]) {
        assert!((found - expected).abs() < 1e-6, "{found}");
    }
    assert!((affine.a[0] - 0.015_876_8).abs() < 1e-7, "{}", affine.a[0]);
}

#[test]
fn without_normalisation_pixels_are_only_scaled() {
    let affine = resolve("plain", &Normalise::None, &Part::default(), 1, 16.0).unwrap();

    assert_eq!((affine.a[0], affine.b[0]), (0.0625, 0.0));
}

#[test]
fn a_constant_channel_and_a_wrong_count_are_refused() {
    // Channel 1 is constant.
    let part = Part {
        images: vec![0, 7, 9, 7].into(),
        labels: vec![0, 1],
    };
    let flat = resolve("flat", &Normalise::Auto, &part, 2, 255.0);
    assert!(matches!(flat, Err(DataError::FlatChannel { channel: 1, .. })));

    let constants = Normalise::Constants {
        mean: vec![0.5],
        std: vec![0.25; 3],
    };
    let short = resolve("short", &constants, &Part::default(), 3, 255.0);
    assert!(matches!(
        short,
        Err(DataError::NormaliseChannels {
            what: "mean",
            found: 1,
            channels: 3,
            ..
        })
    ));
}
