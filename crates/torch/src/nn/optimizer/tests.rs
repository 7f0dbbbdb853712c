use super::*;
use crate::kernels::{GroupNorm, clip_group, drop_grads};
use crate::torch::{HostSyncCounter, channels_last, read_f64};

const ALL: [Implementation; 3] = [Implementation::Own, Implementation::Fused, Implementation::Plain];

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
    Tensor::from_slice(&[value]).set_requires_grad(true)
}

fn set_grad(param: &Tensor, grad: f64) {
    drop_grads(std::slice::from_ref(param)).expect("drop");
    (param * grad).sum(Kind::Float).backward();
}

fn flag(value: f64) -> Tensor {
    Tensor::full([0i64; 0], value, (Kind::Float, Device::Cpu))
}

fn read(tensor: &Tensor) -> f64 {
    read_f64(tensor, &HostSyncCounter::default()).expect("read")[0]
}

fn state(optimizer: &Optimizer, name: &str, index: usize) -> f64 {
    let lists = optimizer.state_tensors();
    let (_, list) = lists.iter().find(|(n, _)| *n == name).expect(name);
    read(&list[index])
}

#[track_caller]
fn assert_close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-6, "{actual} != {expected}");
}

#[test]
fn sgd_follows_its_rule_and_a_bad_step_changes_nothing() {
    for implementation in ALL {
        let p = param(1.0);
        let mut optimizer =
            Optimizer::new(&sgd(0.01, 0.9, 5e-4), vec![p.shallow_clone()], implementation).expect("optimizer");

        // A suppressed first step: the next good one equals a first step.
        set_grad(&p, f64::NAN);
        optimizer.step(&flag(1.0)).expect("step");
        assert_eq!((read(&p), state(&optimizer, "velocity", 0)), (1.0, 0.0));

        for (grad, expected, velocity) in [
            (0.5, 0.994995, 0.5005),
            (0.5, 0.9854855, 0.9509475),
            (-1.0, 0.9869220, -0.1436545),
        ] {
            set_grad(&p, grad);
            optimizer.step(&flag(0.0)).expect("step");
            assert_close(read(&p), expected);
            assert_close(state(&optimizer, "velocity", 0), velocity);
        }
    }
}

#[test]
fn a_step_without_a_gradient_between_two_steps_changes_nothing() {
    for implementation in ALL {
        // Two parameters, so that the one without a gradient is skipped within a group that steps.
        let (p, other) = (param(1.0), param(2.0));
        let mut optimizer = Optimizer::new(
            &sgd(0.1, 0.9, 0.0),
            vec![other.shallow_clone(), p.shallow_clone()],
            implementation,
        )
        .expect("optimizer");
        for expected in [0.95, 0.855, 0.7195] {
            set_grad(&p, 0.5);
            optimizer.step(&flag(0.0)).expect("step");
            assert_close(read(&p), expected);
        }
        assert_eq!((read(&other), state(&optimizer, "velocity", 0)), (2.0, 0.0));
    }
}

#[test]
fn weight_decay_and_step_count_pass_over_parameters_without_a_gradient() {
    for implementation in ALL {
        let (p, other) = (param(1.0), param(2.0));
        let mut optimizer = Optimizer::new(
            &adamw(0.1, 1e-8, 0.5),
            vec![other.shallow_clone(), p.shallow_clone()],
            implementation,
        )
        .expect("optimizer");
        set_grad(&p, 1.0);

        optimizer.step(&flag(0.0)).expect("step");

        assert_eq!((read(&other), state(&optimizer, "step", 0)), (2.0, 0.0));
        assert_eq!(state(&optimizer, "step", 1), 1.0);
    }
}

#[test]
fn sgd_without_momentum_has_no_state_and_follows_the_gradient() {
    for implementation in ALL {
        let p = param(1.0);
        let mut optimizer =
            Optimizer::new(&sgd(0.1, 0.0, 0.0), vec![p.shallow_clone()], implementation).expect("optimizer");
        for expected in [0.95, 0.9] {
            set_grad(&p, 0.5);
            optimizer.step(&flag(0.0)).expect("step");
            assert_close(read(&p), expected);
        }
        assert!(optimizer.state_tensors()[0].1.is_empty());
    }
}

/// AdamW in scalar f64 arithmetic.
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

/// With a suppressed step in between.
#[test]
fn adamw_follows_its_rule_and_a_bad_step_does_not_count() {
    for implementation in ALL {
        let p = param(0.8);
        let mut optimizer =
            Optimizer::new(&adamw(0.05, 1e-5, 0.1), vec![p.shallow_clone()], implementation).expect("optimizer");
        let mut reference = ScalarAdamW {
            p: 0.8,
            m: 0.0,
            v: 0.0,
            t: 0,
        };
        for grad in [0.5, -0.25, f64::NAN, 3.0, 1e-4] {
            set_grad(&p, grad);
            if grad.is_nan() {
                optimizer.step(&flag(1.0)).expect("step");
            } else {
                optimizer.step(&flag(0.0)).expect("step");
                reference.step(grad, 0.05, 1e-5, 0.1);
            }
            assert_close(read(&p), reference.p);
        }
        assert_eq!(state(&optimizer, "step", 0), 4.0);
        assert_close(state(&optimizer, "exp_avg", 0), reference.m);
        assert_close(state(&optimizer, "exp_avg_sq", 0), reference.v);
    }
}

/// A NaN gradient in one seed leaves host and other seeds updating.
#[test]
fn a_diverged_group_suppresses_its_own_update_only() {
    let (host, seed) = (param(1.0), param(1.0));
    let groups = [(&host, 0.5, 0.95), (&seed, f64::NAN, 1.0)];

    for (p, grad, expected) in groups {
        let mut optimizer =
            Optimizer::new(&sgd(0.1, 0.9, 0.0), vec![p.shallow_clone()], Implementation::Fused).expect("optimizer");
        let mut found = GroupNorm::new(Device::Cpu);
        set_grad(p, grad);
        clip_group(optimizer.params(), Some(1.0), &mut found).expect("clip");
        optimizer.step(&found.bad).expect("step");
        assert_close(read(p), expected);
    }
}

#[test]
fn parameters_come_and_go_with_their_state_and_the_others_keep_theirs() {
    let (seed, gate) = (param(1.0), param(1.0));
    let mut optimizer =
        Optimizer::new(&sgd(0.1, 0.9, 0.0), vec![seed.shallow_clone()], Implementation::Fused).expect("optimizer");
    set_grad(&seed, 0.5);
    optimizer.step(&flag(0.0)).expect("step");

    optimizer.append(vec![gate.shallow_clone()]).expect("append");
    assert_eq!(state(&optimizer, "velocity", 1), 0.0);
    set_grad(&seed, 0.5);
    set_grad(&gate, 0.5);
    optimizer.step(&flag(0.0)).expect("step");
    assert_close(read(&seed), 0.855);
    assert_close(read(&gate), 0.95);

    optimizer.truncate(1);
    assert_eq!(optimizer.params().len(), 1);
    assert_eq!(optimizer.state_tensors()[0].1.len(), 1);
    set_grad(&seed, 0.5);
    optimizer.step(&flag(0.0)).expect("step");
    assert_close(read(&seed), 0.7195);
    assert_close(read(&gate), 0.95);
}

#[test]
fn after_zeroing_the_state_in_place_the_next_step_is_a_first_step() {
    for config in [sgd(0.1, 0.9, 0.0), adamw(0.1, 1e-8, 0.0)] {
        let (fresh, used) = (param(1.0), param(1.0));
        let mut optimizer =
            Optimizer::new(&config, vec![used.shallow_clone()], Implementation::Fused).expect("optimizer");
        let storage = optimizer.state_tensors()[0].1[0].data_ptr();
        set_grad(&used, 3.0);
        optimizer.step(&flag(0.0)).expect("step");

        optimizer.zero_state().expect("zero");
        let mut target = used.detach();
        target.copy_(&fresh.detach());
        let mut first = Optimizer::new(&config, vec![fresh.shallow_clone()], Implementation::Fused).expect("optimizer");
        for (p, optimizer) in [(&used, &mut optimizer), (&fresh, &mut first)] {
            set_grad(p, 0.5);
            optimizer.step(&flag(0.0)).expect("step");
        }

        assert_eq!(read(&used), read(&fresh));
        assert_eq!(optimizer.state_tensors()[0].1[0].data_ptr(), storage);
    }
}

#[test]
fn a_committed_seed_is_no_longer_decayed() {
    for implementation in ALL {
        let p = param(1.0);
        let mut optimizer =
            Optimizer::new(&sgd(0.1, 0.0, 1.0), vec![p.shallow_clone()], implementation).expect("optimizer");
        set_grad(&p, 0.0);
        optimizer.step(&flag(0.0)).expect("step");
        assert_close(read(&p), 0.9);

        optimizer.set_weight_decay(0.0);
        optimizer.step(&flag(0.0)).expect("step");
        assert_close(read(&p), 0.9);
    }
}

/// The fused kernels walk memory flat; a gradient in another layout than its parameter must not be mixed up.
#[test]
fn channels_last_weights_follow_the_same_rule_with_gradients_of_any_layout() {
    let values = Tensor::arange(24, (Kind::Float, Device::Cpu)).reshape([2, 3, 2, 2]) / 24.0;
    let slope = (&values * 7.0).sin();
    let contiguous_slope = slope.contiguous();
    let expected = &values - &slope * 0.1 - (&slope * 1.9) * 0.1;

    let weight = channels_last(&values).expect("weight").copy().set_requires_grad(true);
    for given in [&contiguous_slope, &channels_last(&slope).expect("slope")] {
        let p = channels_last(&weight.detach())
            .expect("weight")
            .copy()
            .set_requires_grad(true);
        let mut optimizer =
            Optimizer::new(&sgd(0.1, 0.9, 0.0), vec![p.shallow_clone()], Implementation::Fused).expect("optimizer");
        for _ in 0..2 {
            optimizer.drop_gradients().expect("drop");
            (&p * given).sum(Kind::Float).backward();
            optimizer.step(&flag(0.0)).expect("step");
        }
        assert!(p.detach().allclose(&expected, 1e-6, 1e-6, false));
    }
}

#[test]
fn a_tensor_that_cannot_be_trained_is_refused_and_leaves_the_optimizer_unchanged() {
    let mut optimizer =
        Optimizer::new(&sgd(0.1, 0.9, 0.0), vec![param(1.0)], Implementation::Fused).expect("optimizer");

    let constant = Tensor::ones([2, 3], (Kind::Float, Device::Cpu));
    let product = param(1.0) * 2.0;
    for stray in [constant, product] {
        let error = optimizer.append(vec![stray]).expect_err("no leaf");
        assert!(error.to_string().contains("cannot be trained"));
    }

    assert_eq!(optimizer.params().len(), 1);
    assert_eq!(optimizer.state_tensors()[0].1.len(), 1);
}

#[test]
fn the_self_test_accepts_fused_and_own_kernels_on_cpu() {
    for implementation in [Implementation::Fused, Implementation::Own] {
        assert_eq!(self_test(Device::Cpu, implementation), None);
    }
}

#[test]
fn the_self_test_refuses_a_device_that_fails_and_says_why() {
    // This binary's libtorch has no such backend loaded.
    assert!(
        self_test(Device::Vulkan, Implementation::Fused)
            .expect("reason")
            .contains("Vulkan")
    );
}

/// A step with a gradient that is not a number lies between the two and leaves no trace.
#[test]
fn adamw_has_the_pinned_values() {
    for implementation in ALL {
        let weight = param(1.0);
        let mut optimizer =
            Optimizer::new(&adamw(1.0, 1e-5, 0.0), vec![weight.shallow_clone()], implementation).expect("optimizer");
        optimizer.set_lr(3e-4);

        let mut values = Vec::new();
        for (gradient, bad) in [(0.5, 0.0), (f64::NAN, 1.0), (-0.25, 0.0)] {
            set_grad(&weight, gradient);
            optimizer.step(&flag(bad)).expect("step");
            values.push(read(&weight));
        }

        for (value, expected) in values.iter().zip([0.999_700_006, 0.999_700_006, 0.999_620_106_9]) {
            assert!((value - expected).abs() < 1e-7, "{values:?}");
        }
    }
}
