//! One masked categorical distribution with its exploration floor, in f64 on the host.

use tch::Tensor;

use crate::actions::{Choices, HEADS};

/// Least probability of a valid member, in the storage order of the heads: what is never tried is never learnt.
const FLOORS: [f64; HEADS] = [0.03, 0.03, 0.03, 0.05, 0.03, 0.03, 0.02, 0.01];
/// Share of a head's probability that its floor takes at most, so that there is room for a preference.
const MOST: f64 = 0.5;

/// The probability that every valid member of a head keeps: a uniform distribution is mixed in, which keeps the direction of
/// the gradient. 0: none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// Before the cap that many valid members put on it.
    pub epsilon: f64,
}

impl Floor {
    /// The floors of all heads, in storage order, each scaled by `scale`.
    pub fn of_heads(scale: f64) -> [Self; HEADS] {
        FLOORS.map(|floor| Self { epsilon: scale * floor })
    }

    /// The least probability of each of `valid` members.
    fn for_members(self, valid: usize) -> f64 {
        self.epsilon.min(MOST / valid as f64)
    }

    /// The same of many steps, on their device.
    pub(super) fn for_members_of(self, valid: &Tensor) -> Tensor {
        (valid.reciprocal() * MOST).clamp_max(self.epsilon)
    }
}

/// Probabilities of a head's members, floored, and the entropy before the floor.
#[derive(Clone, Debug)]
pub struct Categorical {
    valid: Choices,
    probabilities: [f64; Choices::CAPACITY],
    log_probabilities: [f64; Choices::CAPACITY],
    entropy: f64,
}

impl Categorical {
    /// `logits`: one per member, finite. `valid` is not empty: the masks' invariant.
    pub fn new(logits: &[f32], valid: Choices, floor: Floor) -> Self {
        let mut probabilities = [0.0; Choices::CAPACITY];
        let mut log_probabilities = [f64::NEG_INFINITY; Choices::CAPACITY];
        let members = || valid.iter().take_while(|&member| member < logits.len());
        let logit = |member: usize| f64::from(logits[member]);
        let highest = members().map(logit).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = members().map(|member| (logit(member) - highest).exp()).sum();
        let log_sum = highest + sum.ln();
        let mut entropy = 0.0;
        for member in members() {
            let log_probability = logit(member) - log_sum;
            log_probabilities[member] = log_probability;
            probabilities[member] = log_probability.exp();
            entropy -= probabilities[member] * log_probability;
        }
        let count = valid.len();
        let mut distribution = Self {
            valid,
            probabilities,
            log_probabilities,
            entropy: if count < 2 { 0.0 } else { entropy / (count as f64).ln() },
        };
        distribution.raise_to(floor);
        distribution
    }

    fn raise_to(&mut self, floor: Floor) {
        if floor.epsilon == 0.0 {
            return;
        }
        let count = self.valid.len();
        let least = floor.for_members(count);
        let share = 1.0 - count as f64 * least;
        for member in self.valid.iter() {
            self.probabilities[member] = share * self.probabilities[member] + least;
        }
        for member in self.valid.iter() {
            self.log_probabilities[member] = self.probabilities[member].ln();
        }
    }

    /// 0 for a member that is not valid.
    pub fn probability(&self, member: usize) -> f64 {
        self.probabilities[member]
    }

    /// Natural logarithm; negative infinity for a member that is not valid.
    pub fn log_probability(&self, member: usize) -> f64 {
        self.log_probabilities[member]
    }

    /// Of the distribution without floor, over the logarithm of the number of valid members: in [0, 1].
    pub fn entropy(&self) -> f64 {
        self.entropy
    }

    /// The member that `uniform` in (0, 1) falls on, by inverse CDF over ascending members.
    pub fn draw(&self, uniform: f64) -> usize {
        let mut cumulated = 0.0;
        let mut last = 0;
        for member in self.valid.iter() {
            cumulated += self.probabilities[member];
            last = member;
            if uniform < cumulated {
                break;
            }
        }
        last
    }

    /// The likeliest member, the lowest of equals.
    pub fn likeliest(&self) -> usize {
        let mut best = self.valid.lowest().unwrap_or(0);
        for member in self.valid.iter() {
            if self.probabilities[member] > self.probabilities[best] {
                best = member;
            }
        }
        best
    }
}

#[cfg(test)]
mod tests;
