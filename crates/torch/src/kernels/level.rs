//! The CPU kernels that serve a thread. Results don't depend on the set of instructions that they are compiled for,
//! and a test forces each set. A thread uses none of them while it computes again what failed in them.

use std::cell::Cell;
use std::ffi::CStr;
use std::marker::PhantomData;

use crate::torch::ffi;

/// A set of instructions for which there are kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelLevel {
    index: usize,
    /// Name of the set: `avx512`, `avx2` or `plain`.
    pub name: &'static str,
    /// True if this CPU has the instructions.
    pub is_available: bool,
}

/// All levels of this machine's architecture, widest vectors first. The first available one serves.
pub fn kernel_levels() -> Vec<KernelLevel> {
    let level = |index| {
        let mut is_available = false;
        // SAFETY: `is_available` outlives the call; the name, where there is one, is a literal of the shim.
        let name = unsafe {
            let name = ffi::simic_kernel_level(index, &mut is_available);
            (!name.is_null()).then(|| CStr::from_ptr(name))?
        };
        Some(KernelLevel {
            index,
            name: name.to_str().ok()?,
            is_available,
        })
    };
    (0..).map_while(level).collect()
}

thread_local! {
    static LEFT_OUT: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether libtorch's operators serve this thread instead of the kernels.
pub(super) fn are_left_out() -> bool {
    LEFT_OUT.get()
}

/// A guard: while it lives, this thread uses other kernels than those that would serve it.
pub struct ForcedKernels {
    /// Bound to its thread.
    _thread: PhantomData<*const ()>,
}

impl ForcedKernels {
    /// Forces the kernels of one level; `None` if this CPU does not have the instructions.
    pub fn new(level: KernelLevel) -> Option<Self> {
        level.is_available.then(|| {
            ffi::simic_force_kernel_level(level.index);
            Self { _thread: PhantomData }
        })
    }

    /// Forces the thread to use none.
    pub fn none() -> Self {
        LEFT_OUT.set(true);
        Self { _thread: PhantomData }
    }

    /// The same kernels, but their `call`-th use from here on, counted from 1, fails: damage done on purpose. An operator uses
    /// them once or several times, forward and backward.
    pub fn failing(call: u32) -> Self {
        ffi::simic_fail_kernel(call.into());
        Self { _thread: PhantomData }
    }
}

impl Drop for ForcedKernels {
    fn drop(&mut self) {
        LEFT_OUT.set(false);
        ffi::simic_fail_kernel(0);
        ffi::simic_force_kernel_level(usize::MAX);
    }
}
