//! The built-in seed modules: here those for images, in [`tokens`] those for texts.
//!
//! Those for images are SiLU networks with GroupNorm; each ends in a factor or norm that starts at zero, so δ is exactly 0 at birth
//! while the gradient already reaches that factor.

mod conv_stack;
mod norm;
mod squeeze_excite;
mod tokens;

use tch::{TchError, Tensor};

use self::conv_stack::{ConvStack, Layer};
use self::norm::NormModule;
use self::squeeze_excite::SqueezeExcite;
pub use self::tokens::TokenBlueprint;
use super::{Blueprint, BlueprintError, BlueprintRegistry, SeedModule};
use crate::growth::coded_enum;
use crate::random::RunRng;
use crate::torch::{Backend, Mode, ParamSet};

coded_enum! {
    /// The built-in kinds for images; the code is the blueprint index.
    CnnBlueprint {
        /// No residual and no parameters.
        Noop = 0 => "noop",
        /// One 3×3 convolution.
        ConvLight = 1 => "conv_light",
        /// Squeeze-and-excite channel gates.
        Attention = 2 => "attention",
        /// Group norm.
        Norm = 3 => "norm",
        /// Depthwise, then pointwise convolution.
        Depthwise = 4 => "depthwise",
        /// 1×1, 3×3 and 1×1 convolutions through fewer channels.
        Bottleneck = 5 => "bottleneck",
        /// One 1×1 convolution.
        ConvSmall = 6 => "conv_small",
        /// Two 3×3 convolutions.
        ConvHeavy = 7 => "conv_heavy",
    }
}

impl CnnBlueprint {
    /// The layers of the kinds that are plain stacks.
    fn layers(self, dim: i64) -> Vec<Layer> {
        use Layer::{Norm, Silu};
        /// Narrowest waist of a bottleneck.
        const MIN_WAIST: i64 = 8;
        const REDUCTION: i64 = 4;
        let conv = |kernel| Layer::conv(dim, dim, kernel);
        let birth_norm = Norm {
            channels: dim,
            weight: 0.0,
        };
        match self {
            Self::Noop | Self::Attention | Self::Norm => Vec::new(),
            Self::Depthwise => vec![Layer::depthwise(dim, 3), conv(1), Silu, birth_norm],
            Self::Bottleneck => {
                let waist = MIN_WAIST.max(dim / REDUCTION);
                vec![
                    Layer::conv(dim, waist, 1),
                    Silu,
                    Layer::conv(waist, waist, 3),
                    Silu,
                    Layer::conv(waist, dim, 1),
                    birth_norm,
                ]
            }
            Self::ConvSmall => vec![conv(1), Silu, birth_norm],
            Self::ConvLight => vec![conv(3), Silu, birth_norm],
            Self::ConvHeavy => {
                let inner_norm = Norm {
                    channels: dim,
                    weight: 1.0,
                };
                vec![conv(3), inner_norm, Silu, conv(3), Silu, birth_norm]
            }
        }
    }
}

impl Default for BlueprintRegistry {
    /// The built-in blueprints.
    fn default() -> Self {
        let images = CnnBlueprint::ALL.map(|blueprint| (blueprint.code(), Box::new(blueprint) as _));
        let texts = TokenBlueprint::ALL.map(|blueprint| (blueprint.code(), Box::new(blueprint) as _));
        Self::of(images.into_iter().chain(texts))
    }
}

impl Blueprint for CnnBlueprint {
    fn id(&self) -> &'static str {
        self.name()
    }

    fn summary(&self) -> &'static str {
        match self {
            Self::Noop => "no change, no parameters; a placebo for experiments",
            Self::ConvLight => "one 3x3 convolution, SiLU, group norm",
            Self::Attention => "squeeze-and-excite channel gates",
            Self::Norm => "group norm, blended in by one learned scale",
            Self::Depthwise => "depthwise 3x3, then pointwise convolution",
            Self::Bottleneck => "1x1, 3x3, 1x1 convolutions through fewer channels",
            Self::ConvSmall => "one 1x1 convolution, SiLU, group norm",
            Self::ConvHeavy => "two 3x3 convolutions, SiLU, group norm",
        }
    }

    fn param_count(&self, dim: i64) -> u64 {
        match self {
            Self::Noop => 0,
            Self::Norm => NormModule::param_count(dim),
            Self::Attention => SqueezeExcite::param_count(dim),
            _ => self.layers(dim).iter().map(|layer| layer.param_count()).sum(),
        }
    }

    fn build(&self, dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError> {
        Ok(match self {
            Self::Noop => Box::new(Noop {
                params: ParamSet::new(backend),
            }),
            Self::Norm => Box::new(NormModule::new(dim, rng, backend)?),
            Self::Attention => Box::new(SqueezeExcite::new(dim, rng, backend)?),
            _ => Box::new(ConvStack::new(&self.layers(dim), rng, backend)?),
        })
    }
}

/// A placebo: no residual, no parameters.
struct Noop {
    params: ParamSet,
}

impl SeedModule for Noop {
    fn delta(&self, _: &Tensor, _: Mode) -> Result<Option<Tensor>, TchError> {
        Ok(None)
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }

    fn macs(&self, _: u64) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests;
