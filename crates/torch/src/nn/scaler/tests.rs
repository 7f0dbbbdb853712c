use super::*;
use crate::nn::fixtures::read;

#[test]
fn the_scale_halves_on_a_non_finite_step_and_doubles_after_2000_finite_ones() {
    let mut scaler = LossScaler::new(Device::Cpu).expect("scaler");
    let other = LossScaler::new(Device::Cpu).expect("scaler");

    scaler.update(&Tensor::from(1.0_f32)).expect("update");
    assert_eq!(read(scaler.scale()), [32768.0]);

    for _ in 0..1999 {
        scaler.update(&Tensor::from(0.0_f32)).expect("update");
    }
    assert_eq!(read(scaler.scale()), [32768.0]);
    scaler.update(&Tensor::from(0.0_f32)).expect("update");
    assert_eq!(read(scaler.scale()), [65536.0]);

    scaler.update(&Tensor::from(1.0_f32)).expect("update");
    scaler.reset().expect("reset");
    assert_eq!(read(scaler.scale()), [65536.0]);
    assert_eq!(read(other.scale()), [65536.0]);
}

#[test]
fn unscaling_divides_gradients_and_flags_only_the_group_that_is_not_finite() {
    let scaler = LossScaler::new(Device::Cpu).expect("scaler");
    let group = |grad: f32| {
        let param = Tensor::zeros([2], (Kind::Float, Device::Cpu)).set_requires_grad(true);
        let slope = Tensor::from_slice(&[65536.0, grad]);
        (&param * slope).sum(Kind::Float).backward();
        vec![param]
    };
    let (host, seed) = (group(131072.0), group(f32::INFINITY));
    let (host_bad, seed_bad) = (Tensor::from(1.0_f32), Tensor::from(0.0_f32));

    scaler.unscale(&host, &host_bad).expect("unscale");
    scaler.unscale(&seed, &seed_bad).expect("unscale");

    assert!(host[0].grad().equal(&Tensor::from_slice(&[1.0f32, 2.0])));
    assert_eq!((read(&host_bad), read(&seed_bad)), (vec![0.0], vec![1.0]));
}
