//! Properties that hold for every reward and any fate of the seeds.

use proptest::prelude::*;

use super::fixtures::{AsMode, Step, pay, seed};
use super::*;
use crate::growth::{LifecycleOp, SeedStage};
use crate::scenario::*;

fn configs() -> [RewardConfig; 3] {
    [
        RewardConfig::default(),
        RewardConfig::Contribution(ContributionMode::Sparse(SparseReward::default())),
        RewardConfig::Loss(LossReward::default()),
    ]
}

prop_compose! {
    fn any_seed()(
        stage in 2usize..10,
        steps_in_stage in 1u32..30,
        age in 1u32..60,
        alpha in 0.0f64..=1.0,
        params in 0u64..2_000_000,
        contribution in prop::option::of(-60.0f64..60.0),
        interaction_sum in -20.0f64..20.0,
        is_withering: bool,
    ) -> SeedView {
        SeedView {
            age,
            alpha,
            params,
            contribution,
            interaction_sum,
            is_withering,
            ..seed(SeedStage::ALL[stage], steps_in_stage)
        }
    }
}

prop_compose! {
    pub fn any_inputs()(
        step in 1u32..150,
        is_final: bool,
        terminates: bool,
        op in 0usize..6,
        slot in 0usize..3,
        is_rejected: bool,
        accuracy in 0.0f64..=100.0,
        loss in 0.0f64..20.0,
        host_params in 17u64..1_000_000,
        slots in prop::collection::vec((prop::option::of(any_seed()), prop::option::of(any_seed())), 3),
        points in -9.0f64..9.0,
        delta_cf in prop::option::of(-60.0f64..60.0),
        auto_pruned in 0u32..3,
    ) -> RewardInputs {
        let op = LifecycleOp::ALL[op];
        let mut step = Step::new(step).host(host_params).accuracy(accuracy).loss(loss).committed(accuracy / 2.0);
        step = step.kept(accuracy / 3.0).committed_gain(points).interaction((0, 2), points).auto_pruned(auto_pruned);
        step = slots.into_iter().fold(step, |step, (before, after)| step.slot(before, after));
        step = match (is_final, terminates) {
            (false, _) => step,
            (true, true) => step.last(EpisodeStatus::Terminated),
            (true, false) => step.last(EpisodeStatus::Truncated),
        };
        let mut inputs = step.build();
        (inputs.delta_cf, inputs.committed_loss, inputs.slot) = (delta_cf, Some(loss), Some(slot));
        inputs.op = if is_rejected { LifecycleOp::Wait } else { op };
        inputs
    }
}

/// A step is paid the finite sum of its terms.
pub fn check_sum(reward: &impl AsMode, inputs: &RewardInputs) -> Result<RewardBreakdown, TestCaseError> {
    let breakdown = pay(reward, inputs, &mut RewardState::default());
    let terms: f64 = Term::ALL.iter().map(|&term| breakdown.get(term)).sum();
    let total = breakdown.total();
    prop_assert!(total.is_finite());
    prop_assert!((total - terms).abs() <= 1e-9 * (1.0 + total.abs()));
    Ok(breakdown)
}

proptest! {
    #[test]
    fn every_reward_is_the_finite_sum_of_its_terms(inputs in any_inputs(), mode in 0usize..3) {
        check_sum(&configs()[mode], &inputs)?;
    }
}
