//! Rollouts in, parameters out: agreement with acting, guards, checkpoints.

use tch::{Kind, Tensor};

use super::policy::{Core, SmallPolicy};
use super::tasks::{BanditTask, CueTask};
use super::training::{Training, small_config};
use super::{UPDATES, cue, read};
use crate::controller::{
    Evaluation, PolicyError, PolicyParam, SequenceInput, TrainablePolicy, ValueOutput, ValueSequence,
};
use crate::learner::algorithm::*;
use crate::scenario::{LearnerConfig, LrSchedule, RatioMode};
use crate::telemetry::{FinitenessGate, HeadGradient, LearnerUpdate, Num, UpdateSkip};
use crate::torch::{HostSyncCounter, Implementation};

fn params(policy: &dyn TrainablePolicy) -> Vec<f64> {
    policy.params().iter().flat_map(|param| read(&param.tensor)).collect()
}

/// A policy with a fault: `spoil` sees every evaluation.
struct Faulty<'a> {
    policy: &'a mut SmallPolicy,
    spoil: &'a dyn Fn(usize, &mut Evaluation),
    evaluations: std::cell::Cell<usize>,
    /// What it was told last.
    floor_scale: Option<f64>,
}

impl TrainablePolicy for Faulty<'_> {
    fn params(&self) -> Vec<PolicyParam> {
        self.policy.params()
    }

    fn value_output(&self) -> ValueOutput {
        self.policy.value_output()
    }

    fn evaluate(&self, input: &SequenceInput) -> Result<Evaluation, PolicyError> {
        let mut evaluation = self.policy.evaluate(input)?;
        (self.spoil)(self.evaluations.replace(self.evaluations.get() + 1), &mut evaluation);
        Ok(evaluation)
    }

    fn evaluate_values(&self, input: &ValueSequence) -> Result<Tensor, PolicyError> {
        self.policy.evaluate_values(input)
    }

    fn set_floor_scale(&mut self, scale: f64) {
        self.floor_scale = Some(scale);
        self.policy.set_floor_scale(scale);
    }
}

/// Plays a rollout and learns from it with a fault.
fn learn_with(training: &mut Training<CueTask>, spoil: &dyn Fn(usize, &mut Evaluation)) -> LearnerUpdate {
    learn_and_listen(training, spoil).0
}

/// The same; also tells by what the policy was told to scale its floors from now on.
fn learn_and_listen(
    training: &mut Training<CueTask>,
    spoil: &dyn Fn(usize, &mut Evaluation),
) -> (LearnerUpdate, Option<f64>) {
    training.play();
    let mut policy = Faulty {
        policy: &mut training.policy,
        spoil,
        evaluations: std::cell::Cell::new(0),
        floor_scale: None,
    };
    let reads = HostSyncCounter::default();
    let record = training
        .learner
        .learn(&mut training.buffer, &mut policy, training.round, &reads);
    assert!(reads.count() <= 1, "one read an update");
    let floor_scale = policy.floor_scale;
    training.buffer.clear().expect("complete");
    training.round += 1;
    (record.expect("finished"), floor_scale)
}

/// Gradients become NaN, outputs and loss do not: the root of 0 has an infinite slope.
fn spoil_gradient(evaluation: &mut Evaluation) {
    let nothing = (&evaluation.value - evaluation.value.detach()).sqrt() * 0.0;
    evaluation.value = &evaluation.value + nothing;
}

#[test]
fn before_the_first_step_evaluation_repeats_what_was_said_when_acting() {
    let mut cue = cue(small_config());
    cue.play();
    let record = cue.learn();
    assert!(record.update_performed);
    assert!(record.trust.logp_drift_max.is_some_and(|drift| drift.0 <= 1e-5));

    let mut bandit = Training::new(BanditTask::new(8), Core::FeedForward, small_config(), UPDATES, 7);
    bandit.policy.floor = 0.03;
    bandit.play();
    assert!(bandit.learn().trust.logp_drift_max.is_some_and(|drift| drift.0 <= 1e-5));
}

/// A chunk starts from the state that entered it, and before the first step that state is no
/// approximation.
#[test]
fn chunks_of_a_rollout_evaluate_as_the_whole_of_it() {
    let mut cue = cue(LearnerConfig {
        chunk_length: Some(5),
        epochs: 1,
        ..small_config()
    });
    // So that what the cells remember matters to what is said.
    for _ in 0..3 {
        cue.play();
        let record = cue.learn();
        assert!(record.update_performed);
        let drift = record.trust.logp_drift_max;
        assert!(drift.is_some_and(|drift| drift.0 <= 1e-5), "{drift:?}");
    }
}

/// Floors of probability fall from rollout to rollout, and only with updates that were performed.
#[test]
fn a_performed_update_lowers_the_floors_of_the_next_rollout() {
    let mut training = Training::new(CueTask::new(8), Core::Lstm, small_config(), 4, 7);
    training.policy.floor = 0.1;
    for expected in [0.8, 0.6, 0.4] {
        let (record, floor_scale) = learn_and_listen(&mut training, &|_, _| ());
        assert!(record.update_performed);
        assert!(record.trust.logp_drift_max.is_some_and(|drift| drift.0 <= 1e-5));
        assert!(
            floor_scale.is_some_and(|scale| (scale - expected).abs() < 1e-12),
            "{floor_scale:?}"
        );
    }

    let spoil = |_: usize, evaluation: &mut Evaluation| evaluation.value = &evaluation.value * f64::NAN;
    let (record, floor_scale) = learn_and_listen(&mut training, &spoil);
    assert!(!record.update_performed);
    assert!(
        floor_scale.is_some_and(|scale| (scale - 0.4).abs() < 1e-12),
        "{floor_scale:?}"
    );
}

/// The product of the heads' ratios is a loss of its own, and the default is not it.
#[test]
fn the_ratio_mode_decides_what_is_clipped() {
    let learnt = |ratio_mode| {
        let config = LearnerConfig {
            ratio_mode,
            lr: 0.02,
            target_kl: None,
            ..small_config()
        };
        let mut bandit = Training::new(BanditTask::new(32), Core::FeedForward, config, UPDATES, 7);
        bandit.play();
        let record = bandit.learn();
        (record.losses.loss_policy, params(&bandit.policy))
    };
    let (per_head, joint) = (learnt(RatioMode::PerHead), learnt(RatioMode::Joint));
    assert_ne!(per_head.0, joint.0);
    assert_ne!(per_head.1, joint.1);
}

/// States are measured where the rollout's segments end.
#[test]
fn the_states_at_the_ends_of_a_rollout_are_told() {
    let mut training = cue(small_config());
    training.play();
    let states = training.policy.zero_state(2);
    let _ = states.0[0].narrow(1, 1, 1).fill_(0.5);
    training.buffer.note_final_states(&states).expect("note");
    let update = training.learn();

    let states = &update.recurrent;
    assert_eq!(
        (
            states.rollout_h_max,
            states.rollout_h_env_rms_max,
            states.rollout_h_env_rms_mean
        ),
        (Some(Num(0.5)), Some(Num(0.5)), Some(Num(0.25)))
    );
    assert_eq!(
        (states.rollout_c_max, update.rollout_has_nan),
        (Some(Num(0.0)), Some(false))
    );
    assert_eq!((update.obs_nan_count, update.obs_inf_count), (Some(0), Some(0)));

    training.play();
    let update = training.learn();
    assert_eq!(update.recurrent.rollout_h_max, None, "nothing was noted since");
    assert_eq!(update.rollout_has_nan, None, "nothing was noted since");
}

/// Half of the minibatches take at least the median.
#[test]
fn the_median_time_of_a_minibatch_is_told() {
    let config = LearnerConfig {
        epochs: 3,
        num_minibatches: 2,
        target_kl: None,
        ..small_config()
    };
    let mut training = cue(config);
    training.play();

    let record = training.learn();

    assert_eq!(record.steps_taken, 6);
    let Num(median) = record.learner_step_us_p50.expect("minibatches were measured");
    let Num(update_ms) = record.update_ms;
    assert!(median > 0.0 && 3.0 * median < update_ms * 1e3, "{median} {update_ms}");
}

#[test]
fn another_floor_in_the_update_than_in_the_rollout_is_a_mismatch() {
    let mut training = cue(small_config());
    for param in training
        .policy
        .params()
        .iter()
        .filter(|param| param.name == "head.op.0.bias")
    {
        // Far from uniform, so that a floor matters.
        let bias = Tensor::from_slice(&[0.0f32, 0.0, 0.0, 6.0, 0.0, 0.0]);
        crate::torch::copy_into(&param.tensor, &bias, false).expect("copy");
    }
    training.play();
    training.policy.floor = 0.2;
    let before = params(&training.policy);
    let record = training.learn();

    assert_eq!(record.skip_reason, UpdateSkip::Mismatch);
    assert_eq!(
        (record.steps_taken, record.updates, record.consecutive_failures),
        (0, 0, 1)
    );
    let is_value = |index: usize| index + 33 >= before.len();
    for (index, (old, new)) in before.iter().zip(params(&training.policy)).enumerate() {
        assert!(
            is_value(index) || *old == new,
            "only the value head's units may have moved"
        );
    }
}

/// One bad minibatch is passed over, the others step.
#[test]
fn a_minibatch_with_a_gradient_that_is_not_finite_takes_no_step() {
    let config = LearnerConfig {
        num_minibatches: 2,
        epochs: 1,
        ..small_config()
    };
    let mut training = cue(config);
    let record = learn_with(&mut training, &|index, evaluation| {
        if index == 0 {
            spoil_gradient(evaluation);
        }
    });

    assert!(record.update_performed);
    assert_eq!((record.steps_taken, record.nonfinite_skips), (1, 1));
    let skip = &record.nonfinite_sources[0];
    assert_eq!(
        (skip.epoch, skip.minibatch, skip.gate),
        (Some(0), Some(0), FinitenessGate::G3)
    );
    assert!(params(&training.policy).iter().all(|value| value.is_finite()));
}

#[test]
fn outputs_that_are_not_finite_are_named() {
    let mut training = cue(small_config());
    let record = learn_with(&mut training, &|_, evaluation| {
        evaluation.value = &evaluation.value * f64::NAN;
    });

    assert_eq!(record.skip_reason, UpdateSkip::Nonfinite);
    assert_eq!(record.nonfinite_sources[0].gate, FinitenessGate::G1);
    assert_eq!(record.nonfinite_sources[0].sources, ["value"]);
}

/// Two failures and a success start over, three in a row are too many.
#[test]
fn failures_in_a_row_are_counted_and_a_success_ends_the_row() {
    let mut training = cue(small_config());
    let bad = |_: usize, evaluation: &mut Evaluation| spoil_gradient(evaluation);
    for failures in 1..=2 {
        let record = learn_with(&mut training, &bad);
        assert_eq!(
            (record.update_performed, record.consecutive_failures),
            (false, failures)
        );
    }
    let good = learn_with(&mut training, &|_, _| {});
    assert_eq!(
        (good.update_performed, good.updates, good.consecutive_failures),
        (true, 1, 0)
    );
    assert!(!training.learner.has_diverged());
    for _ in 0..3 {
        learn_with(&mut training, &bad);
    }
    assert!(training.learner.has_diverged());
    assert_eq!(training.learner.counters().updates, 1);
}

/// A stop before the first step is no failure, a later one keeps the steps before it.
#[test]
fn divergence_stops_an_update_without_undoing_it() {
    let mut training = cue(small_config());
    let nudge = |evaluation: &mut Evaluation| {
        // Chosen ops only: the padding and single choices stay at 0.
        let is_choice = evaluation.log_probs.lt(-1e-3).to_kind(Kind::Float);
        evaluation.log_probs = &evaluation.log_probs + is_choice * 0.9;
    };
    let stops_from = |first: usize| {
        move |index: usize, evaluation: &mut Evaluation| {
            if index >= first {
                nudge(evaluation);
            }
        }
    };
    let later = learn_with(&mut training, &stops_from(2));
    assert!(later.update_performed);
    assert_eq!((later.steps_taken, later.early_stop_epoch), (2, Some(2)));
    assert!(later.trust.approx_kl_last.map(|kl| kl.0) > later.trust.approx_kl.map(|kl| kl.0));

    // At the first minibatch the same difference is a mismatch as well, which weighs more.
    let first = learn_with(&mut training, &stops_from(0));
    assert_eq!(first.skip_reason, UpdateSkip::Mismatch);
}

#[test]
fn a_stop_before_the_first_step_is_no_failure() {
    let config = LearnerConfig {
        target_kl: Some(1e-12),
        ..small_config()
    };
    let mut training = cue(config);
    let record = learn_with(&mut training, &|_, evaluation| {
        evaluation.log_probs = &evaluation.log_probs + evaluation.log_probs.lt(-1e-3).to_kind(Kind::Float) * 0.01;
    });

    assert_eq!(record.skip_reason, UpdateSkip::Kl);
    assert_eq!((record.updates, record.consecutive_failures), (0, 0));
}

/// Gate G4: what spoils parameters is undone.
#[test]
fn parameters_that_are_not_finite_are_restored() {
    let mut training = cue(LearnerConfig {
        num_minibatches: 1,
        epochs: 1,
        max_grad_norm: None,
        value_norm: crate::scenario::ValueNorm {
            mode: crate::scenario::ValueNormMode::Off,
            ..Default::default()
        },
        reward_norm: crate::scenario::RewardNorm {
            mode: crate::scenario::RewardNormMode::Off,
            ..Default::default()
        },
        ..small_config()
    });
    training.learner.config.lr = f64::MAX;
    let before = params(&training.policy);

    let record = learn_with(&mut training, &|_, _| {});

    assert_eq!(record.skip_reason, UpdateSkip::Nonfinite);
    assert_eq!(
        record.nonfinite_sources.last().map(|skip| skip.gate),
        Some(FinitenessGate::G4)
    );
    assert_eq!(params(&training.policy), before);
    let moments = training.learner.state_tensors();
    assert!(
        moments
            .iter()
            .all(|(_, tensor)| read(tensor).iter().all(|&value| value == 0.0))
    );
}

/// Far below its target the divergence lets the learning rate rise up to its bound, far above it fall.
#[test]
fn an_adaptive_learning_rate_is_told_and_survives_a_resume() {
    let config = |target: f64| LearnerConfig {
        lr_schedule: LrSchedule::KlAdaptive,
        target_kl: Some(target),
        ..small_config()
    };
    let mut bold = cue(config(10.0));
    let rates: Vec<(f64, Option<Num>)> = (0..4)
        .map(|_| {
            bold.play();
            let update = bold.learn();
            (update.schedules.lr, update.lr_factor)
        })
        .collect();
    let expected = [3e-3, 4.5e-3, 6.75e-3, 1e-2];
    for ((rate, _), expected) in rates.iter().zip(expected) {
        assert!((rate - expected).abs() < 1e-12, "{rates:?}");
    }
    assert!(rates[3].1.is_some_and(|factor| (factor.0 * 3e-3 - 1e-2).abs() < 1e-12));

    let mut resumed = cue(config(10.0));
    let saved = serde_json::to_string(&bold.learner.state()).expect("plain data");
    let state: LearnerState = serde_json::from_str(&saved).expect("plain data");
    let moments = bold.learner.state_tensors();
    resumed.learner.restore(&state, &moments).expect("the same learner");
    assert_eq!(resumed.learner.schedules().lr, bold.learner.schedules().lr);

    let mut timid = cue(config(1e-9));
    timid.play();
    timid.learn();
    assert!((timid.learner.schedules().lr - 2e-3).abs() < 1e-12);
}

#[test]
fn a_restored_learner_continues_exactly() {
    let config = LearnerConfig {
        ratio_mode: RatioMode::Joint,
        entropy_anneal_episodes: 100,
        entropy_coef_start: Some(0.1),
        num_minibatches: 2,
        ..small_config()
    };
    let copy = |tensors: Vec<(String, Tensor)>| -> Vec<(String, Tensor)> {
        let copied = tensors.into_iter().map(|(name, tensor)| (name, tensor.detach().copy()));
        copied.collect()
    };
    let mut first = cue(config.clone());
    for _ in 0..2 {
        first.play();
        first.learn();
    }
    let weights: Vec<Tensor> = first.policy.params().iter().map(|p| p.tensor.detach().copy()).collect();
    let (state, moments) = (first.learner.state(), copy(first.learner.state_tensors()));
    let saved = serde_json::to_string(&state).expect("plain data");

    let mut second = cue(config);
    for (param, weight) in second.policy.params().iter().zip(&weights) {
        crate::torch::copy_into(&param.tensor, weight, false).expect("copy");
    }
    let state: LearnerState = serde_json::from_str(&saved).expect("plain data");
    second.learner.restore(&state, &moments).expect("the same learner");
    second.round = first.round;

    for _ in 0..2 {
        let records = [&mut first, &mut second].map(|training| {
            training.play();
            training.learn()
        });
        let [one, two] = records.map(|record| LearnerUpdate {
            finalize_ms: Num(0.0),
            update_ms: Num(0.0),
            learner_step_us_p50: None,
            ..record
        });
        assert_eq!(one, two);
    }
    assert_eq!(params(&first.policy), params(&second.policy));
    assert_eq!(first.learner.state(), second.learner.state());
}

#[test]
fn a_state_that_does_not_fit_is_refused_with_every_difference() {
    let mut training = cue(small_config());
    training.play();
    training.learn();
    let mut state = training.learner.state();
    state.rewards.mode = crate::scenario::RewardNormMode::Off;
    state.values.mode = crate::scenario::ValueNormMode::Off;
    let mut tensors = training.learner.state_tensors();
    let (renamed, _) = tensors.remove(0);
    tensors.push((
        "exp_avg.other".into(),
        Tensor::zeros([1], (Kind::Float, tch::Device::Cpu)),
    ));
    let before = training.learner.state();

    let error = training.learner.restore(&state, &tensors).expect_err("does not fit");

    let LearnerError::Incompatible(differences) = error else {
        panic!("{error}");
    };
    let expected = [
        "reward_norm.mode was Off, is Rms".to_string(),
        "value_norm.mode was Off, is Popart".into(),
        format!("`{renamed}` is missing"),
        "`exp_avg.other` is no tensor of this learner".into(),
    ];
    assert_eq!(differences, expected);
    assert_eq!(training.learner.state(), before);
}

#[test]
fn a_performed_update_reports_what_it_measured() {
    let mut training = cue(small_config());
    training.play();
    let record = training.learn();

    assert_eq!((record.steps_taken, record.updates, record.policy_version), (4, 1, 1));
    let rollout = record.data.expect("measured");
    assert_eq!((rollout.steps_valid, rollout.segments), (96, 8));
    assert_eq!(rollout.steps_actor, 16);
    assert!((rollout.forced_ratio.0 - 80.0 / 96.0).abs() < 1e-9);
    let ops = rollout.op_counts;
    let executed = [
        ops.wait,
        ops.germinate,
        ops.set_alpha_target,
        ops.prune,
        ops.fossilize,
        ops.advance,
    ];
    assert_eq!(executed.iter().sum::<u32>(), 96);
    assert!(record.gradients.grad_norm.is_some_and(|norm| norm.0 > 0.0));
    assert_eq!(record.head_grad_state.get("op"), Some(&HeadGradient::Finite));
    assert_eq!(
        record.head_grad_state.get("blueprint"),
        Some(&HeadGradient::NotLearnable)
    );
    assert_eq!(record.trust.head_kl.get("blueprint"), None);
    assert!(record.entropy.head_entropy["op"].0 > 0.9);
    assert!(record.recurrent.update_h_max.is_some() && record.recurrent.update_c_max.is_some());
    assert_eq!(record.losses.loss_contribution, None);
}

/// A policy that says it computes in float16: its loss is scaled.
struct InHalf<'a>(&'a mut SmallPolicy, &'a dyn Fn(&mut Evaluation));

impl TrainablePolicy for InHalf<'_> {
    fn params(&self) -> Vec<PolicyParam> {
        self.0.params()
    }

    fn value_output(&self) -> ValueOutput {
        self.0.value_output()
    }

    fn precision(&self) -> Option<Kind> {
        Some(Kind::Half)
    }

    fn evaluate(&self, input: &SequenceInput) -> Result<Evaluation, PolicyError> {
        let mut evaluation = self.0.evaluate(input)?;
        (self.1)(&mut evaluation);
        Ok(evaluation)
    }

    fn evaluate_values(&self, input: &ValueSequence) -> Result<Tensor, PolicyError> {
        self.0.evaluate_values(input)
    }

    fn set_floor_scale(&mut self, scale: f64) {
        self.0.set_floor_scale(scale);
    }
}

fn scaled_learner(training: &mut Training<CueTask>) -> Learner {
    let horizon = Horizon {
        total_updates: UPDATES,
        envs: 8,
    };
    let policy = InHalf(&mut training.policy, &|_| {});
    Learner::new(small_config(), horizon, 7, &policy, Implementation::Fused).expect("a sound policy")
}

fn learn_scaled(training: &mut Training<CueTask>, spoil: &dyn Fn(&mut Evaluation)) -> LearnerUpdate {
    training.play();
    let mut policy = InHalf(&mut training.policy, spoil);
    let reads = HostSyncCounter::default();
    let update = training
        .learner
        .learn(&mut training.buffer, &mut policy, training.round, &reads);
    training.buffer.clear().expect("complete");
    training.round += 1;
    update.expect("finished")
}

fn scale_of(learner: &Learner) -> Vec<f64> {
    let tensors = learner.state_tensors().into_iter();
    let scaler = tensors.filter(|(name, _)| name.starts_with("loss_scaler."));
    scaler.flat_map(|(_, tensor)| read(&tensor)).collect()
}

#[test]
fn a_scaled_loss_teaches_the_same() {
    let [mut plain, mut scaled] = [cue(small_config()), cue(small_config())];
    scaled.learner = scaled_learner(&mut scaled);
    plain.play();
    plain.learn();

    let update = learn_scaled(&mut scaled, &|_| {});

    assert_eq!(
        (update.overflow_skips, update.loss_scale),
        (Some(0), Some(Num(65536.0)))
    );
    let differences = params(&plain.policy).into_iter().zip(params(&scaled.policy));
    let largest = differences.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(largest < 1e-5, "{largest}");
}

/// Not the policy's fault: the scale falls until gradients fit.
#[test]
fn an_overflow_of_scaled_gradients_is_no_failure_and_the_scale_outlasts_the_process() {
    let mut training = cue(small_config());
    training.learner = scaled_learner(&mut training);

    let update = learn_scaled(&mut training, &spoil_gradient);

    assert_eq!(
        (update.update_performed, update.skip_reason),
        (false, UpdateSkip::Overflow)
    );
    assert_eq!((update.consecutive_failures, update.nonfinite_skips), (0, 0));
    let skips = update.overflow_skips.expect("the loss is scaled");
    assert!(skips > 0);
    assert_eq!(update.steps_taken, 0);
    let scale = scale_of(&training.learner);
    assert_eq!(scale, [65536.0 / 2.0_f64.powi(skips as i32), 0.0]);

    let (state, tensors) = (training.learner.state(), training.learner.state_tensors());
    let mut resumed = scaled_learner(&mut training);
    resumed.restore(&state, &tensors).expect("it is the same learner");
    assert_eq!(scale_of(&resumed), scale);
    let mut other = cue(small_config()).learner;
    other.restore(&state, &tensors).expect("one without a scale leaves it");
}
