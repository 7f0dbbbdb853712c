//! The convolutional host: blocks of convolution, batch norm and ReLU, max pools between them, a linear head.
//! Features are channels-last throughout.

mod folded;
#[cfg(test)]
mod tests;

use std::ops::Range;

use tch::{Device, TchError, Tensor};

use self::folded::FoldedCnn;
use super::{FoldedHost, Host, HostError, InjectionSpec, OpCost};
use crate::growth::SlotId;
use crate::random::RunRng;
use crate::scenario::CnnSpec;
use crate::torch::{
    Backend, BatchNorm, Conv2d, Init, Mode, NORM_EPS, ParamSet, channels_last, conv_block, head, is_served, max_pool,
    spatial_mean,
};

/// Weight of a batch's statistics in the running ones.
const BATCH_NORM_MOMENTUM: f64 = 0.1;

/// One step of a CNN's line of ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CnnOp {
    Block(usize),
    Pool,
    Head,
}

/// The ops of a CNN, e.g. `block0, pool, block1, pool, block2, head`.
fn cnn_ops(spec: &CnnSpec) -> Vec<CnnOp> {
    (0..spec.n_blocks)
        .flat_map(|block| {
            let pool = (block < spec.pool_layers).then_some(CnnOp::Pool);
            std::iter::once(CnnOp::Block(block)).chain(pool)
        })
        .chain(std::iter::once(CnnOp::Head))
        .collect()
}

/// Output channels of block `i`.
fn channels(spec: &CnnSpec, block: usize) -> i64 {
    spec.base_channels << block
}

/// Where a CNN can grow, from its shape alone: row 0 right after each block, row 1 right after each pool. Sorted by
/// `order`.
pub fn injection_specs(spec: &CnnSpec) -> Vec<InjectionSpec> {
    let mut block = 0;
    let mut specs: Vec<InjectionSpec> = Vec::new();
    for (op, kind) in cnn_ops(spec).into_iter().enumerate() {
        let row = match kind {
            CnnOp::Block(index) => {
                block = index;
                0
            }
            CnnOp::Pool => 1,
            CnnOp::Head => break,
        };
        specs.push(InjectionSpec {
            slot: SlotId::new(row, block as u16),
            channels: channels(spec, block),
            boundary: op + 1,
            order: (usize::from(row) * spec.n_blocks + block) as u32,
        });
    }
    specs.sort_by_key(|spec| spec.order);
    specs
}

/// Multiply-accumulates and output positions of each op, for one sample.
fn op_costs(spec: &CnnSpec, classes: i64) -> Vec<OpCost> {
    let (mut width, mut side) = (spec.in_channels, spec.input_hw);
    cnn_ops(spec)
        .into_iter()
        .map(|op| {
            let macs = match op {
                CnnOp::Block(block) => {
                    let inputs = std::mem::replace(&mut width, channels(spec, block));
                    inputs * width * spec.kernel_size.pow(2) * side * side
                }
                CnnOp::Pool => {
                    side /= 2;
                    0
                }
                CnnOp::Head => {
                    side = 1;
                    width * classes
                }
            };
            OpCost {
                macs: macs as u64,
                positions: (side * side) as u64,
            }
        })
        .collect()
}

/// Handles of one block's tensors; the convolution has no bias, the norm brings one.
struct ConvBlock {
    conv: Conv2d,
    norm: BatchNorm,
    /// libtorch's channels-last batch norm on CPU vectorises over channels; with 2 to 7 it is ten times slower than a
    /// detour over NCHW. (One channel lies the same way in both.)
    few_channels: bool,
}

impl ConvBlock {
    fn new(params: &mut ParamSet, index: usize, inputs: i64, outputs: i64, kernel: i64) -> Result<Self, TchError> {
        let name = |part: &str| format!("block{index}.{part}");
        Ok(Self {
            conv: Conv2d::new(params, name("conv.weight"), inputs, outputs, kernel, 1)?,
            norm: BatchNorm {
                scale: params.add(name("norm.weight"), &[outputs], Init::Constant(1.0))?,
                shift: params.add(name("norm.bias"), &[outputs], Init::Constant(0.0))?,
                running_mean: params.add_buffer(name("norm.running_mean"), &[outputs], 0.0)?,
                running_var: params.add_buffer(name("norm.running_var"), &[outputs], 1.0)?,
            },
            few_channels: params.device() == Device::Cpu && (2..8).contains(&outputs),
        })
    }

    /// Further handles of the same tensors.
    fn share(&self) -> Self {
        Self {
            conv: self.conv.with_weight(self.conv.weight.shallow_clone()),
            norm: self.norm.share(),
            few_channels: self.few_channels,
        }
    }

    /// The block and, if `pooled`, the pool behind it.
    fn forward(&self, x: &Tensor, mode: Mode, pooled: bool) -> Result<Tensor, HostError> {
        if mode == Mode::Train && self.conv.uses_own_kernels(x) {
            let weight = &self.conv.weight;
            return Ok(conv_block(
                x,
                weight,
                &self.norm,
                BATCH_NORM_MOMENTUM,
                NORM_EPS,
                pooled,
            )?);
        }
        let features = self.conv.forward(x, None)?;
        let features = if self.few_channels {
            channels_last(&self.norm_relu(&features.f_contiguous()?, mode)?)?
        } else {
            self.norm_relu(&features, mode)?
        };
        if pooled {
            return Ok(pool_by_libtorch(&features)?);
        }
        Ok(features)
    }

    fn norm_relu(&self, x: &Tensor, mode: Mode) -> Result<Tensor, TchError> {
        x.f_batch_norm(
            Some(&self.norm.scale),
            Some(&self.norm.shift),
            Some(&self.norm.running_mean),
            Some(&self.norm.running_var),
            mode == Mode::Train,
            BATCH_NORM_MOMENTUM,
            NORM_EPS,
            true,
        )?
        // In place: batch norm's backward needs its input, not its output.
        .f_relu_()
    }
}

fn pool_by_libtorch(x: &Tensor) -> Result<Tensor, TchError> {
    x.f_max_pool2d(2, 2, 0, 1, false)
}

/// The ops of a CNN with what training and evaluation share: costs and head.
struct OpLine {
    ops: Vec<CnnOp>,
    costs: Vec<OpCost>,
    /// The head: spatial mean, then a linear map to logits.
    weight: Tensor,
    bias: Tensor,
    backend: Backend,
}

impl OpLine {
    /// Runs `ops` on `x`; `block` runs the block of an index and, where it is told so, the pool behind it.
    fn run<E: Into<HostError>>(
        &self,
        ops: Range<usize>,
        x: &Tensor,
        block: impl Fn(usize, &Tensor, bool) -> Result<Tensor, E>,
    ) -> Result<Tensor, HostError> {
        if ops.start > ops.end || ops.end > self.ops.len() {
            return Err(HostError::BadRange {
                start: ops.start,
                end: ops.end,
                ops: self.ops.len(),
            });
        }
        let mut features = x.shallow_clone();
        let mut rest = &self.ops[ops];
        while let [op, behind @ ..] = rest {
            rest = behind;
            let own_kernels = self.backend.uses_own_kernels() && is_served(&features);
            features = match *op {
                CnnOp::Block(index) => {
                    let pooled = matches!(rest, [CnnOp::Pool, ..]);
                    rest = &rest[usize::from(pooled)..];
                    block(index, &features, pooled).map_err(Into::into)?
                }
                CnnOp::Pool if own_kernels => max_pool(&features)?,
                CnnOp::Pool => pool_by_libtorch(&features)?,
                CnnOp::Head if own_kernels => head(&features, &self.weight, &self.bias)?,
                CnnOp::Head => spatial_mean(&features)?.f_linear(&self.weight, Some(&self.bias))?,
            };
        }
        Ok(features)
    }

    /// The same line with further handles of the same tensors.
    fn share(&self) -> Self {
        Self {
            ops: self.ops.clone(),
            costs: self.costs.clone(),
            weight: self.weight.shallow_clone(),
            bias: self.bias.shallow_clone(),
            backend: self.backend,
        }
    }
}

/// The convolutional host with its weights.
pub(super) struct CnnHost {
    line: OpLine,
    injections: Vec<InjectionSpec>,
    params: ParamSet,
    blocks: Vec<ConvBlock>,
}

impl CnnHost {
    /// Allocates the host on `backend`'s device and draws its weights.
    ///
    /// # Errors
    /// [`HostError::Torch`] if the device refuses.
    pub(super) fn new(spec: &CnnSpec, classes: i64, rng: &mut RunRng, backend: Backend) -> Result<Self, HostError> {
        let mut params = ParamSet::new(backend);
        let mut inputs = spec.in_channels;
        let mut blocks = Vec::with_capacity(spec.n_blocks);
        for index in 0..spec.n_blocks {
            let outputs = channels(spec, index);
            blocks.push(ConvBlock::new(&mut params, index, inputs, outputs, spec.kernel_size)?);
            inputs = outputs;
        }
        let line = OpLine {
            ops: cnn_ops(spec),
            costs: op_costs(spec, classes),
            weight: params.add("head.weight", &[classes, inputs], Init::FanIn(inputs))?,
            bias: params.add("head.bias", &[classes], Init::FanIn(inputs))?,
            backend,
        };
        params.initialise(rng)?;
        Ok(Self {
            line,
            injections: injection_specs(spec),
            params,
            blocks,
        })
    }
}

impl Host for CnnHost {
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
        self.line
            .run(ops, x, |block, x, pooled| self.blocks[block].forward(x, mode, pooled))
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }

    fn reinitialise(&mut self, rng: &mut RunRng) -> Result<(), HostError> {
        Ok(self.params.initialise(rng)?)
    }

    fn fold(&self) -> Result<Box<dyn FoldedHost>, HostError> {
        Ok(Box::new(FoldedCnn::new(self)?))
    }
}
