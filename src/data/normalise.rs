//! Normalisation as two element-wise operations (spec 02 §4.2): `x = f32(pixel)·a_c + b_c` with
//! `a_c = 1/(scale·std_c)` and `b_c = −mean_c/std_c`, computed here in f64 and rounded once. Two operations rather than
//! a division, because division by a scalar is not the same operation on every device.

use crate::scenario::Normalise;

use super::DataError;

const SMALLEST_STD: f64 = 1e-6;

/// Factor and offset per channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Affine {
    pub a: Vec<f32>,
    pub b: Vec<f32>,
}

/// Mean and standard deviation per channel, in units of `scale`.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    pub mean: Vec<f64>,
    pub std: Vec<f64>,
}

/// Resolves the task's normalisation; `pixels` is the **training** part, channels last. `Normalise::None` divides by
/// `scale` and nothing else.
///
/// # Errors
/// `NormaliseChannels`, and `FlatChannel` for a standard deviation below 1e-6.
pub fn resolve(
    name: &str,
    normalise: &Normalise,
    pixels: &[u8],
    channels: usize,
    scale: f64,
) -> Result<Affine, DataError> {
    let moments = match normalise {
        Normalise::Constants { mean, std } => {
            for (what, values) in [("mean", mean), ("std", std)] {
                if values.len() != channels {
                    return Err(DataError::NormaliseChannels {
                        name: name.into(),
                        what,
                        found: values.len(),
                        channels,
                    });
                }
            }
            Moments {
                mean: mean.clone(),
                std: std.clone(),
            }
        }
        Normalise::Auto => measure(pixels, channels, scale),
        Normalise::None => Moments {
            mean: vec![0.0; channels],
            std: vec![1.0; channels],
        },
    };
    let flat = |std: &f64| !(std.is_finite() && *std >= SMALLEST_STD);
    if let Some(channel) = moments.std.iter().position(flat) {
        return Err(DataError::FlatChannel {
            name: name.into(),
            channel,
            std: moments.std[channel],
        });
    }
    Ok(Affine {
        a: moments.std.iter().map(|std| (1.0 / (scale * std)) as f32).collect(),
        b: moments
            .mean
            .iter()
            .zip(&moments.std)
            .map(|(mean, std)| (-mean / std) as f32)
            .collect(),
    })
}

/// Moments from integer sums, so that they do not depend on the order of summation.
pub fn measure(pixels: &[u8], channels: usize, scale: f64) -> Moments {
    let (mut sums, mut squares) = (vec![0u64; channels], vec![0u64; channels]);
    for pixel in pixels.chunks_exact(channels) {
        for (channel, &value) in pixel.iter().enumerate() {
            sums[channel] += u64::from(value);
            squares[channel] += u64::from(value) * u64::from(value);
        }
    }
    let n = (pixels.len() / channels) as f64;
    let mean: Vec<f64> = sums.iter().map(|&sum| sum as f64 / (n * scale)).collect();
    let std = squares
        .iter()
        .zip(&mean)
        .map(|(&square, mean)| (square as f64 / (n * scale * scale) - mean * mean).sqrt())
        .collect();
    Moments { mean, std }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_become_factor_and_offset() {
        // The CIFAR-10 constants of spec 02 §4.2; b is what a black pixel becomes (spec 02 Check 2).
        let cifar = Normalise::Constants {
            mean: vec![0.4914, 0.4822, 0.4465],
            std: vec![0.2470, 0.2435, 0.2616],
        };

        let affine = resolve("cifar", &cifar, &[], 3, 255.0).unwrap();

        for (found, expected) in affine.b.iter().zip([-1.989_473_7, -1.980_287_5, -1.706_804_3]) {
            assert!((found - expected).abs() < 1e-6, "{found}");
        }
        assert!((affine.a[0] - 0.015_876_8).abs() < 1e-7, "{}", affine.a[0]);
    }

    #[test]
    fn without_normalisation_pixels_are_only_scaled() {
        let affine = resolve("plain", &Normalise::None, &[], 1, 16.0).unwrap();

        assert_eq!((affine.a[0], affine.b[0]), (0.0625, 0.0));
    }

    #[test]
    fn a_constant_channel_and_a_wrong_count_are_refused() {
        // Channel 1 is constant.
        let flat = resolve("flat", &Normalise::Auto, &[0, 7, 9, 7], 2, 255.0);
        assert!(matches!(flat, Err(DataError::FlatChannel { channel: 1, .. })));

        let constants = Normalise::Constants {
            mean: vec![0.5],
            std: vec![0.25; 3],
        };
        let short = resolve("short", &constants, &[], 3, 255.0);
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
}
