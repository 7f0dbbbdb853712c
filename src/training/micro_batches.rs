//! Into how many parts batches are split: as the scenario says, and more where memory was short.

use bevy_ecs::prelude::*;

use crate::env::Experiment;

/// Parts of a training batch; doubled where a device ran out of memory and the scenario wants the run to go on.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub struct MicroBatches(pub usize);

impl MicroBatches {
    /// Twice as many parts, at most one a sample; `None` if there are as many already.
    pub fn doubled(self, batch_size: usize) -> Option<Self> {
        (self.0 < batch_size).then(|| Self((2 * self.0).min(batch_size)))
    }
}

/// As the scenario says.
pub fn choose_micro_batches(mut commands: Commands, experiment: Res<Experiment>) {
    commands.insert_resource(MicroBatches(experiment.scenario.training.micro_batches));
}
