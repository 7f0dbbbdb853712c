//! The networks that `policy.net` may name.

use super::actor_critic::{ActorCritic, NetContext};
use super::network::Network;
use crate::actions::PolicyError;
use crate::policy::Registry;

/// Builds a network.
pub type NetFactory = fn(NetContext) -> Result<Box<dyn ActorCritic>, PolicyError>;

/// All networks that `policy.net` may name.
pub type NetRegistry = Registry<NetFactory>;

impl Default for NetRegistry {
    /// With the built-in networks.
    fn default() -> Self {
        let build: NetFactory = |context| Ok(Box::new(Network::new(context)?));
        let summaries = [
            ("gru", "residual GRU layers"),
            ("lstm", "residual LSTM layers"),
            ("mlp", "two residual blocks, no memory"),
        ];
        Self::with("network", summaries.map(|(name, summary)| (name, summary, build)))
    }
}

impl NetRegistry {
    /// Builds the network that the context's spec names.
    ///
    /// # Errors
    /// The name is unknown, or the factory refuses its configuration.
    pub fn build(&self, context: NetContext) -> Result<Box<dyn ActorCritic>, PolicyError> {
        self.get(&context.spec.kind)?(context)
    }
}
