//! The middle of a network: what carries memory from step to step, or does not.

use tch::{Device, Tensor};

use super::layers::{HIDDEN_GAIN, LayerNorm, Linear};
use super::parameters::PolicyParams;
use super::recurrent::Packing;
use super::trainable::{ParamGroup, RecurrentState};

/// Residual blocks of the core without memory.
const MLP_BLOCKS: usize = 2;

/// A recurrent cell of libtorch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    Lstm,
    Gru,
}

impl Cell {
    const fn name(self) -> &'static str {
        match self {
            Self::Lstm => "lstm",
            Self::Gru => "gru",
        }
    }

    /// Gates, each as wide as the hidden state.
    const fn gates(self) -> i64 {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
        }
    }

    /// Tensors of state.
    const fn states(self) -> usize {
        match self {
            Self::Lstm => 2,
            Self::Gru => 1,
        }
    }

    /// cuDNN's number of the cell.
    const fn cudnn_mode(self) -> i64 {
        match self {
            Self::Lstm => 2,
            Self::Gru => 3,
        }
    }
}

/// `x ← x + LayerNorm(cell(x))`, one cell of one layer at a time.
#[derive(Debug)]
pub struct RecurrentCore {
    cell: Cell,
    width: i64,
    layers: Vec<RecurrentLayer>,
}

#[derive(Debug)]
struct RecurrentLayer {
    /// Input weights, hidden weights, input bias, hidden bias.
    weights: [Tensor; 4],
    norm: LayerNorm,
}

impl RecurrentCore {
    pub fn new(params: &mut PolicyParams, cell: Cell, width: i64, layers: usize) -> Self {
        // The deeper the core, the longer it has to remember.
        let forget_bias = 1.0 + (layers as f64).ln();
        let layers = (0..layers)
            .map(|layer| RecurrentLayer::new(params, &format!("core.{layer}"), cell, width, forget_bias))
            .collect();
        Self { cell, width, layers }
    }

    pub fn state_shapes(&self, rows: i64) -> Vec<[i64; 3]> {
        vec![[self.layers.len() as i64, rows, self.width]; self.cell.states()]
    }

    /// `x`: `[B, T, H]`, or `[steps, H]` with a packing. State in and out in the rows' own order.
    pub fn forward(&self, x: &Tensor, state: &RecurrentState, packing: Option<&Packing>) -> (Tensor, RecurrentState) {
        let state = packing.map_or_else(|| state.shallow_clone(), |packing| packing.pack_state(state));
        let mut x = x.shallow_clone();
        let mut finals: Vec<Vec<Tensor>> = (0..self.cell.states()).map(|_| Vec::new()).collect();
        for (index, layer) in self.layers.iter().enumerate() {
            let initial: Vec<Tensor> = state.0.iter().map(|s| s.narrow(0, index as i64, 1)).collect();
            let (y, after) = layer.run(self.cell, &x, &initial, packing);
            // Not in place: the first `x` is the caller's, and the graph still reads the others.
            x = layer.norm.forward(&y) + &x;
            for (layers, after) in finals.iter_mut().zip(after) {
                layers.push(after);
            }
        }
        let after = RecurrentState(finals.iter().map(|layers| Tensor::cat(layers, 0)).collect());
        (
            x,
            packing.map_or(after.shallow_clone(), |packing| packing.unpack_state(&after)),
        )
    }
}

impl RecurrentLayer {
    fn new(params: &mut PolicyParams, layer: &str, cell: Cell, width: i64, forget_bias: f64) -> Self {
        let group = ParamGroup::Shared;
        let gates = cell.gates() * width;
        let name = |part: &str| format!("{layer}.{}.{part}", cell.name());
        let weight_ih = params.orthogonal(&name("weight_ih"), group, [gates, width], 1.0);
        let weight_hh = params.orthogonal(&name("weight_hh"), group, [gates, width], 1.0);
        let bias = Tensor::zeros([gates], (tch::Kind::Float, Device::Cpu));
        if cell == Cell::Lstm {
            // The forget gate, second of four: remember by default.
            let _ = bias.narrow(0, width, width).fill_(forget_bias);
        }
        let bias_ih = params.add(&name("bias_ih"), group, &bias);
        let bias_hh = params.constant(&name("bias_hh"), group, gates, 0.0);
        let weights = [weight_ih, weight_hh, bias_ih, bias_hh];
        if params.device().is_cuda() && tch::Cuda::cudnn_is_available() {
            // One buffer for all weights: otherwise cuDNN would copy them together at every call.
            let _no_grad = crate::torch::NoGrad::new();
            let _ = Tensor::internal_cudnn_rnn_flatten_weight(
                &weights,
                4,
                width,
                cell.cudnn_mode(),
                width,
                0,
                1,
                true,
                false,
            );
        }
        Self {
            weights,
            norm: LayerNorm::new(params, group, &format!("{layer}.ln"), width),
        }
    }

    fn run(&self, cell: Cell, x: &Tensor, initial: &[Tensor], packing: Option<&Packing>) -> (Tensor, Vec<Tensor>) {
        let weights = &self.weights;
        // `train` is true throughout: cuDNN's backward needs it, and rollout and update must run the same kernels.
        match (cell, packing) {
            (Cell::Lstm, None) => {
                let (y, h, c) = x.lstm(initial, weights, true, 1, 0.0, true, false, true);
                (y, vec![h, c])
            }
            (Cell::Lstm, Some(packing)) => {
                let (y, h, c) = Tensor::lstm_data(x, &packing.batch_sizes, initial, weights, true, 1, 0.0, true, false);
                (y, vec![h, c])
            }
            (Cell::Gru, None) => {
                let (y, h) = x.gru(&initial[0], weights, true, 1, 0.0, true, false, true);
                (y, vec![h])
            }
            (Cell::Gru, Some(packing)) => {
                let sizes = &packing.batch_sizes;
                let (y, h) = Tensor::gru_data(x, sizes, &initial[0], weights, true, 1, 0.0, true, false);
                (y, vec![h])
            }
        }
    }
}

/// `x ← x + LayerNorm(Linear(ReLU(Linear x)))`, without memory.
#[derive(Debug)]
pub struct MlpCore(Vec<MlpBlock>);

#[derive(Debug)]
struct MlpBlock {
    first: Linear,
    second: Linear,
    norm: LayerNorm,
}

impl MlpCore {
    pub fn new(params: &mut PolicyParams, width: i64) -> Self {
        let group = ParamGroup::Shared;
        let mut linear = |name: String| Linear::new(params, group, &name, [width, width], HIDDEN_GAIN);
        let pairs: Vec<_> = (0..MLP_BLOCKS)
            .map(|block| (linear(format!("core.{block}.0")), linear(format!("core.{block}.2"))))
            .collect();
        let blocks = pairs.into_iter().enumerate().map(|(block, (first, second))| MlpBlock {
            first,
            second,
            norm: LayerNorm::new(params, group, &format!("core.{block}.ln"), width),
        });
        Self(blocks.collect())
    }

    pub fn forward(&self, x: &Tensor) -> Tensor {
        self.0.iter().fold(x.shallow_clone(), |x, block| {
            let hidden = block.second.forward(&block.first.forward(&x).relu());
            x + block.norm.forward(&hidden)
        })
    }
}
