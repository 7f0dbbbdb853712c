//! The controller that draws: an op among the valid ones by their weights, then each head that matters uniformly among its
//! valid members (spec 03 §10).
//!
//! An env's draws depend on the run's seed, round, step and its index only, never on other envs (spec 03 §12).

use super::action::{HEADS, Head, HeadIndices, command_of};
use super::{Choices, Controller, Decision, DecisionView, EnvRow, MaskSet, PolicyError};
use crate::growth::LifecycleOp;
use crate::random::{Domain, Draw, RunRng};
use crate::scenario::OpWeights;

#[derive(Clone, Copy, Debug)]
pub struct RandomController {
    seed: u64,
    group: u64,
    weights: OpWeights,
}

impl RandomController {
    /// `seed`: the run's; `group`: the policy group's number in random streams.
    pub fn new(seed: u64, group: u64, weights: OpWeights) -> Self {
        Self { seed, group, weights }
    }

    fn stream(&self, view: &DecisionView, row: EnvRow) -> RunRng {
        let indices = [
            self.group,
            view.round.into(),
            view.step.into(),
            row.index_in_group as u64,
        ];
        RunRng::new(self.seed, Domain::RandomController, &indices)
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
                let indices = draw_indices(masks, &self.weights, &mut self.stream(view, env.row));
                Ok(Decision::new(command_of(&indices)?, masks, "drawn"))
            })
            .collect()
    }
}

/// One number in (0, 1) per head, in storage order: eight 32-bit words of the stream, their top 24 bits each
/// (spec 03 §12).
pub(super) fn head_uniforms(rng: &mut impl Draw) -> [f64; HEADS] {
    let pairs: [u64; HEADS / 2] = std::array::from_fn(|_| rng.next_u64());
    std::array::from_fn(|head| {
        let word = (pairs[head / 2] >> (32 * (head % 2))) as u32;
        (f64::from(word >> 8) + 0.5) / f64::from(1u32 << 24)
    })
}

/// Draws for all heads, whether they matter or not, so that draws stay aligned between runs.
fn draw_indices(masks: &MaskSet, weights: &OpWeights, rng: &mut impl Draw) -> HeadIndices {
    let uniforms = head_uniforms(rng);
    let pick = |head: Head, valid: Choices| {
        let nth = (uniforms[head as usize] * valid.len() as f64) as usize;
        valid.iter().nth(nth).unwrap_or_default()
    };
    let op = draw_op(masks.ops(), weights, uniforms[Head::Op as usize]);
    let lowest = masks.lowest_slot();
    let slot = pick(Head::Slot, masks.effective(Head::Slot, op, lowest));
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
        LifecycleOp::Fossilize => weights.fossilize,
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
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::controller::fixtures::{Scene, any_limits, any_reports, empty, limits, masks, view_of};

    #[test]
    fn an_env_draws_the_same_among_two_and_among_eight() {
        let scene = Scene::new(9, empty(3));
        let commands = |envs: usize| {
            let views: Vec<_> = (0..envs).map(|env| scene.env_view(env)).collect();
            let masks = vec![masks(&scene.reports, &limits(3)); envs];
            RandomController::new(42, 0, OpWeights::default())
                .decide(&view_of(9, &views), &masks)
                .unwrap()
        };
        assert_eq!(commands(2), commands(8)[..2]);
        assert_eq!(commands(8), commands(8));
    }

    #[test]
    fn ops_are_drawn_evenly() {
        let masks = masks(&empty(3), &limits(3));
        let mut counts = BTreeMap::new();
        for stream in 0..4000 {
            let indices = draw_indices(&masks, &OpWeights::default(), &mut RunRng::from_seed(stream));
            *counts.entry(indices[Head::Op as usize]).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 2);
        assert!(counts.values().all(|&count| (1850..2150).contains(&count)));
    }

    #[test]
    fn ops_are_drawn_by_their_weights_among_the_valid_ones() {
        let masks = masks(&empty(3), &limits(3));
        let weights = OpWeights {
            germinate: 3.0,
            prune: 100.0,
            ..OpWeights::default()
        };
        let count = |weights: &OpWeights| {
            let op = |stream| draw_indices(&masks, weights, &mut RunRng::from_seed(stream))[Head::Op as usize];
            (0..4000)
                .filter(|&stream| usize::from(op(stream)) == LifecycleOp::Germinate.code())
                .count()
        };
        assert!((2900..3100).contains(&count(&weights)));
        let never = OpWeights {
            germinate: 0.0,
            ..weights
        };
        assert_eq!(count(&never), 0);
    }

    proptest! {
        #[test]
        fn only_legal_commands_are_drawn(
            reports in any_reports(3),
            limits in any_limits(3),
            stream in any::<u64>(),
        ) {
            let masks = masks(&reports, &limits);
            let indices = draw_indices(&masks, &OpWeights::default(), &mut RunRng::from_seed(stream));
            let decision = Decision::new(command_of(&indices).unwrap(), &masks, "");
            prop_assert!(masks.allows(&decision.command));
            prop_assert_eq!(decision.indices, indices);
        }
    }
}
