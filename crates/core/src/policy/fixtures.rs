//! Small networks and random inputs for tests.

#[path = "../../../../src/prior_art/networks.rs"]
mod networks;

use tch::{Device, Tensor};

use super::{ActorCritic, NetContext, NetRegistry, NetSpec};
use crate::random::{Draw, RunRng};
use crate::scenario::NetConfig;
use crate::torch::{HostSyncCounter, read_f64};

/// Elements of an observation of a host with three slots.
pub const FEATURES: usize = 116;
/// Slots of the host.
pub const SLOTS: usize = 3;
/// Blueprints of the fixtures' registry.
pub const BLUEPRINTS: usize = 8;

pub fn small() -> NetConfig {
    NetConfig {
        feature_dim: 24,
        hidden_dim: 32,
        ..crate::scenario::fixtures::neutral_net()
    }
}

pub fn network(kind: &str, config: NetConfig, seed: u64) -> Box<dyn ActorCritic> {
    let context = NetContext {
        spec: NetSpec {
            kind: kind.into(),
            observation: FEATURES,
            slots: SLOTS,
            blueprints: BLUEPRINTS,
            config,
        },
        device: Device::Cpu,
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
    let count = shape.iter().product::<i64>();
    let drawn: Vec<i64> = (0..count)
        .map(|_| rng.below(BLUEPRINTS as u64 + 1) as i64 - 1)
        .collect();
    Tensor::from_slice(&drawn).view(shape)
}
