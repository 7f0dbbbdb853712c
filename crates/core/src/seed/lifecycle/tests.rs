//! The life of a seed, step by step.

use super::*;
use crate::seed::fixtures::*;

fn config(auto_forward: bool) -> LifecycleConfig {
    let mut config = crate::scenario::fixtures::slow_lifecycle();
    if auto_forward {
        config.auto_forward = ALL_AUTOMATIC;
    }
    config
}

#[track_caller]
fn assert_alpha(life: &Life, expected: f64) {
    let alpha = life.alpha();
    assert!((alpha - expected).abs() < 1e-4, "alpha {alpha} is not {expected}");
}

fn cut(order: PruneOrder) -> impl Fn(&SeedRecord, &Rules) -> Result<Plan, FailureReason> {
    move |seed, rules| prune_now(seed, order, rules)
}

const GOVERNOR: PruneOrder = PruneOrder {
    reason: PruneReason::GovernorRollback,
    initiator: Initiator::Governor,
};

fn prune_slowly(seed: &SeedRecord, rules: &Rules) -> Result<Plan, FailureReason> {
    prune(seed, AlphaSpeed::Fast, AlphaCurveAction::Cosine, rules)
}

fn prune_instantly(seed: &SeedRecord, rules: &Rules) -> Result<Plan, FailureReason> {
    prune(seed, AlphaSpeed::Instant, AlphaCurveAction::Linear, rules)
}

fn retarget(style: GerminationStyle, target: AlphaTarget) -> AlphaOrder {
    AlphaOrder {
        style,
        target,
        speed: AlphaSpeed::Medium,
        curve: AlphaCurveAction::Linear,
        gate_params: 81,
    }
}

#[test]
fn a_seed_left_to_the_gates_blends_at_step_11_and_is_held_at_step_16() {
    let mut life = Life::new(config(true));
    life.measure();
    life.germinate(germination());
    life.tick();
    assert_eq!(life.stage(), SeedStage::Training);

    life.wait_until(10);
    assert_eq!(life.stage(), SeedStage::Training);
    life.wait();
    assert_eq!((life.stage(), life.alpha()), (SeedStage::Blending, 0.0));

    for alpha in [0.2, 0.4, 0.6, 0.8, 1.0] {
        life.wait();
        assert_alpha(&life, alpha);
    }
    assert_eq!(life.stage(), SeedStage::Holding);
}

#[test]
fn an_ordered_advance_lets_the_same_tick_begin_the_ramp() {
    let mut life = Life::new(LifecycleConfig {
        auto_forward: crate::scenario::AutoForward {
            g1: true,
            g2: false,
            g3: false,
        },
        ..config(false)
    });
    life.measure();
    life.germinate(germination());
    life.tick();
    life.wait_until(10);

    life.measure();
    life.order(advance).expect("ten steps have been trained");
    life.tick();

    assert_eq!(life.stage(), SeedStage::Blending);
    assert_alpha(&life, 0.2);
}

#[test]
fn a_life_ordered_as_early_as_possible_keeps_the_timetable() {
    let mut life = Life::new(config(false));
    let mut sigmoid = germination();
    sigmoid.identity = identity(GerminationStyle::SigmoidAdd);

    life.measure();
    life.germinate(sigmoid);
    life.tick();
    life.measure();
    life.order(advance).expect("germinated");
    life.tick();
    assert_eq!(life.stage(), SeedStage::Training);
    life.wait_until(11);
    life.measure();
    life.order(advance).expect("trained");
    life.tick();
    for (step, alpha) in [(12, 0.0242), (13, 0.2301), (14, 0.7699), (15, 0.9758), (16, 1.0)] {
        life.wait_until(step);
        assert_alpha(&life, alpha);
        assert_eq!(life.stage(), SeedStage::Blending);
    }
    life.measure();
    life.order(advance).expect("blended");
    life.tick();
    assert_eq!((life.step, life.stage()), (17, SeedStage::Holding));

    life.wait_until(19);
    life.measure();
    life.order(|seed, rules| prune(seed, AlphaSpeed::Fast, AlphaCurveAction::Sigmoid, rules))
        .expect("held seeds may be pruned");
    life.tick();
    assert_alpha(&life, 0.8827);
    life.wait();
    assert_alpha(&life, 0.1173);
    let stages: Vec<_> = (22..=29)
        .map(|_| {
            life.wait();
            life.stage()
        })
        .collect();
    use SeedStage::{Dormant, Embargoed, Pruned, Resetting};
    assert_eq!(
        stages,
        [
            Pruned, Embargoed, Embargoed, Embargoed, Embargoed, Embargoed, Resetting, Dormant
        ]
    );
}

#[test]
fn an_instant_prune_frees_the_slot_in_the_seventh_tick() {
    let mut life = held(config(true));
    life.measure();
    let pruned_at = life.step;
    let change = life.order(prune_instantly).expect("held seeds may be pruned");
    assert_eq!(change.effects.as_slice(), [Effect::DropSeed]);
    assert_eq!(life.stage(), SeedStage::Pruned);
    let accuracy = life.seed().accuracy.current;

    let mut stages = Vec::new();
    life.tick();
    stages.push(life.stage());
    for _ in 0..6 {
        life.measure();
        assert_eq!(life.seed().accuracy.current, accuracy);
        life.tick();
        stages.push(life.stage());
    }

    use SeedStage::{Dormant, Embargoed, Resetting};
    assert_eq!(
        stages,
        [
            Embargoed, Embargoed, Embargoed, Embargoed, Embargoed, Resetting, Dormant
        ]
    );
    assert_eq!(life.step, pruned_at + 6);
    assert_eq!(life.slot, None);
}

#[test]
fn a_scheduled_prune_ramps_down_and_cannot_be_called_off() {
    let mut life = held(config(true));
    life.measure();
    let change = life.order(prune_slowly).expect("held seeds may be pruned");
    let transition = change.transition.expect("it blends again");
    assert_eq!(
        (transition.to, transition.cause),
        (SeedStage::Blending, StageCause::ScheduledPrune)
    );
    assert!(life.seed().is_fading());
    assert!(!crate::seed::trains(
        life.stage(),
        life.seed().alpha.mode(),
        OnCommit::Keep
    ));
    life.tick();
    assert_alpha(&life, 0.75);

    life.measure();
    let busy = FailureReason::AlphaBusy {
        mode: crate::growth::AlphaMode::Down,
    };
    let again = life.order(prune_slowly).expect_err("alpha moves");
    assert_eq!(again, busy);
    let order = retarget(GerminationStyle::LinearAdd, AlphaTarget::Full);
    let rescue = life.order(|seed, rules| set_alpha_target(seed, &order, rules));
    assert_eq!(rescue.expect_err("alpha moves"), busy);
    life.tick();
    assert_alpha(&life, 0.25);

    let change = life.wait();
    assert_eq!(life.stage(), SeedStage::Pruned);
    assert_eq!(change.pruned.map(|order| order.reason), Some(PruneReason::Policy));
    assert_eq!(change.transition.map(|t| t.cause), Some(StageCause::ScheduledPrune));
    assert!(!life.seed().auto_pruned);
    assert_eq!(life.alpha(), 0.0);
}

#[test]
fn the_governor_cuts_a_scheduled_prune_short() {
    let mut life = held(config(true));
    life.measure();
    life.order(prune_slowly).expect("held seeds may be pruned");
    life.tick();

    let change = life.order(cut(GOVERNOR)).expect("live seeds may be cut");

    assert_eq!(life.stage(), SeedStage::Pruned);
    assert_eq!(change.pruned, Some(GOVERNOR));
    assert_eq!(change.transition.map(|t| t.cause), Some(StageCause::Governor));
    assert!(life.seed_mut().take_auto_pruned());
    assert!(!life.seed_mut().take_auto_pruned());
}

#[test]
fn young_seeds_are_spared_by_the_controller_but_not_by_the_governor() {
    let mut life = Life::new(config(true));
    life.measure();
    life.germinate(germination());
    life.tick();
    let refusal = life.order(prune_instantly).expect_err("too young");
    assert_eq!(refusal, FailureReason::TooYoung { age: 0, min: 5 });
    life.order(cut(GOVERNOR)).expect("live seeds may be cut");
    assert_eq!(life.stage(), SeedStage::Pruned);
}

#[test]
fn a_training_seed_is_pruned_at_once_at_any_speed() {
    let mut life = Life::new(config(true));
    life.measure();
    life.germinate(germination());
    life.tick();
    life.wait_until(6);
    let change = life.order(prune_slowly).expect("old enough");
    assert_eq!(life.stage(), SeedStage::Pruned);
    assert_eq!(change.retarget, None);
}

#[test]
fn committing_is_for_ever() {
    let mut life = held(config(true));
    life.measure();
    let change = life.order(commit).expect("measured and healthy");
    assert_eq!(life.stage(), SeedStage::Committed);
    assert_eq!(
        change.effects.as_slice(),
        [Effect::ResetMomentum, Effect::StopWeightDecay]
    );
    life.tick();

    for _ in 0..20 {
        life.wait();
    }
    assert_eq!((life.stage(), life.alpha()), (SeedStage::Committed, 1.0));
    let wrong_stage = FailureReason::WrongStage {
        stage: SeedStage::Committed,
    };
    assert_eq!(life.order(prune_instantly).expect_err("terminal"), wrong_stage);
    assert_eq!(life.order(cut(GOVERNOR)).expect_err("terminal"), wrong_stage);
    assert_eq!(life.order(advance).expect_err("terminal"), wrong_stage);
}

#[test]
fn a_failed_gate_changes_nothing() {
    let mut life = held(config(true));
    life.seed_mut().contribution.age = Some(2);
    let before = life.slot.clone();
    let refusal = life.order(commit).expect_err("the contribution is stale");
    assert_eq!(refusal, FailureReason::GateFailed { gate: GateLevel::G5 });
    assert_eq!(life.slot, before);
}

#[test]
fn a_held_seed_sent_lower_blends_again_and_keeps_its_blending_start() {
    let mut life = held(config(true));
    let start = life.seed().accuracy.at_blending_start;
    life.measure();
    let order = retarget(GerminationStyle::LinearAdd, AlphaTarget::Half);
    let change = life
        .order(|seed, rules| set_alpha_target(seed, &order, rules))
        .expect("alpha rests");
    assert_eq!(
        change.transition.map(|t| (t.to, t.cause)),
        Some((SeedStage::Blending, StageCause::Policy))
    );
    assert_eq!(life.seed().accuracy.at_blending_start, start);
    life.tick();
    assert_alpha(&life, 0.9);
    for _ in 0..6 {
        life.wait();
    }
    assert_eq!((life.stage(), life.alpha()), (SeedStage::Blending, 0.5));
}

#[test]
fn a_gate_comes_and_goes_with_the_operator() {
    let mut life = held(config(true));
    life.measure();
    for (style, effect, gate_params) in [
        (GerminationStyle::GatedGate, Effect::AddGate, 81),
        (GerminationStyle::LinearMultiply, Effect::RemoveGate, 0),
    ] {
        let order = retarget(style, AlphaTarget::Full);
        let change = life
            .order(|seed, rules| set_alpha_target(seed, &order, rules))
            .expect("alpha rests");
        assert_eq!(change.effects.as_slice(), [effect]);
        assert_eq!(change.retarget.map(|ramp| ramp.operator_to), Some(style.algorithm()));
        assert_eq!(life.seed().gate_params, gate_params);
        assert_eq!(life.seed().algorithm, style.algorithm());
        assert_eq!(life.stage(), SeedStage::Holding);
    }
}

#[test]
fn operators_stay_where_the_scenario_forbids_switching() {
    let mut life = held(LifecycleConfig {
        allow_operator_switch: false,
        ..config(true)
    });
    let order = retarget(GerminationStyle::LinearMultiply, AlphaTarget::Half);
    let refusal = life.order(|seed, rules| set_alpha_target(seed, &order, rules));
    assert_eq!(refusal.expect_err("forbidden"), FailureReason::InvalidTarget);
    let order = retarget(GerminationStyle::SigmoidAdd, AlphaTarget::Half);
    life.order(|seed, rules| set_alpha_target(seed, &order, rules))
        .expect("same operator");
}

#[test]
fn germination_brings_the_gate_with_a_gated_style_and_an_optimizer_with_training() {
    let mut life = Life::new(config(true));
    life.measure();
    let mut gated = germination();
    gated.identity = identity(GerminationStyle::GatedGate);
    let change = life.germinate(gated);
    assert_eq!(change.effects.as_slice(), [Effect::InsertSeed, Effect::AddGate]);
    assert_eq!(life.seed().previous_stage, SeedStage::Unknown);
    assert_eq!(life.seed().params(), 592 + 81);
    let change = life.tick();
    assert_eq!(change.effects.as_slice(), [Effect::CreateOptimizer]);
    assert_eq!(change.transition.map(|t| t.cause), Some(StageCause::Gate));
}

#[test]
fn a_placebo_germinates_only_where_the_scenario_allows_it() {
    let mut placebo = germination();
    placebo.identity.seed_params = 0;
    let life = Life::new(config(true));
    let refusal = germinate(placebo.clone(), &life.rules()).expect_err("no parameters");
    assert_eq!(refusal, FailureReason::NoTrainableParams);

    let mut life = Life::new(LifecycleConfig {
        allow_parameterless_seeds: true,
        ..config(true)
    });
    life.germinate(placebo);
    let change = life.tick();
    assert_eq!(life.stage(), SeedStage::Training);
    assert!(change.effects.is_empty());
}

#[test]
fn a_seed_without_a_name_fails_the_first_gate() {
    let mut nameless = germination();
    nameless.identity.seed_id.clear();
    let refusal = germinate(nameless, &Life::new(config(true)).rules()).expect_err("nameless");
    assert_eq!(refusal, FailureReason::GateFailed { gate: GateLevel::G0 });
}

#[test]
fn three_non_finite_batches_in_a_row_end_a_live_seed_in_the_tick() {
    let mut life = held(config(true));
    life.measure();
    for finite in [false, false, true, false, false] {
        life.seed_mut().note_sampled_batch(finite);
    }
    life.tick();
    assert_eq!(life.stage(), SeedStage::Holding);

    life.seed_mut().note_sampled_batch(false);
    let change = life.tick();
    assert_eq!(life.stage(), SeedStage::Pruned);
    assert_eq!(
        change.pruned,
        Some(PruneOrder {
            reason: PruneReason::SeedNonfinite,
            initiator: Initiator::Auto
        })
    );
    assert!(life.seed().auto_pruned);
}

#[test]
fn a_seed_held_too_long_is_given_up() {
    let mut life = held(LifecycleConfig {
        max_holding_steps: Some(2),
        ..config(true)
    });
    life.wait();
    life.wait();
    assert_eq!(life.stage(), SeedStage::Holding);
    let change = life.wait();
    assert_eq!(
        change.pruned.map(|order| order.reason),
        Some(PruneReason::HoldingTimeout)
    );
}

#[test]
fn automatic_gates_tell_a_failure_once_and_a_pass_as_a_flip() {
    let mut life = Life::new(config(true));
    life.measure();
    life.germinate(germination());
    life.tick();
    life.wait_until(10);
    life.measure();
    life.seed_mut().gradient.health = Some(0.1);
    let first = life.tick().gate.expect("the first failure is news");
    assert!(!first.result.passed && !first.flipped);

    life.measure();
    life.seed_mut().gradient.health = Some(0.1);
    assert_eq!(life.tick().gate, None);

    let passed = life.wait().gate.expect("a pass is news");
    assert!(passed.result.passed && passed.flipped);
    assert_eq!(life.stage(), SeedStage::Blending);
}

#[test]
fn history_is_a_ring() {
    let mut life = held(LifecycleConfig {
        history_len: 2,
        ..config(true)
    });
    assert_eq!(
        life.seed().history,
        [(SeedStage::Blending, 11), (SeedStage::Holding, 16)]
    );
    life.order(commit).expect("measured and healthy");
    assert_eq!(
        life.seed().history,
        [(SeedStage::Holding, 16), (SeedStage::Committed, 16)]
    );
}

#[test]
fn an_initial_topology_is_committed_before_its_first_step_and_sound() {
    for style in GerminationStyle::ALL {
        let mut germination = germination();
        germination.identity.style = style;
        let config = config(false);
        let limits = limits(&config);
        let rules = Rules {
            config: &config,
            limits: &limits,
            step: 0,
        };

        let plan = germinate_committed(germination, &rules).unwrap();

        let seed = plan.next.unwrap();
        assert_eq!(
            (seed.stage, seed.alpha.alpha(), seed.age_steps),
            (SeedStage::Committed, 1.0, 0)
        );
        assert_eq!(crate::seed::broken_law(&seed), None);
        assert!(plan.change.effects.contains(&Effect::InsertSeed));
        assert!(plan.change.effects.contains(&Effect::CreateOptimizer));
        assert_eq!(plan.change.effects.last(), Some(&Effect::StopWeightDecay));
        let has_gate = seed.algorithm == AlphaAlgorithm::Gate;
        assert_eq!(
            (has_gate, seed.gate_params > 0),
            (style == GerminationStyle::GatedGate, has_gate)
        );
    }
}
