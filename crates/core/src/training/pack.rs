//! The read pack: everything that the host needs to know of an env's step, in one f64 vector, copied
//! once. Counts are f64 too — exact to 2^53, where f32 would stop at 2^24 — so that one copy carries everything.

use std::ops::Range;

use crate::kernels::{GroupColumns, ValidationColumns};
use crate::seed::GradientSums;

/// Column numbers of a pack for at most `configs` counterfactual configurations and `slots` slots.
///
/// | columns | content |
/// | --- | --- |
/// | 6 | `loss_sum, correct, finite_units, nonfinite_batches, param_nonfinite, loss_scale` |
/// | configs × 3 | `val_loss_sum`, then `val_correct`, then `val_both_correct` of all configurations |
/// | 6 × (1 + slots) | of the host, then per slot: `grad_sq, vanishing, exploding, tensors, elements, skipped` |
/// | slots | `nonfinite_streak` per slot |
///
/// The quantities of all configurations lie side by side so that one operation adds to all of them.
/// `val_both_correct[k]`, samples that both the main configuration and k get right, yields the discordant counts by
/// subtraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackLayout {
    /// Most configurations that a step evaluates.
    pub configs: usize,
    /// Slots of the env.
    pub slots: usize,
}

impl PackLayout {
    /// Column of the summed training loss.
    pub const LOSS_SUM: usize = 0;
    /// Column of the correct training samples.
    pub const CORRECT: usize = 1;
    /// Column of the training samples in batches with a finite loss.
    pub const FINITE_UNITS: usize = 2;
    /// Column of the training batches without a finite loss.
    pub const NONFINITE_BATCHES: usize = 3;
    /// Column of the non-finite parameters in the last snapshot.
    pub const PARAM_NONFINITE: usize = 4;
    /// Column of the scale of the loss; 0 where nothing scales it.
    pub const LOSS_SCALE: usize = 5;
    const TRAIN_COLUMNS: usize = 6;
    const CONFIG_QUANTITIES: usize = 3;
    const GROUP_COLUMNS: usize = 6;

    /// Number of columns.
    pub const fn columns(&self) -> usize {
        self.group_start(1 + self.slots) + self.slots
    }

    /// Σℓ per configuration.
    pub const fn val_loss_sum(&self) -> Range<usize> {
        self.config_block(0)
    }

    /// Correct samples per configuration.
    pub const fn val_correct(&self) -> Range<usize> {
        self.config_block(1)
    }

    /// Samples that the main configuration gets right too, per configuration.
    pub const fn val_both_correct(&self) -> Range<usize> {
        self.config_block(2)
    }

    /// Columns of the sums over validation.
    pub const fn validation(&self) -> ValidationColumns {
        ValidationColumns {
            losses: self.val_loss_sum().start,
            correct: self.val_correct().start,
            both_correct: self.val_both_correct().start,
            room: self.configs,
        }
    }

    /// Columns of the host's gradients and suppressed updates.
    pub const fn host_group(&self) -> GroupColumns {
        self.group(0, None)
    }

    /// Columns of the gradients and suppressed updates of a slot's seed.
    pub const fn slot_group(&self, slot: usize) -> GroupColumns {
        self.group(1 + slot, Some(self.slot_streak(slot)))
    }

    const fn group(&self, group: usize, streak: Option<usize>) -> GroupColumns {
        let start = self.group_start(group);
        GroupColumns {
            gradients: start..start + Self::GROUP_COLUMNS - 1,
            skipped: start + Self::GROUP_COLUMNS - 1,
            streak,
        }
    }

    const fn slot_streak(&self, slot: usize) -> usize {
        self.group_start(1 + self.slots) + slot
    }

    const fn config_block(&self, quantity: usize) -> Range<usize> {
        let start = Self::TRAIN_COLUMNS + quantity * self.configs;
        start..start + self.configs
    }

    const fn group_start(&self, group: usize) -> usize {
        Self::TRAIN_COLUMNS + Self::CONFIG_QUANTITIES * self.configs + Self::GROUP_COLUMNS * group
    }

    /// Names the numbers of a pack read from the device. `places` gives the place of each configuration that was
    /// evaluated in the blocks of configurations, `main` which of them is the validation result.
    ///
    /// # Panics
    /// If the length of `pack` isn't the layout's, or a place or `main` does not exist.
    pub fn unpack(&self, pack: &[f64], places: &[usize], main: usize) -> StepNumbers {
        assert_eq!(pack.len(), self.columns(), "the pack belongs to another layout");
        assert!(places.iter().all(|&place| place < self.configs));
        let count = |column: usize| pack[column] as u64;
        let main = places[main];
        let main_correct = count(self.val_correct().start + main);
        let config = |&place: &usize| {
            let correct = count(self.val_correct().start + place);
            let both_correct = match place == main {
                true => correct,
                false => count(self.val_both_correct().start + place),
            };
            ConfigNumbers {
                loss_sum: pack[self.val_loss_sum().start + place],
                correct,
                only_main_correct: main_correct - both_correct,
                only_this_correct: correct - both_correct,
            }
        };
        let group = |index: usize| {
            let start = self.group_start(index);
            GroupNumbers {
                gradients: GradientSums {
                    sum_squares: pack[start],
                    vanishing: count(start + 1) as u32,
                    exploding: count(start + 2) as u32,
                    tensors: count(start + 3) as u32,
                    elements: count(start + 4),
                },
                skipped_updates: count(start + 5),
            }
        };
        let slot = |index: usize| SlotNumbers {
            group: group(1 + index),
            nonfinite_streak: count(self.slot_streak(index)),
        };
        StepNumbers {
            loss_sum: pack[Self::LOSS_SUM],
            correct: count(Self::CORRECT),
            finite_units: count(Self::FINITE_UNITS),
            nonfinite_batches: count(Self::NONFINITE_BATCHES),
            param_nonfinite: count(Self::PARAM_NONFINITE),
            loss_scale: Some(pack[Self::LOSS_SCALE]).filter(|&scale| scale > 0.0),
            configs: places.iter().map(config).collect(),
            host: group(0),
            slots: (0..self.slots).map(slot).collect(),
        }
    }
}

/// An env's step in numbers. Losses in nats, summed over samples.
#[derive(Clone, Debug, PartialEq)]
pub struct StepNumbers {
    /// Sum of the loss over training batches with a finite loss.
    pub loss_sum: f64,
    /// Training samples that were classified correctly, over all batches.
    pub correct: u64,
    /// Training samples of batches with a finite loss.
    pub finite_units: u64,
    /// Training batches without a finite loss.
    pub nonfinite_batches: u64,
    /// Non-finite parameters found by the last snapshot capture.
    pub param_nonfinite: u64,
    /// Scale of the loss at the end of the training batches; `None` where nothing scales the loss.
    pub loss_scale: Option<f64>,
    /// Results of the configurations, in the order of the plan.
    pub configs: Vec<ConfigNumbers>,
    /// Numbers of the host.
    pub host: GroupNumbers,
    /// Numbers of the slots, in policy order.
    pub slots: Vec<SlotNumbers>,
}

impl StepNumbers {
    /// Mean training loss over the samples of finite batches; NaN without any.
    pub fn train_loss(&self) -> f64 {
        self.loss_sum / self.finite_units as f64
    }
}

/// One counterfactual configuration over the step's validation samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfigNumbers {
    /// The sum isn't masked: the main configuration's NaN must reach the governor.
    pub loss_sum: f64,
    /// Samples that were classified correctly.
    pub correct: u64,
    /// n10: the main configuration is right, this one is wrong.
    pub only_main_correct: u64,
    /// n01: this one is right, the main configuration is wrong.
    pub only_this_correct: u64,
}

impl ConfigNumbers {
    /// Mean loss over `samples`.
    pub fn loss(&self, samples: usize) -> f64 {
        self.loss_sum / samples as f64
    }

    /// Accuracy in percent of `samples`.
    pub fn accuracy_percent(&self, samples: usize) -> f64 {
        100.0 * self.correct as f64 / samples as f64
    }
}

/// One group's gradients at the last statistics batch, and its suppressed updates of the step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupNumbers {
    /// Sums over the group's tensors.
    pub gradients: GradientSums,
    /// Updates that were suppressed because the gradient was not finite.
    pub skipped_updates: u64,
}

/// The numbers of a slot's seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotNumbers {
    /// Gradients and updates.
    pub group: GroupNumbers,
    /// Last sampled batches in a row with a gradient that was not finite.
    pub nonfinite_streak: u64,
}

#[cfg(test)]
mod tests;
