//! Parts of the prior art: six rewards and two policy networks, as a plugin of the public API alone.
//!
//! A scenario names them as it names parts of the engine: `reward: contribution(shaped())`, `policy: (net: "gru")`. They are kept
//! for comparison, and as the proof that [`prelude`](crate::prelude) is all that a plugin needs.

mod rewards;
pub(crate) mod networks;

use crate::prelude::*;

/// Adds the rewards and the networks of the prior art. `cli::main` adds it itself; other programs do so with
/// `Engine::builder().with(PriorArtPlugin)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct PriorArtPlugin;

impl Plugin for PriorArtPlugin {
    fn build(&self, app: &mut App) {
        let world = app.world_mut();
        // The plugin that a registry belongs to may have been left out.
        if let Some(mut modes) = world.get_resource_mut::<RewardModes>() {
            rewards::register(&mut modes);
        }
        if let Some(mut nets) = world.get_resource_mut::<NetRegistry>() {
            networks::register(&mut nets);
        }
        world.get_resource_or_init::<Inventory>().add(
            "PriorArtPlugin",
            env!("CARGO_PKG_VERSION"),
            "the prior art's rewards and networks",
        );
    }
}
