//! Sampling and evaluation of whole actions.

use proptest::prelude::*;
use tch::{Device, Kind, Tensor};

use super::*;
use crate::controller::actions::Sample;
use crate::controller::actions::{Decision, HEADS, Head, HeadIndices, MaskRow, MaskSet, relevant};
use crate::controller::deciders::Controller;
use crate::controller::error::PolicyError;
use crate::controller::fixtures::policies::{
    BLUEPRINTS, Crowd, FEATURES, SLOTS, controller, controller_with_floor, distance, small, stored_masks, values,
};
use crate::controller::fixtures::{AT, CNN_BLUEPRINTS, Ground, empty, limits, masks, report};
use crate::controller::policy::HeadTerms;
use crate::controller::policy::{OpTables, SequenceInput, Stored, TrainablePolicy, choose, head_terms};
use crate::growth::{AlphaMode, LifecycleOp, SeedStage};
use crate::scenario::{AmpMode, FloorConfig, FloorMode, HeadConditioning};
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
        age_epochs: 12,
        ..report(0, SeedStage::Blending)
    });
    reports[1] = Some(SeedReport {
        age_epochs: 20,
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

/// While statistics are fitted, the network has no say.
#[test]
fn a_uniform_choice_is_that_of_equal_logits() {
    let layout = layout(HeadConditioning::PerOp);
    let opinionated: Vec<f32> = (0..layout.width())
        .map(|column| (column as f32 * 0.7).sin() * 9.0)
        .collect();
    let masks = six_ops();
    for step in 0..6 {
        let mut uniforms = [0.5; HEADS];
        uniforms[Head::Op as usize] = (f64::from(step) + 0.5) / 6.0;
        let mode = DecideMode::Uniform;

        let (chosen, sample) = choose(&opinionated, &layout, &masks, &default_floors(), &uniforms, mode);

        let (expected, of_equal) = from_equal_logits(&masks, uniforms[Head::Op as usize]);
        assert_eq!(chosen, expected);
        assert_eq!(sample.log_probs, of_equal.log_probs);
    }
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
fn op_gradients(mode: FloorMode, epsilon: f64) -> Vec<Vec<f64>> {
    let layout = layout(HeadConditioning::PerOp);
    let mut logits = vec![0.0; layout.width()];
    logits[0] = 4.0;
    let mut masks = six_ops();
    masks
        .keep_ops(&[LifecycleOp::Wait, LifecycleOp::Germinate, LifecycleOp::SetAlphaTarget])
        .unwrap();
    let floors = [Floor { mode, epsilon }; HEADS];
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
    let plain = direction(&op_gradients(FloorMode::None, 0.0));
    let floored = direction(&op_gradients(FloorMode::Mixture, 0.05));
    for (plain, floored) in plain.iter().zip(floored) {
        assert!(
            (floored - 0.85 * plain).abs() < 1e-6,
            "{floored} is not 0.85 of {plain}"
        );
    }
}

#[test]
fn a_clamp_floor_has_no_gradient_once_a_single_member_is_above_it() {
    for gradient in op_gradients(FloorMode::Clamp, 0.15) {
        assert!(gradient.iter().all(|value| value.abs() < 1e-7), "{gradient:?}");
    }
}

/// Actions and masks of decisions as sequences of one step.
fn stored(decisions: &[Decision], masks: &[MaskSet]) -> (Tensor, Tensor, Tensor) {
    let rows = decisions.len() as i64;
    let indices: Vec<i64> = decisions
        .iter()
        .flat_map(|decision| decision.indices.map(i64::from))
        .collect();
    let masks: Vec<&MaskSet> = masks.iter().collect();
    let valid = Tensor::ones([rows, 1], (Kind::Bool, Device::Cpu));
    (
        Tensor::from_slice(&indices).view([rows, 1, 8]),
        stored_masks(&masks, [rows, 1]),
        valid,
    )
}

fn observations(crowd: &Crowd) -> (Tensor, Tensor) {
    let flat: Vec<f32> = crowd.observations.iter().flat_map(|o| o.normalised.clone()).collect();
    let blueprints: Vec<i64> = crowd.observations.iter().flat_map(|o| o.blueprints.to_vec()).collect();
    (
        Tensor::from_slice(&flat).view([-1, 1, FEATURES as i64]),
        Tensor::from_slice(&blueprints).view([-1, 1, SLOTS as i64]),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Rollout and evaluation agree in everything that both compute, and masks are kept.
    #[test]
    fn evaluating_an_action_gives_the_numbers_of_its_sampling(
        stream: u64,
        kind in prop::sample::select(vec!["lstm", "gru", "mlp"]),
        mode in prop::sample::select(vec![FloorMode::None, FloorMode::Mixture, FloorMode::Clamp]),
        scale in 0.0..1.0f64,
    ) {
        let crowd = Crowd::new(8, stream);
        let mut controller = controller_with_floor(kind, mode);
        controller.set_floor_scale(scale);
        let places: Vec<usize> = (0..8).collect();
        let decisions = crowd.decide(&mut controller, 1, &places);

        let (actions, masks, valid) = stored(&decisions, &crowd.masks);
        let (observations, blueprints) = observations(&crowd);
        let initial = controller.net().zero_state(8);
        let evaluation = controller.evaluate(&SequenceInput {
            observations: &observations,
            blueprints: &blueprints,
            actions: &actions,
            masks: &masks,
            valid: &valid,
            initial: &initial,
        }).unwrap();

        let log_probs = values(&evaluation.log_probs);
        let entropies = values(&evaluation.entropy_causal);
        let value = values(&evaluation.value);
        for (row, (decision, masks)) in decisions.iter().zip(&crowd.masks).enumerate() {
            let sample = decision.sample.as_ref().unwrap();
            prop_assert!(masks.allows(&decision.command));
            prop_assert!((value[row] - f64::from(sample.value)).abs() < 1e-5);
            for head in Head::ALL {
                let (index, cell) = (head as usize, row * HEADS + head as usize);
                prop_assert!((log_probs[cell] - f64::from(sample.log_probs[index])).abs() < 1e-5, "{}", head);
                prop_assert!((entropies[cell] - f64::from(sample.entropies[index])).abs() < 1e-5, "{}", head);
                if !relevant(decision.command.op(), head) {
                    prop_assert_eq!((log_probs[cell], entropies[cell]), (0.0, 0.0));
                }
            }
        }
    }

    #[test]
    fn the_order_of_envs_does_not_matter(stream: u64) {
        let crowd = Crowd::new(5, stream);
        let run = |order: &[usize]| {
            let mut controller = controller("mlp");
            (1..4).map(|step| crowd.decide(&mut controller, step, order)).collect::<Vec<_>>()
        };
        let straight = run(&[0, 1, 2, 3, 4]);
        let order = [3, 0, 4, 2, 1];
        for (straight, shuffled) in straight.iter().zip(run(&order)) {
            for (decision, place) in shuffled.iter().zip(order) {
                prop_assert_eq!(decision.indices, straight[place].indices);
            }
        }
    }
}

/// Largest difference between the log-probabilities of acting and those of an evaluation under the same weights.
fn drift(controller: &ActorCriticController, crowd: &Crowd, decisions: &[Decision]) -> f64 {
    let (actions, masks, valid) = stored(decisions, &crowd.masks);
    let (observations, blueprints) = observations(crowd);
    let input = SequenceInput {
        observations: &observations,
        blueprints: &blueprints,
        actions: &actions,
        masks: &masks,
        valid: &valid,
        initial: &controller.net().zero_state(decisions.len() as i64),
    };
    let evaluation = controller.evaluate(&input).unwrap();
    let acted = decisions
        .iter()
        .flat_map(|decision| decision.sample.as_ref().unwrap().log_probs);
    let pairs = values(&evaluation.log_probs).into_iter().zip(acted);
    pairs
        .map(|(now, then)| (now - f64::from(then)).abs())
        .fold(0.0, f64::max)
}

/// Otherwise the very first ratio of an update is not 1.
#[test]
fn a_policy_in_mixed_precision_acts_as_it_is_evaluated() {
    // Relative to the rounding of the type: float16 keeps three bits more than bfloat16.
    let modes = [(AmpMode::Bf16, 2.0_f64.powi(-8)), (AmpMode::Fp16, 2.0_f64.powi(-11))];
    for (kind, (amp, rounding)) in ["mlp", "lstm"]
        .into_iter()
        .flat_map(|kind| modes.map(|mode| (kind, mode)))
    {
        let crowd = Crowd::new(8, 3);
        let mut controller = controller(kind);
        controller.precision = PolicyPrecision::new(amp, Device::Cpu);
        let places: Vec<usize> = (0..8).collect();

        let decisions = crowd.decide(&mut controller, 1, &places);

        let same = drift(&controller, &crowd, &decisions);
        controller.precision = PolicyPrecision::new(AmpMode::Off, Device::Cpu);
        let other = drift(&controller, &crowd, &decisions);
        assert!(
            other > 0.2 * rounding,
            "{kind}, {amp:?}: it is coarse enough to be seen ({other})"
        );
        assert!(same < other && same < rounding, "{kind}, {amp:?}: {same} and {other}");
    }
}

#[test]
fn an_action_that_its_masks_forbid_is_an_error_and_not_a_small_number() {
    let crowd = Crowd::new(4, 2);
    let mut controller = controller("lstm");
    let decisions = crowd.decide(&mut controller, 1, &[0, 1, 2, 3]);
    let (actions, masks, valid) = stored(&decisions, &crowd.masks);
    let (observations, blueprints) = observations(&crowd);
    let initial = controller.net().zero_state(4);
    let nothing_is_valid = masks.zeros_like();
    let evaluate = |masks: &Tensor| {
        controller.evaluate(&SequenceInput {
            observations: &observations,
            blueprints: &blueprints,
            actions: &actions,
            masks,
            valid: &valid,
            initial: &initial,
        })
    };
    assert!(evaluate(&masks).is_ok());
    let error = evaluate(&nothing_is_valid).err();
    assert_eq!(error, Some(PolicyError::MaskedActionEvaluated { count: 4 }));
}

/// Envs that do not decide keep their memory, and a value is asked for without remembering it.
#[test]
fn rows_move_only_when_their_env_decides() {
    let crowd = Crowd::new(8, 3);
    let mut controller = controller("lstm");
    crowd.decide(&mut controller, 1, &[0, 1, 2, 3, 4, 5, 6, 7]);
    let before = controller.recurrent().unwrap().0[0].copy();

    crowd.decide(&mut controller, 2, &[5, 2]);

    let after = controller.recurrent().unwrap().0[0].copy();
    for row in 0..8 {
        let moved = distance(&before.select(1, row), &after.select(1, row));
        assert_eq!(moved > 0.0, [2, 5].contains(&row), "row {row}");
    }

    let reads = crate::torch::HostSyncCounter::default();
    let envs = crowd.views(&[5, 2]);
    let view = crate::controller::DecisionView {
        round: 0,
        step: 3,
        envs: &envs,
        reads: &reads,
    };
    let values = controller.value(&view).unwrap();
    assert_eq!(values.len(), 2);
    assert_eq!(distance(&after, &controller.recurrent().unwrap().0[0]), 0.0);
    let decisions = crowd.decide(&mut controller, 3, &[5, 2]);
    let of_sample: Vec<f32> = decisions.iter().map(|d| d.sample.as_ref().unwrap().value).collect();
    assert_eq!(values, of_sample);
}

/// A rolled-back env remembers nothing, and the others do not notice.
#[test]
fn a_row_that_is_reset_starts_anew() {
    let crowd = Crowd::new(2, 4);
    let run = |resets: bool| {
        let mut controller = controller("lstm");
        crowd.decide(&mut controller, 1, &[0, 1]);
        if resets {
            controller.reset_rows(&[1]);
            assert_eq!(values(&controller.recurrent().unwrap().0[0].select(1, 1)), [0.0; 32]);
        }
        let decisions = crowd.decide(&mut controller, 2, &[0, 1]);
        (decisions, controller.recurrent().unwrap().0[0].copy())
    };
    let (reset, kept) = (run(true), run(false));
    assert_eq!(reset.0[0], kept.0[0]);
    let moved = |row| distance(&reset.1.select(1, row), &kept.1.select(1, row));
    assert_eq!(moved(0), 0.0);
    assert!(moved(1) > 1e-3);
}

#[test]
fn one_seed_gives_the_same_decisions_and_greedy_ones_twice() {
    let crowd = Crowd::new(8, 5);
    let places: Vec<usize> = (0..8).collect();
    let run = |mode| {
        let mut controller = controller("lstm");
        controller.set_mode(mode);
        (1..6)
            .map(|step| crowd.decide(&mut controller, step, &places))
            .collect::<Vec<_>>()
    };
    assert_eq!(run(DecideMode::Sample), run(DecideMode::Sample));
    assert_eq!(run(DecideMode::Greedy), run(DecideMode::Greedy));
}

#[test]
fn a_greedy_choice_is_the_likeliest_of_each_head() {
    let crowd = Crowd::new(8, 6);
    let mut controller = controller("mlp");
    controller.set_mode(DecideMode::Greedy);
    for decision in crowd.decide(&mut controller, 1, &[0, 1, 2, 3, 4, 5, 6, 7]) {
        let sample = decision.sample.unwrap();
        let op = decision.command.op().code();
        assert!(
            sample
                .op_probabilities
                .iter()
                .all(|&p| p <= sample.op_probabilities[op])
        );
        assert!((sample.op_probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
}

#[test]
fn a_diverged_network_is_named_with_env_and_head() {
    let crowd = Crowd::new(2, 7);
    let mut controller = controller("lstm");
    {
        let _no_grad = crate::torch::NoGrad::new();
        let mut params = controller.params().into_iter();
        let param = params.find(|param| param.name == "head.tempo.2.bias").unwrap();
        let _ = param.tensor.shallow_clone().fill_(f64::NAN);
    }
    let reads = crate::torch::HostSyncCounter::default();
    let envs = crowd.views(&[1]);
    let view = crate::controller::DecisionView {
        round: 0,
        step: 7,
        envs: &envs,
        reads: &reads,
    };
    let error = controller.decide(&view, &crowd.masks(&[1])).unwrap_err();
    let text = error.to_string();
    assert_eq!(
        text,
        "env 1, episode 1, step 7: the policy's logit of tempo is not finite"
    );
}

/// The decision is the one that the good weights would have taken, and there is no second rescue.
#[test]
fn a_diverged_network_falls_back_to_its_last_good_weights_once() {
    let crowd = Crowd::new(8, 7);
    let places: Vec<usize> = (0..8).collect();
    let (mut sound, mut rescued) = (controller("lstm"), controller("lstm"));
    let copies = |param: crate::controller::PolicyParam| (param.name, param.tensor.copy());
    let last_good = rescued.params().into_iter().map(copies).collect();
    rescued.set_last_good(last_good);
    for step in 1..3 {
        assert_eq!(
            crowd.decide(&mut rescued, step, &places),
            crowd.decide(&mut sound, step, &places)
        );
    }
    let break_down = |controller: &ActorCriticController| {
        let _no_grad = crate::torch::NoGrad::new();
        let mut params = controller.params().into_iter();
        let param = params.find(|param| param.name == "core.0.lstm.bias_ih").unwrap();
        let _ = param.tensor.shallow_clone().fill_(f64::NAN);
    };

    break_down(&rescued);
    let (decisions, reads) = crowd.attempt(&mut rescued, 3, &places);
    assert_eq!(decisions, Ok(crowd.decide(&mut sound, 3, &places)));
    assert_eq!(reads, 2, "one for each attempt");
    // The memory is that of the sound policy, too.
    assert_eq!(
        crowd.decide(&mut rescued, 4, &places),
        crowd.decide(&mut sound, 4, &places)
    );

    break_down(&rescued);
    let (again, _) = crowd.attempt(&mut rescued, 5, &places);
    assert!(matches!(again, Err(PolicyError::PolicyNonFinite { .. })), "{again:?}");
}

#[test]
fn a_controller_without_observations_says_so() {
    let scene = crate::controller::fixtures::Scene::new(7, empty(3));
    let error = scene.try_decide(&mut controller("lstm")).unwrap_err();
    assert!(matches!(error, PolicyError::NoObservation { .. }));
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
        "no network is called `oracle`; there are: gru, lstm, mlp"
    );
}
