//! One masked categorical distribution with its exploration floor, in f64 on the host, and one action of one env from its logits: op,
//! then slot, then the rest.

use tch::Tensor;

use super::layout::LogitLayout;
use crate::actions::{Choices, HEADS, Head, HeadIndices, MaskSet, OPS, Sample, relevant};
use crate::growth::LifecycleOp;
use crate::random::Draw;

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

/// Probabilities of a head's members, floored.
#[derive(Clone, Debug)]
pub struct Categorical {
    valid: Choices,
    probabilities: [f64; Choices::CAPACITY],
    log_probabilities: [f64; Choices::CAPACITY],
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
        for member in members() {
            let log_probability = logit(member) - log_sum;
            log_probabilities[member] = log_probability;
            probabilities[member] = log_probability.exp();
        }
        let mut distribution = Self {
            valid,
            probabilities,
            log_probabilities,
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

/// How a learned controller chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecideMode {
    /// Draws from its distribution.
    #[default]
    Sample,
    /// Takes the likeliest member of each head, the lowest of equals.
    Greedy,
}

/// Chooses a member of every head and fills `log_probs` and `op_probabilities` of the sample.
///
/// `uniforms`: one per head, in storage order, whether it is needed or not. The masks' invariants hold.
pub fn choose(
    logits: &[f32],
    layout: &LogitLayout,
    masks: &MaskSet,
    floors: &[Floor; HEADS],
    uniforms: &[f64; HEADS],
    mode: DecideMode,
) -> (HeadIndices, Sample) {
    let mut sample = Sample {
        log_probs: [0.0; HEADS],
        op_probabilities: [0.0; OPS],
        value: f32::NAN,
    };
    let mut pick = |head: Head, op: LifecycleOp, slot: usize| {
        let members = masks.effective(head, op, slot);
        let index = head as usize;
        let logits = &logits[layout.columns(head, op, slot)];
        let distribution = Categorical::new(logits, members, floors[index]);
        let member = match mode {
            DecideMode::Sample => distribution.draw(uniforms[index]),
            DecideMode::Greedy => distribution.likeliest(),
        };
        sample.log_probs[index] = distribution.log_probability(member) as f32;
        if head == Head::Op {
            sample.op_probabilities = std::array::from_fn(|op| distribution.probability(op) as f32);
        }
        member
    };
    // Every op has the op head; which one is asked for does not matter.
    let op = LifecycleOp::from_code(pick(Head::Op, LifecycleOp::Wait, 0)).unwrap_or(LifecycleOp::Wait);
    let mut chosen = Head::ALL.map(Head::placeholder);
    chosen[Head::Op as usize] = op.code();
    if relevant(op, Head::Slot) {
        chosen[Head::Slot as usize] = pick(Head::Slot, op, 0);
    }
    let slot = chosen[Head::Slot as usize];
    for head in Head::ALL {
        if !matches!(head, Head::Op | Head::Slot) && relevant(op, head) {
            chosen[head as usize] = pick(head, op, slot);
        }
    }
    (chosen.map(|member| u8::try_from(member).unwrap_or(u8::MAX)), sample)
}

/// One number in (0, 1) per head, in storage order: eight 32-bit words of the stream, their top 24 bits each.
pub fn head_uniforms(rng: &mut impl Draw) -> [f64; HEADS] {
    let pairs: [u64; HEADS / 2] = std::array::from_fn(|_| rng.next_u64());
    std::array::from_fn(|head| {
        let word = (pairs[head / 2] >> (32 * (head % 2))) as u32;
        (f64::from(word >> 8) + 0.5) / f64::from(1u32 << 24)
    })
}

#[cfg(test)]
mod tests;
