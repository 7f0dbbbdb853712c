//! Small networks and random inputs for tests.

#[path = "../../../../src/prior_art/networks.rs"]
mod networks;

use tch::Tensor;

use super::{ActorCritic, NetContext, NetRegistry, NetSpec};
use crate::random::{Draw, RunRng};
use crate::scenario::NetConfig;
use crate::torch::fixtures::test_device;
use crate::torch::{HostSyncCounter, read_f64};

/// Elements of an observation of a host with three slots.
pub const FEATURES: usize = 116;
/// Slots of the host.
pub const SLOTS: usize = 3;
/// Blueprints of the fixtures' registry.
pub const BLUEPRINTS: usize = 8;

pub fn small() -> NetConfig {
    NetConfig {
        hidden_dim: 32,
        ..crate::scenario::fixtures::neutral_net()
    }
}

pub fn network(kind: &str, config: NetConfig, seed: u64) -> Box<dyn ActorCritic> {
    sized(kind, [FEATURES, SLOTS, BLUEPRINTS], config, seed)
}

pub fn sized(
    kind: &str,
    [observation, slots, blueprints]: [usize; 3],
    config: NetConfig,
    seed: u64,
) -> Box<dyn ActorCritic> {
    let context = NetContext {
        spec: NetSpec {
            kind: kind.into(),
            observation,
            slots,
            blueprints,
            config,
        },
        device: test_device(),
        seed,
    };
    nets().build(context, &crate::schema::Settings::default()).unwrap()
}

/// The engine's network and those of the prior art.
pub fn nets() -> NetRegistry {
    let mut nets = NetRegistry::default();
    networks::register(&mut nets);
    nets
}

pub fn values(tensor: &Tensor) -> Vec<f64> {
    read_f64(tensor, &HostSyncCounter::default()).unwrap()
}

#[track_caller]
pub fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (one, other) in found.iter().zip(expected) {
        assert!((one - other).abs() < tolerance, "{found:?} is not {expected:?}");
    }
}

/// The largest difference of two tensors of one shape.
pub fn distance(left: &Tensor, right: &Tensor) -> f64 {
    assert_eq!(left.size(), right.size());
    let pairs = values(left).into_iter().zip(values(right));
    pairs.map(|(left, right)| (left - right).abs()).fold(0.0, f64::max)
}

pub fn normal(rng: &mut RunRng, shape: &[i64]) -> Tensor {
    let mut drawn = vec![0.0f32; shape.iter().product::<i64>() as usize];
    rng.fill_normal(&mut drawn, 1.0);
    Tensor::from_slice(&drawn).view(shape)
}

/// Blueprint indices from -1, the empty slot, on.
pub fn blueprints(rng: &mut RunRng, shape: &[i64]) -> Tensor {
    let drawn = (0..shape.iter().product()).map(|_| rng.below(BLUEPRINTS as u64 + 1) as i64 - 1);
    Tensor::from_slice(&drawn.collect::<Vec<_>>()).view(shape)
}
