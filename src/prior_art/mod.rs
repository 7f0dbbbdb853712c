//! What the prior art had beside: six rewards and two policy networks, as a plugin of the public API alone.
//!
//! A scenario names them as it names parts of the engine: `reward: contribution(shaped())`, `policy: (net: "gru")`. They are kept
//! for comparison, and as the proof that [`prelude`](crate::prelude) is all that a plugin needs.

mod rewards;
pub(crate) mod networks;

use crate::prelude::*;

/// Adds the rewards and the networks of the prior art.
#[derive(Clone, Copy, Debug, Default)]
pub struct PriorArtPlugin;

impl Plugin for PriorArtPlugin {
    fn build(&self, app: &mut App) {
        let world = app.world_mut();
        // The plugin that a registry belongs to may have been left out.
        world.get_resource_mut().as_deref_mut().map(rewards::register);
        world.get_resource_mut().as_deref_mut().map(networks::register);
        world.get_resource_or_init::<Inventory>().add(
            "PriorArtPlugin",
            env!("CARGO_PKG_VERSION"),
            "the prior art's rewards and networks",
        );
    }
}
