//! In what a policy's network computes: the same when it acts, when it estimates a value and when a learner evaluates what
//! it did, so that probabilities of one and the same action are comparable.

use tch::{Device, Kind, TchError, Tensor};

use super::actor_critic::{ActorCritic, NetOutput, NetSequence, PolicyInput};
use super::trainable::RecurrentState;
use crate::scenario::AmpMode;
use crate::torch::{Autocast, TorchError, catch, mixed_kind};

/// What autocast computes in, on the device of the network; every output of the network is f32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyPrecision {
    device: Device,
    kind: Option<Kind>,
}

impl PolicyPrecision {
    /// What `learner.amp` means on `device`.
    pub fn new(amp: AmpMode, device: Device) -> Self {
        Self {
            device,
            kind: mixed_kind("learner.amp", amp, device.is_cuda()),
        }
    }

    /// `None`: f32 throughout.
    pub const fn kind(self) -> Option<Kind> {
        self.kind
    }

    /// [`ActorCritic::step`] in this precision.
    ///
    /// # Errors
    /// libtorch's.
    pub fn step(
        self,
        net: &dyn ActorCritic,
        input: &PolicyInput,
        state: &RecurrentState,
    ) -> Result<NetOutput, TorchError> {
        self.run(|| net.step(input, state))
    }

    /// [`ActorCritic::sequence`] in this precision.
    ///
    /// # Errors
    /// libtorch's.
    pub fn sequence(self, net: &dyn ActorCritic, input: &NetSequence) -> Result<NetOutput, TorchError> {
        self.run(|| net.sequence(input))
    }

    fn run(self, net: impl FnOnce() -> Result<NetOutput, TchError>) -> Result<NetOutput, TorchError> {
        let _autocast = self.kind.map(|kind| Autocast::new(self.device, kind)).transpose()?;
        let whole = || {
            let output = net()?;
            Ok(NetOutput {
                logits: in_f32(&output.logits),
                value: in_f32(&output.value),
                state: RecurrentState(output.state.0.iter().map(in_f32).collect()),
            })
        };
        catch(whole)?
    }
}

/// Itself where it is f32 already.
fn in_f32(tensor: &Tensor) -> Tensor {
    tensor.to_kind(Kind::Float)
}
