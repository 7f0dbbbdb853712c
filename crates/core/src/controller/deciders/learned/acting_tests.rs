//! A policy among its envs: what it does, what it remembers, and that evaluating it says the same.

use proptest::prelude::*;
use tch::{Device, Kind, Tensor};

use super::*;
use crate::actions::fixtures::empty;
use crate::actions::{Decision, HEADS, Head, MaskSet, PolicyError, relevant};
use crate::controller::deciders::Controller;
use crate::controller::fixtures::policies::{Crowd, controller, stored_masks};
use crate::policy::fixtures::{FEATURES, SLOTS, distance, values};
use crate::policy::{SequenceInput, TrainablePolicy};
use crate::scenario::AmpMode;

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
        scale in prop_oneof![Just(0.0), 0.0..1.0f64],
    ) {
        let crowd = Crowd::new(8, stream);
        let mut controller = controller(kind);
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

/// A rolled-back env remembers nothing, and the others are not affected.
#[test]
fn a_row_that_is_reset_starts_from_the_initial_state() {
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
    let copies = |param: crate::policy::PolicyParam| (param.name, param.tensor.copy());
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
