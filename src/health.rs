//! How a run fares: the first failure of any system stops the schedules, with its place attached.

use std::error::Error;
use std::fmt;

use bevy_ecs::prelude::*;

/// Where in a run something happened; `None` where it does not apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub round: Option<u32>,
    pub step: Option<u32>,
    pub batch: Option<usize>,
    pub env: Option<usize>,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.round.map(|round| format!("round {round}")),
            self.step.map(|step| format!("step {step}")),
            self.batch.map(|batch| format!("batch {batch}")),
            self.env.map(|env| format!("env {env}")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// The cause of a failure: an error of whatever subject it arose in. This module knows none of them, so that all can
/// use it.
#[derive(Debug)]
pub struct Failure(Box<dyn Error + Send + Sync>);

impl Failure {
    /// A cause that has no error type of its own.
    pub fn message(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }

    /// The cause, if it is an `E`.
    pub fn cause<E: Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A failure of the run and where it happened (spec 06 §14).
#[derive(Debug, thiserror::Error)]
#[error("{phase} failed{}: {failure}", match position.to_string() { text if text.is_empty() => text, text => format!(" at {text}") })]
pub struct EngineError {
    pub phase: &'static str,
    pub position: Position,
    pub failure: Failure,
}

/// Whether the run still runs. The first failure counts; later ones are its consequences.
#[derive(Resource, Default)]
pub struct RunHealth {
    pub failure: Option<EngineError>,
}

/// Run condition of all work outside `Shutdown`.
pub fn running(health: Res<RunHealth>) -> bool {
    health.failure.is_none()
}

/// The end of every system that can fail: `system.pipe(record_failure)`.
pub fn record_failure(In(result): In<Result<(), EngineError>>, mut health: ResMut<RunHealth>) {
    if let Err(error) = result
        && health.failure.is_none()
    {
        health.failure = Some(error);
    }
}
