//! The interval of a share of successes (Wilson 1927, "Probable inference, the law of succession, and statistical inference").

use super::sample::Interval;

/// Two-sided 95 % quantile of the normal distribution.
pub const Z: f64 = 1.959_963_984_540_054;

/// The interval of the probability of success, if `share`, from 0 to 1, of `count` independent tries have succeeded. Not finite
/// without a try.
pub fn wilson(share: f64, count: u64) -> Interval {
    let n = count as f64;
    let middle = share + Z * Z / (2.0 * n);
    let reach = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let whole = 1.0 + Z * Z / n;
    Interval {
        low: (middle - reach) / whole,
        high: (middle + reach) / whole,
    }
}

#[cfg(test)]
mod tests;
