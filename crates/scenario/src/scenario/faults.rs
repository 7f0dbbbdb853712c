//! Section `faults`: deliberate damage, for tests and to see the governor work.

use crate::growth::SlotId;
use crate::schema::{choice, record};

record! {
    /// One fault, applied once.
    pub struct FaultEntry {
        /// Env to damage.
        env: usize;
        /// Round, from 0.
        round: u32;
        /// Step, from 1.
        step: u32, at_least(1);
        /// Training batch of the step, from 0. None: the first.
        batch: Option<usize>;
        /// Kind of fault.
        fault: Fault;
    }
}

choice! {
    /// Kind of fault.
    pub enum Fault {
        /// the host's weights become NaN
        NanWeight,
        /// the host's gradient becomes NaN for one batch
        NanGrad,
        /// the host's weights are multiplied by this factor
        ScaleWeights(f64, POSITIVE),
        /// a seed's weights are multiplied by a factor
        ScaleSeed {
            /// Slot of the seed. If it is empty, nothing happens.
            slot: SlotId;
            /// Factor that the seed's weights are multiplied by.
            factor: f64, POSITIVE;
        },
        /// the env's training fails
        EnvError,
        /// the env's device runs out of memory on a whole batch, but not on parts of it
        OutOfMemory,
        /// one use of the engine's own kernels in the batch fails: the one with this number, from 1
        KernelError(u32, at_least(1)),
        /// the batch's loss is NaN the first time it is computed
        NanLoss,
        /// the governor sees this validation loss instead of the real one
        LossSpike(f64, POSITIVE),
    }
}
