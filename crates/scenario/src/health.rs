//! The health of a run: the first failure of any system stops the schedules, with its place attached.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use bevy_ecs::prelude::*;
use serde::Serialize;

/// A place in a run; `None` where it does not apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Position {
    /// 0-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// 1-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// 0-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Index in the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<usize>,
}

/// As people count: rounds, steps and batches from 1. Envs have numbers for names, from 0.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.round.map(|round| format!("round {}", round + 1)),
            self.step.map(|step| format!("step {step}")),
            self.batch.map(|batch| format!("batch {}", batch + 1)),
            self.env.map(|env| format!("env {env}")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// Failure of a system: the error of the subject in which it arose, and the env that it is about. This module knows
/// no subject, so that all can use it.
#[derive(Debug)]
pub struct Failure {
    cause: Box<dyn Error + Send + Sync>,
    /// Boxed, because errors are handed on by value.
    place: Option<Box<Place>>,
}

/// The place of a failure, as far as known.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    env: Option<usize>,
    /// If a system does more than one work on more than one batch: the work, as `schedule::Work::phase` names it, and the
    /// batch.
    work: Option<(&'static str, usize)>,
}

impl Failure {
    /// A cause that has no error type of its own.
    pub fn message(text: impl Into<String>) -> Self {
        Self {
            cause: text.into().into(),
            place: None,
        }
    }

    /// The cause, if it is an `E`.
    pub fn cause<E: Error + 'static>(&self) -> Option<&E> {
        self.cause.downcast_ref()
    }

    /// The same failure, placed in the env with this index in the run.
    pub fn in_env(self, env: usize) -> Self {
        self.at(|place| place.env = Some(env))
    }

    /// The same failure, placed in the work `phase` on this training or validation batch of the step.
    pub fn in_batch(self, phase: &'static str, batch: usize) -> Self {
        self.at(|place| place.work = Some((phase, batch)))
    }

    fn at(self, note: impl FnOnce(&mut Place)) -> Self {
        let mut place = self.place.unwrap_or_default();
        note(&mut place);
        Self {
            place: Some(place),
            ..self
        }
    }

    fn place(&self) -> Place {
        self.place.as_deref().copied().unwrap_or_default()
    }

    /// The batch, where the failure knows it.
    pub fn batch(&self) -> Option<usize> {
        self.place().work.map(|(_, batch)| batch)
    }

    /// The failure of a piece of work that began at `position`; what the failure itself knows is nearer.
    pub fn during(self, phase: &'static str, position: Position) -> EngineError {
        let place = self.place();
        EngineError {
            phase: place.work.map_or(phase, |(phase, _)| phase),
            position: Position {
                env: place.env.or(position.env),
                batch: self.batch().or(position.batch),
                ..position
            },
            failure: self,
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            cause: Box::new(error),
            place: None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

/// Names the env that an error is about: `capture(env).in_env(id.index)?`.
pub trait InEnv<T> {
    /// # Errors
    /// The same, as a [`Failure`] of `env`.
    fn in_env(self, env: usize) -> Result<T, Failure>;
}

impl<T, E: Into<Failure>> InEnv<T> for Result<T, E> {
    fn in_env(self, env: usize) -> Result<T, Failure> {
        self.map_err(|error| error.into().in_env(env))
    }
}

/// Error of the operating system, and the file or folder that it is about: look at whether that exists, its permissions and the
/// space that is left on its disk.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
#[allow(missing_docs, reason = "the message says what the fields are")]
pub struct FileError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// Names the file that an error is about: `fs::read(&path).at(&path)?`.
pub trait AtPath<T> {
    /// # Errors
    /// The same, with `path`.
    fn at(self, path: &Path) -> Result<T, FileError>;
}

impl<T, E: Into<io::Error>> AtPath<T> for Result<T, E> {
    fn at(self, path: &Path) -> Result<T, FileError> {
        self.map_err(|source| FileError {
            path: path.into(),
            source: source.into(),
        })
    }
}

/// A failure of the run and where it happened. `Shutdown` has run: the record is closed, and `simic-engine resume` continues from its
/// last checkpoint once the cause is removed.
#[derive(Debug, thiserror::Error)]
#[error("{phase} failed{}: {failure}", match position.to_string() { text if text.is_empty() => text, text => format!(" at {text}") })]
pub struct EngineError {
    /// The work that failed, as `schedule::Work::phase` names it.
    pub phase: &'static str,
    /// The place in the run.
    pub position: Position,
    /// The failure.
    pub failure: Failure,
}

/// The health of a run. The first failure counts; later ones are its consequences.
#[derive(Resource, Default)]
pub struct RunHealth {
    /// The first one.
    pub failure: Option<EngineError>,
}

/// Run condition of all work outside `Shutdown`.
pub fn running(health: Res<RunHealth>) -> bool {
    health.failure.is_none()
}

impl RunHealth {
    /// Records a failure, unless one is recorded already.
    pub fn record(&mut self, error: EngineError) {
        self.failure.get_or_insert(error);
    }
}
