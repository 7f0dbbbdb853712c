//! Controllers' view of an env: signals of its training, and observations for learned controllers.
//!
//! An [`ObservationSchema`] names an observation's features and encodes them; an [`ObservationNormaliser`] brings them to
//! one scale with statistics that move only between rollouts. Plugins append their own features by
//! [`ObservationFeatures`].

pub(crate) mod signals;
mod envs;
mod features;
mod schema;
mod normaliser;

pub use envs::{DecisionView, EnvRow, EnvView, Observation};
pub use features::{Extract, ObservationFeature, ObservationFeatures, ObservationInput, Treatment, UNKNOWN};
pub use normaliser::{CLIP, ElementScale, MIN_COUNT, ObservationNormaliser, RunningMoments};
pub use schema::ObservationSchema;
pub(crate) use signals::update_signals;
pub use signals::{SignalTracker, Signals, Tracker, TrainingSignals};
