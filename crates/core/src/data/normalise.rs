//! Normalisation as two element-wise operations: `x = f32(pixel)·a_c + b_c` with
//! `a_c = 1/(scale·std_c)` and `b_c = −mean_c/std_c`, computed here in f64 and rounded once. Two operations rather than
//! a division, because division by a scalar is not the same operation on every device.

use crate::files::counted;
use crate::scenario::Normalise;

use super::{DataError, Part};

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

/// Resolves the task's normalisation. `train` is the **training** part. `Normalise::None` divides by `scale` and nothing
/// else.
///
/// # Errors
/// More or fewer constants than channels, a standard deviation below 1e-6, or the errors of reading images.
pub fn resolve(
    name: &str,
    normalise: &Normalise,
    train: &Part,
    channels: usize,
    scale: f64,
) -> Result<Affine, DataError> {
    let moments = match normalise {
        Normalise::Constants { mean, std } => {
            for (what, values) in [("mean", mean), ("std", std)] {
                let found = values.len();
                if found != channels {
                    let (found, channels) = (counted(found, "value"), counted(channels, "channel"));
                    let data = format!("the data '{name}' has {channels}");
                    let fault = format!("task.normalise: {what} has {found}, but {data}");
                    return Err(DataError::new(fault, "give one value per channel"));
                }
            }
            Moments {
                mean: mean.clone(),
                std: std.clone(),
            }
        }
        Normalise::Auto => measure(train, channels, scale)?,
        Normalise::None => Moments {
            mean: vec![0.0; channels],
            std: vec![1.0; channels],
        },
    };
    let flat = |std: &f64| !(std.is_finite() && *std >= SMALLEST_STD);
    if let Some(channel) = moments.std.iter().position(flat) {
        let std = moments.std[channel];
        return Err(DataError::new(
            format!("task.normalise: the standard deviation of channel {channel} of '{name}' is {std}"),
            "it must be finite and at least 1e-6: drop the constant channel or give constants",
        ));
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
///
/// # Errors
/// The errors of reading images.
pub fn measure(part: &Part, channels: usize, scale: f64) -> Result<Moments, DataError> {
    let (mut sums, mut squares) = (vec![0u64; channels], vec![0u64; channels]);
    part.for_each_image(|image| {
        for pixel in image.chunks_exact(channels) {
            for (channel, &value) in pixel.iter().enumerate() {
                sums[channel] += u64::from(value);
                squares[channel] += u64::from(value) * u64::from(value);
            }
        }
    })?;
    let n = (part.len() * part.image_bytes() / channels) as f64;
    let mean: Vec<f64> = sums.iter().map(|&sum| sum as f64 / (n * scale)).collect();
    let std = squares
        .iter()
        .zip(&mean)
        .map(|(&square, mean)| (square as f64 / (n * scale * scale) - mean * mean).sqrt())
        .collect();
    Ok(Moments { mean, std })
}

#[cfg(test)]
mod tests;
