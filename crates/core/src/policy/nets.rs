//! The networks that `policy.net` may name.

use std::sync::Arc;

use tch::TchError;

use super::actor_critic::{ActorCritic, NetContext};
use super::cores::{Lstm, NetCore, RecurrentCore};
use super::network::Network;
use super::window::WindowCore;
use crate::actions::PolicyError;
use crate::nn::ParamSet;
use crate::scenario::NetConfig;
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
        nets.register_core("lstm", "residual LSTM layers", |config, params| {
            Ok(Box::new(RecurrentCore::<Lstm>::new(config, params)?))
        });
        nets.register_core("window", "attention to the last 16 steps", |config, params| {
            Ok(Box::new(WindowCore::new(config, params)?))
        });
        nets
    }
}

impl NetRegistry {
    /// Adds a network that differs from the engine's by its core alone: `build` makes one for these sizes, and adds its parameters to
    /// the set.
    pub fn register_core(
        &mut self,
        name: &str,
        summary: &str,
        build: impl Fn(&NetConfig, &mut ParamSet) -> Result<Box<dyn NetCore>, TchError> + Send + Sync + 'static,
    ) {
        let net = move |context| Ok(Box::new(Network::new(context, &build)?) as _);
        self.register(name, summary, Arc::new(net));
    }

    /// Builds the network that the context's spec names, with what the scenario sets of it.
    ///
    /// # Errors
    /// The name is unknown, or the factory refuses its configuration.
    pub fn build(&self, context: NetContext, settings: &Settings) -> Result<Box<dyn ActorCritic>, PolicyError> {
        let (_, build) = self.get(&context.spec.kind, settings)?;
        build(context)
    }
}
