//! The sets of instructions for which the CPU kernels are compiled. Which of them serves does not show in any result; a
//! test forces each.

use std::ffi::CStr;
use std::marker::PhantomData;

use super::ffi;

/// A set of instructions for which there are kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelLevel {
    index: usize,
    /// Its name: `avx512`, `avx2` or `plain`.
    pub name: &'static str,
    /// This CPU has the instructions.
    pub is_available: bool,
}

/// All levels of this machine's architecture, widest vectors first; the first that is available serves.
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

/// While it lives, the kernels of one level serve this thread.
pub struct ForcedKernels {
    /// Bound to its thread.
    _thread: PhantomData<*const ()>,
}

impl ForcedKernels {
    /// `None` if this CPU lacks the instructions.
    pub fn new(level: KernelLevel) -> Option<Self> {
        level.is_available.then(|| {
            ffi::simic_force_kernel_level(level.index);
            Self { _thread: PhantomData }
        })
    }
}

impl Drop for ForcedKernels {
    fn drop(&mut self) {
        ffi::simic_force_kernel_level(usize::MAX);
    }
}
