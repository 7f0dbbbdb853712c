use super::*;
use crate::growth::SeedStage;
use crate::reward::fixtures::{Step, assert_close, seed};

#[test]
fn parameters_seeds_and_commits_cost() {
    let held = seed(SeedStage::Holding, 3).alpha(1.0).params(500);
    let of = |seeds: Vec<_>, host| standard_rent(&Step::new(40).host(host).after(seeds).build());
    assert_close(of(vec![held.clone()], 17), 0.6264288391479838);
    assert_close(of(vec![held.clone().params(10_000)], 17), 1.5);
    assert_eq!(of(vec![seed(SeedStage::Training, 1)], 17), 0.0);

    let seeds = [SeedStage::Germinated, SeedStage::Committed, SeedStage::Training];
    let seeds = seeds.map(|stage| seed(stage, 1).alpha(0.0).params(0));
    assert_close(of(seeds.to_vec(), 100_000), 0.5 * 0.0039_f64.ln_1p() + 0.02 + 0.002);
}
