use super::*;
use crate::reward::Term;
use crate::scenario::fixtures::slow_scenario;
use crate::scenario::{ContributionMode, LossReward, RewardConfig, Scenario, task_presets};

fn task() -> TaskSpec {
    let mut presets = task_presets().into_iter();
    let preset = presets.find(|preset| preset.spec.name == "digits_impaired");
    let mut task = preset.expect("a task of the engine").spec;
    task.max_steps = 60;
    task
}

fn scenario(reward: RewardConfig) -> Scenario {
    let mut scenario = slow_scenario();
    scenario.reward = reward;
    scenario
}

fn audited(scenario: &Scenario, modes: &RewardModes) -> Audit {
    audit(scenario, &task(), modes).expect("a reward that can be computed")
}

/// A reward as shipped, for seeds that train for ten steps, with automatic and ordered gates, with and without a limit of
/// holding.
pub fn check_strategies(reward: &RewardConfig, modes: &RewardModes) {
    for (automatic, max_holding_steps) in [(true, Some(10)), (true, None), (false, None), (false, Some(10))] {
        let mut scenario = scenario(reward.clone());
        scenario.lifecycle.auto_forward = automatic;
        scenario.lifecycle.max_holding_steps = max_holding_steps;
        let (audit, holding) = (audited(&scenario, modes), max_holding_steps);
        assert_eq!(audit.first_failure(), None, "{automatic} {holding:?} {audit:#?}");
    }
}

/// The strategies that earn more than they should.
pub fn failures(reward: RewardConfig, modes: &RewardModes) -> Vec<&'static str> {
    let rows = audited(&scenario(reward), modes).rows.into_iter();
    let failed = rows.filter(|row| !row.passes);
    failed.map(|row| row.strategy).collect()
}

#[test]
fn no_dense_reward_of_the_engine_can_be_exploited() {
    let rewards = [
        RewardConfig::default(),
        RewardConfig::Contribution(ContributionMode::Sparse(Default::default())),
        RewardConfig::Loss(LossReward::default()),
    ];
    for reward in rewards {
        check_strategies(&reward, &RewardModes::default());
    }
}

/// Plays whole recorded episodes of every strategy.
#[test]
fn the_committed_mode_pays_the_committed_accuracy_gained_less_rent() {
    let scenario = scenario(RewardConfig::default());
    let (modes, task) = (RewardModes::default(), task());
    let mode = modes.of(&scenario.reward).expect("a mode of the engine");
    let honest = [Strategy::Wait, Strategy::HonestGrowth];
    for strategy in honest.iter().chain(Strategy::EXPLOITERS) {
        let world = World::new(&scenario, &task, mode.clone());
        let played = world.play(|world| strategy.order(world)).expect("a reward");
        let of = |term| played.rewards.steps.iter().map(move |step| step.breakdown.get(term));
        let charged = of(Term::Loan).chain(of(Term::LinearRent)).sum::<f64>();
        let gained = 0.1 * (played.committed_at_end - 30.0);
        assert!((played.rewards.total() - charged - gained).abs() < 1e-9, "{strategy:?}");
        let gamma = scenario.learner.gamma;
        let lent = of(Term::Loan).rev().fold(0.0, |later, loan| loan + gamma * later);
        assert!(lent.abs() < 1e-9, "{strategy:?} keeps {lent} of its loan");
    }
}

/// Otherwise nothing of the audit says anything.
#[test]
fn strategies_do_what_they_are_called() {
    let audit = audited(&scenario(RewardConfig::default()), &RewardModes::default());
    let reached = |strategy: &str| {
        let row = audit.rows.iter().find(|row| row.strategy == strategy);
        row.expect("a strategy").committed_accuracy
    };
    assert_eq!(reached("wait"), 30.0);
    assert!(reached("honest_growth") > 40.0);
    assert!(reached("commit_at_once") > 35.0);
    assert!((reached("ransom") - 28.0).abs() < 1e-9);
    let uncommitted = "hold_full hold_half germinate_prune toggle timeout_regrow degrade_recover late_seed";
    for uncommitted in uncommitted.split(' ') {
        assert_eq!(reached(uncommitted), 30.0, "{uncommitted}");
    }
}
