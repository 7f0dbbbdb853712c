//! Sampling and evaluation of whole actions, from logits.

use super::*;
use crate::actions::fixtures::{empty, limits, masks, report};
use crate::actions::{Choices, HeadIndices, MaskRow, Sample};
use crate::controller::fixtures::stored_masks;
use crate::growth::{LifecycleOp, SeedStage};
use crate::policy::HeadTerms;
use crate::policy::fixtures::{BLUEPRINTS, SLOTS, assert_close, values};
use crate::scenario::HeadConditioning;
use crate::torch::fixtures::{on_device, test_device};

fn layout(conditioning: HeadConditioning) -> LogitLayout {
    LogitLayout::new(conditioning, SLOTS, BLUEPRINTS)
}

fn default_floors() -> [Floor; HEADS] {
    Floor::of_heads(1.0)
}

/// An action from equal logits, the op picked by `uniform`.
fn from_equal_logits(masks: &MaskSet, uniform: f64) -> (HeadIndices, Sample) {
    let layout = layout(HeadConditioning::PerOp);
    sampled(&layout, &vec![0.0; layout.width()], masks, &[(Head::Op, uniform)])
}

/// An action, heads picked by these numbers or by 0.5.
fn sampled(layout: &LogitLayout, logits: &[f32], masks: &MaskSet, picks: &[(Head, f64)]) -> (HeadIndices, Sample) {
    let mut uniforms = [0.5; HEADS];
    for &(head, uniform) in picks {
        uniforms[head as usize] = uniform;
    }
    let mode = DecideMode::Sample;
    choose(logits, layout, masks, &default_floors(), &uniforms, mode)
}

fn waves(layout: &LogitLayout) -> Vec<f32> {
    (0..layout.width()).map(|column| (column as f32 * 0.7).sin()).collect()
}

fn joint(sample: &Sample) -> f32 {
    sample.log_probs.iter().sum()
}

/// Two seeds that may be pruned, all six ops valid.
fn six_ops() -> MaskSet {
    let (mut blending, mut held) = (report(0, SeedStage::Blending), report(1, SeedStage::Holding));
    (blending.age_steps, held.age_steps, held.contribution) = (12, 20, Some(1.0));
    masks(&[Some(blending), Some(held), None], &limits())
}

#[test]
fn the_joint_log_probability_of_equal_logits_counts_the_choices() {
    let empty = masks(&empty(3), &limits());
    let (wait, of_wait) = from_equal_logits(&empty, 0.1);
    assert_eq!(wait, [0, 0, 2, 1, 2, 0, 0, 0]);
    assert!((joint(&of_wait) + std::f32::consts::LN_2).abs() < 1e-6);
    assert_eq!(of_wait.log_probs[..7], [0.0; 7]);

    let (germinate, of_germinate) = from_equal_logits(&empty, 0.9);
    assert_eq!(germinate[Head::Op as usize], LifecycleOp::Germinate.code() as u8);
    assert!((joint(&of_germinate) + 7.321189).abs() < 1e-5);

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
            let mut masks = match op {
                LifecycleOp::Germinate => masks(&empty(3), &limits()),
                _ => six_ops(),
            };
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

fn evaluate(
    layout: &LogitLayout,
    logits: &[f32],
    masks: &MaskSet,
    indices: HeadIndices,
    floors: &[Floor; HEADS],
) -> Evaluated {
    let tables = OpTables::new(test_device());
    let logits = on_device(Tensor::from_slice(logits).view([1, 1, -1])).set_requires_grad(true);
    let actions = on_device(Tensor::from_slice(&indices.map(i64::from))).view([1, 1, 8]);
    let stored = Stored::new(&stored_masks(&[masks], [1, 1]), &actions, SLOTS, BLUEPRINTS, &tables);
    let terms = head_terms(&logits, layout, &stored, &tables, floors);
    Evaluated { logits, terms }
}

/// Entropy of what was available has a gradient where something else was chosen.
#[test]
fn available_entropy_has_a_gradient_on_a_step_that_waited() {
    let layout = layout(HeadConditioning::PerOp);
    let (masks, wait) = (masks(&empty(3), &limits()), [0, 0, 2, 1, 2, 0, 0, 0]);
    let Evaluated { logits, terms } = evaluate(&layout, &waves(&layout), &masks, wait, &default_floors());

    let of = |tensor: &Tensor, head: Head| tensor.select(-1, head as i64);
    let available = of(&terms.entropy_available, Head::Blueprint);
    available.sum(Kind::Float).backward();

    let columns = layout.columns(Head::Blueprint, LifecycleOp::Germinate, 0);
    let gradient = values(&logits.grad());
    assert!(gradient[columns].iter().skip(1).all(|value| value.abs() > 1e-6));
    assert_eq!(values(&of(&terms.entropy_causal, Head::Blueprint)), [0.0]);
    assert_eq!(values(&of(&terms.entropy_available, Head::AlphaSpeed)), [0.0]);
}

/// Three valid ops, with logits [4, 0, 0].
fn three_ops() -> (LogitLayout, Vec<f32>, MaskSet) {
    let layout = layout(HeadConditioning::PerOp);
    let mut logits = vec![0.0; layout.width()];
    logits[0] = 4.0;
    let mut masks = six_ops();
    masks.keep_ops(&LifecycleOp::ALL[..3]).unwrap();
    (layout, logits, masks)
}

#[test]
fn an_entropy_is_that_of_a_choice_before_its_floor() {
    let (layout, logits, masks) = three_ops();
    let terms = evaluate(&layout, &logits, &masks, [0, 0, 2, 1, 2, 0, 0, 0], &default_floors()).terms;
    let found = [&terms.entropy_causal, &terms.entropy_available].map(|tensor| values(tensor)[Head::Op as usize]);
    assert_close(&found, &[0.161_406; 2], 1e-5);
}

/// Gradients of the op head's log-probabilities.
fn op_gradients(epsilon: f64) -> [Vec<f64>; 3] {
    let (layout, logits, masks) = three_ops();
    let actions = [
        [0, 0, 2, 1, 2, 0, 0, 0],
        [2, 1, 2, 1, 2, 0, 0, 1],
        [0, 0, 2, 1, 2, 0, 0, 2],
    ];
    actions.map(|action| {
        let evaluated = evaluate(&layout, &logits, &masks, action, &[Floor { epsilon }; HEADS]);
        let log_prob = evaluated.terms.log_probs.select(-1, Head::Op as i64);
        log_prob.exp().sum(Kind::Float).backward();
        values(&evaluated.logits.grad())[..3].to_vec()
    })
}

#[test]
fn a_mixture_floor_shrinks_the_gradient_and_keeps_its_direction() {
    // Advantages of 0, 1 and -1.
    let direction = |[_, better, worse]: [Vec<f64>; 3]| [0, 1, 2].map(|column| better[column] - worse[column]);
    let plain = direction(op_gradients(0.0));
    let floored = direction(op_gradients(0.05));
    assert_close(&floored, &plain.map(|plain| 0.85 * plain), 1e-6);
}

/// The chosen slot's blueprints count, not those of the lowest one.
#[test]
fn blueprints_are_masked_by_the_chosen_slot() {
    let mut masks = masks(&empty(3), &limits());
    masks.keep(MaskRow::Blueprints { slot: 2 }, Choices::only(4)).unwrap();
    let layout = layout(HeadConditioning::PerOp);
    let logits = vec![0.0; layout.width()];
    let (indices, _) = sampled(&layout, &logits, &masks, &[(Head::Op, 0.9), (Head::Slot, 0.99)]);
    assert_eq!((indices[0], indices[1]), (2, 4));

    let terms = evaluate(&layout, &logits, &masks, indices, &default_floors()).terms;
    let found = [&terms.log_probs, &terms.entropy_causal, &terms.entropy_available];
    let found = found.map(|tensor| values(tensor)[Head::Blueprint as usize]);
    assert_close(&found, &[0.0, 0.0, 1.0], 1e-6);
}

/// Sampled on the host, evaluated on the device: the same probabilities, and a blueprint that is liked in one slot is not
/// therefore liked in another.
#[test]
fn with_a_row_per_slot_blueprints_are_chosen_by_the_slot() {
    let layout = layout(HeadConditioning::PerSlot);
    let mut logits = waves(&layout);
    logits[layout.columns(Head::Slot, LifecycleOp::Germinate, 0)].fill(0.0);
    logits[layout.columns(Head::Blueprint, LifecycleOp::Germinate, 1).start + 4] = 9.0;
    let mut masks = masks(&empty(3), &limits());
    masks.keep_ops(&[LifecycleOp::Germinate]).unwrap();
    for slot in 0..3 {
        let uniform = (slot as f64 + 0.5) / 3.0;
        let (indices, sample) = sampled(&layout, &logits, &masks, &[(Head::Slot, uniform)]);
        assert_eq!(usize::from(indices[Head::Slot as usize]), slot);
        assert_eq!(indices[Head::Blueprint as usize] == 4, slot == 1);

        let evaluated = evaluate(&layout, &logits, &masks, indices, &default_floors());
        let head = Head::Blueprint as usize;
        let acted = f64::from(sample.log_probs[head]);
        assert_close(&[values(&evaluated.terms.log_probs)[head]], &[acted], 1e-5);
        evaluated.terms.log_probs.sum(Kind::Float).backward();
        let gradient = values(&evaluated.logits.grad());
        for other in (0..3).filter(|&other| other != slot) {
            let columns = layout.columns(Head::Blueprint, LifecycleOp::Germinate, other);
            assert!(gradient[columns].iter().all(|&value| value == 0.0));
        }
    }
}
