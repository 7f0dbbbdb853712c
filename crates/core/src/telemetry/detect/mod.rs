//! Detectors: declared rules that look for problems of a run in its own events.
//!
//! A [`Detector`] measures numbers in events and has a threshold for them. The registry [`Detectors`] has those of a run, and
//! plugins add theirs to it. The [`DetectorBank`] folds all events in their order, and where a condition begins or ends it adds
//! an event [`Anomaly`](super::Anomaly) after the one that shows it. As it knows nothing but events, it is restored from
//! the record when a run is resumed, and unrecorded events are not judged.

mod recent;
mod rules;
mod bank;
mod trail;

use std::sync::Arc;

use super::event::{Event, Severity};
use crate::growth::SlotId;
use crate::schema::{Registry, registry};

pub use bank::DetectorBank;
pub use recent::{Recent, RecentRound};
pub use trail::EventTrail;

/// The comparison of a value with a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Greater.
    Above,
    /// Greater, or the same.
    AtLeast,
    /// Less, or the same.
    AtMost,
    /// Less.
    Below,
}

impl Comparison {
    fn holds(self, value: f64, threshold: f64) -> bool {
        match self {
            Self::Above => value > threshold,
            Self::AtLeast => value >= threshold,
            Self::AtMost => value <= threshold,
            Self::Below => value < threshold,
        }
    }

    /// The sign, such as `≥`.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Above => ">",
            Self::AtLeast => "≥",
            Self::AtMost => "≤",
            Self::Below => "<",
        }
    }
}

/// The subject of a reading, within the env or the run of its event; each subject has its own state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The env or the run as a whole.
    Whole,
    /// The seed in a slot.
    Slot(SlotId),
    /// A head of the policy.
    Head(String),
}

/// A number that is compared. A quantity that is not measured has no reading and changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The subject.
    pub place: Place,
    /// NaN counts as not measured.
    pub value: f64,
    /// Replaces the detector's threshold.
    pub threshold: Option<f64>,
}

impl Reading {
    /// Reading of all that the event is about.
    pub const fn of(value: f64) -> Self {
        Self {
            place: Place::Whole,
            value,
            threshold: None,
        }
    }
}

/// Takes a detector's readings of an event; [`Recent`] holds the events before it. Equal events give equal readings.
pub type ReadEvent = dyn Fn(&Event, &Recent) -> Vec<Reading> + Send + Sync;

/// A rule: a condition, for how long it must hold, how much it matters, and what to do about it.
pub struct Detector {
    /// The comparison of a reading with the threshold.
    pub comparison: Comparison,
    /// The threshold of the readings.
    pub threshold: f64,
    /// Readings in a row for which the condition must hold; 0 and 1: one.
    pub window: u32,
    /// Severity of the event with which the condition begins.
    pub severity: Severity,
    /// Advice to a person, as an order.
    pub remedy: String,
    /// Takes the readings that are compared.
    pub read: Box<ReadEvent>,
}

registry! {
    /// The detectors of a run by name, with the engine's own. A summary states the problem, in half a sentence.
    ///
    /// ```
    /// # extern crate simic_core as simic_engine;
    /// use simic_engine::extend::{Comparison, Detector, Detectors, Payload, Reading, Severity};
    /// use simic_engine::prelude::*;
    ///
    /// fn register(app: &mut App) {
    ///     let mut detectors = app.world_mut().resource_mut::<Detectors>();
    ///     detectors.register("slow_round", "a round takes more than an hour", Arc::new(Detector {
    ///         comparison: Comparison::Above,
    ///         threshold: 3600.0,
    ///         window: 1,
    ///         severity: Severity::Info,
    ///         remedy: "play it on a faster machine".into(),
    ///         read: Box::new(|event, _| match &event.payload {
    ///             Payload::RoundFinished(round) => vec![Reading::of(round.perf.round_wall_s.0)],
    ///             _ => Vec::new(),
    ///         }),
    ///     }));
    /// }
    /// ```
    pub struct Detectors(Detector);
}

impl Default for Detectors {
    fn default() -> Self {
        let mut registry = Registry::new("detector");
        for rule in &rules::BUILT_IN {
            registry.register(rule.name, rule.summary, Arc::new(rule.detector()));
        }
        Self(registry)
    }
}

/// Returns whether an anomaly by this rule follows from times or memory, and so differs between two runs with one seed.
pub(super) fn is_about_the_machine(rule: &str) -> bool {
    rules::BUILT_IN
        .iter()
        .any(|built_in| built_in.name == rule && built_in.of_machine)
}

#[cfg(test)]
mod tests;
