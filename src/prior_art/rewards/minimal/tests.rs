use super::*;
use crate::prior_art::rewards::fixtures::*;

#[test]
fn minimal_also_charges_for_an_early_prune() {
    let reward: Arc<dyn RewardMode> = Arc::new(MinimalReward);
    let prune = |age| {
        let step = Step::new(20).before([seed(SeedStage::Training, age).age(age)]);
        first(&reward, step.act(LifecycleOp::Prune, 0)).total()
    };
    assert_close(prune(4), -0.1);
    assert_close(prune(5), 0.0);
}
