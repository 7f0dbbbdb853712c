use tch::{Device, Kind, Tensor};

use super::*;
use crate::torch::catch;
use crate::torch::fixtures::test_device;

fn f32s() -> (Kind, Device) {
    (Kind::Float, test_device())
}

fn records_gradients() -> bool {
    let x = Tensor::ones([1], f32s()).set_requires_grad(true);
    (&x * 2.0).requires_grad()
}

fn product_kind() -> Kind {
    let x = Tensor::ones([2, 2], f32s());
    x.matmul(&x).kind()
}

/// Panics while the guard is held.
fn panic_under<T>(guard: impl FnOnce() -> T) {
    let result = catch(|| {
        let _guard = guard();
        panic!("inside");
    });
    assert!(result.is_err());
}

#[test]
fn gradients_are_recorded_again_after_the_guard_and_after_a_panic() {
    {
        let _outer = NoGrad::new();
        drop(NoGrad::new());
        assert!(!records_gradients());
    }
    assert!(records_gradients());

    panic_under(NoGrad::new);
    assert!(records_gradients());
}

#[test]
fn inference_mode_ends_with_its_guard_and_with_a_panic() {
    {
        let _guard = Inference::new().expect("inference mode");
        assert!(!records_gradients());
        assert!(Tensor::ones([1], f32s()).is_inference());
    }
    assert!(!Tensor::ones([1], f32s()).is_inference());

    panic_under(|| Inference::new().expect("inference mode"));
    assert!(records_gradients());
    assert!(!Tensor::ones([1], f32s()).is_inference());
}

#[test]
fn products_are_bf16_inside_autocast_and_f32_outside() {
    {
        let _guard = Autocast::new(test_device(), Kind::BFloat16).expect("autocast");
        assert_eq!(product_kind(), Kind::BFloat16);
        {
            let _half = Autocast::new(test_device(), Kind::Half).expect("autocast");
            assert_eq!(product_kind(), Kind::Half);
        }
        assert_eq!(product_kind(), Kind::BFloat16);
    }
    assert_eq!(product_kind(), Kind::Float);

    panic_under(|| Autocast::new(test_device(), Kind::BFloat16).expect("autocast"));
    assert_eq!(product_kind(), Kind::Float);
}

#[test]
fn a_no_grad_pass_before_a_grad_pass_in_one_region_loses_no_gradient() {
    let weight = Tensor::ones([2, 2], f32s()).set_requires_grad(true);
    let input = Tensor::ones([2, 2], f32s());
    let _guard = Autocast::new(test_device(), Kind::BFloat16).expect("autocast");

    {
        let _no_grad = NoGrad::new();
        let _ = input.matmul(&weight);
    }
    input.matmul(&weight).sum(Kind::Float).backward();

    assert!(weight.grad().defined());
}

#[test]
fn autocast_to_a_full_precision_kind_is_refused() {
    let error = Autocast::new(test_device(), Kind::Float).expect_err("no such autocast");
    assert!(error.to_string().contains("BFloat16 or Half"));
}
