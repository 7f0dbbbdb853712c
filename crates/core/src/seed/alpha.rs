//! The amplitude of a seed: a scalar that either rests or follows an eased ramp, one tick per step.
//!
//! The controller is the only place that holds alpha. All other code asks it.

use serde::{Deserialize, Serialize};

use crate::growth::{AlphaCurve, AlphaMode, DEFAULT_STEEPNESS, FailureReason};

/// Two amplitudes closer than this are the same.
pub const ALPHA_TOLERANCE: f64 = 1e-6;

const MIN_STEEPNESS: f64 = 0.1;

/// Shape of a ramp: its easing, and how steep a sigmoid is (ignored by the other curves).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RampShape {
    /// Easing.
    pub curve: AlphaCurve,
    /// Steepness of a sigmoid; at least 0.1.
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
    pub fn retarget(&mut self, target: f64, steps: u32, shape: RampShape) -> Result<(), FailureReason> {
        if self.mode != AlphaMode::Hold {
            return Err(FailureReason::AlphaBusy { mode: self.mode });
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

    /// The amplitude now, in [0, 1].
    pub const fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The end of the ramp; alpha itself at rest.
    pub const fn target(&self) -> f64 {
        self.target
    }

    /// The state of the amplitude.
    pub const fn mode(&self) -> AlphaMode {
        self.mode
    }

    /// Shape of the last ramp.
    pub const fn shape(&self) -> RampShape {
        self.shape
    }

    /// Ticks of the last ramp.
    pub const fn steps_total(&self) -> u32 {
        self.steps_total
    }

    /// Ticks of it that are over.
    pub const fn steps_done(&self) -> u32 {
        self.steps_done
    }

    /// Returns whether alpha rests.
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

    /// Returns whether every field is within its range, as a value read from a file may not be.
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
mod tests;
