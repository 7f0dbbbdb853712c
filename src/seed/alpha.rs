//! The amplitude of a seed: a scalar that either rests or follows an eased ramp, one tick per step (spec 01 §6.1).
//!
//! The controller is the only place that holds alpha; everything else asks it.

use serde::{Deserialize, Serialize};

use crate::growth::{AlphaCurve, AlphaMode, DEFAULT_STEEPNESS};

/// Two amplitudes closer than this are the same.
pub const ALPHA_TOLERANCE: f64 = 1e-6;

const MIN_STEEPNESS: f64 = 0.1;

/// A ramp that was ordered while another one runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AlphaError {
    #[error("alpha can only be retargeted while it rests; it is moving {0}")]
    NotHolding(AlphaMode),
}

/// Shape of a ramp: its easing, and how steep a sigmoid is (ignored by the other curves).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RampShape {
    pub curve: AlphaCurve,
    pub steepness: f64,
}

impl RampShape {
    /// `steepness` is raised to 0.1 where it is lower.
    pub fn new(curve: AlphaCurve, steepness: f64) -> Self {
        Self {
            curve,
            steepness: steepness.max(MIN_STEEPNESS),
        }
    }

    /// Share of the way after share `t` of the time: monotone, 0 at 0 and 1 at 1.
    pub fn ease(self, t: f64) -> f64 {
        match self.curve {
            AlphaCurve::Linear => t,
            AlphaCurve::Cosine => (1.0 - (std::f64::consts::PI * t).cos()) / 2.0,
            AlphaCurve::Sigmoid => {
                let low = logistic(-self.steepness / 2.0);
                let span = logistic(self.steepness / 2.0) - low;
                if span == 0.0 {
                    t
                } else {
                    (logistic(self.steepness * (t - 0.5)) - low) / span
                }
            }
        }
    }
}

impl Default for RampShape {
    fn default() -> Self {
        Self::new(AlphaCurve::Linear, DEFAULT_STEEPNESS)
    }
}

/// `1 / (1 + e^-x)`, exponentiating only non-positive numbers so that it cannot overflow.
fn logistic(x: f64) -> f64 {
    let decay = (-x.abs()).exp();
    if x >= 0.0 {
        1.0 / (1.0 + decay)
    } else {
        decay / (1.0 + decay)
    }
}

/// The state of one seed's amplitude; alpha, start and target lie in [0, 1].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlphaController {
    alpha: f64,
    start: f64,
    target: f64,
    mode: AlphaMode,
    shape: RampShape,
    steps_total: u32,
    steps_done: u32,
}

impl Default for AlphaController {
    fn default() -> Self {
        Self::resting_at(0.0)
    }
}

impl AlphaController {
    fn resting_at(alpha: f64) -> Self {
        Self {
            alpha,
            start: alpha,
            target: alpha,
            mode: AlphaMode::Hold,
            shape: RampShape::default(),
            steps_total: 0,
            steps_done: 0,
        }
    }

    /// Orders a ramp from here to `target` (clamped to [0, 1]) over `steps` ticks. No ticks, or no distance, and
    /// alpha is there at once. Refused while another ramp runs, so that no controller can dither.
    pub fn retarget(&mut self, target: f64, steps: u32, shape: RampShape) -> Result<(), AlphaError> {
        if self.mode != AlphaMode::Hold {
            return Err(AlphaError::NotHolding(self.mode));
        }
        self.begin(target, steps, shape);
        Ok(())
    }

    fn begin(&mut self, target: f64, steps: u32, shape: RampShape) {
        let target = target.clamp(0.0, 1.0);
        *self = Self {
            alpha: self.alpha,
            start: self.alpha,
            target,
            mode: direction(self.alpha, target),
            shape,
            steps_total: steps,
            steps_done: 0,
        };
        if steps == 0 {
            self.arrive();
        }
    }

    /// Moves one tick along the ramp; true when this tick reached the target.
    pub fn step(&mut self) -> bool {
        if self.mode == AlphaMode::Hold {
            return false;
        }
        self.steps_done += 1;
        if self.steps_done >= self.steps_total {
            self.arrive();
            return true;
        }
        let progress = f64::from(self.steps_done) / f64::from(self.steps_total);
        let alpha = self.start + (self.target - self.start) * self.shape.ease(progress);
        self.alpha = alpha.clamp(self.start.min(self.target), self.start.max(self.target));
        false
    }

    /// A ramp from 0, as a seed begins to blend.
    pub(super) fn rising_to(target: f64, steps: u32, shape: RampShape) -> Self {
        let mut controller = Self::default();
        controller.begin(target, steps, shape);
        controller
    }

    /// Alpha exactly 1, at rest: what being held or committed means.
    pub(super) fn saturate(&mut self) {
        self.target = 1.0;
        self.arrive();
    }

    /// Back to the state of a fresh seed.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    fn arrive(&mut self) {
        self.alpha = self.target;
        self.mode = AlphaMode::Hold;
        self.steps_done = self.steps_total;
    }

    pub const fn alpha(&self) -> f64 {
        self.alpha
    }

    pub const fn target(&self) -> f64 {
        self.target
    }

    pub const fn mode(&self) -> AlphaMode {
        self.mode
    }

    pub const fn shape(&self) -> RampShape {
        self.shape
    }

    pub const fn steps_total(&self) -> u32 {
        self.steps_total
    }

    pub const fn steps_done(&self) -> u32 {
        self.steps_done
    }

    pub fn is_holding(&self) -> bool {
        self.mode == AlphaMode::Hold
    }

    /// Ticks until the target is reached, 0 at rest.
    pub fn time_to_target(&self) -> u32 {
        if self.is_holding() {
            0
        } else {
            self.steps_total - self.steps_done
        }
    }

    /// Mean change of alpha per tick of the ramp, 0 at rest.
    pub fn velocity(&self) -> f64 {
        if self.is_holding() || self.steps_total == 0 {
            0.0
        } else {
            (self.target - self.start) / f64::from(self.steps_total)
        }
    }

    /// Whether every field is within its range, as a value read from a file may not be.
    pub fn is_consistent(&self) -> bool {
        let unit = 0.0..=1.0;
        let between = self.start.min(self.target)..=self.start.max(self.target);
        unit.contains(&self.start)
            && unit.contains(&self.target)
            && between.contains(&self.alpha)
            && self.shape.steepness >= MIN_STEEPNESS
            && self.steps_done <= self.steps_total
            && match self.mode {
                AlphaMode::Hold => self.alpha == self.target,
                mode => mode == direction(self.start, self.target) && self.steps_done < self.steps_total,
            }
    }
}

fn direction(from: f64, to: f64) -> AlphaMode {
    if to > from {
        AlphaMode::Up
    } else if to < from {
        AlphaMode::Down
    } else {
        AlphaMode::Hold
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::growth::*;

    fn ramp(start: f64, target: f64, ticks: u32, curve: AlphaCurve, steepness: f64) -> Vec<f64> {
        let mut controller = AlphaController::resting_at(start);
        controller
            .retarget(target, ticks, RampShape::new(curve, steepness))
            .unwrap();
        (0..ticks)
            .map(|tick| {
                assert_eq!(controller.step(), tick + 1 == ticks);
                controller.alpha()
            })
            .collect()
    }

    #[track_caller]
    fn assert_ramp(actual: &[f64], expected: &[f64]) {
        assert_eq!(actual.len(), expected.len());
        for (a, e) in actual.iter().zip(expected) {
            assert!((a - e).abs() < 1e-6, "{actual:?} is not {expected:?}");
        }
    }

    #[test]
    fn ramps_follow_the_table_of_the_specification() {
        use AlphaCurve::{Cosine, Linear, Sigmoid};
        let table: [(u32, AlphaCurve, f64, &[f64]); 8] = [
            (3, Linear, 12.0, &[0.333333, 0.666667, 1.0]),
            (3, Cosine, 12.0, &[0.25, 0.75, 1.0]),
            (5, Linear, 12.0, &[0.2, 0.4, 0.6, 0.8, 1.0]),
            (5, Cosine, 12.0, &[0.095492, 0.345492, 0.654508, 0.904508, 1.0]),
            (5, Sigmoid, 6.0, &[0.104320, 0.339080, 0.660920, 0.895680, 1.0]),
            (5, Sigmoid, 12.0, &[0.024244, 0.230141, 0.769859, 0.975756, 1.0]),
            (5, Sigmoid, 24.0, &[0.000740, 0.083168, 0.916832, 0.999260, 1.0]),
            (
                8,
                Sigmoid,
                12.0,
                &[0.008557, 0.045177, 0.180847, 0.5, 0.819153, 0.954823, 0.991443, 1.0],
            ),
        ];
        for (ticks, curve, steepness, expected) in table {
            assert_ramp(&ramp(0.0, 1.0, ticks, curve, steepness), expected);
        }
    }

    #[test]
    fn a_ramp_may_start_anywhere() {
        assert_ramp(
            &ramp(0.5, 1.0, 5, AlphaCurve::Sigmoid, 12.0),
            &[0.512122, 0.615070, 0.884930, 0.987878, 1.0],
        );
    }

    #[test]
    fn retargeting_a_moving_controller_is_refused_and_changes_nothing() {
        let mut controller = AlphaController::default();
        controller.retarget(1.0, 5, RampShape::default()).unwrap();
        controller.step();
        let before = controller;

        let refused = controller.retarget(0.5, 3, RampShape::default());

        assert_eq!(refused, Err(AlphaError::NotHolding(AlphaMode::Up)));
        assert_eq!(controller, before);
    }

    #[test]
    fn a_ramp_without_ticks_arrives_at_once() {
        let mut controller = AlphaController::default();
        controller.retarget(0.7, 0, RampShape::default()).unwrap();
        assert_eq!(controller.alpha(), 0.7);
        assert_eq!(controller.mode(), AlphaMode::Hold);
        assert!(!controller.step());
    }

    #[test]
    fn an_equal_target_rests_and_an_outlying_one_is_clamped() {
        let mut controller = AlphaController::default();
        controller.retarget(-3.0, 5, RampShape::default()).unwrap();
        assert_eq!((controller.mode(), controller.target()), (AlphaMode::Hold, 0.0));
        controller.retarget(7.0, 5, RampShape::default()).unwrap();
        assert_eq!((controller.mode(), controller.target()), (AlphaMode::Up, 1.0));
    }

    #[test]
    fn time_and_velocity_describe_the_ramp_and_vanish_at_rest() {
        let mut controller = AlphaController::default();
        assert_eq!((controller.time_to_target(), controller.velocity()), (0, 0.0));
        controller.retarget(1.0, 4, RampShape::default()).unwrap();
        controller.step();
        assert_eq!((controller.time_to_target(), controller.velocity()), (3, 0.25));
    }

    #[test]
    fn a_very_steep_sigmoid_does_not_overflow() {
        for alpha in ramp(0.0, 1.0, 8, AlphaCurve::Sigmoid, 1000.0) {
            assert!((0.0..=1.0).contains(&alpha));
        }
    }

    proptest! {
        #[test]
        fn every_ramp_is_monotone_bounded_and_exact_at_its_end(
            start in 0.0..=1.0f64,
            target in 0.0..=1.0f64,
            ticks in 0u32..=25,
            curve in prop::sample::select(AlphaCurve::ALL),
            steepness in 0.0..2000.0f64,
        ) {
            let mut controller = AlphaController::resting_at(start);
            controller.retarget(target, ticks, RampShape::new(curve, steepness)).unwrap();
            let mut previous = start;
            for _ in 0..ticks {
                controller.step();
                prop_assert!(controller.is_consistent());
                prop_assert!((target - start) * (controller.alpha() - previous) >= 0.0);
                previous = controller.alpha();
            }
            prop_assert_eq!(controller.alpha(), target);
            prop_assert_eq!(controller.mode(), AlphaMode::Hold);
        }
    }
}
