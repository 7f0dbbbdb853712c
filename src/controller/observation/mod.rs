//! What a learned controller sees of an env: measurements of the step just done, as a row of numbers (spec 03 §6).
//!
//! An [`ObservationSchema`] names the features and encodes them; an [`ObservationNormaliser`] brings them to one scale
//! with statistics that move only between rollouts. Plugins append features of their own by [`ObservationFeatures`].

mod encode;
mod features;
mod normaliser;
mod schema;
mod systems;
#[cfg(test)]
mod tests;

use bevy_ecs::component::Component;
use smallvec::SmallVec;

pub use features::*;
pub use normaliser::*;
pub use schema::*;
pub use systems::*;

/// One env's row; empty where the run's controller does not ask for observations.
#[derive(Component, Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// In the schema's order and fixed scales: what normalisers learn from.
    pub raw: Vec<f32>,
    /// The same, normalised: what the policy sees.
    pub normalised: Vec<f32>,
    /// Blueprint of each slot's seed, -1 = empty slot.
    pub blueprints: SmallVec<[i64; 4]>,
    /// The first element that was not finite and is read as 0.
    pub replaced: Option<usize>,
}
