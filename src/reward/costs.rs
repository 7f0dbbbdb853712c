//! What seeds cost: rent on their parameters, occupied slots, moving alpha, and acting at all (spec 05 §3.6-3.7).

use std::ops::Add;

use super::inputs::{RewardInputs, SeedView};
use crate::growth::{LifecycleOp, SeedStage};
use crate::scenario::ShapedReward;

/// Parameters that rent is charged for: alpha-weighted seeds on the output path, plus a share of the host per slot.
/// Germinated and training seeds are in grace.
pub fn effective_params<'a>(seeds: impl Iterator<Item = &'a SeedView>, host_params: u64, slot_ratio: f64) -> f64 {
    seeds
        .filter(|seed| {
            matches!(
                seed.stage,
                SeedStage::Blending | SeedStage::Holding | SeedStage::Fossilized
            )
        })
        .map(|seed| slot_ratio * host_params as f64 + seed.alpha * seed.params as f64)
        .fold(0.0, Add::add)
}

/// Host parameters as rent and shock reckon by them: tiny hosts are not crushed.
fn reckoned_host(config: &ShapedReward, inputs: &RewardInputs) -> f64 {
    inputs.host_params.max(config.rent_host_params_floor) as f64
}

/// Grows with the logarithm of the network's growth; at most 0.
pub fn compute_rent(config: &ShapedReward, inputs: &RewardInputs, effective: f64) -> f64 {
    let growth = effective / reckoned_host(config, inputs);
    -(config.rent_weight * growth.ln_1p()).min(config.max_rent)
}

/// Proportional to the share of a parameter budget; at most 0.
pub fn linear_rent(weight: f64, effective: f64, budget: u64) -> f64 {
    -weight * effective / budget as f64
}

/// For each seed beyond the free ones, growing or committed.
pub fn occupancy_rent(config: &ShapedReward, inputs: &RewardInputs) -> f64 {
    let growing = inputs.after().filter(|seed| seed.is_growing()).count();
    let occupied = (growing + inputs.fossils().count()) as f64;
    -config.seed_occupancy_cost * (occupied - f64::from(config.free_slots)).max(0.0)
}

/// For each committed seed.
pub fn fossil_rent(config: &ShapedReward, inputs: &RewardInputs) -> f64 {
    -config.fossilized_maintenance_cost * inputs.fossils().count() as f64
}

/// For moving alpha, by the square: a seed that vanishes counts once, one that is planted does not.
pub fn alpha_shock(config: &ShapedReward, inputs: &RewardInputs) -> f64 {
    if config.disable_anti_gaming {
        return 0.0;
    }
    let moved: f64 = inputs
        .slots
        .iter()
        .filter_map(|slot| {
            let before = slot.before.as_ref()?;
            let after = slot.after.as_ref().map_or(0.0, |seed| seed.alpha);
            Some((after - before.alpha).powi(2) * before.params as f64)
        })
        .sum();
    -(config.alpha_shock_coef * moved / reckoned_host(config, inputs)).min(config.alpha_shock_cap)
}

/// For acting at all.
pub fn intervention(config: &ShapedReward, inputs: &RewardInputs) -> f64 {
    match inputs.op {
        LifecycleOp::Wait => 0.0,
        LifecycleOp::Germinate => config.germinate_intervention,
        LifecycleOp::SetAlphaTarget => config.set_alpha_target_intervention,
        LifecycleOp::Prune => config.prune_intervention,
        LifecycleOp::Fossilize => config.fossilize_intervention,
        LifecycleOp::Advance => match inputs.acted() {
            Some(seed) if seed.stage == SeedStage::Training => config.advance_from_training_penalty,
            _ => 0.0,
        },
    }
}

/// For a command that did not take effect, where such are fined.
pub fn rejected(config: &ShapedReward, inputs: &RewardInputs) -> f64 {
    match inputs.rejected.filter(|_| config.penalize_rejected) {
        Some(LifecycleOp::Fossilize) => config.rejected_fossilize_penalty,
        Some(LifecycleOp::Prune) => config.rejected_prune_penalty,
        Some(LifecycleOp::Germinate) => config.rejected_germinate_penalty,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reward::fixtures::{Step, seed};

    #[track_caller]
    fn assert_close(actual: f64, expected: f64) {
        assert!((actual - expected).abs() < 1e-9, "{actual} is not {expected}");
    }

    fn config() -> ShapedReward {
        ShapedReward::default()
    }

    fn rent_of(inputs: &RewardInputs) -> (f64, f64) {
        let effective = effective_params(inputs.after(), inputs.host_params, 0.0039);
        (effective, compute_rent(&config(), inputs, effective))
    }

    /// Spec 05 C3.
    #[test]
    fn rent_grows_with_the_logarithm_of_growth_up_to_a_cap() {
        let inputs = Step::new(40).host(100_000).build();
        assert_close(compute_rent(&config(), &inputs, 25_000.0), -0.11157177565710488);
        assert_close(compute_rent(&config(), &inputs, 19.2 * 100_000.0), -1.5);
        assert_close(linear_rent(0.1, 25_000.0, 500_000), -0.005);
    }

    /// Spec 05 C3.
    #[test]
    fn rent_is_charged_for_alpha_weighted_parameters_on_the_output_path() {
        let blending = seed(SeedStage::Blending, 3).alpha(0.5).params(10_000);
        let (effective, rent) = rent_of(&Step::new(40).host(100_000).after([blending]).build());
        assert_close(effective, 5_390.0);
        assert_close(rent, -0.026248784478877022);

        let held = seed(SeedStage::Holding, 3).alpha(1.0).params(500);
        let (effective, rent) = rent_of(&Step::new(40).host(17).after([held]).build());
        assert_close(effective, 500.0663);
        assert_close(rent, -0.6264288391479838);

        let training = seed(SeedStage::Training, 3).params(10_000);
        let (_, rent) = rent_of(&Step::new(40).host(100_000).after([training]).build());
        assert_eq!(rent, 0.0);
    }

    /// Spec 05 C3.
    #[test]
    fn occupied_slots_beyond_the_free_one_cost() {
        let seeds = [
            seed(SeedStage::Germinated, 1),
            seed(SeedStage::Fossilized, 4),
            seed(SeedStage::Training, 1),
        ];
        let inputs = Step::new(40).after(seeds.clone()).build();
        assert_close(occupancy_rent(&config(), &inputs), -0.02);
        assert_close(fossil_rent(&config(), &inputs), -0.002);

        let withering = Step::new(40).after(seeds.map(|seed| seed.withering())).build();
        assert_close(occupancy_rent(&config(), &withering), 0.0);
    }

    /// Spec 05 C4.
    #[test]
    fn moving_alpha_costs_by_its_square_up_to_a_cap() {
        let shock = |from: f64, to: f64, params| {
            let before = seed(SeedStage::Blending, 3).alpha(from).params(params);
            let after = before.clone().alpha(to);
            alpha_shock(&config(), &Step::new(40).host(100_000).slot(before, after).build())
        };
        assert_close(shock(0.4, 0.6, 10_000), -0.0007832);
        assert_close(shock(1.0, 0.0, 1_200_000), -1.0);

        let planted = Step::new(40).after([seed(SeedStage::Germinated, 1)]).build();
        assert_eq!(alpha_shock(&config(), &planted), 0.0);
    }

    #[test]
    fn every_operation_has_its_price_and_refusals_only_on_request() {
        let price = |op, stage| {
            let inputs = Step::new(40).before([seed(stage, 2)]).act(op, 0).build();
            intervention(&config(), &inputs)
        };
        assert_eq!(price(LifecycleOp::Wait, SeedStage::Training), 0.0);
        assert_eq!(price(LifecycleOp::Germinate, SeedStage::Training), -0.15);
        assert_eq!(price(LifecycleOp::SetAlphaTarget, SeedStage::Blending), -0.005);
        assert_eq!(price(LifecycleOp::Prune, SeedStage::Training), -0.005);
        assert_eq!(price(LifecycleOp::Fossilize, SeedStage::Holding), -0.01);
        assert_eq!(price(LifecycleOp::Advance, SeedStage::Germinated), 0.0);
        assert_eq!(price(LifecycleOp::Advance, SeedStage::Training), -0.1);

        let refused = Step::new(40).reject(LifecycleOp::Fossilize).build();
        assert_eq!(rejected(&config(), &refused), 0.0);
        let strict = ShapedReward {
            penalize_rejected: true,
            ..config()
        };
        assert_eq!(rejected(&strict, &refused), -1.0);
    }
}
