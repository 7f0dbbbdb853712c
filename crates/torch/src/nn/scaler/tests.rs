use super::*;
use crate::nn::fixtures::read;
use crate::torch::fixtures::{on_device, test_device};

fn number(value: f32) -> Tensor {
    on_device(Tensor::from(value))
}

#[test]
fn the_scale_halves_on_a_non_finite_step_and_doubles_after_2000_finite_ones() {
    let mut scaler = LossScaler::new(test_device()).expect("scaler");
    let other = LossScaler::new(test_device()).expect("scaler");

    scaler.update(&number(1.0)).expect("update");
    assert_eq!(read(scaler.scale()), [32768.0]);

    for _ in 0..1999 {
        scaler.update(&number(0.0)).expect("update");
    }
    assert_eq!(read(scaler.scale()), [32768.0]);
    scaler.update(&number(0.0)).expect("update");
    assert_eq!(read(scaler.scale()), [65536.0]);

    scaler.update(&number(1.0)).expect("update");
    scaler.reset().expect("reset");
    assert_eq!(read(scaler.scale()), [65536.0]);
    assert_eq!(read(other.scale()), [65536.0]);
}

#[test]
fn unscaling_divides_gradients_and_flags_only_the_group_that_is_not_finite() {
    let scaler = LossScaler::new(test_device()).expect("scaler");
    let group = |grad: f32| {
        let param = Tensor::zeros([2], (Kind::Float, test_device())).set_requires_grad(true);
        let slope = on_device(Tensor::from_slice(&[65536.0, grad]));
        (&param * slope).sum(Kind::Float).backward();
        vec![param]
    };
    let (host, seed) = (group(131072.0), group(f32::INFINITY));
    let (host_bad, seed_bad) = (number(1.0), number(0.0));

    scaler.unscale(&host, &host_bad).expect("unscale");
    scaler.unscale(&seed, &seed_bad).expect("unscale");

    assert_eq!(read(&host[0].grad()), [1.0, 2.0]);
    assert_eq!((read(&host_bad), read(&seed_bad)), (vec![0.0], vec![1.0]));
}
