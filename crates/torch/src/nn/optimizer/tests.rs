use super::*;
use crate::nn::fixtures::read;
use crate::torch::fixtures::{on_device, test_backend, test_device, tolerance};

/// All implementations that compute on the device of the tests.
fn implementations() -> impl Iterator<Item = Implementation> {
    let own = test_backend().uses_own_kernels().then_some(Implementation::Own);
    own.into_iter().chain([Implementation::Fused, Implementation::Plain])
}

fn sgd(lr: f64, momentum: f64, weight_decay: f64) -> OptimizerConfig {
    OptimizerConfig::Sgd {
        lr,
        momentum,
        weight_decay,
    }
}

fn adamw(lr: f64, eps: f64, weight_decay: f64) -> OptimizerConfig {
    OptimizerConfig::Adamw {
        lr,
        beta1: 0.9,
        beta2: 0.999,
        eps,
        weight_decay,
    }
}

fn param(value: f32) -> Tensor {
    on_device(Tensor::from_slice(&[value])).set_requires_grad(true)
}

fn optimizer(config: OptimizerConfig, params: &[&Tensor], implementation: Implementation) -> Optimizer {
    let handles = params.iter().map(|param| param.shallow_clone()).collect();
    Optimizer::new(&config, handles, implementation).expect("optimizer")
}

/// A step with these gradients, the other parameters have none; one that is not a number suppresses the step.
fn step(optimizer: &mut Optimizer, gradients: &[(&Tensor, f64)]) {
    optimizer.drop_gradients().expect("drop");
    for (param, gradient) in gradients {
        (*param * *gradient).sum(Kind::Float).backward();
    }
    let is_bad = gradients.iter().any(|(_, gradient)| gradient.is_nan());
    let found_inf = on_device(Tensor::from(f32::from(u8::from(is_bad))));
    optimizer.step(&found_inf).expect("step");
}

fn value(tensor: &Tensor) -> f64 {
    read(tensor)[0]
}

fn state(optimizer: &Optimizer, name: &str, index: usize) -> f64 {
    let lists = optimizer.state_tensors();
    let (_, list) = lists.iter().find(|(n, _)| *n == name).expect(name);
    value(&list[index])
}

#[track_caller]
fn assert_close(actual: f64, expected: f64) {
    let difference = (actual - expected).abs();
    assert!(difference < tolerance(1e-6, 1e-5), "{actual} != {expected}");
}

#[test]
fn sgd_follows_its_rule_and_a_bad_step_changes_nothing() {
    for implementation in implementations() {
        let p = param(1.0);
        let mut optimizer = optimizer(sgd(0.01, 0.9, 5e-4), &[&p], implementation);

        // A suppressed first step: the next good one equals a first step.
        step(&mut optimizer, &[(&p, f64::NAN)]);
        assert_eq!((value(&p), state(&optimizer, "velocity", 0)), (1.0, 0.0));

        for (gradient, expected, velocity) in [
            (0.5, 0.994995, 0.5005),
            (0.5, 0.9854855, 0.9509475),
            (-1.0, 0.9869220, -0.1436545),
        ] {
            step(&mut optimizer, &[(&p, gradient)]);
            assert_close(value(&p), expected);
            assert_close(state(&optimizer, "velocity", 0), velocity);
        }
    }
}

#[test]
fn parameters_without_a_gradient_are_passed_over() {
    for implementation in implementations() {
        let (p, other) = (param(1.0), param(2.0));
        let mut with_momentum = optimizer(sgd(0.1, 0.9, 0.0), &[&other, &p], implementation);
        for expected in [0.95, 0.855, 0.7195] {
            step(&mut with_momentum, &[(&p, 0.5)]);
            assert_close(value(&p), expected);
        }
        assert_eq!((value(&other), state(&with_momentum, "velocity", 0)), (2.0, 0.0));

        let mut with_decay = optimizer(adamw(0.1, 1e-8, 0.5), &[&other, &p], implementation);
        step(&mut with_decay, &[(&p, 1.0)]);
        assert_eq!((value(&other), state(&with_decay, "step", 0)), (2.0, 0.0));
        assert_eq!(state(&with_decay, "step", 1), 1.0);
    }
}

#[test]
fn sgd_without_momentum_has_no_state_and_follows_the_gradient() {
    for implementation in implementations() {
        let p = param(1.0);
        let mut optimizer = optimizer(sgd(0.1, 0.0, 0.0), &[&p], implementation);
        for expected in [0.95, 0.9] {
            step(&mut optimizer, &[(&p, 0.5)]);
            assert_close(value(&p), expected);
        }
        assert!(optimizer.state_tensors()[0].1.is_empty());
    }
}

/// AdamW in scalar f64 arithmetic.
#[derive(Default)]
struct ScalarAdamW {
    p: f64,
    m: f64,
    v: f64,
    t: i32,
}

impl ScalarAdamW {
    fn step(&mut self, g: f64, lr: f64, eps: f64, decay: f64) {
        self.t += 1;
        self.p -= lr * decay * self.p;
        self.m = 0.9 * self.m + 0.1 * g;
        self.v = 0.999 * self.v + 0.001 * g * g;
        let m_hat = self.m / (1.0 - 0.9f64.powi(self.t));
        let v_hat = self.v / (1.0 - 0.999f64.powi(self.t));
        self.p -= lr * m_hat / (v_hat.sqrt() + eps);
    }
}

/// Tests a suppressed step in between.
#[test]
fn adamw_follows_its_rule_and_a_bad_step_does_not_count() {
    for implementation in implementations() {
        let p = param(0.8);
        let mut optimizer = optimizer(adamw(1.0, 1e-5, 0.5), &[&p], implementation);
        optimizer.set_lr(0.05).expect("a new rate");
        optimizer.set_weight_decay(0.1);
        let mut reference = ScalarAdamW {
            p: 0.8,
            ..ScalarAdamW::default()
        };
        for gradient in [0.5, -0.25, f64::NAN, 3.0, 1e-4] {
            step(&mut optimizer, &[(&p, gradient)]);
            if !gradient.is_nan() {
                reference.step(gradient, 0.05, 1e-5, 0.1);
            }
            assert_close(value(&p), reference.p);
        }
        assert_eq!(state(&optimizer, "step", 0), 4.0);
        assert_close(state(&optimizer, "exp_avg", 0), reference.m);
        assert_close(state(&optimizer, "exp_avg_sq", 0), reference.v);
    }
}

#[test]
fn parameters_come_and_go_with_their_state_and_the_others_keep_theirs() {
    let (seed, gate) = (param(1.0), param(1.0));
    let mut optimizer = optimizer(sgd(0.1, 0.9, 0.0), &[&seed], Implementation::Fused);
    step(&mut optimizer, &[(&seed, 0.5)]);

    optimizer.append(vec![gate.shallow_clone()]).expect("append");
    assert_eq!(state(&optimizer, "velocity", 1), 0.0);
    step(&mut optimizer, &[(&seed, 0.5), (&gate, 0.5)]);
    assert_close(value(&seed), 0.855);
    assert_close(value(&gate), 0.95);

    optimizer.truncate(1);
    assert_eq!(optimizer.params().len(), 1);
    assert_eq!(optimizer.state_tensors()[0].1.len(), 1);
    step(&mut optimizer, &[(&seed, 0.5)]);
    assert_close(value(&seed), 0.7195);
    assert_close(value(&gate), 0.95);
}

#[test]
fn after_zeroing_the_state_in_place_the_next_step_is_a_first_step() {
    for config in [sgd(0.1, 0.9, 0.0), adamw(0.1, 1e-8, 0.0)] {
        let (fresh, used) = (param(1.0), param(1.0));
        let mut first = optimizer(config, &[&fresh], Implementation::Fused);
        let mut optimizer = optimizer(config, &[&used], Implementation::Fused);
        let storage = optimizer.state_tensors()[0].1[0].data_ptr();
        step(&mut optimizer, &[(&used, 3.0)]);

        optimizer.zero_state().expect("zero");
        used.detach().copy_(&fresh.detach());
        step(&mut optimizer, &[(&used, 0.5)]);
        step(&mut first, &[(&fresh, 0.5)]);

        assert_eq!(value(&used), value(&fresh));
        assert_eq!(optimizer.state_tensors()[0].1[0].data_ptr(), storage);
    }
}

#[test]
fn a_committed_seed_is_no_longer_decayed() {
    for implementation in implementations() {
        let p = param(1.0);
        let mut optimizer = optimizer(sgd(0.1, 0.0, 1.0), &[&p], implementation);
        step(&mut optimizer, &[(&p, 0.0)]);
        assert_close(value(&p), 0.9);

        optimizer.set_weight_decay(0.0);
        step(&mut optimizer, &[(&p, 0.0)]);
        assert_close(value(&p), 0.9);
    }
}

#[test]
fn a_tensor_that_cannot_be_trained_is_refused_and_leaves_the_optimizer_unchanged() {
    let mut optimizer = optimizer(sgd(0.1, 0.9, 0.0), &[&param(1.0)], Implementation::Fused);

    let constant = Tensor::ones([2, 3], (Kind::Float, test_device()));
    let product = param(1.0) * 2.0;
    for stray in [constant, product] {
        let error = optimizer.append(vec![stray]).expect_err("no leaf");
        assert!(error.to_string().contains("cannot be trained"));
    }

    assert_eq!(optimizer.params().len(), 1);
    assert_eq!(optimizer.state_tensors()[0].1.len(), 1);
}

#[test]
fn the_self_test_accepts_fused_and_own_kernels_and_says_why_it_refuses_a_device() {
    for implementation in implementations() {
        assert_eq!(self_test(test_device(), implementation), None);
    }
    // This binary's libtorch has no such backend loaded.
    let reason = self_test(Device::Vulkan, Implementation::Fused).expect("reason");
    assert!(reason.contains("Vulkan"), "{reason}");
}
