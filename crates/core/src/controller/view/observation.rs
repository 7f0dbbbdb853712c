//! One env's observation.

use bevy_ecs::component::Component;
use smallvec::SmallVec;

/// One env's row; empty where the run's controller does not ask for observations.
#[derive(Component, Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// In the schema's order and fixed scales: what normalisers learn from.
    pub raw: Vec<f32>,
    /// The same, normalised: what the policy sees.
    pub normalised: Vec<f32>,
    /// Blueprint of each slot's seed, -1 = empty slot.
    pub blueprints: SmallVec<[i64; 4]>,
}
