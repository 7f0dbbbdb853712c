//! Brings observations to one scale by running statistics.
//!
//! Statistics move at [`commit`](ObservationNormaliser::commit) only, once per rollout: what was acted on, what is
//! stored and what is trained on are the same bits.

use serde::{Deserialize, Serialize};

use super::features::Treatment;
use super::schema::{Element, ObservationSchema};
use crate::actions::PolicyError;

/// The number of elements below which statistics aren't used, because the first few depend too much on chance.
pub const MIN_COUNT: u64 = 32;

/// Running mean and population variance of one quantity, the one rule of all normalisers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunningMoments {
    /// 0 before the first batch.
    pub mean: f64,
    /// Population variance, 1 before the first batch.
    pub var: f64,
    /// Elements merged so far.
    pub count: u64,
}

impl Default for RunningMoments {
    fn default() -> Self {
        Self {
            mean: 0.0,
            var: 1.0,
            count: 0,
        }
    }
}

impl RunningMoments {
    /// Merges the values of a batch. `momentum` in (0, 1] bounds the weight of the past: 1 is exact over all history,
    /// less becomes an exponential average once the history is long enough.
    ///
    /// Returns false, and changes nothing, if the batch's mean or variance is not finite. An empty batch is merged
    /// without effect.
    pub fn merge(&mut self, values: impl Iterator<Item = f64> + Clone, momentum: f64) -> bool {
        let size = values.clone().count();
        if size == 0 {
            return true;
        }
        let mean = values.clone().sum::<f64>() / size as f64;
        let var = values.map(|value| (value - mean).powi(2)).sum::<f64>() / size as f64;
        if !(mean.is_finite() && var.is_finite()) {
            return false;
        }
        let count = self.count.saturating_add(size as u64);
        let past = momentum.min(self.count as f64 / count as f64);
        let shift = mean - self.mean;
        self.var = past * self.var + (1.0 - past) * var + past * (1.0 - past) * shift * shift;
        self.mean = past * self.mean + (1.0 - past) * mean;
        self.count = count;
        true
    }

    /// Returns whether these are possible moments: finite, and without a negative variance.
    pub fn is_finite(&self) -> bool {
        self.mean.is_finite() && self.var.is_finite() && self.var >= 0.0
    }

    /// Enough has been seen.
    pub fn is_ready(&self, min_count: u64) -> bool {
        self.count >= min_count
    }
}

/// Largest weight of the past in a commit: what observations are like moves with the policy.
const MOMENTUM: f64 = 0.99;
/// Results are brought into [-CLIP, CLIP].
pub const CLIP: f64 = 10.0;
/// Added to a variance before the root.
const VARIANCE_EPSILON: f64 = 1e-4;

/// The scale of an element before its bounds are applied: `(value - mean) / deviation`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElementScale {
    /// 0 where the element passes unchanged.
    pub mean: f64,
    /// 1 where the element passes unchanged.
    pub deviation: f64,
    /// The element without which this one passes unchanged: it is 0 while the slot is empty.
    pub occupied_by: Option<usize>,
}

/// Running statistics of an observation's features.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservationNormaliser {
    elements: Vec<Element>,
    /// One per feature, slots pooled.
    statistics: Vec<RunningMoments>,
}

impl ObservationNormaliser {
    /// Has seen nothing yet: all means 0, all variances 1.
    pub fn new(schema: &ObservationSchema) -> Self {
        let elements = schema.elements();
        let features = elements.iter().map(|element| element.feature + 1).max();
        Self {
            statistics: vec![RunningMoments::default(); features.unwrap_or(0)],
            elements,
        }
    }

    /// By feature, in the schema's order: what a checkpoint stores.
    pub fn statistics(&self) -> &[RunningMoments] {
        &self.statistics
    }

    /// Puts stored statistics in force.
    ///
    /// # Errors
    /// `ShapeMismatch` if they belong to another schema. Nothing changes then.
    pub fn restore(&mut self, statistics: &[RunningMoments]) -> Result<(), PolicyError> {
        if statistics.len() != self.statistics.len() {
            return Err(PolicyError::ShapeMismatch {
                what: "statistics of the observation normaliser",
                expected: vec![self.statistics.len() as i64],
                found: vec![statistics.len() as i64],
            });
        }
        self.statistics.copy_from_slice(statistics);
        Ok(())
    }

    /// Writes the normalised row and reuses its storage.
    pub fn normalise(&self, raw: &[f32], out: &mut Vec<f32>) {
        out.clear();
        out.extend(self.elements.iter().zip(raw).map(|(element, &value)| {
            let value = f64::from(value);
            let scaled = match statistic_of(element, raw) {
                Some(statistic) => {
                    let (mean, deviation) = self.scale(statistic);
                    (value - mean) / deviation
                }
                None => value,
            };
            scaled.clamp(-CLIP, CLIP) as f32
        }));
    }

    /// By element: what [`normalise`](Self::normalise) does with it.
    pub fn scales(&self) -> Vec<ElementScale> {
        let scale = |element: &Element| {
            let (mean, deviation) = match element.treatment {
                Treatment::Normalised => self.scale(element.feature),
                Treatment::Plain | Treatment::MayBeUnknown => (0.0, 1.0),
            };
            ElementScale {
                mean,
                deviation,
                occupied_by: element.occupied_by,
            }
        };
        self.elements.iter().map(scale).collect()
    }

    /// Mean and deviation of a statistic, once it has seen enough.
    fn scale(&self, statistic: usize) -> (f64, f64) {
        let moments = &self.statistics[statistic];
        match moments.is_ready(MIN_COUNT) {
            true => (moments.mean, (moments.var + VARIANCE_EPSILON).sqrt()),
            false => (0.0, 1.0),
        }
    }

    /// Merges a rollout: the raw rows of all envs that decided. A feature that occurs in none keeps its statistics.
    ///
    /// # Errors
    /// `NonFiniteStatistics`. Nothing changes then.
    pub fn commit<'a>(&mut self, rows: impl Iterator<Item = &'a [f32]> + Clone) -> Result<(), PolicyError> {
        self.merge(rows, MOMENTUM)
    }

    /// The same of rows that all weigh alike, however many come later.
    ///
    /// # Errors
    /// As of [`commit`](Self::commit).
    pub fn take_in<'a>(&mut self, rows: impl Iterator<Item = &'a [f32]> + Clone) -> Result<(), PolicyError> {
        self.merge(rows, 1.0)
    }

    fn merge<'a>(&mut self, rows: impl Iterator<Item = &'a [f32]> + Clone, momentum: f64) -> Result<(), PolicyError> {
        let mut merged = self.statistics.clone();
        for (statistic, moments) in merged.iter_mut().enumerate() {
            let members = self.elements.iter().enumerate();
            let values = rows.clone().flat_map(|row| {
                let members = members.clone();
                members
                    .filter(move |(_, element)| statistic_of(element, row) == Some(statistic))
                    .map(|(index, _)| f64::from(row[index]))
            });
            if !moments.merge(values, momentum) {
                return Err(PolicyError::NonFiniteStatistics);
            }
        }
        self.statistics = merged;
        Ok(())
    }
}

/// The statistic in which an element of `row` takes part, if any: features marked so, of slots only occupied ones.
fn statistic_of(element: &Element, row: &[f32]) -> Option<usize> {
    let occupied = element.occupied_by.is_none_or(|flag| row[flag] != 0.0);
    (element.treatment == Treatment::Normalised && occupied).then_some(element.feature)
}

#[cfg(test)]
mod tests;
