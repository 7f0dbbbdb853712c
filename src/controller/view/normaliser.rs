//! Brings observations to one scale by running statistics.
//!
//! Statistics move at [`commit`](ObservationNormaliser::commit) only, once per rollout: what was acted on, what is
//! stored and what is trained on are the same bits.

use serde::{Deserialize, Serialize};

use super::features::Treatment;
use super::moments::RunningMoments;
use super::schema::{Element, ObservationSchema};
use crate::controller::error::PolicyError;
use crate::scenario::{LearnerConfig, ObservationNormMode};

/// Which elements are standardised, and what shares a statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standardisation {
    /// None: the fixed scales of the schema.
    Off,
    /// Features marked so, of slots only occupied ones, slots pooled.
    Running,
    /// Every element by itself, zeros and unknowns included (classic).
    RunningAll,
}

/// Added to a variance before the root.
const VARIANCE_EPSILON: f64 = 1e-4;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NormaliserConfig {
    pub mode: Standardisation,
    /// Largest weight of the past in a commit, in (0, 1].
    pub momentum: f64,
    /// Results are brought into [-clip, clip].
    pub clip: f64,
    /// A feature is left as it is until it has been seen so many times.
    pub min_count: u64,
}

impl From<&LearnerConfig> for NormaliserConfig {
    fn from(learner: &LearnerConfig) -> Self {
        Self {
            mode: match learner.obs_norm.mode {
                ObservationNormMode::Off => Standardisation::Off,
                ObservationNormMode::RunningAll => Standardisation::RunningAll,
                // The saved policy says what its statistics are about; until it is read, there are none.
                ObservationNormMode::Running | ObservationNormMode::Fixed(_) => Standardisation::Running,
            },
            momentum: learner.obs_norm.momentum,
            clip: learner.obs_norm.clip,
            min_count: learner.norm_min_count,
        }
    }
}

/// Running statistics of an observation's features.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservationNormaliser {
    config: NormaliserConfig,
    elements: Vec<Element>,
    /// `running`: one per feature, slots pooled; `running_all`: one per element.
    statistics: Vec<RunningMoments>,
}

impl ObservationNormaliser {
    /// Has seen nothing yet: all means 0, all variances 1.
    pub fn new(schema: &ObservationSchema, config: NormaliserConfig) -> Self {
        let mut normaliser = Self {
            config,
            elements: schema.elements(),
            statistics: Vec::new(),
        };
        normaliser.configure(config);
        normaliser
    }

    /// Takes other settings; statistics start anew if the mode changes.
    pub fn configure(&mut self, config: NormaliserConfig) {
        if config.mode != self.config.mode || self.statistics.is_empty() {
            let features = self.elements.iter().map(|element| element.feature + 1).max();
            let count = match config.mode {
                Standardisation::RunningAll => self.elements.len(),
                Standardisation::Running | Standardisation::Off => features.unwrap_or(0),
            };
            self.statistics = vec![RunningMoments::default(); count];
        }
        self.config = config;
    }

    /// The settings in force.
    pub fn config(&self) -> NormaliserConfig {
        self.config
    }

    /// By feature (by element in mode `running_all`), in the schema's order: what a checkpoint stores.
    pub fn statistics(&self) -> &[RunningMoments] {
        &self.statistics
    }

    /// How far the statistics that have seen something lie from mean 0 and deviation 1, where they started: mean
    /// distance of the means plus mean distance of the deviations. `None` if none has.
    pub fn drift(&self) -> Option<f64> {
        let seen = || self.statistics.iter().filter(|moments| moments.count > 0);
        let count = seen().count();
        let distances = seen().map(|moments| moments.mean.abs() + (moments.var.sqrt() - 1.0).abs());
        (count > 0).then(|| distances.sum::<f64>() / count as f64)
    }

    /// Puts stored statistics in force.
    ///
    /// # Errors
    /// `ShapeMismatch` if they belong to another schema or mode; nothing changes then.
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

    /// Writes the normalised row; storage is reused.
    pub fn normalise(&self, raw: &[f32], out: &mut Vec<f32>) {
        out.clear();
        out.extend(
            self.elements
                .iter()
                .enumerate()
                .zip(raw)
                .map(|((index, element), &value)| {
                    if self.config.mode == Standardisation::Off {
                        return value;
                    }
                    let clip = self.config.clip;
                    let value = f64::from(value);
                    let statistics = self.statistic_of(index, element, raw);
                    let scaled = match statistics.map(|statistic| &self.statistics[statistic]) {
                        Some(moments) if moments.is_ready(self.config.min_count) => {
                            (value - moments.mean) / (moments.var + VARIANCE_EPSILON).sqrt()
                        }
                        _ => value,
                    };
                    scaled.clamp(-clip, clip) as f32
                }),
        );
    }

    /// Merges a rollout: the raw rows of all envs that decided. A feature that occurs in none keeps its statistics.
    ///
    /// # Errors
    /// `NonFiniteStatistics`; nothing changes then.
    pub fn commit<'a>(&mut self, rows: impl Iterator<Item = &'a [f32]> + Clone) -> Result<(), PolicyError> {
        if self.config.mode == Standardisation::Off {
            return Ok(());
        }
        let mut merged = self.statistics.clone();
        let momentum = self.config.momentum;
        for (statistic, moments) in merged.iter_mut().enumerate() {
            let members = self.elements.iter().enumerate();
            let normaliser = &*self;
            let values = rows.clone().flat_map(|row| {
                let members = members.clone();
                members
                    .filter(move |(index, element)| normaliser.statistic_of(*index, element, row) == Some(statistic))
                    .map(|(index, _)| f64::from(row[index]))
            });
            if !moments.merge(values, momentum) {
                return Err(PolicyError::NonFiniteStatistics);
            }
        }
        self.statistics = merged;
        Ok(())
    }

    /// The statistic in which an element of `row` takes part, if any.
    fn statistic_of(&self, index: usize, element: &Element, row: &[f32]) -> Option<usize> {
        match self.config.mode {
            Standardisation::Off => None,
            Standardisation::RunningAll => Some(index),
            Standardisation::Running => {
                let occupied = element.occupied_by.is_none_or(|flag| row[flag] != 0.0);
                (element.treatment == Treatment::Normalised && occupied).then_some(element.feature)
            }
        }
    }
}
