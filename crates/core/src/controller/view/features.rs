//! The table of built-in features, and the list that plugins append theirs to.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use bevy_ecs::resource::Resource;

use super::signals::TrainingSignals;
use crate::actions::{ActionFeedback, DecisionPoint};
use crate::schema::NameError;
use crate::seed::SeedReport;

/// All that an observation is made from.
#[derive(Clone, Copy, Debug)]
pub struct ObservationInput<'a> {
    /// The env and step that are observed, for error messages.
    pub at: DecisionPoint,
    /// Losses and accuracies of the step just measured, and values derived from them.
    pub signals: &'a TrainingSignals,
    /// The last command and whether it took effect.
    pub feedback: ActionFeedback,
    /// The slots in order. `None` is an empty slot.
    pub reports: &'a [Option<SeedReport>],
}

impl ObservationInput<'_> {
    /// Parameters of the seeds on the output path, weighed by their amplitude, in host sizes.
    pub fn growth(&self) -> f64 {
        let seeds = self.reports.iter().flatten();
        let params: f64 = seeds
            .filter(|seed| seed.stage.is_occupied())
            .map(|seed| seed.alpha * seed.seed_params as f64)
            .sum();
        params / self.signals.host_params.max(1) as f64
    }
}

/// The treatment of a feature by a normaliser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Takes part in the running statistics and is brought to their scale.
    Normalised,
    /// Binary or categorical, already in scale: passes unchanged.
    Plain,
    /// May be [`UNKNOWN`], which lies outside every range and must stay recognisable: passes unchanged.
    MayBeUnknown,
}

/// The value of a feature that was never measured.
pub const UNKNOWN: f32 = -1.0;

/// Name and treatment of each feature of an env, in order.
pub const BASE: [(&str, Treatment); 23] = {
    use Treatment::{MayBeUnknown as U, Normalised as N, Plain as P};
    [
        ("step", N),
        ("val_loss", N),
        ("val_acc", N),
        ("loss_hist_0", U),
        ("loss_hist_1", U),
        ("loss_hist_2", U),
        ("loss_hist_3", U),
        ("loss_hist_4", U),
        ("acc_hist_0", U),
        ("acc_hist_1", U),
        ("acc_hist_2", U),
        ("acc_hist_3", U),
        ("acc_hist_4", U),
        ("frac_training", N),
        ("frac_blending", N),
        ("frac_holding", N),
        ("last_ok", P),
        ("last_op_wait", P),
        ("last_op_germinate", P),
        ("last_op_set_alpha_target", P),
        ("last_op_prune", P),
        ("last_op_commit", P),
        ("last_op_advance", P),
    ]
};

/// Name and treatment of each feature of a slot, in order.
pub const SLOT: [(&str, Treatment); 31] = {
    use Treatment::{MayBeUnknown as U, Normalised as N, Plain as P};
    [
        ("occupied", P),
        ("stage_unknown", P),
        ("stage_dormant", P),
        ("stage_germinated", P),
        ("stage_training", P),
        ("stage_blending", P),
        ("stage_holding", P),
        ("stage_committed", P),
        ("stage_pruned", P),
        ("stage_embargoed", P),
        ("stage_resetting", P),
        ("alpha", N),
        ("contribution", N),
        ("contribution_velocity", N),
        ("tempo", N),
        ("alpha_target", N),
        ("alpha_mode", P),
        ("alpha_steps_total", N),
        ("alpha_steps_done", N),
        ("time_to_target", N),
        ("alpha_velocity", N),
        ("alpha_algorithm", P),
        ("interaction", N),
        ("grad_norm", U),
        ("grad_health", U),
        ("vanishing", P),
        ("exploding", P),
        ("grad_health_prev", U),
        ("steps_in_stage", N),
        ("counterfactual_freshness", U),
        ("seed_age", N),
    ]
};

/// The features of the group `reward_parts`: what rewards are made of, and contributions beyond the 10 points at which
/// `contribution` saturates.
pub fn reward_parts() -> Vec<ObservationFeature> {
    use Treatment::Normalised;
    /// `ln(1 + 100)`: a contribution of 100 points is 1.
    const HUNDRED: f64 = 4.615_120_516_841_26;
    fn wide(points: f64) -> f64 {
        points.signum() * points.abs().ln_1p() / HUNDRED
    }
    let feature = |name: &str, extract, range| ObservationFeature {
        name: name.into(),
        extract,
        range,
        treatment: Normalised,
    };
    type OfEnv = fn(&ObservationInput) -> f64;
    type OfSlot = fn(&SeedReport) -> f64;
    let env = |name, of: OfEnv, range| feature(name, Extract::env(move |env| Some(of(env))), range);
    let slot = |name, of: OfSlot, range| feature(name, Extract::slot(move |seed| Some(of(seed))), range);
    vec![
        env("committed_acc", |env| env.signals.committed_accuracy / 100.0, 0.0..=1.0),
        env(
            "growing_gain",
            |env| (env.signals.val_accuracy - env.signals.committed_accuracy) / 100.0,
            -1.0..=1.0,
        ),
        env("train_acc", |env| env.signals.train_accuracy / 100.0, 0.0..=1.0),
        env("growth", |env| env.growth().ln_1p(), 0.0..=10.0),
        slot(
            "contribution_wide",
            |seed| seed.contribution.map_or(0.0, wide),
            -1.0..=1.0,
        ),
        slot("progress", |seed| seed.total_improvement / 100.0, -1.0..=1.0),
        slot(
            "seed_params",
            |seed| (seed.seed_params as f64).ln_1p() / 14.0,
            0.0..=2.0,
        ),
        slot("gate_readiness", |seed| seed.gate_readiness.unwrap_or(0.0), 0.0..=1.0),
        slot("account", |seed| seed.account, -10.0..=10.0),
    ]
}

type ExtractOfEnv = dyn Fn(&ObservationInput) -> Option<f64> + Send + Sync;
type ExtractOfSlot = dyn Fn(&SeedReport) -> Option<f64> + Send + Sync;

/// The source of a plugin's feature. `None` means unknown.
#[derive(Clone)]
pub enum Extract {
    /// One number per env.
    Env(Arc<ExtractOfEnv>),
    /// One number per slot with a seed. That of an empty slot is 0.
    Slot(Arc<ExtractOfSlot>),
}

impl Extract {
    /// One number per env.
    pub fn env(extract: impl Fn(&ObservationInput) -> Option<f64> + Send + Sync + 'static) -> Self {
        Self::Env(Arc::new(extract))
    }

    /// One number per slot with a seed. That of an empty slot is 0.
    pub fn slot(extract: impl Fn(&SeedReport) -> Option<f64> + Send + Sync + 'static) -> Self {
        Self::Slot(Arc::new(extract))
    }
}

impl fmt::Debug for Extract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Env(_) => "Env",
            Self::Slot(_) => "Slot",
        })
    }
}

/// A feature that a plugin adds.
#[derive(Clone, Debug)]
pub struct ObservationFeature {
    /// Unique, not empty, without dot or line end.
    pub name: String,
    /// Yields the value, before `range` bounds it.
    pub extract: Extract,
    /// Values outside are clamped to its ends. NaN is an error.
    pub range: RangeInclusive<f64>,
    /// Treatment of the value by a normaliser.
    pub treatment: Treatment,
}

/// The features that plugins add, in registration order: those of the env after the built-in ones of the env, those of
/// a slot at the end of each slot's block. Register before `Startup`, which makes the schema.
///
/// ```
/// # extern crate simic_core as simic_engine;
/// use simic_engine::extend::{Extract, ObservationFeature, ObservationFeatures, Treatment};
///
/// let mut features = ObservationFeatures::default();
/// features.register(ObservationFeature {
///     name: "train_loss".into(),
///     extract: Extract::env(|env| Some(env.signals.train_loss)),
///     range: 0.0..=10.0,
///     treatment: Treatment::Normalised,
/// });
/// ```
#[derive(Resource, Clone, Debug, Default)]
pub struct ObservationFeatures {
    features: Vec<ObservationFeature>,
    refused: Option<NameError>,
}

impl ObservationFeatures {
    /// Appends a feature. It is refused when the engine is built if its name is taken, also by a built-in feature, or cannot
    /// be part of the schema's hash, and if its range is empty or hides [`UNKNOWN`] in a feature that may be unknown.
    pub fn register(&mut self, feature: ObservationFeature) {
        match self.check(&feature) {
            Ok(()) => self.features.push(feature),
            Err(error) => _ = self.refused.get_or_insert(error),
        }
    }

    fn check(&self, feature: &ObservationFeature) -> Result<(), NameError> {
        let (noun, name) = ("observation feature", feature.name.clone());
        NameError::check(noun, &name)?;
        let builtin = BASE.iter().chain(&SLOT).map(|(name, _)| *name);
        let reward_parts = reward_parts();
        let known = self.features.iter().chain(&reward_parts);
        if known
            .map(|known| known.name.as_str())
            .chain(builtin)
            .any(|known| known == name)
        {
            return Err(NameError::Taken { noun, name });
        }
        let ends = [*feature.range.start(), *feature.range.end()];
        let why = if feature.range.is_empty() || ends.iter().any(|end| !end.is_finite()) {
            "its range must be finite and not empty"
        } else if feature.treatment == Treatment::MayBeUnknown && feature.range.contains(&f64::from(UNKNOWN)) {
            "its range must not contain -1, which means unknown"
        } else {
            return Ok(());
        };
        let why = why.into();
        Err(NameError::Refused { noun, name, why })
    }

    /// In registration order.
    pub fn iter(&self) -> impl Iterator<Item = &ObservationFeature> {
        self.features.iter()
    }

    /// The first feature that was refused.
    pub const fn refused(&self) -> Option<&NameError> {
        self.refused.as_ref()
    }
}
