//! The life of a seed, step by step.

use super::*;
use crate::growth::AlphaMode;
use crate::growth::SeedStage::{Blending, Committed, Dormant, Embargoed, Holding, Pruned, Resetting, Training};
use crate::scenario::fixtures::slow_lifecycle;
use crate::seed::fixtures::*;
use crate::seed::{broken_law, trains};

type Outcome = Result<SeedPlan, FailureReason>;

#[track_caller]
fn assert_alpha(life: &Life, expected: f64) {
    let alpha = life.alpha();
    assert!((alpha - expected).abs() < 1e-4, "alpha {alpha} is not {expected}");
}

/// A step with an order that is legal.
#[track_caller]
fn step(life: &mut Life, order: impl FnOnce(&SeedRecord, &Rules) -> Outcome) {
    life.measure();
    life.order(order).expect("it is legal");
    life.tick();
}

fn cut(seed: &SeedRecord, rules: &Rules) -> Outcome {
    prune_now(seed, GOVERNOR, rules)
}

fn prune_slowly(seed: &SeedRecord, rules: &Rules) -> Outcome {
    prune(seed, AlphaSpeed::Fast, AlphaCurveAction::Cosine, rules)
}

fn prune_instantly(seed: &SeedRecord, rules: &Rules) -> Outcome {
    prune(seed, AlphaSpeed::Instant, AlphaCurveAction::Linear, rules)
}

fn retarget(style: GerminationStyle, target: AlphaTarget) -> impl Fn(&SeedRecord, &Rules) -> Outcome {
    let order = AlphaOrder {
        style,
        target,
        speed: AlphaSpeed::Medium,
        curve: AlphaCurveAction::Linear,
        gate_params: 81,
    };
    move |seed, rules| set_alpha_target(seed, &order, rules)
}

#[test]
fn a_seed_left_to_the_gates_blends_at_step_11_and_is_held_at_step_16() {
    let mut life = germinated(automatic());
    assert_eq!(life.stage(), Training);

    life.wait_until(10);
    assert_eq!(life.stage(), Training);
    life.wait();
    assert_eq!((life.stage(), life.alpha()), (Blending, 0.0));

    for alpha in [0.2, 0.4, 0.6, 0.8, 1.0] {
        life.wait();
        assert_alpha(&life, alpha);
    }
    assert_eq!(life.stage(), Holding);
}

#[test]
fn a_life_ordered_as_early_as_possible_keeps_the_timetable() {
    let mut life = Life::new(slow_lifecycle());
    life.germinate(germination(GerminationStyle::SigmoidAdd));
    life.tick();
    step(&mut life, advance);
    assert_eq!(life.stage(), Training);
    life.wait_until(11);
    // The ramp begins in the same tick.
    step(&mut life, advance);
    for (step, alpha) in [(12, 0.0242), (13, 0.2301), (14, 0.7699), (15, 0.9758), (16, 1.0)] {
        life.wait_until(step);
        assert_alpha(&life, alpha);
        assert_eq!(life.stage(), Blending);
    }
    step(&mut life, advance);
    assert_eq!((life.step, life.stage()), (17, Holding));

    life.wait_until(19);
    step(&mut life, |seed, rules| {
        prune(seed, AlphaSpeed::Fast, AlphaCurveAction::Sigmoid, rules)
    });
    assert_alpha(&life, 0.8827);
    life.wait();
    assert_alpha(&life, 0.1173);
    for stage in [Pruned].into_iter().chain([Embargoed; 5]).chain([Resetting, Dormant]) {
        life.wait();
        assert_eq!(life.stage(), stage, "step {}", life.step);
    }
}

#[test]
fn an_instant_prune_frees_the_slot_in_the_seventh_tick() {
    let mut life = held(automatic());
    life.measure();
    let change = life.order(prune_instantly).expect("held seeds may be pruned");
    assert_eq!(change.effects.as_slice(), [Effect::DropSeed]);
    assert_eq!(life.stage(), Pruned);
    let age = life.seed().age_steps;

    for stage in [Embargoed; 5].into_iter().chain([Resetting, Dormant]) {
        assert_eq!(life.seed().age_steps, age);
        life.tick();
        assert_eq!(life.stage(), stage, "step {}", life.step);
        life.measure();
    }
    assert_eq!(life.slot, None);
}

#[test]
fn a_scheduled_prune_ramps_down_and_cannot_be_called_off() {
    let mut life = held(automatic());
    life.measure();
    let change = life.order(prune_slowly).expect("held seeds may be pruned");
    assert_eq!(change.transition.map(|t| t.to), Some(Blending));
    assert!(life.seed().is_fading());
    assert!(!trains(life.stage(), life.seed().alpha.mode(), OnCommit::Keep));
    life.tick();
    assert_alpha(&life, 0.75);

    life.measure();
    let busy = FailureReason::AlphaBusy { mode: AlphaMode::Down };
    assert_eq!(life.order(prune_slowly), Err(busy.clone()));
    let rescue = retarget(GerminationStyle::LinearAdd, AlphaTarget::Full);
    assert_eq!(life.order(rescue), Err(busy));
    life.tick();
    assert_alpha(&life, 0.25);

    let change = life.wait();
    assert_eq!((life.stage(), life.alpha()), (Pruned, 0.0));
    assert_eq!(change.pruned.map(|order| order.reason), Some(PruneReason::Policy));
    assert!(!life.seed().auto_pruned);
}

#[test]
fn the_governor_cuts_a_scheduled_prune_short() {
    let mut life = held(automatic());
    step(&mut life, prune_slowly);

    let change = life.order(cut).expect("live seeds may be cut");

    assert_eq!(life.stage(), Pruned);
    assert_eq!(change.pruned, Some(GOVERNOR));
    assert!(life.seed_mut().take_auto_pruned());
    assert!(!life.seed_mut().take_auto_pruned());
}

#[test]
fn a_training_seed_is_pruned_at_once_at_any_speed_and_by_the_governor_at_any_age() {
    let mut life = germinated(automatic());
    let refusal = FailureReason::TooYoung { age: 0, min: 5 };
    assert_eq!(life.order(prune_instantly), Err(refusal));
    life.order(cut).expect("live seeds may be cut");
    assert_eq!(life.stage(), Pruned);

    let mut life = germinated(automatic());
    life.wait_until(6);
    let change = life.order(prune_slowly).expect("old enough");
    assert_eq!((life.stage(), change.retarget), (Pruned, None));
}

#[test]
fn committing_is_for_ever() {
    let mut life = held(automatic());
    life.measure();
    let change = life.order(commit).expect("measured and healthy");
    assert_eq!(life.stage(), Committed);
    let effects = [Effect::ResetMomentum, Effect::StopWeightDecay];
    assert_eq!(change.effects.as_slice(), effects);
    life.tick();

    life.wait_until(37);
    assert_eq!((life.stage(), life.alpha()), (Committed, 1.0));
    for order in [prune_instantly, cut, advance] {
        assert_eq!(life.order(order), Err(FailureReason::WrongStage { stage: Committed }));
    }
}

#[test]
fn a_failed_gate_changes_nothing() {
    let mut life = held(automatic());
    life.seed_mut().contribution.age = Some(2);
    let before = life.slot.clone();
    let refusal = FailureReason::GateFailed { gate: GateLevel::G5 };
    assert_eq!(life.order(commit), Err(refusal), "the contribution is stale");
    assert_eq!(life.slot, before);
}

#[test]
fn a_held_seed_sent_lower_blends_again_and_keeps_its_blending_start() {
    let mut life = held(automatic());
    let start = life.seed().accuracy.at_blending_start;
    life.measure();
    let lower = retarget(GerminationStyle::LinearAdd, AlphaTarget::Half);
    let change = life.order(lower).expect("alpha rests");
    assert_eq!(change.transition.map(|t| t.to), Some(Blending));
    assert_eq!(life.seed().accuracy.at_blending_start, start);
    life.tick();
    assert_alpha(&life, 0.9);
    life.wait_until(23);
    assert_eq!((life.stage(), life.alpha()), (Blending, 0.5));
}

#[test]
fn a_gate_comes_and_goes_with_the_operator() {
    let mut life = held(automatic());
    life.measure();
    for (style, effect, gate_params) in [
        (GerminationStyle::GatedGate, Effect::AddGate, 81),
        (GerminationStyle::LinearMultiply, Effect::RemoveGate, 0),
    ] {
        let change = life.order(retarget(style, AlphaTarget::Full)).expect("alpha rests");
        assert_eq!(change.effects.as_slice(), [effect]);
        let seed = life.seed();
        assert_eq!((seed.gate_params, seed.algorithm), (gate_params, style.algorithm()));
        assert_eq!(seed.stage, Holding);
    }
}

#[test]
fn germination_brings_the_gate_with_a_gated_style_and_an_optimizer_with_training() {
    let mut life = Life::new(automatic());
    let change = life.germinate(germination(GerminationStyle::GatedGate));
    assert_eq!(change.effects.as_slice(), [Effect::InsertSeed, Effect::AddGate]);
    assert_eq!(life.seed().params(), 592 + 81);
    let change = life.tick();
    assert_eq!(change.effects.as_slice(), [Effect::CreateOptimizer]);
}

#[test]
fn neither_a_nameless_seed_nor_a_placebo_germinates() {
    let mut nameless = germination(GerminationStyle::LinearAdd);
    nameless.identity.seed_id.clear();
    let mut placebo = germination(GerminationStyle::LinearAdd);
    placebo.identity.seed_params = 0;
    let life = Life::new(automatic());
    let refusal = FailureReason::GateFailed { gate: GateLevel::G0 };
    assert_eq!(germinate(nameless, &life.rules()), Err(refusal));
    let refusal = FailureReason::NoTrainableParams;
    assert_eq!(germinate(placebo, &life.rules()), Err(refusal));
}

#[test]
fn three_non_finite_batches_in_a_row_end_a_live_seed_in_the_tick() {
    let mut life = held(automatic());
    life.measure();
    for finite in [false, false, true, false, false] {
        life.seed_mut().note_sampled_batch(finite);
    }
    life.tick();
    assert_eq!(life.stage(), Holding);

    life.seed_mut().note_sampled_batch(false);
    let change = life.tick();
    assert_eq!(life.stage(), Pruned);
    let pruned = change.pruned.map(|order| (order.reason, order.initiator));
    assert_eq!(pruned, Some((PruneReason::SeedNonfinite, Initiator::Auto)));
    assert!(life.seed().auto_pruned);
}

#[test]
fn a_seed_held_too_long_is_given_up() {
    let mut life = held(LifecycleConfig {
        max_holding_steps: Some(2),
        ..automatic()
    });
    life.wait_until(18);
    assert_eq!(life.stage(), Holding);
    let pruned = life.wait().pruned.map(|order| order.reason);
    assert_eq!(pruned, Some(PruneReason::HoldingTimeout));
}

#[test]
fn automatic_gates_tell_a_failure_once_and_a_pass_as_a_flip() {
    let mut life = germinated(automatic());
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
    assert_eq!(life.stage(), Blending);
}

#[test]
fn history_is_a_ring() {
    let mut life = held(automatic());
    assert_eq!(
        life.seed().history.iter().skip(2).copied().collect::<Vec<_>>(),
        [(Blending, 11), (Holding, 16)]
    );
    life.seed_mut().history.extend([(Holding, 16); 96]);
    life.order(commit).expect("measured and healthy");
    let history = &life.seed().history;
    assert_eq!(
        (history.len(), history[0], history[99]),
        (100, (Training, 1), (Committed, 16))
    );
}

#[test]
fn an_initial_topology_is_committed_before_its_first_step_and_sound() {
    for style in GerminationStyle::ALL {
        let mut life = Life::new(slow_lifecycle());
        let plan = germinate_committed(germination(style), &life.rules()).unwrap();

        let effects = plan.commit(&mut life.slot).effects;

        let seed = life.seed();
        assert_eq!((seed.stage, life.alpha(), seed.age_steps), (Committed, 1.0, 0));
        assert_eq!(broken_law(seed), None);
        assert!(effects.contains(&Effect::InsertSeed) && effects.contains(&Effect::CreateOptimizer));
        assert_eq!(effects.last(), Some(&Effect::StopWeightDecay));
        let has_gate = style == GerminationStyle::GatedGate;
        assert_eq!(seed.algorithm == AlphaAlgorithm::Gate, has_gate);
        assert_eq!(seed.gate_params > 0, has_gate);
    }
}
