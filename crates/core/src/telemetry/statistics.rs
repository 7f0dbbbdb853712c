//! Small formulas that events and views share.

use serde::{Deserialize, Serialize};

/// Rounds a rolling value looks back over.
pub const ROLLING_ROUNDS: usize = 10;

/// Mean of the last ten values; absent while there is only one.
pub fn rolling_mean(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    mean(&values[values.len().saturating_sub(ROLLING_ROUNDS)..])
}

/// Smallest rise of a curve of accuracies that counts, in percentage points: less is noise of some hundred validation samples.
pub const MIN_RISE: f64 = 0.5;

/// The time for which a curve has not risen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plateau {
    top: Option<f64>,
    length: u32,
}

impl Plateau {
    /// Takes the curve's next value; a rise is one by more than [`MIN_RISE`] above the last rise.
    pub fn note(&mut self, value: f64) {
        *self = match self.top {
            Some(top) if value <= top + MIN_RISE => Self {
                length: self.length + 1,
                ..*self
            },
            _ => Self {
                top: Some(value),
                length: 0,
            },
        };
    }

    /// Values since the last rise.
    pub fn length(&self) -> u32 {
        self.length
    }
}

/// Arithmetic mean; absent over nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Mean and population standard deviation; absent over nothing.
pub fn mean_and_std(values: &[f64]) -> Option<(f64, f64)> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, (squares / values.len() as f64).sqrt()))
}

/// Middle value, or the mean of the two middle ones; absent over nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len().is_multiple_of(2) {
        (sorted[sorted.len() / 2 - 1] + upper) / 2.0
    } else {
        upper
    })
}

/// Standard error of a contribution, in points: of `samples`, `lost` were right only with the seed and `won` only without
/// it. Paired, hence tighter than that of two accuracies.
pub fn paired_standard_error(lost: u64, won: u64, samples: u64) -> f64 {
    let (lost, won, samples) = (lost as f64, won as f64, samples as f64);
    let difference = lost - won;
    100.0 / samples * (lost + won - difference * difference / samples).sqrt()
}

#[cfg(test)]
mod tests;
