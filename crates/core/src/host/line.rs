//! A built host: its line of ops over one set of parameters.

use std::ops::Range;

use tch::Tensor;

use super::{Host, HostError, InjectionSpec, Layer, OpCost};
use crate::kernels::{is_served, max_pool};
use crate::nn::{Mode, ParamSet, max_pool_2x2};
use crate::random::RunRng;

/// One op.
pub(super) enum Op {
    Layer(Box<dyn Layer>),
    /// 2×2 max pool with stride 2.
    Pool,
}

/// A host with its weights.
pub(super) struct BuiltHost {
    pub ops: Vec<Op>,
    pub costs: Vec<OpCost>,
    pub injections: Vec<InjectionSpec>,
    pub params: ParamSet,
}

impl BuiltHost {
    /// Runs `ops` on `x`. `layer` runs a layer and, if its argument says so, the pool after it.
    fn run_with(
        &self,
        ops: Range<usize>,
        x: &Tensor,
        layer: impl Fn(&dyn Layer, &Tensor, bool) -> Result<Tensor, HostError>,
    ) -> Result<Tensor, HostError> {
        let Some(mut rest) = self.ops.get(ops.clone()) else {
            return Err(HostError::BadRange {
                start: ops.start,
                end: ops.end,
                ops: self.ops.len(),
            });
        };
        let mut features = x.shallow_clone();
        while let [op, following @ ..] = rest {
            rest = following;
            features = match op {
                Op::Layer(built) => {
                    let pooled = matches!(rest, [Op::Pool, ..]);
                    rest = &rest[usize::from(pooled)..];
                    layer(&**built, &features, pooled)?
                }
                Op::Pool if self.params.backend().uses_own_kernels() && is_served(&features) => max_pool(&features)?,
                Op::Pool => max_pool_2x2(&features)?,
            };
        }
        Ok(features)
    }
}

impl Host for BuiltHost {
    fn num_ops(&self) -> usize {
        self.ops.len()
    }

    fn injection_specs(&self) -> &[InjectionSpec] {
        &self.injections
    }

    fn op_costs(&self) -> &[OpCost] {
        &self.costs
    }

    fn run(&self, ops: Range<usize>, x: &Tensor, mode: Mode) -> Result<Tensor, HostError> {
        self.run_with(ops, x, |layer, x, pooled| match pooled {
            true => layer.forward_pooled(x, mode),
            false => layer.forward(x, mode),
        })
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }

    fn reinitialise(&mut self, rng: &mut RunRng) -> Result<(), HostError> {
        Ok(self.params.initialise(rng)?)
    }

    fn evaluate(&self, ops: Range<usize>, x: &Tensor) -> Result<Tensor, HostError> {
        self.run_with(ops, x, |layer, x, pooled| match pooled {
            true => layer.evaluate_pooled(x),
            false => layer.evaluate(x),
        })
    }

    fn refill(&mut self) -> Result<(), HostError> {
        for op in &mut self.ops {
            if let Op::Layer(layer) = op {
                layer.refill()?;
            }
        }
        Ok(())
    }
}
