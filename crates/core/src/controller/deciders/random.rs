//! The controller that draws: an op, then each head that matters, uniformly among the valid members.
//!
//! An env's draws depend on the run's seed, round, step and its index only, never on other envs.

use super::controller::Controller;
use crate::actions::{Choices, Decision, Head, HeadIndices, MaskSet, PolicyError, command_of};
use crate::controller::view::DecisionView;
use crate::growth::LifecycleOp;
use crate::policy::head_uniforms;
use crate::random::{Domain, Draw};

/// Draws under the run's seed.
#[derive(Clone, Copy, Debug)]
pub struct RandomController(pub u64);

impl Controller for RandomController {
    fn name(&self) -> &str {
        "random"
    }

    fn decide(&mut self, view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        view.envs
            .iter()
            .zip(masks)
            .map(|(env, masks)| {
                let mut stream = view.stream(self.0, Domain::RandomController, env.row);
                let indices = draw_indices(masks, &mut stream);
                Ok(Decision::new(command_of(&indices)?, masks, "drawn"))
            })
            .collect()
    }
}

/// Draws for all heads, whether they matter or not, so that draws stay aligned between runs.
fn draw_indices(masks: &MaskSet, rng: &mut impl Draw) -> HeadIndices {
    let uniforms = head_uniforms(rng);
    let pick = |head: Head, valid: Choices| {
        let nth = (uniforms[head as usize] * valid.len() as f64) as usize;
        valid.iter().nth(nth).unwrap_or_default()
    };
    let op = LifecycleOp::from_code(pick(Head::Op, masks.ops())).unwrap_or_default();
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

#[cfg(test)]
mod tests;
