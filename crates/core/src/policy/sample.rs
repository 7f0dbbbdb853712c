//! One action of one env from its logits: op, then slot, then the rest.

use super::distribution::{Categorical, Floor};
use super::layout::LogitLayout;
use crate::actions::{HEADS, Head, HeadIndices, MaskSet, OPS, Sample, relevant};
use crate::growth::LifecycleOp;
use crate::random::Draw;

/// How a learned controller chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecideMode {
    /// Draws from its distribution.
    #[default]
    Sample,
    /// Takes the likeliest member of each head, the lowest of equals.
    Greedy,
}

/// Chooses a member of every head and fills `log_probs`, `entropies` and `op_probabilities` of the sample.
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
        entropies: [0.0; HEADS],
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
        sample.entropies[index] = distribution.entropy() as f32;
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
