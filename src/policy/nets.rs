//! The networks that `policy.net` may name.

use std::sync::Arc;

use super::actor_critic::{ActorCritic, NetContext};
use super::network::Network;
use crate::actions::PolicyError;
use crate::schema::{Registry, Settings, registry};

/// Builds a network.
pub type NetFactory = dyn Fn(NetContext) -> Result<Box<dyn ActorCritic>, PolicyError> + Send + Sync;

registry! {
    /// All networks that `policy.net` may name.
    pub struct NetRegistry(NetFactory);
}

impl Default for NetRegistry {
    /// With the built-in networks.
    fn default() -> Self {
        let mut nets = Self(Registry::new("network"));
        for (name, summary) in [
            ("gru", "residual GRU layers"),
            ("lstm", "residual LSTM layers"),
            ("mlp", "two residual blocks, no memory"),
        ] {
            nets.register(name, summary, Arc::new(|context| Ok(Box::new(Network::new(context)?))));
        }
        nets
    }
}

impl NetRegistry {
    /// Builds the network that the context's spec names, with what the scenario sets of it.
    ///
    /// # Errors
    /// The name is unknown, or the factory refuses its configuration.
    pub fn build(&self, context: NetContext, settings: &Settings) -> Result<Box<dyn ActorCritic>, PolicyError> {
        let (_, build) = self.get(&context.spec.kind, settings)?;
        build(context)
    }
}
