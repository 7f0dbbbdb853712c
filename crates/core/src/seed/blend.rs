//! The blend operators, by which a seed's residual δ enters the features h. They are functions on tensors and know no seed.
//!
//! Every operator is one fused `h + u·v`, so each feature is read and written once:
//!
//! | operator | u | v | y |
//! |---|---|---|---|
//! | Add | δ | a, a number | h + a·δ |
//! | Multiply | h | a·tanh δ | h·(1 + a·tanh δ) |
//! | Gate | δ | a·g | h + a·g·δ |

use tch::{TchError, Tensor};

use crate::growth::AlphaAlgorithm;
use crate::kernels::{add_scaled, add_scaled_into};
use crate::torch::TorchError;

/// The reason why a residual could not enter the host: a seed module breaks its contract.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum BlendError {
    /// A seed was blended by the Gate operator without [a gate](crate::growth::AlphaAlgorithm::Gate).
    #[error("the Gate operator was requested for a seed without a gate network; add one first")]
    NoGate,
    /// δ must have the shape of the features that it is made from, for every shape.
    #[error("a seed turned features of shape {features:?} into a residual of shape {delta:?}; the shape must stay")]
    ShapeMismatch { features: Vec<i64>, delta: Vec<i64> },
    /// libtorch failed.
    #[error(transparent)]
    Torch(#[from] TorchError),
}

impl From<TchError> for BlendError {
    fn from(error: TchError) -> Self {
        Self::Torch(error.into())
    }
}

/// The share of δ that enters.
#[derive(Clone, Copy, Debug)]
pub enum Amplitude<'a> {
    /// A number in (0, 1].
    Number(f64),
    /// The same on the device, f32 `[]`: a batch that is recorded once and replayed reads the value of that moment.
    OnDevice(&'a Tensor),
}

impl Amplitude<'_> {
    fn scale(self, tensor: &Tensor) -> Result<Tensor, TchError> {
        match self {
            Self::Number(value) => tensor.f_mul_scalar(value),
            Self::OnDevice(value) => tensor.f_mul(&value.f_to_kind(tensor.kind())?),
        }
    }
}

/// The addition to `h`: the product of two terms.
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Residual {
    /// δ and the amplitude.
    Add { delta: Tensor, amplitude: f64 },
    /// a·tanh δ; the other term is `h`.
    Multiply { factor: Tensor },
    /// δ and the gate's value times the amplitude, one per sample.
    Gate { delta: Tensor, gate: Tensor },
}

impl Residual {
    /// Prepares δ for its amplitude; `gate` is the gate network's value.
    ///
    /// # Errors
    /// [`BlendError::NoGate`] if the operator is Gate and there is none.
    pub fn new(
        delta: Tensor,
        amplitude: Amplitude,
        algorithm: AlphaAlgorithm,
        gate: Option<&Tensor>,
    ) -> Result<Self, BlendError> {
        Ok(match (algorithm, amplitude) {
            (AlphaAlgorithm::Add, Amplitude::Number(amplitude)) => Self::Add { amplitude, delta },
            // A gate that is as far open for every sample.
            (AlphaAlgorithm::Add, Amplitude::OnDevice(value)) => Self::Gate {
                gate: value.f_to_kind(delta.kind())?,
                delta,
            },
            (AlphaAlgorithm::Multiply, _) => Self::Multiply {
                factor: amplitude.scale(&delta.f_tanh()?)?,
            },
            (AlphaAlgorithm::Gate, _) => Self::Gate {
                gate: amplitude.scale(gate.ok_or(BlendError::NoGate)?)?,
                delta,
            },
        })
    }

    /// The part of the residual that belongs to `count` samples from `start`.
    pub fn rows(&self, start: i64, count: i64) -> Result<Self, TchError> {
        let part = |tensor: &Tensor| tensor.f_narrow(0, start, count);
        Ok(match self {
            Self::Add { delta, amplitude } => Self::Add {
                delta: part(delta)?,
                amplitude: *amplitude,
            },
            Self::Multiply { factor } => Self::Multiply { factor: part(factor)? },
            Self::Gate { delta, gate } => Self::Gate {
                delta: part(delta)?,
                gate: part(gate)?,
            },
        })
    }

    /// The blended features.
    pub fn apply(&self, h: &Tensor) -> Result<Tensor, TchError> {
        match self {
            Self::Add { delta, amplitude } => add_scaled(h, delta, *amplitude),
            Self::Multiply { factor } => h.f_addcmul(h, factor),
            Self::Gate { delta, gate } => h.f_addcmul(delta, gate),
        }
    }

    /// Writes the blended features to `out`; for evaluation, it takes no gradient.
    pub fn apply_into(&self, out: &Tensor, h: &Tensor) -> Result<(), TchError> {
        match self {
            Self::Add { delta, amplitude } => add_scaled_into(out, h, delta, *amplitude),
            Self::Multiply { factor } => h.f_addcmul_out(out, h, factor).map(drop),
            Self::Gate { delta, gate } => h.f_addcmul_out(out, delta, gate).map(drop),
        }
    }
}

/// δ in the dtype of the features that it will be added to.
///
/// # Errors
/// [`BlendError::ShapeMismatch`] if it does not have their shape.
pub fn fit_residual(delta: Tensor, h: &Tensor) -> Result<Tensor, BlendError> {
    if delta.size() != h.size() {
        return Err(BlendError::ShapeMismatch {
            features: h.size(),
            delta: delta.size(),
        });
    }
    if delta.kind() == h.kind() {
        return Ok(delta);
    }
    Ok(delta.f_to_kind(h.kind())?)
}
