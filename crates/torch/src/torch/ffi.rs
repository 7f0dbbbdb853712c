//! The declarations of all C++ of the engine and the conversion of its errors, for this folder and `kernels`.

use std::ffi::{CStr, c_char};
use std::marker::{PhantomData, PhantomPinned};

use smallvec::SmallVec;
use tch::{Device, TchError, Tensor};
use torch_sys::C_tensor;

use super::TorchError;

/// Lists up to this long are passed without touching the heap.
pub(crate) type TensorPointers = SmallVec<[*mut C_tensor; 64]>;

/// The pointers of `tensors`, valid as long as the slice is borrowed.
pub(crate) fn pointers(tensors: &[Tensor]) -> TensorPointers {
    tensors.iter().map(pointer).collect()
}

/// The pointer of one tensor. libtorch's tensors are shared handles with interior mutability, which is why the C++
/// side may write through a handle that Rust borrows immutably; tch's own in-place operators do the same.
pub(crate) fn pointer(tensor: &Tensor) -> *mut C_tensor {
    tensor.as_ptr().cast_mut()
}

/// The pointer of an optional tensor, null for `None`.
pub(crate) fn optional_pointer(tensor: Option<&Tensor>) -> *const C_tensor {
    tensor.map_or(std::ptr::null(), Tensor::as_ptr)
}

/// Takes over the error text of a shim call.
///
/// # Safety
/// `error` is null or was returned by a function of the shim and is passed here once.
pub(crate) unsafe fn check(error: *mut c_char) -> Result<(), TorchError> {
    // SAFETY: the caller's promise.
    unsafe { take_error(error) }.map_err(TorchError::classify)
}

/// [`check`] for a call that behaves like an operator of tch.
///
/// # Safety
/// The conditions of [`check`].
pub(crate) unsafe fn check_operator(error: *mut c_char) -> Result<(), TchError> {
    // SAFETY: the caller's promise.
    unsafe { take_error(error) }.map_err(TchError::Torch)
}

/// # Safety
/// The conditions of [`check`].
unsafe fn take_error(error: *mut c_char) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the shim returns a NUL-terminated string of its own; it is freed once, after the copy.
    unsafe {
        let message = CStr::from_ptr(error).to_string_lossy().into_owned();
        simic_free_error(error);
        Err(message)
    }
}

/// libtorch's number of a device's type.
pub(crate) fn device_type(device: Device) -> i64 {
    match device {
        Device::Cpu => 0,
        Device::Cuda(_) => 1,
        Device::Mps => 13,
        Device::Vulkan => 10,
    }
}

/// A stream as plain numbers, the inverse of `c10::Stream::pack3`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawStream {
    pub id: i64,
    pub index: i64,
    pub device_type: i64,
}

/// The autocast modes of one device type on this thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawAutocast {
    pub device_type: i64,
    pub dtype: i64,
    pub enabled: bool,
    pub cache_enabled: bool,
}

/// An optimizer's rule with its state, lists of one tensor a parameter.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawRule {
    pub is_adamw: bool,
    pub lr: f64,
    pub beta1: f64,
    pub beta2: f64,
    pub eps: f64,
    pub weight_decay: f64,
    pub first: *const *mut C_tensor,
    pub second: *const *mut C_tensor,
    pub counts: *const *mut C_tensor,
}

/// Treatment of a group's gradients in a batch; columns are -1 where nothing is written.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawTreatment {
    pub max_norm: f64,
    pub vanishing: f64,
    pub exploding: f64,
    pub statistics: i64,
    pub streak: i64,
    pub skipped: i64,
}

/// A C++ object that Rust only ever holds by pointer.
#[repr(C)]
pub(crate) struct Opaque {
    _bytes: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

unsafe extern "C" {
    fn simic_free_error(error: *mut c_char);

    pub(crate) fn simic_zero_grads(params: *const *mut C_tensor, n: usize) -> *mut c_char;
    pub(crate) fn simic_drop_grads(params: *const *mut C_tensor, n: usize) -> *mut c_char;
    pub(crate) fn simic_clip_grads(
        params: *const *mut C_tensor,
        n: usize,
        max_norm: f64,
        norm: *mut C_tensor,
        bad: *mut C_tensor,
    ) -> *mut c_char;
    pub(crate) fn simic_grad_stats(
        params: *const *mut C_tensor,
        n: usize,
        vanishing: f64,
        exploding: f64,
        out: *mut C_tensor,
    ) -> *mut c_char;
    pub(crate) fn simic_unscale_grads(
        params: *const *mut C_tensor,
        n: usize,
        inverse_scale: *const C_tensor,
        found_inf: *mut C_tensor,
    ) -> *mut c_char;
    pub(crate) fn simic_zero_all(tensors: *const *mut C_tensor, n: usize) -> *mut c_char;
    pub(crate) fn simic_keep(tensors: *const *mut C_tensor, n: usize, kept: *mut C_tensor) -> *mut c_char;
    pub(crate) fn simic_restore(
        tensors: *const *mut C_tensor,
        n: usize,
        kept: *const C_tensor,
        unless_finite: bool,
    ) -> *mut c_char;
    pub(crate) fn simic_copy_all(
        to: *const *mut C_tensor,
        from: *const *mut C_tensor,
        n: usize,
        non_blocking: bool,
    ) -> *mut c_char;

    pub(crate) fn simic_own_step(
        params: *const *mut C_tensor,
        n: usize,
        rule: *const RawRule,
        found_inf: *const C_tensor,
    ) -> *mut c_char;
    pub(crate) fn simic_fused_step(
        params: *const *mut C_tensor,
        n: usize,
        rule: *const RawRule,
        rate: *const C_tensor,
        found_inf: *const C_tensor,
    ) -> *mut c_char;
    pub(crate) fn simic_own_update(
        params: *const *mut C_tensor,
        n: usize,
        rule: *const RawRule,
        treatment: *const RawTreatment,
        pack: *mut C_tensor,
        norm: *mut C_tensor,
        bad: *mut C_tensor,
    ) -> *mut c_char;

    pub(crate) fn simic_gather_images(
        windows: *const C_tensor,
        positions: *const C_tensor,
        masks: *const C_tensor,
        places: *const C_tensor,
        a: *const C_tensor,
        b: *const C_tensor,
        out: *mut C_tensor,
    ) -> *mut c_char;
    pub(crate) fn simic_cross_entropy(
        logits: *const C_tensor,
        targets: *const C_tensor,
        smoothing: f64,
        predictions: *mut C_tensor,
        first: i64,
        losses: *mut C_tensor,
        batch: i64,
        share: f64,
        out: *mut *mut C_tensor,
    ) -> *mut c_char;
    pub(crate) fn simic_keep_tensor_blocks();
    pub(crate) fn simic_kept_bytes() -> usize;
    pub(crate) fn simic_free_thread_buffers();
    pub(crate) fn simic_backward(objective: *const C_tensor) -> *mut c_char;
    pub(crate) fn simic_add_validation(
        logits: *const C_tensor,
        targets: *const C_tensor,
        main: i64,
        pack: *mut C_tensor,
        losses: i64,
        correct: i64,
        both_correct: i64,
        room: i64,
    ) -> *mut c_char;

    pub(crate) fn simic_copy_into(to: *mut C_tensor, from: *const C_tensor, non_blocking: bool) -> *mut c_char;
    pub(crate) fn simic_pinned(tensor: *const C_tensor, out: *mut *mut C_tensor) -> *mut c_char;
    pub(crate) fn simic_channels_last(tensor: *const C_tensor, out: *mut *mut C_tensor) -> *mut c_char;
    pub(crate) fn simic_is_channels_last(tensor: *const C_tensor, out: *mut bool) -> *mut c_char;

    pub(crate) fn simic_is_served(x: *const C_tensor) -> bool;
    pub(crate) fn simic_block(
        x: *const C_tensor,
        weight: *const C_tensor,
        gamma: *const C_tensor,
        beta: *const C_tensor,
        running_mean: *const C_tensor,
        running_variance: *const C_tensor,
        momentum: f64,
        epsilon: f64,
        stride: i64,
        pooled: bool,
        residual: *const C_tensor,
        out: *mut *mut C_tensor,
    ) -> *mut c_char;
    pub(crate) fn simic_folded_block(
        x: *const C_tensor,
        weight: *const C_tensor,
        bias: *const C_tensor,
        pooled: bool,
        residual: *const C_tensor,
        out: *mut *mut C_tensor,
    ) -> *mut c_char;
    pub(crate) fn simic_fold_block(
        weight: *const C_tensor,
        gamma: *const C_tensor,
        beta: *const C_tensor,
        mean: *const C_tensor,
        variance: *const C_tensor,
        epsilon: f64,
        folded: *mut C_tensor,
        bias: *mut C_tensor,
    ) -> *mut c_char;
    pub(crate) safe fn simic_tile_side(side: i64, inputs: i64, outputs: i64, kernel: i64, stride: i64) -> i64;
    pub(crate) fn simic_max_pool(x: *const C_tensor, out: *mut *mut C_tensor) -> *mut c_char;
    pub(crate) fn simic_head(
        x: *const C_tensor,
        weight: *const C_tensor,
        bias: *const C_tensor,
        out: *mut *mut C_tensor,
    ) -> *mut c_char;
    pub(crate) fn simic_layer(
        x: *const C_tensor,
        weight: *const C_tensor,
        gamma: *const C_tensor,
        beta: *const C_tensor,
        groups: i64,
        epsilon: f64,
        silu_before: bool,
        silu_after: bool,
        features: *const C_tensor,
        alpha: f64,
        straight_through: bool,
        out: *mut *mut C_tensor,
    ) -> *mut c_char;
    pub(crate) fn simic_norm_residual(
        x: *const C_tensor,
        gamma: *const C_tensor,
        beta: *const C_tensor,
        strength: *const C_tensor,
        groups: i64,
        epsilon: f64,
        out: *mut *mut C_tensor,
    ) -> *mut c_char;
    pub(crate) fn simic_squeeze_excite(
        x: *const C_tensor,
        squeeze: *const C_tensor,
        excite: *const C_tensor,
        bias: *const C_tensor,
        out: *mut *mut C_tensor,
    ) -> *mut c_char;
    pub(crate) fn simic_incubate(h: *const C_tensor, delta: *const C_tensor, out: *mut *mut C_tensor) -> *mut c_char;
    pub(crate) fn simic_add_scaled(
        h: *const C_tensor,
        delta: *const C_tensor,
        alpha: f64,
        out: *mut *mut C_tensor,
    ) -> *mut c_char;
    pub(crate) fn simic_add_scaled_into(
        out: *mut C_tensor,
        h: *const C_tensor,
        delta: *const C_tensor,
        alpha: f64,
    ) -> *mut c_char;

    pub(crate) fn simic_kernel_level(index: usize, available: *mut bool) -> *const c_char;
    pub(crate) safe fn simic_force_kernel_level(index: usize);
    pub(crate) safe fn simic_fail_kernel(call: i64);

    pub(crate) safe fn simic_cuda_computes_bf16() -> bool;

    pub(crate) safe fn simic_grad_enabled() -> bool;
    pub(crate) safe fn simic_set_grad_enabled(enabled: bool);
    pub(crate) fn simic_inference_begin(out: *mut *mut Opaque) -> *mut c_char;
    pub(crate) fn simic_inference_end(mode: *mut Opaque);
    pub(crate) fn simic_autocast_set(mode: *const RawAutocast, previous: *mut RawAutocast) -> *mut c_char;

    pub(crate) fn simic_stream_from_pool(device_type: i64, index: i64, out: *mut RawStream) -> *mut c_char;
    pub(crate) fn simic_stream_exchange(
        stream: *const RawStream,
        previous: *mut RawStream,
        previous_device: *mut i64,
    ) -> *mut c_char;
    pub(crate) fn simic_stream_restore(previous: *const RawStream, previous_device: i64) -> *mut c_char;
    pub(crate) fn simic_stream_synchronize(stream: *const RawStream) -> *mut c_char;
    pub(crate) fn simic_event_record(device_type: i64, index: i64, event: *mut *mut Opaque) -> *mut c_char;
    pub(crate) fn simic_event_wait(event: *const Opaque) -> *mut c_char;
    pub(crate) fn simic_event_free(event: *mut Opaque);
    pub(crate) fn simic_free_bytes(device_type: i64, index: i64, out: *mut u64) -> *mut c_char;
    pub(crate) fn simic_device_memory(device_type: i64, index: i64, out: *mut u64) -> *mut c_char;
    pub(crate) fn simic_reset_peak_memory(device_type: i64, index: i64) -> *mut c_char;

    pub(crate) fn simic_set_matmul_precision(precision: *const c_char) -> *mut c_char;
    pub(crate) fn simic_set_deterministic(on: bool) -> *mut c_char;

    /// libtorch's own function: the version it was built as, a byte for each part of the number.
    pub(crate) safe fn aoti_torch_abi_version() -> u64;
}
