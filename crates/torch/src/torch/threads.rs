//! Threads inside one tensor operation.

use std::num::NonZero;

use super::{TorchError, catch};

/// Sets how many threads one operation may use when it is called from **this** thread.
///
/// OpenMP keeps the number per thread; a thread that never set it gets the number that was set last anywhere. So each
/// worker of a pool calls this itself, in its start handler, and the thread that made the pool calls it for itself.
pub fn set_intra_op_threads(threads: NonZero<u16>) -> Result<(), TorchError> {
    catch(|| {
        // Asking makes libtorch initialise this thread now. Otherwise it would do so at the thread's first parallel
        // operation and replace the number set here by the one that some other thread has set by then.
        tch::get_num_threads();
        tch::set_num_threads(i32::from(threads.get()));
    })
}

#[cfg(test)]
mod tests;
