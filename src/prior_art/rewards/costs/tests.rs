use super::*;
use crate::prior_art::rewards::fixtures::*;

#[test]
fn rent_grows_with_the_logarithm_of_growth_up_to_a_cap() {
    let inputs = Step::new(40).host(100_000).build();
    assert_close(compute_rent(&inputs, 25_000.0), -0.11157177565710488);
    assert_close(compute_rent(&inputs, 19.2 * 100_000.0), -1.5);
    assert_close(linear_rent(25_000.0), -0.005);
}

#[test]
fn rent_is_charged_for_alpha_weighted_parameters_on_the_output_path() {
    let blending = seed(SeedStage::Blending, 3).alpha(0.5).params(10_000);
    let held = seed(SeedStage::Holding, 3).alpha(1.0).params(500);
    let training = seed(SeedStage::Training, 3).params(10_000);
    for (seed, host, effective, rent) in [
        (blending, 100_000, 5_390.0, -0.026248784478877022),
        (held, 17, 500.0663, -0.6264288391479838),
        (training, 100_000, 0.0, 0.0),
    ] {
        let inputs = Step::new(40).host(host).after([seed]).build();
        assert_close(inputs.effective_params(0.0039), effective);
        assert_close(compute_rent(&inputs, effective), rent);
    }
}

#[test]
fn occupied_slots_beyond_the_free_one_cost() {
    let stages = [SeedStage::Germinated, SeedStage::Committed, SeedStage::Training];
    let seeds = stages.map(|stage| seed(stage, 1));
    let inputs = Step::new(40).after(seeds.clone()).build();
    assert_close(occupancy_rent(&inputs), -0.02);
    assert_close(committed_rent(&inputs), -0.002);

    let withering = Step::new(40).after(seeds.map(|seed| seed.withering())).build();
    assert_close(occupancy_rent(&withering), 0.0);
}

#[test]
fn moving_alpha_costs_by_its_square_up_to_a_cap() {
    let shock = |from: f64, to: f64, params| {
        let before = seed(SeedStage::Blending, 3).alpha(from).params(params);
        let after = before.clone().alpha(to);
        alpha_shock(&Step::new(40).host(100_000).slot(before, after).build())
    };
    assert_close(shock(0.4, 0.6, 10_000), -0.0007832);
    assert_close(shock(1.0, 0.0, 1_200_000), -1.0);

    let planted = Step::new(40).after([seed(SeedStage::Germinated, 1)]).build();
    assert_eq!(alpha_shock(&planted), 0.0);
}

#[test]
fn every_operation_has_its_price() {
    for (op, stage, price) in [
        (LifecycleOp::Wait, SeedStage::Training, 0.0),
        (LifecycleOp::Germinate, SeedStage::Training, -0.15),
        (LifecycleOp::SetAlphaTarget, SeedStage::Blending, -0.005),
        (LifecycleOp::Prune, SeedStage::Training, -0.005),
        (LifecycleOp::Commit, SeedStage::Holding, -0.01),
        (LifecycleOp::Advance, SeedStage::Germinated, 0.0),
        (LifecycleOp::Advance, SeedStage::Training, -0.1),
    ] {
        let inputs = Step::new(40).before([seed(stage, 2)]).act(op, 0).build();
        assert_eq!(intervention(&inputs), price, "{op:?} of {stage:?}");
    }
}
