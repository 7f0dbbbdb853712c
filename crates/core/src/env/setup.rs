//! What the subjects around an env add to it at start-up.

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;

use super::{Devices, EnvId, EnvStream, LoadedData};
use crate::data::{FeedArithmetic, Resident};
use crate::health::{Failure, InEnv};

/// Adds components to envs, each made in the guard of its env's stream from the data on its device.
#[derive(SystemParam)]
pub struct EnvSetup<'w, 's> {
    commands: Commands<'w, 's>,
    devices: Res<'w, Devices>,
    data: ResMut<'w, LoadedData>,
}

impl EnvSetup<'_, '_> {
    /// Adds the components that `make` returns.
    ///
    /// # Errors
    /// The error of `make`, under the env's name.
    pub fn insert<B: Bundle>(
        &mut self,
        (entity, id): (Entity, &EnvId),
        stream: &mut EnvStream,
        make: impl FnOnce(&Resident, FeedArithmetic) -> Result<B, Failure>,
    ) -> Result<(), Failure> {
        let feed = self.data.feed;
        let resident = &self.data.resident.get()[self.devices.index_of_env(id.index)];
        let made = stream
            .0
            .get()
            .enter()
            .map_err(Failure::from)
            .and_then(|_guard| make(resident, feed));
        let made = made.in_env(id.index)?;
        self.commands.entity(entity).insert(made);
        Ok(())
    }
}
