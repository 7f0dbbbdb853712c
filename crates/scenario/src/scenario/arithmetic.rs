//! The computation of numbers: optimizers, precisions and kernels, which several sections name.

use crate::schema::choice;

choice! {
    /// Optimizer of a host or of its seeds, with a constant learning rate.
    #[derive(Copy)]
    pub enum OptimizerConfig {
        /// stochastic gradient descent with momentum
        Sgd {
            /// Learning rate.
            lr: f64, POSITIVE;
            /// Momentum.
            momentum: f64, BELOW_ONE;
            /// Weight decay.
            weight_decay: f64, NOT_NEGATIVE;
        },
        /// AdamW
        Adamw {
            /// Learning rate.
            lr: f64, POSITIVE;
            /// Decay of the first moment.
            beta1: f64, BELOW_ONE;
            /// Decay of the second moment.
            beta2: f64, BELOW_ONE;
            /// Constant that is added to the denominator.
            eps: f64, POSITIVE;
            /// Decoupled weight decay.
            weight_decay: f64, NOT_NEGATIVE;
        },
    }
}

impl OptimizerConfig {
    /// The learning rate.
    pub fn lr(&self) -> f64 {
        match *self {
            Self::Sgd { lr, .. } | Self::Adamw { lr, .. } => lr,
        }
    }
}

choice! {
    /// Precision of float32 matrix products.
    #[derive(Copy, Eq)]
    pub enum MatmulPrecision {
        /// full float32
        Highest,
        /// TensorFloat-32 on CUDA
        High,
        /// bfloat16 products where the device has them
        Medium,
    }
}

choice! {
    /// Kernels that compute where the engine has its own.
    #[derive(Copy, Eq)]
    pub enum Kernels {
        /// the engine's own kernels where there are any (CPU, float32), otherwise libtorch's operators
        Own,
        /// only libtorch's operators, the reference that the engine's own kernels are tested against
        Libtorch,
    }
}

choice! {
    /// Mixed precision.
    #[derive(Copy, Eq)]
    pub enum AmpMode {
        /// float32
        Off,
        /// bfloat16 on CUDA devices that support it, float16 on other CUDA devices, float32 on a CPU
        Auto,
        /// bfloat16
        Bf16,
        /// float16, with a scaled loss that preserves small gradients
        Fp16,
    }
}
