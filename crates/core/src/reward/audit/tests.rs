use super::*;
use crate::reward::Term;
use crate::scenario::fixtures::slow_scenario;
use crate::scenario::{AutoForward, Cadence, ContributionMode, LossReward, RewardConfig, Scenario, task_presets};

fn task() -> TaskSpec {
    let preset = task_presets()
        .into_iter()
        .find(|preset| preset.spec.name == "digits_impaired");
    TaskSpec {
        max_steps: 60,
        ..preset.expect("a task of the engine").spec
    }
}

fn scenario(reward: RewardConfig) -> Scenario {
    Scenario {
        reward,
        ..slow_scenario()
    }
}

fn audited(scenario: &Scenario) -> Audit {
    audit(scenario, &task(), &RewardModes::default()).expect("a reward that can be computed")
}

/// A reward as shipped, for seeds that train for ten steps, with automatic and ordered gates, with and without a limit of
/// holding.
pub fn check_strategies(reward: &RewardConfig, modes: &RewardModes) {
    for (automatic, max_holding_epochs) in [(true, Some(10)), (true, None), (false, None), (false, Some(10))] {
        let mut scenario = scenario(reward.clone());
        scenario.lifecycle.auto_forward = AutoForward {
            g1: automatic,
            g2: automatic,
            g3: automatic,
        };
        scenario.lifecycle.max_holding_epochs = max_holding_epochs;
        let audit = audit(&scenario, &task(), modes).expect("a reward that can be computed");
        assert_eq!(
            audit.first_failure(),
            None,
            "{automatic} {max_holding_epochs:?} {audit:#?}"
        );
    }
}

/// The strategies that earn what they should not.
pub fn failures(reward: RewardConfig, modes: &RewardModes) -> Vec<&'static str> {
    let audit = audit(&scenario(reward), &task(), modes).expect("a reward that can be computed");
    let failed = audit.rows.iter().filter(|row| !row.passes);
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

#[test]
fn a_loss_whose_rise_costs_less_than_its_fall_pays_is_found_out() {
    let farmable = LossReward {
        regression_penalty_scale: 0.5,
        ..LossReward::default()
    };
    let mut scenario = scenario(RewardConfig::Loss(farmable));
    scenario.attribution.cadence = Cadence::Terminal;
    let audit = audited(&scenario);
    let farmed = audit.rows.iter().find(|row| row.strategy == "degrade_recover");
    assert!(farmed.is_some_and(|row| !row.passes), "{audit:#?}");
}

/// On whole recorded episodes of every strategy.
#[test]
fn the_committed_mode_pays_the_committed_accuracy_gained_less_rent() {
    let scenario = scenario(RewardConfig::default());
    let (modes, task) = (RewardModes::default(), task());
    let mode = modes.of(&scenario.reward).expect("a mode of the engine");
    for strategy in [Strategy::Wait, Strategy::HonestGrowth]
        .iter()
        .chain(Strategy::EXPLOITERS)
    {
        let played = World::new(&scenario, &task, mode.clone())
            .play(|world| strategy.order(world))
            .expect("a reward");
        let of = |term| {
            played
                .rewards
                .steps
                .iter()
                .map(|step| step.breakdown.get(term))
                .sum::<f64>()
        };
        let gained = 0.1 * (played.committed_at_end - 30.0);
        assert!(
            (played.rewards.total() - of(Term::Loan) - of(Term::LinearRent) - gained).abs() < 1e-9,
            "{strategy:?}"
        );
        let gamma = scenario.learner.gamma;
        let lent = played.rewards.steps.iter().rev();
        let lent = lent.fold(0.0, |later, step| step.breakdown.get(Term::Loan) + gamma * later);
        assert!(lent.abs() < 1e-9, "{strategy:?} keeps {lent} of its loan");
    }
}

/// Otherwise nothing of the audit says anything.
#[test]
fn strategies_do_what_they_are_called() {
    let scenario = scenario(RewardConfig::default());
    let reached = |strategy| {
        let row = audited(&scenario)
            .rows
            .into_iter()
            .find(|row: &AuditRow| row.strategy == strategy);
        row.expect("a strategy").committed_accuracy
    };
    assert_eq!(reached("wait"), 30.0);
    assert!(reached("honest_growth") > 40.0);
    assert!(reached("commit_at_once") > 35.0);
    assert!((reached("ransom") - 28.0).abs() < 1e-9);
    for uncommitted in [
        "hold_full",
        "hold_half",
        "germinate_prune",
        "toggle",
        "timeout_regrow",
        "degrade_recover",
        "late_seed",
    ] {
        assert_eq!(reached(uncommitted), 30.0, "{uncommitted}");
    }
}
