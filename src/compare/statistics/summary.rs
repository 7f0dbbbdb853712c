//! Summaries of a list of numbers: its centre, its spread, its quantiles and its worst tenth. All are in the unit of
//! the values, and NaN of no values.

use serde::Serialize;

/// A number that summarizes a list of scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// [`mean`]
    Mean,
    /// Middle value, or the mean of the two middle ones.
    Median,
    /// Interquartile mean: without the `floor(n/4)` lowest and as many highest values (Agarwal et al. 2021).
    Iqm,
    /// Mean of the `ceil(n/10)` lowest values: the conditional value at risk at 10 %, what a training must be feared to come to.
    WorstTenth,
}

impl Statistic {
    /// NaN of no values, and where some value is not finite.
    pub fn of(self, values: &[f64]) -> f64 {
        if values.iter().all(|value| value.is_finite()) {
            self.of_scratch(&mut values.to_vec())
        } else {
            f64::NAN
        }
    }

    /// The statistic of finite values. It reorders them, and allocates nothing.
    pub(super) fn of_scratch(self, values: &mut [f64]) -> f64 {
        if self != Self::Mean {
            values.sort_unstable_by(f64::total_cmp);
        }
        let count = values.len();
        match self {
            Self::Mean => mean(values),
            Self::Median => percentile(values, 0.5),
            Self::Iqm => mean(&values[count / 4..count - count / 4]),
            Self::WorstTenth => mean(&values[..count.div_ceil(10)]),
        }
    }
}

/// Arithmetic mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Arithmetic mean; `None` of no values.
pub fn mean_of(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let values = values.into_iter();
    let (count, sum) = values.fold((0_u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}

/// Sum of squared distances from the mean.
pub(super) fn squared_deviations(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// The quantile `q` in [0, 1] of ascending values, linear between neighbours: position `(n - 1)·q`.
pub fn percentile(ascending: &[f64], q: f64) -> f64 {
    let Some(last) = ascending.len().checked_sub(1) else {
        return f64::NAN;
    };
    let position = last as f64 * q;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    ascending[below] + (position - below as f64) * (ascending[above] - ascending[below])
}

#[cfg(test)]
mod tests;
