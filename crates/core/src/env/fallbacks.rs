//! The one guarded path for failing arithmetic: a batch on which the engine's kernels fail is computed again by libtorch's
//! operators, and so is a minibatch of the policy's update. A batch is computed again in f32 if its loss overflows in lower
//! precision, and without a graph if it can't be recorded as one. Each fallback is announced once a run and counted per episode.

use std::fmt::Display;
use std::sync::OnceLock;

use bevy_ecs::prelude::*;

use crate::kernels::ForcedKernels;
use crate::scenario::Kernels;
use crate::telemetry::Fallbacks;
use crate::torch::{Backend, TorchError};

/// Computes in another way what failed, and knows which ways were announced.
#[derive(Resource, Debug, Default)]
pub struct FallbackGuard {
    of_kernel: OnceLock<()>,
    of_autocast: OnceLock<()>,
    of_graph: OnceLock<()>,
}

impl FallbackGuard {
    /// Returns the result of `attempt` on `backend`. If it fails on the engine's own kernels, it is repeated with libtorch's
    /// operators, as its argument says. It starts from the beginning each time.
    ///
    /// # Errors
    /// The first attempt's error, if the second fails too, if there are no own kernels, or if the device as a whole
    /// is at fault.
    pub fn compute<T, E: Display>(
        &self,
        backend: Backend,
        fallbacks: &mut Fallbacks,
        mut attempt: impl FnMut(Backend) -> Result<T, E>,
    ) -> Result<T, E> {
        let failure = match attempt(backend) {
            Err(failure) if backend.uses_own_kernels() && !is_of_device(&failure) => failure,
            outcome => return outcome,
        };
        let _without = ForcedKernels::none();
        let Ok(computed) = attempt(Backend::new(backend.device, Kernels::Libtorch)) else {
            return Err(failure);
        };
        fallbacks.kernel += 1;
        self.of_kernel.get_or_init(|| {
            tracing::warn!(
                "the engine's own kernels failed on a batch, which libtorch's operators computed instead; from here on \
                 round_finished counts it (fallbacks.kernel): {failure}"
            );
        });
        Ok(computed)
    }

    /// Takes note of a training batch that is computed in f32 because lower precision could not hold a loss.
    pub fn note_autocast(&self, fallbacks: &mut Fallbacks) {
        fallbacks.autocast += 1;
        self.of_autocast.get_or_init(|| {
            tracing::warn!(
                "a loss in lower precision was not finite, so a batch is computed in f32; from here on round_finished \
                 counts it (fallbacks.autocast)"
            );
        });
    }

    /// Takes note of a training batch that is played as usual because its like could not be recorded, for `reason`.
    pub fn note_graph(&self, fallbacks: &mut Fallbacks, reason: &str) {
        fallbacks.graph += 1;
        self.of_graph.get_or_init(|| {
            tracing::warn!(
                "run.cuda_graphs: a batch could not be recorded, so batches of its kind are played as usual; from here on \
                 round_finished counts them (fallbacks.graph): {reason}"
            );
        });
    }
}

/// Returns whether the whole device is affected, so that computing a batch in another way wouldn't help.
pub(super) fn is_of_device(failure: &impl Display) -> bool {
    let class = TorchError::classify(failure.to_string());
    matches!(class, TorchError::OutOfMemory(_) | TorchError::DeviceFault(_))
}

#[cfg(test)]
mod tests;
