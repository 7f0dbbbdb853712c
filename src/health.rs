//! How a run fares: the first failure of any system stops the schedules, with its place attached.

use bevy_ecs::prelude::*;

use crate::torch::TorchError;

/// Where in a run something happened; `None` where it does not apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub round: Option<u32>,
    pub step: Option<u32>,
    pub batch: Option<usize>,
    pub env: Option<usize>,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            self.round.map(|round| format!("round {round}")),
            self.step.map(|step| format!("step {step}")),
            self.batch.map(|batch| format!("batch {batch}")),
            self.env.map(|env| format!("env {env}")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// What went wrong, by subject.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Torch(#[from] TorchError),
    #[error(transparent)]
    Data(#[from] crate::data::DataError),
    #[error(transparent)]
    Host(#[from] crate::host::HostError),
    #[error(transparent)]
    Blueprint(#[from] crate::seed::BlueprintError),
    #[error(transparent)]
    Graft(#[from] crate::host::graft::GraftError),
    #[error(transparent)]
    Coalition(#[from] crate::validation::CoalitionError),
    #[error(transparent)]
    Policy(#[from] crate::controller::PolicyError),
    #[error(transparent)]
    Telemetry(#[from] crate::telemetry::TelemetryError),
    #[error("{0}")]
    Invalid(String),
}

/// A failure of the run and where it happened (spec 06 §14).
#[derive(Debug, thiserror::Error)]
#[error("{phase} failed{}: {failure}", match position.to_string() { text if text.is_empty() => text, text => format!(" at {text}") })]
pub struct EngineError {
    pub phase: &'static str,
    pub position: Position,
    #[source]
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
