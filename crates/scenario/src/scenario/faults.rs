//! Section `faults`: damage done on purpose, for tests and to see the governor work.

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
        /// Training batch of the step, from 0. None: its first.
        batch: Option<usize>;
        /// Kind of fault.
        fault: Fault;
    }
}

choice! {
    /// Kind of fault.
    pub enum Fault {
        /// host weights become NaN
        NanWeight,
        /// the host's gradient becomes NaN for one batch
        NanGrad,
        /// multiply all weights of the host
        ScaleWeights(f64, POSITIVE),
        /// multiply all weights of a seed
        ScaleSeed {
            /// Slot of the seed; nothing happens while it is empty.
            slot: SlotId;
            /// Factor on all of its weights.
            factor: f64, POSITIVE;
        },
        /// the env's training fails
        EnvError,
        /// the env's device has no memory left for training on a batch as a whole
        OutOfMemory,
        /// one use of the engine's own kernels in the batch fails: that one, from 1
        KernelError(u32, at_least(1)),
        /// the batch's loss is not a number when it is computed first
        NanLoss,
        /// the governor sees this validation loss instead
        LossSpike(f64, POSITIVE),
    }
}
