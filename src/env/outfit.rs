//! How envs get what the subjects around them need, at start-up.

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;

use super::{Devices, EnvId, EnvStream, LoadedData};
use crate::data::{FeedArithmetic, ResidentData};
use crate::health::{Failure, InEnv};

/// Equips envs, each in the guard of its own stream, with what is made from the data on its device.
#[derive(SystemParam)]
pub struct Outfitter<'w, 's> {
    commands: Commands<'w, 's>,
    devices: Res<'w, Devices>,
    data: ResMut<'w, LoadedData>,
}

impl Outfitter<'_, '_> {
    /// Adds the components that `outfit` makes.
    ///
    /// # Errors
    /// What `outfit` fails with, under the env's name.
    pub fn equip<B: Bundle>(
        &mut self,
        (entity, id): (Entity, &EnvId),
        stream: &mut EnvStream,
        outfit: impl FnOnce(&ResidentData, FeedArithmetic) -> Result<B, Failure>,
    ) -> Result<(), Failure> {
        let feed = self.data.feed;
        let resident = &self.data.resident.get()[self.devices.index_of_env(id.index)];
        let made = stream
            .0
            .get()
            .enter()
            .map_err(Failure::from)
            .and_then(|_guard| outfit(resident, feed));
        let made = made.in_env(id.index)?;
        self.commands.entity(entity).insert(made);
        Ok(())
    }
}
