//! A policy among its envs: what it does, what it remembers, and that evaluating it says the same.

use proptest::prelude::*;

use super::*;
use crate::actions::fixtures::empty;
use crate::actions::relevant;
use crate::controller::fixtures::{Crowd, Scene, controller, stored_masks, view_of};
use crate::policy::fixtures::{FEATURES, SLOTS, distance, values};
use crate::scenario::AmpMode;
use crate::torch::fixtures::{on_device, test_device};

const EVERY_ENV: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

fn masks_of(crowd: &Crowd) -> Tensor {
    let masks: Vec<_> = crowd.masks.iter().collect();
    stored_masks(&masks, [masks.len() as i64, 1])
}

/// Decisions of the first step, evaluated again as sequences of one step.
fn evaluate(
    controller: &ActorCriticController,
    crowd: &Crowd,
    decisions: &[Decision],
) -> Result<Evaluation, PolicyError> {
    let rows = decisions.len() as i64;
    let seen = &crowd.observations;
    let observations: Vec<f32> = seen.iter().flat_map(|seen| seen.normalised.clone()).collect();
    let blueprints: Vec<i64> = seen.iter().flat_map(|seen| seen.blueprints.to_vec()).collect();
    let indices = decisions.iter().flat_map(|decision| decision.indices.map(i64::from));
    controller.evaluate(&SequenceInput {
        observations: &on_device(Tensor::from_slice(&observations)).view([rows, 1, FEATURES as i64]),
        blueprints: &on_device(Tensor::from_slice(&blueprints)).view([rows, 1, SLOTS as i64]),
        actions: &on_device(Tensor::from_slice(&indices.collect::<Vec<_>>())).view([rows, 1, HEADS as i64]),
        masks: &masks_of(crowd),
        valid: &Tensor::ones([rows, 1], (Kind::Bool, test_device())),
        lengths: &vec![1; decisions.len()],
    })
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
        let decisions = crowd.decide(&mut controller, 1, &EVERY_ENV);

        let evaluation = evaluate(&controller, &crowd, &decisions).unwrap();

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

/// Otherwise the very first ratio of an update is not 1.
#[test]
fn a_policy_in_mixed_precision_acts_as_in_its_evaluation() {
    // Relative to the rounding of the type: float16 keeps three bits more than bfloat16.
    for (kind, amp, rounding) in [
        ("mlp", AmpMode::Bf16, 2.0_f64.powi(-8)),
        ("mlp", AmpMode::Fp16, 2.0_f64.powi(-11)),
        ("lstm", AmpMode::Bf16, 2.0_f64.powi(-8)),
        ("lstm", AmpMode::Fp16, 2.0_f64.powi(-11)),
    ] {
        let crowd = Crowd::new(8, 3);
        let mut controller = controller(kind);
        controller.precision = PolicyPrecision::new(amp, test_device());
        let decisions = crowd.decide(&mut controller, 1, &EVERY_ENV);
        let acted = decisions.iter().flat_map(|d| d.sample.as_ref().unwrap().log_probs);
        let acted = Tensor::from_slice(&acted.collect::<Vec<f32>>());
        let drift = |controller: &ActorCriticController| {
            let evaluation = evaluate(controller, &crowd, &decisions).unwrap();
            distance(&evaluation.log_probs.flatten(0, -1), &acted)
        };

        let same = drift(&controller);
        controller.precision = PolicyPrecision::new(AmpMode::Off, test_device());
        let other = drift(&controller);
        // It is coarse enough to be seen.
        assert!(other > 0.2 * rounding, "{kind}, {amp:?}: {other}");
        // A CPU that adds in float16 rounds every partial sum, and acting and evaluating add in different orders.
        assert!(
            same < other && same < 2.0 * rounding,
            "{kind}, {amp:?}: {same} and {other}"
        );
    }
}

/// An update evaluates once a minibatch: it would wait for the device each time.
#[test]
fn evaluating_reads_nothing_from_the_device() {
    let crowd = Crowd::new(4, 2);
    let mut controller = controller("lstm");
    let decisions = crowd.decide(&mut controller, 1, &[0, 1, 2, 3]);

    let evaluation = evaluate(&controller, &crowd, &decisions);

    assert!(evaluation.is_ok());
    assert_eq!(controller.reads.count(), 0);
}

/// Envs that do not decide keep their memory, and a value is asked for without remembering it.
#[test]
fn rows_move_only_when_their_env_decides() {
    let crowd = Crowd::new(8, 3);
    let mut controller = controller("lstm");
    crowd.decide(&mut controller, 1, &EVERY_ENV);
    let before = controller.recurrent().unwrap().0[0].copy();

    crowd.decide(&mut controller, 2, &[5, 2]);

    let after = controller.recurrent().unwrap().0[0].copy();
    for row in 0..8 {
        let moved = distance(&before.select(1, row), &after.select(1, row));
        assert_eq!(moved > 0.0, [2, 5].contains(&row), "row {row}");
    }

    let values = controller.value(&view_of(3, &crowd.views(&[5, 2]))).unwrap();
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
fn a_greedy_choice_is_the_likeliest_of_each_head() {
    let crowd = Crowd::new(8, 6);
    let mut controller = controller("mlp");
    controller.set_mode(DecideMode::Greedy);
    for decision in crowd.decide(&mut controller, 1, &EVERY_ENV) {
        let probabilities = decision.sample.unwrap().op_probabilities;
        let chosen = probabilities[decision.command.op().code()];
        assert!(probabilities.iter().all(|&probability| probability <= chosen));
        assert!((probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
}

fn break_down(controller: &ActorCriticController, name: &str) {
    let _no_grad = NoGrad::new();
    let param = controller.params().into_iter().find(|param| param.name == name);
    let _ = param.unwrap().tensor.fill_(f64::NAN);
}

#[test]
fn a_diverged_network_is_named_with_env_and_head() {
    let mut controller = controller("lstm");
    break_down(&controller, "head.tempo.2.bias");
    let (decisions, _) = Crowd::new(2, 7).attempt(&mut controller, 7, &[1]);
    let why = "env 1, episode 1, step 7: the policy's logit of tempo is not finite";
    assert_eq!(decisions.unwrap_err().to_string(), why);
}

/// The decision is that of the good weights, and there is no second rescue.
#[test]
fn a_diverged_network_falls_back_to_its_last_good_weights_once() {
    let crowd = Crowd::new(8, 7);
    let (mut sound, mut rescued) = (controller("lstm"), controller("lstm"));
    let last_good = rescued.params().into_iter();
    rescued.set_last_good(last_good.map(|param| (param.name, param.tensor.copy())).collect());
    for step in 1..5 {
        let is_broken = step == 3;
        if is_broken {
            break_down(&rescued, "core.0.lstm.bias_ih");
        }
        let (decisions, reads) = crowd.attempt(&mut rescued, step, &EVERY_ENV);
        // The memory of step 4 is that of the sound policy, too.
        assert_eq!(decisions, Ok(crowd.decide(&mut sound, step, &EVERY_ENV)));
        assert_eq!(reads, 1 + u64::from(is_broken), "one for each attempt");
    }

    break_down(&rescued, "core.0.lstm.bias_ih");
    let (again, _) = crowd.attempt(&mut rescued, 5, &EVERY_ENV);
    assert!(matches!(again, Err(PolicyError::PolicyNonFinite { .. })), "{again:?}");
}

#[test]
fn a_controller_without_observations_says_so() {
    let error = Scene::new(7, empty(3)).try_decide(&mut controller("lstm")).unwrap_err();
    assert!(matches!(error, PolicyError::NoObservation { .. }));
}
