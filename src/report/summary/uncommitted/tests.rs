use super::*;
use crate::engine::built_in_names;
use crate::telemetry::{Event, Num, Refusals, RunStarted, examples};

fn run(controller: &str) -> RunStarted {
    let mut run = examples::run_started();
    (run.controller, run.min_training_steps) = (controller.into(), Some(10));
    run
}

/// A run in which `germinated` seeds germinated.
fn live(controller: &str, germinated: u64) -> LiveState {
    let mut live = LiveState::default();
    live.apply(&Event::run(run(controller)));
    live.episodes_done = 8;
    live.seed_ends.germinated = germinated;
    live
}

fn ends(live: &mut LiveState, stage: SeedStage, reason: Option<PruneReason>, ages: &[(u32, u64)]) {
    let ages = ages.iter().copied().collect();
    live.seed_ends.ends.insert((stage, reason), ages);
}

fn refuses(live: &mut LiveState, gate: GateLevel, check: &str, count: u64, asked: f64, most: f64) {
    let refused = Refusals {
        count,
        asked: Some(Num(asked)),
        most: Some(Num(most)),
    };
    live.seed_ends.refusals.insert((gate, check.into()), refused);
}

#[test]
fn a_policy_that_prunes_before_a_gate_opens_is_told_of_both() {
    let mut live = live("actor_critic", 115);
    let young = [(5, 40), (6, 38), (8, 15), (10, 5)];
    ends(&mut live, SeedStage::Training, Some(PruneReason::Policy), &young);
    let diverged = Some(PruneReason::GovernorDivergence);
    ends(&mut live, SeedStage::Training, diverged, &[(7, 2)]);
    ends(&mut live, SeedStage::Training, None, &[(1, 8), (12, 7)]);
    refuses(&mut live, GateLevel::G2, "gradient_health", 21, 0.7, 0.412);
    refuses(&mut live, GateLevel::G2, "not_exploding", 20, 0.0, 1.0);

    let text = uncommitted(&live, 80);

    insta::assert_snapshot!(text);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_heuristic_whose_run_is_too_short_is_told_to_play_longer() {
    let mut live = live("heuristic", 8);
    ends(&mut live, SeedStage::Blending, None, &[(6, 5), (7, 1)]);
    ends(&mut live, SeedStage::Holding, None, &[(11, 2)]);

    insta::assert_snapshot!(uncommitted(&live, 80));
}

#[test]
fn each_end_has_its_setting() {
    use PruneReason::{GovernorNan, HoldingTimeout, Policy, SeedNonfinite};
    use SeedStage::{Blending, Germinated, Holding, Training};

    let (learnt, policy) = ("actor_critic", Some(Policy));
    let asks = "min_training_steps asks 10 steps of training";
    let drops = "raise policy.heuristic.prune_if_accuracy_drops_by";
    let improvement = "lower policy.heuristic.min_improvement_to_commit";
    let holding = "raise lifecycle.max_holding_steps";
    let diverged = "lower the rates of task.host_opt and task.seed_opt";
    for (controller, stage, reason, age, setting) in [
        (learnt, Training, policy, 6, "raise lifecycle.min_prune_age to 11"),
        (learnt, Training, policy, 11, "lower policy.net_cfg.op_bias.prune"),
        ("heuristic", Blending, policy, 9, drops),
        ("random", Holding, policy, 20, "choose another policy.controller"),
        ("schedule", Blending, policy, 20, "choose another policy.controller"),
        (learnt, Holding, Some(HoldingTimeout), 20, holding),
        (learnt, Holding, None, 20, "raise policy.net_cfg.op_bias.commit"),
        ("heuristic", Holding, None, 20, improvement),
        ("random", Germinated, None, 20, "set lifecycle.auto_forward"),
        ("random", Blending, None, 20, "raise run.max_steps"),
        ("heuristic", Training, None, 6, asks),
        ("heuristic", Training, None, 10, "episodes were over before"),
        ("random", Training, Some(SeedNonfinite), 3, diverged),
        ("random", Training, Some(GovernorNan), 3, diverged),
    ] {
        let data = remedy(&live(controller, 1), stage, reason, &[(age, 1)].into());

        assert!(data.contains(setting), "{controller}, {stage}, {reason:?}: {data}");
    }
}

#[test]
fn a_gate_that_refused_all_that_ended_before_it_is_what_to_change() {
    for (gate, check, setting) in CHECKS {
        let stage = match gate {
            GateLevel::G2 => SeedStage::Training,
            GateLevel::G3 => SeedStage::Blending,
            _ => SeedStage::Holding,
        };
        let mut live = live("random", 3);
        refuses(&mut live, gate, check, 3, 0.5, 0.25);
        let data = |seeds| remedy(&live, stage, None, &[(20, seeds)].into());

        assert!(data(3).ends_with(setting), "{gate} {check}: {}", data(3));
        assert!(!data(4).contains(check), "it refused fewer than ended: {}", data(4));
    }
}

/// Fails when a setting is renamed that the summary proposes.
#[test]
fn every_setting_that_is_proposed_exists() {
    use crate::scenario::{Scenario, explain};

    let mut data = CHECKS.map(|(.., data)| data.to_owned()).to_vec();
    for stage in SeedStage::ALL {
        for reason in PruneReason::ALL.into_iter().map(Some).chain([None]) {
            data.extend([6, 30].map(|age| remedy(&live("wait", 1), stage, reason, &[(age, 1)].into())));
        }
    }
    for controller in ["actor_critic", "random", "heuristic", "wait"] {
        let ops = [LifecycleOp::Germinate, LifecycleOp::Prune, LifecycleOp::Commit];
        data.extend(ops.map(|op| setting(controller, op)));
    }

    let words = data.iter().flat_map(|text| text.split([' ', ',', ';', ':']));
    let is_path = |word: &&str| word.contains('.') && !word.starts_with(char::is_numeric);
    let paths: std::collections::BTreeSet<&str> = words.filter(is_path).collect();
    assert!(paths.len() > 16, "{paths:?}");
    for path in paths {
        assert!(explain::<Scenario>("", path, &built_in_names()).is_ok(), "{path}");
    }
}

#[test]
fn where_nothing_germinated_it_is_said_who_planted_nothing() {
    let told = "No seed was committed; 0 germinated\n\
                to change      lower policy.heuristic.plateau_steps_to_germinate\n";
    assert_eq!(uncommitted(&live("heuristic", 0), 80), told);
}
