//! The controller that draws: an op among the valid ones by their weights, then each head that matters uniformly among its
//! valid members.
//!
//! An env's draws depend on the run's seed, round, step and its index only, never on other envs.

use super::controller::Controller;
use crate::actions::{Choices, Decision, Head, HeadIndices, MaskSet, PolicyError, command_of};
use crate::controller::view::DecisionView;
use crate::growth::LifecycleOp;
use crate::policy::head_uniforms;
use crate::random::{Domain, Draw};
use crate::scenario::OpWeights;

#[derive(Clone, Copy, Debug)]
pub struct RandomController {
    seed: u64,
    weights: OpWeights,
}

impl RandomController {
    /// `seed`: the run's.
    pub fn new(seed: u64, weights: OpWeights) -> Self {
        Self { seed, weights }
    }
}

impl Controller for RandomController {
    fn name(&self) -> &str {
        "random"
    }

    fn decide(&mut self, view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        view.envs
            .iter()
            .zip(masks)
            .map(|(env, masks)| {
                let mut stream = view.stream(self.seed, Domain::RandomController, env.row);
                let indices = draw_indices(masks, &self.weights, &mut stream);
                Ok(Decision::new(command_of(&indices)?, masks, "drawn"))
            })
            .collect()
    }
}

/// Draws for all heads, whether they matter or not, so that draws stay aligned between runs.
fn draw_indices(masks: &MaskSet, weights: &OpWeights, rng: &mut impl Draw) -> HeadIndices {
    let uniforms = head_uniforms(rng);
    let pick = |head: Head, valid: Choices| {
        let nth = (uniforms[head as usize] * valid.len() as f64) as usize;
        valid.iter().nth(nth).unwrap_or_default()
    };
    let op = draw_op(masks.ops(), weights, uniforms[Head::Op as usize]);
    let slot = pick(Head::Slot, masks.effective(Head::Slot, op, 0));
    Head::ALL.map(|head| {
        let member = match head {
            Head::Op => op.code(),
            Head::Slot => slot,
            _ => pick(head, masks.effective(head, op, slot)),
        };
        u8::try_from(member).unwrap_or(u8::MAX)
    })
}

/// `uniform` in (0, 1). Waiting is always valid and has a positive weight.
fn draw_op(valid: Choices, weights: &OpWeights, uniform: f64) -> LifecycleOp {
    let weight = |op: LifecycleOp| match op {
        LifecycleOp::Wait => weights.wait,
        LifecycleOp::Germinate => weights.germinate,
        LifecycleOp::SetAlphaTarget => weights.set_alpha_target,
        LifecycleOp::Prune => weights.prune,
        LifecycleOp::Commit => weights.commit,
        LifecycleOp::Advance => weights.advance,
    };
    let ops: Vec<LifecycleOp> = valid.iter().filter_map(LifecycleOp::from_code).collect();
    let mut left = uniform * ops.iter().copied().map(weight).sum::<f64>();
    let drawn = ops.iter().copied().find(|&op| {
        left -= weight(op);
        left < 0.0
    });
    drawn.unwrap_or(LifecycleOp::Wait)
}

#[cfg(test)]
mod tests;
