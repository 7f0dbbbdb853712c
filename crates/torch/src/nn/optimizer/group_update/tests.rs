use tch::{Device, Kind, Tensor};

use super::*;
use crate::kernels::{GradientThresholds, GroupColumns};
use crate::nn::fixtures::read;
use crate::scenario::OptimizerConfig;
use crate::torch::channels_last;
use crate::torch::fixtures::{test_device, tolerance};

const ALL: [Implementation; 3] = [Implementation::Own, Implementation::Fused, Implementation::Plain];

const SGD: OptimizerConfig = OptimizerConfig::Sgd {
    lr: 0.05,
    momentum: 0.9,
    weight_decay: 0.01,
};
const ADAMW: OptimizerConfig = OptimizerConfig::Adamw {
    lr: 0.01,
    beta1: 0.9,
    beta2: 0.999,
    eps: 1e-8,
    weight_decay: 0.05,
};

const COLUMNS: GroupColumns = GroupColumns {
    gradients: 1..6,
    skipped: 6,
    streak: Some(7),
};

/// Numbers that are the same on every device.
fn numbers(count: i64, step: f64, device: Device) -> Tensor {
    let angles = Tensor::arange(count, (Kind::Float, Device::Cpu)) * step;
    angles.sin().to_device(device)
}

/// A channels-last weight, a vector whose length isn't a multiple of any vector's, and one that never has a gradient.
fn params(device: Device) -> Vec<Tensor> {
    let weight = channels_last(&numbers(72, 0.7, device).view([4, 2, 3, 3])).expect("weight");
    let params = [weight.copy(), numbers(19, 1.3, device), numbers(3, 0.3, device)];
    params.map(|values| values.set_requires_grad(true)).into()
}

/// The parameters, the pack, the last norm.
type Left = (Vec<Vec<f64>>, Vec<f64>, f64);

/// State after six batches, on the CPU where the engine's own kernels compute. The fourth gradient is infinite.
fn train(config: &OptimizerConfig, implementation: Implementation, max_norm: Option<f64>) -> Left {
    let device = match implementation {
        Implementation::Own => Device::Cpu,
        Implementation::Fused | Implementation::Plain => test_device(),
    };
    let params = params(device);
    let handles = params.iter().map(Tensor::shallow_clone).collect();
    let mut optimizer = Optimizer::new(config, handles, implementation).expect("optimizer");
    let pack = Tensor::zeros([8], (Kind::Double, device));
    let mut found = GroupNorm::new(device);
    for batch in 0..6 {
        optimizer.drop_gradients().expect("drop");
        let slope = [1.0, 2.0, 3.0, f64::INFINITY, 5.0, 6.0][batch];
        // Rows of a gradient whose layout isn't the weight's.
        let rows = numbers(72, 0.11, device).view([4, 2, 3, 3]);
        let weight = (&params[0] * rows).sum(Kind::Float);
        (weight + (&params[1] * slope).sum(Kind::Float)).backward();
        let update = GroupUpdate {
            max_norm,
            statistics: (batch % 2 == 0).then_some(GradientThresholds {
                vanishing: 1e-3,
                exploding: 15.0,
            }),
            is_sampled: batch % 2 == 1,
            pack: &pack,
            columns: COLUMNS,
        };
        optimizer.update(&mut found, &update).expect("update");
    }
    (params.iter().map(read).collect(), read(&pack), read(&found.norm)[0])
}

#[test]
fn one_call_does_what_the_operators_do_one_after_another() {
    for config in [SGD, ADAMW] {
        for max_norm in [None, Some(2.0)] {
            let [own, fused, plain] = ALL.map(|implementation| train(&config, implementation, max_norm));

            for other in [fused, plain] {
                for (own, other) in own.0.concat().iter().zip(other.0.concat()) {
                    let bound = tolerance(1e-6, 1e-5) * other.abs().max(1.0);
                    assert!((own - other).abs() <= bound, "{own} and {other}");
                }
                // The same sums in the same order; only the clip of gradients in place rounds them.
                assert_eq!(own.1[6..], other.1[6..]);
                assert_eq!(own.1[2..6], other.1[2..6]);
                assert!((own.1[1] / other.1[1] - 1.0).abs() < 1e-12 && (own.2 / other.2 - 1.0).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn a_gradient_that_is_not_finite_is_counted_and_changes_nothing() {
    for implementation in ALL {
        let (params, pack, _) = train(&SGD, implementation, None);

        // One update of six was skipped, at a sampled batch after which another one was finite.
        assert_eq!(pack[6..], [1.0, 0.0], "{implementation:?}");
        assert!(params.concat().iter().all(|value| value.is_finite()));
        // Two of the three tensors have gradients, 72 and 19 elements.
        assert_eq!(pack[4..6], [2.0, 91.0]);
        // Weight decay skips the one that has none.
        assert_eq!(params[2], read(&numbers(3, 0.3, Device::Cpu)));
    }
}

#[test]
fn every_level_of_kernels_updates_to_the_same_bits() {
    for config in [SGD, ADAMW] {
        let expected = train(&config, Implementation::Own, Some(2.0));
        for level in crate::kernels::kernel_levels() {
            let Some(_forced) = crate::kernels::ForcedKernels::new(level) else {
                continue;
            };
            let trained = train(&config, Implementation::Own, Some(2.0));
            assert!(trained == expected, "{}", level.name);
        }
    }
}

#[test]
fn the_own_step_refuses_what_is_not_float32() {
    let param = Tensor::ones([2], (Kind::Double, Device::Cpu)).set_requires_grad(true);
    let mut optimizer = Optimizer::new(&SGD, vec![param.shallow_clone()], Implementation::Own).expect("optimizer");
    (&param * 2.0).sum(Kind::Double).backward();

    let error = optimizer.step(&Tensor::from(0.0_f32)).expect_err("no kernel");

    assert!(error.to_string().contains("float32"), "{error}");
}
