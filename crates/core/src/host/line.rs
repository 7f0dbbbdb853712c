//! A host as it is built: its line of ops over one set of parameters.

use std::ops::Range;

use tch::Tensor;

use super::{FoldedHost, FoldedLayer, Host, HostError, InjectionSpec, Layer, OpCost};
use crate::kernels::{is_served, max_pool};
use crate::nn::{Mode, ParamSet, max_pool_2x2};
use crate::random::RunRng;
use crate::torch::Backend;

/// One op, with layers as training or as validation has them.
pub(super) enum Op<L> {
    Layer(L),
    /// 2×2 max pool with stride 2.
    Pool,
}

/// The ops of a host with what training and validation share.
pub(super) struct Line<L> {
    pub ops: Vec<Op<L>>,
    pub costs: Vec<OpCost>,
    pub backend: Backend,
}

impl<L> Line<L> {
    /// Runs `ops` on `x`; `layer` runs a layer and, where its argument says so, the pool behind it.
    fn run(
        &self,
        ops: Range<usize>,
        x: &Tensor,
        layer: impl Fn(&L, &Tensor, bool) -> Result<Tensor, HostError>,
    ) -> Result<Tensor, HostError> {
        let Some(mut rest) = self.ops.get(ops.clone()) else {
            return Err(HostError::BadRange {
                start: ops.start,
                end: ops.end,
                ops: self.ops.len(),
            });
        };
        let mut features = x.shallow_clone();
        while let [op, behind @ ..] = rest {
            rest = behind;
            features = match op {
                Op::Layer(built) => {
                    let pooled = matches!(rest, [Op::Pool, ..]);
                    rest = &rest[usize::from(pooled)..];
                    layer(built, &features, pooled)?
                }
                Op::Pool if self.backend.uses_own_kernels() && is_served(&features) => max_pool(&features)?,
                Op::Pool => max_pool_2x2(&features)?,
            };
        }
        Ok(features)
    }
}

/// A host with its weights.
pub(super) struct BuiltHost {
    pub line: Line<Box<dyn Layer>>,
    pub injections: Vec<InjectionSpec>,
    pub params: ParamSet,
}

impl Host for BuiltHost {
    fn num_ops(&self) -> usize {
        self.line.ops.len()
    }

    fn injection_specs(&self) -> &[InjectionSpec] {
        &self.injections
    }

    fn op_costs(&self) -> &[OpCost] {
        &self.line.costs
    }

    fn run(&self, ops: Range<usize>, x: &Tensor, mode: Mode) -> Result<Tensor, HostError> {
        self.line.run(ops, x, |layer, x, pooled| match pooled {
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

    fn fold(&self) -> Result<Box<dyn FoldedHost>, HostError> {
        let fold = |op: &Op<Box<dyn Layer>>| -> Result<_, HostError> {
            Ok(match op {
                Op::Layer(layer) => Op::Layer(layer.fold()?),
                Op::Pool => Op::Pool,
            })
        };
        let mut folded = Folded(Line {
            ops: self.line.ops.iter().map(fold).collect::<Result<_, _>>()?,
            costs: self.line.costs.clone(),
            backend: self.line.backend,
        });
        folded.refill()?;
        Ok(Box::new(folded))
    }
}

/// The same host for validation.
struct Folded(Line<Box<dyn FoldedLayer>>);

impl FoldedHost for Folded {
    fn num_ops(&self) -> usize {
        self.0.ops.len()
    }

    fn op_costs(&self) -> &[OpCost] {
        &self.0.costs
    }

    fn evaluate(&self, ops: Range<usize>, x: &Tensor) -> Result<Tensor, HostError> {
        self.0.run(ops, x, |layer, x, pooled| match pooled {
            true => layer.forward_pooled(x),
            false => layer.forward(x),
        })
    }

    fn refill(&mut self) -> Result<(), HostError> {
        for op in &mut self.0.ops {
            if let Op::Layer(layer) = op {
                layer.refill()?;
            }
        }
        Ok(())
    }
}
