//! Units of the critic: raw values are in units of scaled reward, the network puts out normalised ones
//! (spec 04 §5.4; PopArt of van Hasselt et al. 2016).

use serde::{Deserialize, Serialize};

use crate::controller::{Moments, ValueOutput};
use crate::scenario::ValueNormMode;
use crate::torch::{TorchError, catch, copy_into};

const MIN_DEVIATION: f64 = 1e-3;

/// Running statistics of returns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueNormalizer {
    pub mode: ValueNormMode,
    pub moments: Moments,
    /// Returns before the statistics are used.
    pub min_count: u64,
}

/// `raw = normalised · deviation + mean`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueUnits {
    pub mean: f64,
    pub deviation: f64,
}

impl ValueUnits {
    pub fn normalise(self, raw: f64) -> f64 {
        (raw - self.mean) / self.deviation
    }

    pub fn raw(self, normalised: f64) -> f64 {
        normalised * self.deviation + self.mean
    }
}

impl ValueNormalizer {
    pub fn new(mode: ValueNormMode, min_count: u64) -> Self {
        Self {
            mode,
            moments: Moments::default(),
            min_count,
        }
    }

    /// The units in force; they change only at the end of a rollout.
    pub fn units(&self) -> ValueUnits {
        let deviation = self.moments.var.sqrt().max(MIN_DEVIATION);
        match self.mode {
            _ if !self.moments.is_ready(self.min_count) => ValueUnits {
                mean: 0.0,
                deviation: 1.0,
            },
            ValueNormMode::Off => ValueUnits {
                mean: 0.0,
                deviation: 1.0,
            },
            ValueNormMode::Scale => ValueUnits { mean: 0.0, deviation },
            ValueNormMode::Popart => ValueUnits {
                mean: self.moments.mean,
                deviation,
            },
        }
    }

    /// Merges the returns of a rollout and rewrites the value head so that its raw outputs stay as they are. Returns
    /// false, and changes nothing, if the returns' mean or variance is not finite.
    ///
    /// # Errors
    /// A device error.
    pub fn observe(&mut self, returns: &[f64], momentum: f64, head: &ValueOutput) -> Result<bool, TorchError> {
        if self.mode == ValueNormMode::Off {
            return Ok(true);
        }
        let before = self.units();
        let is_finite = self.moments.merge(returns.iter().copied(), momentum);
        if is_finite {
            preserve_outputs(head, before, self.units())?;
        }
        Ok(is_finite)
    }

    /// The unit of reward grew: all raw values are `factor` times what they were (spec 04 §5.3). The statistics move,
    /// or, where none are in use, the head itself.
    ///
    /// # Errors
    /// A device error.
    pub fn rescale_units(&mut self, factor: f64, head: &ValueOutput) -> Result<(), TorchError> {
        let is_in_use = self.mode != ValueNormMode::Off && self.moments.is_ready(self.min_count);
        if self.moments.count > 0 {
            self.moments.mean *= factor;
            self.moments.var *= factor * factor;
        }
        if is_in_use {
            return Ok(());
        }
        let (weight, bias) = catch(|| (head.weight.detach() * factor, head.bias.detach() * factor))?;
        copy_into(&head.weight, &weight, false)?;
        copy_into(&head.bias, &bias, false)
    }
}

/// `w' = w·σ/σ'`, `b' = (σ·b + μ − μ')/σ'`, in place.
fn preserve_outputs(head: &ValueOutput, from: ValueUnits, to: ValueUnits) -> Result<(), TorchError> {
    let (weight, bias) = catch(|| {
        let weight = head.weight.detach() * (from.deviation / to.deviation);
        let bias = (head.bias.detach() * from.deviation + (from.mean - to.mean)) / to.deviation;
        (weight, bias)
    })?;
    copy_into(&head.weight, &weight, false)?;
    copy_into(&head.bias, &bias, false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tch::Tensor;

    use super::*;
    use crate::torch::{HostSyncCounter, read_f64};

    fn head(weight: [f32; 2], bias: f32) -> ValueOutput {
        ValueOutput {
            weight: Tensor::from_slice(&weight).reshape([1, 2]).set_requires_grad(true),
            bias: Tensor::from_slice(&[bias]).set_requires_grad(true),
        }
    }

    fn read(tensor: &Tensor) -> Vec<f64> {
        read_f64(tensor, &HostSyncCounter::default()).expect("read")
    }

    fn raw_output(head: &ValueOutput, units: ValueUnits, input: [f64; 2]) -> f64 {
        let (weight, bias) = (read(&head.weight), read(&head.bias));
        units.raw(weight[0] * input[0] + weight[1] * input[1] + bias[0])
    }

    /// Spec 04 Check 7.
    #[test]
    fn the_head_is_rewritten_so_that_raw_outputs_stay() {
        let head = head([0.5, -0.25], 0.1);
        let unit = ValueUnits {
            mean: 0.0,
            deviation: 1.0,
        };
        let moved = ValueUnits {
            mean: 3.0,
            deviation: 2.0,
        };

        preserve_outputs(&head, unit, moved).expect("rescale");

        assert_eq!(read(&head.weight), [0.25, -0.125]);
        assert!((read(&head.bias)[0] + 1.45).abs() < 1e-6);
        assert!((raw_output(&head, moved, [2.0, 4.0]) - 0.1).abs() < 1e-6);
        assert!(head.weight.requires_grad() && head.weight.is_leaf());
    }

    /// Spec 04 Check 7.
    #[test]
    fn targets_are_centred_and_divided() {
        let mut normalizer = ValueNormalizer::new(ValueNormMode::Popart, 2);
        assert!(
            normalizer
                .observe(&[14.0, 10.0, 6.0], 0.95, &head([0.0; 2], 0.0))
                .expect("observe")
        );

        assert!((normalizer.moments.mean - 10.0).abs() < 1e-9);
        assert!((normalizer.moments.var - 10.666_666_7).abs() < 1e-6);
        let targets = [14.0, 10.0, 6.0].map(|ret| normalizer.units().normalise(ret));
        for (target, expected) in targets.iter().zip([1.224_744_9, 0.0, -1.224_744_9]) {
            assert!((target - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn returns_that_are_not_finite_change_neither_statistics_nor_head() {
        let head = head([0.5, -0.25], 0.1);
        let mut normalizer = ValueNormalizer::new(ValueNormMode::Popart, 2);
        assert!(!normalizer.observe(&[1.0, f64::INFINITY], 0.95, &head).expect("observe"));

        assert_eq!(normalizer.moments, Moments::default());
        assert_eq!(read(&head.weight), [0.5, -0.25]);
    }

    proptest! {
        /// In every mode, whether the statistics are in use or not.
        #[test]
        fn raw_outputs_follow_the_unit_and_nothing_else(
            mode in prop_oneof![Just(ValueNormMode::Off), Just(ValueNormMode::Scale), Just(ValueNormMode::Popart)],
            batches in prop::collection::vec(prop::collection::vec(-50.0f64..50.0, 1..6), 1..5),
            factor in 0.2f64..5.0,
        ) {
            let head = head([0.5, -0.25], 0.1);
            let mut normalizer = ValueNormalizer::new(mode, 4);
            let input = [2.0, -3.0];
            let mut expected = raw_output(&head, normalizer.units(), input);
            for batch in &batches {
                normalizer.observe(batch, 0.95, &head).expect("observe");
                let raw = raw_output(&head, normalizer.units(), input);
                prop_assert!((raw - expected).abs() < 1e-3 * (1.0 + normalizer.units().deviation));

                let deviation = normalizer.moments.var.sqrt() * factor;
                normalizer.rescale_units(factor, &head).expect("rescale");
                // Below the least deviation units no longer follow.
                prop_assume!(deviation > 1e-2 && deviation / factor > 1e-2);
                expected = raw_output(&head, normalizer.units(), input);
                prop_assert!((expected - raw * factor).abs() < 1e-3 * (1.0 + raw.abs() * factor));
            }
        }
    }
}
