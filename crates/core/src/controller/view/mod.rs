//! What controllers see of an env: signals of its training, and observations for learned controllers.
//!
//! An [`ObservationSchema`] names an observation's features and encodes them; an [`ObservationNormaliser`] brings them to
//! one scale with statistics that move only between rollouts. Plugins append their own features by
//! [`ObservationFeatures`].

mod signals;
mod envs;
mod features;
mod schema;
mod normaliser;
pub(crate) mod systems;

pub use envs::{DecisionView, EnvRow, EnvView, Observation};
pub use features::{Extract, ObservationFeature, ObservationFeatures, ObservationInput, Treatment, UNKNOWN};
pub use normaliser::{CLIP, ElementScale, MIN_COUNT, ObservationNormaliser, RunningMoments};
pub use schema::ObservationSchema;
pub use signals::{SignalTracker, TrainingSignals};
pub use systems::{Feedback, Signals, SlotReports, Tracker};
pub(crate) use systems::{build_observations, report_slots, update_signals};
