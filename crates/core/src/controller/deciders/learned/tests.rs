//! Sampling and evaluation of whole actions, from logits.

use tch::{Device, Kind, Tensor};

use super::*;
use crate::actions::fixtures::{AT, CNN_BLUEPRINTS, empty, limits, masks, report};
use crate::actions::{HEADS, Head, HeadIndices, MaskRow, MaskSet, Sample};
use crate::controller::fixtures::Ground;
use crate::controller::fixtures::policies::stored_masks;
use crate::growth::{AlphaMode, LifecycleOp, SeedStage};
use crate::policy::fixtures::{BLUEPRINTS, SLOTS, small, values};
use crate::policy::{HeadTerms, OpTables, Stored, choose, head_terms};
use crate::scenario::{FloorConfig, HeadConditioning};
use crate::seed::SeedReport;

fn layout(conditioning: HeadConditioning) -> LogitLayout {
    LogitLayout::new(conditioning, SLOTS, BLUEPRINTS)
}

fn default_floors() -> [Floor; HEADS] {
    Floor::of_heads(&FloorConfig::default(), 1.0)
}

/// An action from equal logits, the op picked by `uniform`.
fn from_equal_logits(masks: &MaskSet, uniform: f64) -> (HeadIndices, Sample) {
    let layout = layout(HeadConditioning::PerOp);
    let mut uniforms = [0.5; HEADS];
    uniforms[Head::Op as usize] = uniform;
    let logits = vec![0.0; layout.width()];
    choose(
        &logits,
        &layout,
        masks,
        &default_floors(),
        &uniforms,
        DecideMode::Sample,
    )
}

fn joint(sample: &Sample) -> f32 {
    sample.log_probs.iter().sum()
}

/// Two seeds that may be pruned, all six ops valid.
fn six_ops() -> MaskSet {
    let mut reports = empty(3);
    reports[0] = Some(SeedReport {
        age_steps: 12,
        ..report(0, SeedStage::Blending)
    });
    reports[1] = Some(SeedReport {
        age_steps: 20,
        contribution: Some(1.0),
        alpha_mode: AlphaMode::Hold,
        ..report(1, SeedStage::Holding)
    });
    masks(&reports, &limits())
}

#[test]
fn the_joint_log_probability_of_equal_logits_counts_the_choices() {
    let empty = masks(&empty(3), &limits());
    let (wait, of_wait) = from_equal_logits(&empty, 0.1);
    assert_eq!(wait, [0, 0, 2, 1, 2, 0, 0, 0]);
    assert!((joint(&of_wait) + std::f32::consts::LN_2).abs() < 1e-6);
    assert_eq!(of_wait.log_probs[..7], [0.0; 7]);
    assert_eq!(of_wait.entropies[..7], [0.0; 7]);

    let (germinate, of_germinate) = from_equal_logits(&empty, 0.9);
    assert_eq!(germinate[Head::Op as usize], LifecycleOp::Germinate.code() as u8);
    assert!((joint(&of_germinate) + 7.321189).abs() < 1e-5);
    assert!((of_germinate.entropies[Head::Blueprint as usize] - 1.0).abs() < 1e-6);

    let (prune, of_prune) = from_equal_logits(&six_ops(), 3.5 / 6.0);
    assert_eq!(prune[Head::Op as usize], LifecycleOp::Prune.code() as u8);
    assert!((joint(&of_prune) + 5.480639).abs() < 1e-5);
}

#[test]
fn with_conditioned_heads_a_preference_under_one_op_says_nothing_about_another() {
    for (conditioning, moves) in [(HeadConditioning::PerOp, false), (HeadConditioning::Shared, true)] {
        let layout = layout(conditioning);
        let mut logits = vec![0.0; layout.width()];
        logits[layout.columns(Head::Slot, LifecycleOp::Prune, 0).start + 1] = 9.0;
        let slot_of = |op: LifecycleOp| {
            let mut masks = six_ops();
            if op == LifecycleOp::Germinate {
                masks = self::masks(&empty(3), &limits());
            }
            masks.keep_ops(&[op]).unwrap();
            let mode = DecideMode::Greedy;
            let (indices, _) = choose(&logits, &layout, &masks, &default_floors(), &[0.5; HEADS], mode);
            indices[Head::Slot as usize]
        };
        assert_eq!(slot_of(LifecycleOp::Prune), 1);
        assert_eq!(slot_of(LifecycleOp::Germinate), u8::from(moves));
    }
}

/// One step of one env, evaluated from a leaf of logits.
struct Evaluated {
    logits: Tensor,
    terms: HeadTerms,
}

fn evaluate_one(logits: &[f32], masks: &MaskSet, indices: HeadIndices, floors: &[Floor; HEADS]) -> Evaluated {
    evaluate_with(&layout(HeadConditioning::PerOp), logits, masks, indices, floors)
}

fn evaluate_with(
    layout: &LogitLayout,
    logits: &[f32],
    masks: &MaskSet,
    indices: HeadIndices,
    floors: &[Floor; HEADS],
) -> Evaluated {
    let tables = OpTables::new(Device::Cpu);
    let logits = Tensor::from_slice(logits).view([1, 1, -1]).set_requires_grad(true);
    let actions = Tensor::from_slice(&indices.map(i64::from)).view([1, 1, 8]);
    let stored = Stored::new(&stored_masks(&[masks], [1, 1]), &actions, SLOTS, BLUEPRINTS, &tables);
    let terms = head_terms(&logits, layout, &stored, &tables, floors);
    Evaluated { logits, terms }
}

/// Entropy of what was available has a gradient where something else was chosen.
#[test]
fn available_entropy_has_a_gradient_on_a_step_that_waited() {
    let layout = layout(HeadConditioning::PerOp);
    let logits: Vec<f32> = (0..layout.width()).map(|column| (column as f32 * 0.7).sin()).collect();
    let wait = [0, 0, 2, 1, 2, 0, 0, 0];
    let evaluated = evaluate_one(&logits, &masks(&empty(3), &limits()), wait, &default_floors());

    let blueprint = Head::Blueprint as i64;
    evaluated
        .terms
        .entropy_available
        .select(-1, blueprint)
        .sum(Kind::Float)
        .backward();

    let columns = layout.columns(Head::Blueprint, LifecycleOp::Germinate, 0);
    let gradient = values(&evaluated.logits.grad());
    assert!(gradient[columns].iter().skip(1).all(|value| value.abs() > 1e-6));
    assert_eq!(values(&evaluated.terms.entropy_causal.select(-1, blueprint)), [0.0]);
    let unavailable = evaluated.terms.entropy_available.select(-1, Head::AlphaSpeed as i64);
    assert_eq!(values(&unavailable), [0.0]);
}

/// Gradients of the op head's log-probabilities with three valid ops and logits [4, 0, 0].
fn op_gradients(epsilon: f64) -> Vec<Vec<f64>> {
    let layout = layout(HeadConditioning::PerOp);
    let mut logits = vec![0.0; layout.width()];
    logits[0] = 4.0;
    let mut masks = six_ops();
    masks
        .keep_ops(&[LifecycleOp::Wait, LifecycleOp::Germinate, LifecycleOp::SetAlphaTarget])
        .unwrap();
    let floors = [Floor { epsilon }; HEADS];
    let mut gradients = Vec::new();
    for action in [
        [0, 0, 2, 1, 2, 0, 0, 0],
        [2, 1, 2, 1, 2, 0, 0, 1],
        [0, 0, 2, 1, 2, 0, 0, 2],
    ] {
        let evaluated = evaluate_one(&logits, &masks, action, &floors);
        let log_prob = evaluated.terms.log_probs.select(-1, Head::Op as i64);
        log_prob.exp().sum(Kind::Float).backward();
        gradients.push(values(&evaluated.logits.grad())[..3].to_vec());
    }
    gradients
}

#[test]
fn a_mixture_floor_shrinks_the_gradient_and_keeps_its_direction() {
    let advantage = [0.0, 1.0, -1.0];
    let direction = |gradients: &[Vec<f64>]| -> Vec<f64> {
        (0..3)
            .map(|column| (0..3).map(|action| advantage[action] * gradients[action][column]).sum())
            .collect()
    };
    let plain = direction(&op_gradients(0.0));
    let floored = direction(&op_gradients(0.05));
    for (plain, floored) in plain.iter().zip(floored) {
        assert!(
            (floored - 0.85 * plain).abs() < 1e-6,
            "{floored} is not 0.85 of {plain}"
        );
    }
}

/// A forced step is sampled as any other: with certainty.
#[test]
fn a_forced_step_has_probability_one() {
    let mut masks = masks(&empty(3), &limits());
    masks.keep_ops(&[LifecycleOp::Wait]).unwrap();
    let (indices, sample) = from_equal_logits(&masks, 0.999);
    assert_eq!(indices[Head::Op as usize], 0);
    assert!(joint(&sample).abs() < 1e-6);
    assert!(masks.is_forced());
}

/// The chosen slot's blueprints count, not those of the lowest one.
#[test]
fn blueprints_are_masked_by_the_chosen_slot() {
    let mut masks = MaskSet::build(AT, &empty(3), &CNN_BLUEPRINTS[..3], &limits()).unwrap();
    masks
        .keep(MaskRow::Blueprints { slot: 2 }, [4].into_iter().collect())
        .unwrap();
    let layout = layout(HeadConditioning::PerOp);
    let logits = vec![0.0; layout.width()];
    let mut uniforms = [0.9; HEADS];
    uniforms[Head::Slot as usize] = 0.99;
    let (indices, sample) = choose(
        &logits,
        &layout,
        &masks,
        &default_floors(),
        &uniforms,
        DecideMode::Sample,
    );
    assert_eq!((indices[0], indices[1]), (2, 4));
    assert_eq!(sample.entropies[Head::Blueprint as usize], 0.0);

    let terms = evaluate_one(&logits, &masks, indices, &default_floors()).terms;
    let blueprint = |tensor: &Tensor| values(&tensor.select(-1, Head::Blueprint as i64))[0];
    assert!(blueprint(&terms.log_probs).abs() < 1e-6);
    assert_eq!(blueprint(&terms.entropy_causal), 0.0);
    assert!((blueprint(&terms.entropy_available) - 1.0).abs() < 1e-6);
}

/// Sampled on the host, evaluated on the device: the same probabilities, and a blueprint that is liked in one slot is not
/// therefore liked in another.
#[test]
fn with_a_row_per_slot_blueprints_are_chosen_by_the_slot() {
    let layout = layout(HeadConditioning::PerSlot);
    let mut logits: Vec<f32> = (0..layout.width()).map(|column| (column as f32 * 0.7).sin()).collect();
    logits[layout.columns(Head::Blueprint, LifecycleOp::Germinate, 1).start + 4] = 9.0;
    let mut masks = masks(&empty(3), &limits());
    masks.keep_ops(&[LifecycleOp::Germinate]).unwrap();
    for slot in 0..3 {
        let mut uniforms = [0.5; HEADS];
        uniforms[Head::Slot as usize] = (slot as f64 + 0.5) / 3.0;
        logits[layout.columns(Head::Slot, LifecycleOp::Germinate, 0)].fill(0.0);
        let floors = default_floors();
        let (indices, sample) = choose(&logits, &layout, &masks, &floors, &uniforms, DecideMode::Sample);
        assert_eq!(usize::from(indices[Head::Slot as usize]), slot);
        assert_eq!(indices[Head::Blueprint as usize] == 4, slot == 1);

        let evaluated = evaluate_with(&layout, &logits, &masks, indices, &floors);
        for (terms, sampled) in [
            (&evaluated.terms.log_probs, sample.log_probs),
            (&evaluated.terms.entropy_causal, sample.entropies),
        ] {
            let head = Head::Blueprint as usize;
            assert!((values(terms)[head] - f64::from(sampled[head])).abs() < 1e-5);
        }
        evaluated.terms.log_probs.sum(Kind::Float).backward();
        let gradient = values(&evaluated.logits.grad());
        for other in (0..3).filter(|&other| other != slot) {
            let columns = layout.columns(Head::Blueprint, LifecycleOp::Germinate, other);
            assert!(gradient[columns].iter().all(|&value| value == 0.0));
        }
    }
}

#[test]
fn an_unknown_network_lists_what_there_is() {
    let mut ground = Ground::default();
    (ground.scenario.policy.net, ground.scenario.policy.net_cfg) = ("oracle".into(), small());
    let error = ActorCriticController::new(&ground.context()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "no network is called `oracle`; there are: gru, lstm, mlp, window"
    );
}
