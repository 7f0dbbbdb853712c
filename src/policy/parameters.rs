//! A network's trainable tensors and their initial values.
//!
//! Values are drawn on the CPU from the engine's own generator, so a policy starts alike on every device, whatever else
//! draws in the process meanwhile. Tensors keep their storage for the whole run: loading and learning write in place.

use tch::{Device, Kind, Tensor};

use super::trainable::{ParamGroup, PolicyParam};
use crate::random::{Domain, Draw, RunRng};
use crate::torch::NoGrad;

/// All trainable tensors of a network, in a fixed order, and the stream that their values come from.
///
/// Methods panic where libtorch fails, as tch's do; whoever builds a network catches that (`torch::catch`).
#[derive(Debug)]
pub struct PolicyParams {
    params: Vec<PolicyParam>,
    device: Device,
    rng: RunRng,
}

impl PolicyParams {
    /// `seed`: the run's.
    pub fn new(device: Device, seed: u64) -> Self {
        Self {
            params: Vec::new(),
            device,
            rng: RunRng::new(seed, Domain::PolicyInit, &[0]),
        }
    }

    /// Where the tensors live.
    pub fn device(&self) -> Device {
        self.device
    }

    /// In construction order.
    pub fn iter(&self) -> impl Iterator<Item = &PolicyParam> {
        self.params.iter()
    }

    /// Number of trainable values.
    pub fn count(&self) -> usize {
        self.params.iter().map(|param| param.tensor.numel()).sum()
    }

    /// A matrix with orthogonal rows (columns, if there are more rows than columns), times `gain`.
    pub fn orthogonal(&mut self, name: &str, group: ParamGroup, shape: [i64; 2], gain: f64) -> Tensor {
        let [rows, columns] = shape;
        let (long, short) = (rows.max(columns), rows.min(columns));
        let drawn = self.draw_normal([long, short], 1.0).to_kind(Kind::Double);
        let (q, r) = Tensor::linalg_qr(&drawn, "reduced");
        // The signs make the matrix uniform among the orthogonal ones.
        let q = q * r.diagonal(0, 0, 1).sign() * gain;
        let values = if rows < columns { q.transpose(0, 1) } else { q };
        self.add(name, group, &values)
    }

    /// Independent values from N(0, deviation²).
    pub fn normal(&mut self, name: &str, group: ParamGroup, shape: [i64; 2], deviation: f64) -> Tensor {
        let values = self.draw_normal(shape, deviation);
        self.add(name, group, &values)
    }

    /// A vector of equal values.
    pub fn constant(&mut self, name: &str, group: ParamGroup, length: i64, value: f64) -> Tensor {
        self.add(name, group, &Tensor::full([length], value, (Kind::Float, Device::Cpu)))
    }

    /// A tensor with the given values; returns a second handle to it.
    pub fn add(&mut self, name: &str, group: ParamGroup, values: &Tensor) -> Tensor {
        let _no_grad = NoGrad::new();
        let mut tensor = Tensor::empty(values.size(), (Kind::Float, self.device));
        tensor.copy_(values);
        let tensor = tensor.set_requires_grad(true);
        let handle = tensor.shallow_clone();
        let name = name.into();
        self.params.push(PolicyParam { name, tensor, group });
        handle
    }

    fn draw_normal(&mut self, shape: [i64; 2], deviation: f64) -> Tensor {
        let count = shape[0].saturating_mul(shape[1]) as usize;
        let mut values = Vec::new();
        if values.try_reserve_exact(count).is_err() {
            // As libtorch says it, and tch: whoever builds a network catches both.
            panic!(
                "can't allocate memory: a matrix of the policy has {} x {} weights",
                shape[0], shape[1]
            );
        }
        values.resize(count, 0.0);
        self.rng.fill_normal(&mut values, deviation);
        Tensor::from_slice(&values).view(shape)
    }
}
