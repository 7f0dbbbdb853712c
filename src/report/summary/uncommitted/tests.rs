use super::*;
use crate::engine::built_in_names;
use crate::telemetry::{Event, Num, Refusals, RunStarted, examples};

fn run(controller: &str) -> RunStarted {
    let controller = controller.into();
    RunStarted {
        controller,
        ..examples::run_started()
    }
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
fn a_policy_that_prunes_before_a_gate_opens_has_both_named() {
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
fn a_heuristic_whose_run_is_too_short_is_advised_to_play_longer() {
    let mut live = live("heuristic", 8);
    ends(&mut live, SeedStage::Blending, None, &[(6, 5), (7, 1)]);
    ends(&mut live, SeedStage::Holding, None, &[(11, 2)]);

    insta::assert_snapshot!(uncommitted(&live, 80));
}

#[test]
fn each_end_has_its_setting() {
    use PruneReason::{GovernorNan, HoldingTimeout, Policy};
    use SeedStage::{Blending, Holding, Training};

    for (stage, reason, setting) in [
        (Training, Some(Policy), "raise lifecycle.min_prune_age"),
        (Holding, Some(HoldingTimeout), "raise lifecycle.max_holding_steps"),
        (Blending, None, "set lifecycle.auto_forward"),
        (Holding, None, "choose another policy.controller"),
        (
            Training,
            Some(GovernorNan),
            "lower the rates of task.host_opt and task.seed_opt",
        ),
    ] {
        let data = remedy(&live("random", 1), stage, reason, 1);

        assert!(data.contains(setting), "{stage}, {reason:?}: {data}");
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
        let data = |seeds| remedy(&live, stage, None, seeds);

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
            data.push(remedy(&live("wait", 1), stage, reason, 1));
        }
    }

    let words = data.iter().flat_map(|text| text.split([' ', ',', ';', ':']));
    let is_path = |word: &&str| word.contains('.') && !word.starts_with(char::is_numeric);
    let paths: std::collections::BTreeSet<&str> = words.filter(is_path).collect();
    assert!(paths.len() > 12, "{paths:?}");
    for path in paths {
        assert!(explain::<Scenario>("", path, &built_in_names()).is_ok(), "{path}");
    }
}

#[test]
fn where_nothing_germinated_it_is_said_who_planted_nothing() {
    let expected = "No seed was committed; 0 germinated\n\
                to change      choose another policy.controller, or raise run.max_steps\n";
    assert_eq!(uncommitted(&live("heuristic", 0), 80), expected);
}
