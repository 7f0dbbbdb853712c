//! Small networks, random observations and masks for the tests of this folder.

use tch::{Device, Kind, Tensor};

use super::*;
use crate::controller::fixtures::{AT, Ground, any_limits, any_reports};
use crate::controller::{
    Choices, Controller, Decision, DecisionView, EnvRow, EnvView, MaskSet, Observation, PolicyError, TrainingSignals,
};
use crate::random::{Draw, RunRng};
use crate::scenario::{FloorMode, NetConfig};
use crate::seed::SeedReport;
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
        ..Default::default()
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
        group: 0,
    };
    NetRegistry::default().build(context).unwrap()
}

/// A controller around a small network whose logits differ enough to matter.
pub fn controller(kind: &str) -> ActorCriticController {
    controller_with_floor(kind, FloorMode::Mixture)
}

pub fn controller_with_floor(kind: &str, mode: FloorMode) -> ActorCriticController {
    let mut ground = Ground::default();
    ground.policy.floor.mode = mode;
    (ground.policy.net, ground.policy.net_cfg) = (kind.into(), small());
    let controller = ActorCriticController::new(&ground.context()).unwrap();
    sharpen(controller.net());
    controller
}

/// Makes a fresh, nearly uniform policy prefer something.
pub fn sharpen(net: &dyn ActorCritic) {
    let _no_grad = crate::torch::NoGrad::new();
    for param in net.params().iter().filter(|param| param.name.starts_with("head.")) {
        let _ = param.tensor.shallow_clone().g_mul_scalar_(5.0);
    }
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

/// Envs with random observations and random, valid masks.
pub struct Crowd {
    pub observations: Vec<Observation>,
    pub masks: Vec<MaskSet>,
    reports: Vec<Option<SeedReport>>,
    signals: TrainingSignals,
}

impl Crowd {
    pub fn new(envs: usize, stream: u64) -> Self {
        let mut rng = RunRng::from_seed(stream);
        let observations = (0..envs)
            .map(|_| {
                let mut normalised = vec![0.0; FEATURES];
                rng.fill_normal(&mut normalised, 1.0);
                Observation {
                    raw: normalised.clone(),
                    normalised,
                    blueprints: (0..SLOTS)
                        .map(|_| rng.below(BLUEPRINTS as u64 + 1) as i64 - 1)
                        .collect(),
                    replaced: None,
                }
            })
            .collect();
        let masks = (0..envs).map(|_| any_masks(&mut rng)).collect();
        Self {
            observations,
            masks,
            reports: vec![None; SLOTS],
            signals: TrainingSignals::default(),
        }
    }

    /// Places `place[k]` of the crowd as envs `place[k]`, in that order.
    pub fn views(&self, places: &[usize]) -> Vec<EnvView<'_>> {
        let view = |&place: &usize| EnvView {
            row: EnvRow {
                env: place,
                index_in_group: place,
                episode: place as u64,
            },
            reports: &self.reports,
            signals: &self.signals,
            observation: Some(&self.observations[place]),
        };
        places.iter().map(view).collect()
    }

    pub fn masks(&self, places: &[usize]) -> Vec<MaskSet> {
        places.iter().map(|&place| self.masks[place].clone()).collect()
    }

    /// What `controller` decides for the envs in `places` at `step`.
    pub fn decide(&self, controller: &mut ActorCriticController, step: u32, places: &[usize]) -> Vec<Decision> {
        let (decisions, reads) = self.attempt(controller, step, places);
        assert_eq!(reads, 1);
        decisions.unwrap()
    }

    /// The same, which may fail, and how often something was read from the device.
    pub fn attempt(
        &self,
        controller: &mut ActorCriticController,
        step: u32,
        places: &[usize],
    ) -> (Result<Vec<Decision>, PolicyError>, u64) {
        let reads = HostSyncCounter::default();
        let envs = self.views(places);
        let view = DecisionView {
            round: 0,
            step,
            envs: &envs,
            reads: &reads,
        };
        let decisions = controller.decide(&view, &self.masks(places));
        (decisions, reads.count())
    }
}

/// Masks of a random state under random rules.
fn any_masks(rng: &mut RunRng) -> MaskSet {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::{Config, RngSeed, TestRunner};
    let mut runner = TestRunner::new(Config {
        rng_seed: RngSeed::Fixed(rng.next_u64()),
        ..Config::default()
    });
    let reports = any_reports(SLOTS).new_tree(&mut runner).unwrap().current();
    let limits = any_limits(SLOTS).new_tree(&mut runner).unwrap().current();
    let per_slot = [Choices::first_n(BLUEPRINTS).without(0); SLOTS];
    MaskSet::build(AT, &reports, &per_slot, &limits).unwrap()
}

/// Masks as they are stored: `bool [B, T, W]`.
pub fn stored_masks(masks: &[&MaskSet], shape: [i64; 2]) -> Tensor {
    let width = MaskSet::row_width(SLOTS, BLUEPRINTS);
    let mut rows = vec![false; width * masks.len()];
    for (masks, row) in masks.iter().zip(rows.chunks_mut(width)) {
        masks.write_row(BLUEPRINTS, row);
    }
    let bytes: Vec<u8> = rows.into_iter().map(u8::from).collect();
    Tensor::from_slice(&bytes)
        .to_kind(Kind::Bool)
        .view([shape[0], shape[1], width as i64])
}
