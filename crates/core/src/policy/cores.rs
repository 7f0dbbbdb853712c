//! The middle of a network: what carries memory from step to step, or does not.

use tch::{TchError, Tensor};

use super::recurrent::Packing;
use super::trainable::RecurrentState;
use crate::nn::{Init, LayerNorm, Linear, ParamSet};
use crate::torch::NoGrad;

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
    pub fn new(params: &mut ParamSet, cell: Cell, width: i64, layers: usize) -> Result<Self, TchError> {
        let layer = |layer| RecurrentLayer::new(params, &format!("core.{layer}"), cell, width);
        let layers = (0..layers).map(layer).collect::<Result<_, _>>()?;
        Ok(Self { cell, width, layers })
    }

    /// Opens the forget gates of an LSTM, second of four: it remembers by default, the deeper the longer.
    pub fn remember(&self) -> Result<(), TchError> {
        let _no_grad = NoGrad::new();
        let bias = 1.0 + (self.layers.len() as f64).ln();
        for layer in self.layers.iter().filter(|_| self.cell == Cell::Lstm) {
            let [_, _, bias_ih, _] = &layer.weights;
            let _ = bias_ih.f_narrow(0, self.width, self.width)?.f_fill_(bias)?;
        }
        Ok(())
    }

    pub fn state_shapes(&self, rows: i64) -> Vec<[i64; 3]> {
        vec![[self.layers.len() as i64, rows, self.width]; self.cell.states()]
    }

    /// `x`: `[B, T, H]`, or `[steps, H]` with a packing. State in and out in the rows' own order.
    pub fn forward(
        &self,
        x: &Tensor,
        state: &RecurrentState,
        packing: Option<&Packing>,
    ) -> Result<(Tensor, RecurrentState), TchError> {
        let state = packing.map_or_else(|| state.shallow_clone(), |packing| packing.pack_state(state));
        let mut x = x.shallow_clone();
        let mut finals: Vec<Vec<Tensor>> = (0..self.cell.states()).map(|_| Vec::new()).collect();
        for (index, layer) in self.layers.iter().enumerate() {
            let initial: Vec<Tensor> = state.0.iter().map(|s| s.narrow(0, index as i64, 1)).collect();
            let (y, after) = layer.run(self.cell, &x, &initial, packing);
            // Not in place: the first `x` is the caller's, and the graph still reads the others.
            x = layer.norm.forward(&y)? + &x;
            for (layers, after) in finals.iter_mut().zip(after) {
                layers.push(after);
            }
        }
        let after = RecurrentState(finals.iter().map(|layers| Tensor::cat(layers, 0)).collect());
        Ok((
            x,
            packing.map_or(after.shallow_clone(), |packing| packing.unpack_state(&after)),
        ))
    }
}

impl RecurrentLayer {
    fn new(params: &mut ParamSet, layer: &str, cell: Cell, width: i64) -> Result<Self, TchError> {
        let gates = cell.gates() * width;
        let mut add =
            |part: &str, shape: &[i64], init| params.add(format!("{layer}.{}.{part}", cell.name()), shape, init);
        let weights = [
            add("weight_ih", &[gates, width], Init::Orthogonal(1.0))?,
            add("weight_hh", &[gates, width], Init::Orthogonal(1.0))?,
            add("bias_ih", &[gates], Init::Constant(0.0))?,
            add("bias_hh", &[gates], Init::Constant(0.0))?,
        ];
        if params.device().is_cuda() && tch::Cuda::cudnn_is_available() {
            // One buffer for all weights: otherwise cuDNN would copy them together at every call.
            let _no_grad = NoGrad::new();
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
        let norm = LayerNorm::new(params, &format!("{layer}.ln"), width)?;
        Ok(Self { weights, norm })
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
    linear: [Linear; 2],
    norm: LayerNorm,
}

impl MlpCore {
    /// All linear layers come before the norms: the order in which saved policies list them.
    pub fn new(params: &mut ParamSet, width: i64) -> Result<Self, TchError> {
        let mut linear = |block: usize, place: usize| {
            let (name, bias) = (format!("core.{block}.{place}"), Some(Init::Constant(0.0)));
            Linear::new(params, &name, [width, width], Init::HIDDEN, bias)
        };
        let pairs = (0..MLP_BLOCKS).map(|block| Ok([linear(block, 0)?, linear(block, 2)?]));
        let pairs = pairs.collect::<Result<Vec<_>, TchError>>()?;
        let blocks = pairs.into_iter().enumerate().map(|(block, linear)| {
            let norm = LayerNorm::new(params, &format!("core.{block}.ln"), width)?;
            Ok(MlpBlock { linear, norm })
        });
        Ok(Self(blocks.collect::<Result<_, TchError>>()?))
    }

    pub fn forward(&self, x: &Tensor) -> Result<Tensor, TchError> {
        self.0.iter().try_fold(x.shallow_clone(), |x, block| {
            let [first, second] = &block.linear;
            let hidden = second.forward(&first.forward(&x)?.f_relu()?)?;
            Ok(x + block.norm.forward(&hidden)?)
        })
    }
}
