use super::*;
use crate::torch::{HostSyncCounter, read_f64};

fn flag(value: f64) -> Tensor {
    Tensor::full([0i64; 0], value, (Kind::Float, Device::Cpu))
}

fn value(tensor: &Tensor) -> f64 {
    read_f64(tensor, &HostSyncCounter::default()).expect("read")[0]
}

#[test]
fn the_scale_halves_on_a_non_finite_step_and_doubles_after_2000_finite_ones() {
    let mut scaler = LossScaler::new(Device::Cpu).expect("scaler");
    let other = LossScaler::new(Device::Cpu).expect("scaler");

    scaler.update(&flag(1.0)).expect("update");
    assert_eq!(value(scaler.scale()), 32768.0);

    for _ in 0..1999 {
        scaler.update(&flag(0.0)).expect("update");
    }
    assert_eq!(value(scaler.scale()), 32768.0);
    scaler.update(&flag(0.0)).expect("update");
    assert_eq!(value(scaler.scale()), 65536.0);

    scaler.update(&flag(1.0)).expect("update");
    scaler.reset().expect("reset");
    assert_eq!(value(scaler.scale()), 65536.0);
    assert_eq!(value(other.scale()), 65536.0);
}

#[test]
fn unscaling_divides_gradients_and_flags_only_the_group_that_is_not_finite() {
    let scaler = LossScaler::new(Device::Cpu).expect("scaler");
    let group = |grad: f32| {
        let param = Tensor::zeros([2], (Kind::Float, Device::Cpu)).set_requires_grad(true);
        (&param * Tensor::from_slice(&[65536.0, grad]))
            .sum(Kind::Float)
            .backward();
        vec![param]
    };
    let (host, seed) = (group(131072.0), group(f32::INFINITY));
    let (host_bad, seed_bad) = (flag(1.0), flag(0.0));

    scaler.unscale(&host, &host_bad).expect("unscale");
    scaler.unscale(&seed, &seed_bad).expect("unscale");

    assert!(host[0].grad().equal(&Tensor::from_slice(&[1.0f32, 2.0])));
    assert_eq!((value(&host_bad), value(&seed_bad)), (0.0, 1.0));
}
