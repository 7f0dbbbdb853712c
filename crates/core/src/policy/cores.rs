//! The middle of a network: what carries memory from step to step, or does not.

use std::fmt::Debug;
use std::marker::PhantomData;

use tch::{TchError, Tensor};

use super::recurrent::Packing;
use super::trainable::RecurrentState;
use crate::nn::{Init, LayerNorm, ParamSet};
use crate::scenario::NetConfig;
use crate::torch::NoGrad;

/// Output of a core for its features, and its state after them.
pub type CoreOutput = (Tensor, RecurrentState);

/// The core between the features of a `Network` and its heads: the part in which the networks differ.
pub trait NetCore: Debug + Send {
    /// `[layers, rows, width]` of each tensor of state; a core without memory has none.
    fn state_shapes(&self, _rows: i64) -> Vec<[i64; 3]> {
        Vec::new()
    }

    /// Sets the weights that are drawn by no law, once all others are drawn.
    ///
    /// # Errors
    /// libtorch's.
    fn prepare(&self) -> Result<(), TchError> {
        Ok(())
    }

    /// Maps `x`, `[.., H]`, to the same shape. With memory `[B, T, H]`, or `[steps, H]` with a packing; its state in and out in
    /// the rows' own order.
    ///
    /// # Errors
    /// libtorch's.
    fn forward(&self, x: &Tensor, state: &RecurrentState, packing: Option<&Packing>) -> Result<CoreOutput, TchError>;
}

/// Makes a core for these sizes, `hidden_dim` wide, and adds its parameters to the set.
pub type BuildCore<'a> = &'a dyn Fn(&NetConfig, &mut ParamSet) -> Result<Box<dyn NetCore>, TchError>;

/// A recurrent cell of libtorch, of one layer.
pub trait RecurrentCell: Debug + Send {
    /// Stands in the names of its weights.
    const NAME: &'static str;
    /// Gates, each as wide as the hidden state.
    const GATES: i64;
    /// Tensors of state.
    const STATES: usize;
    /// cuDNN's number of it.
    const CUDNN_MODE: i64;

    /// Runs over `x` from `initial`. Returns the output and the state after it. `x` and the output: `[B, T, H]`, or `[steps, H]`
    /// where the `sizes` of packed sequences are given ([`Packing::batch_sizes`]); `initial`: [`STATES`](Self::STATES) tensors
    /// `[1, B, H]`; `weights`: input and hidden `[gates·H, H]`, input bias and hidden bias `[gates·H]`. All are f32 or the kind of
    /// autocast, on the policy's device. libtorch runs in training mode throughout: cuDNN's backward needs it, and
    /// rollout and update must run the same kernels.
    fn run(x: &Tensor, initial: &[Tensor], weights: &[Tensor; 4], sizes: Option<&Tensor>) -> (Tensor, Vec<Tensor>);

    /// Sets the values that no law draws in the input bias `[gates·width]`, f32, of one of `layers` layers.
    ///
    /// # Errors
    /// libtorch's.
    fn prepare(_bias_ih: &Tensor, _width: i64, _layers: usize) -> Result<(), TchError> {
        Ok(())
    }
}

/// Long short-term memory.
#[derive(Debug)]
pub struct Lstm;

impl RecurrentCell for Lstm {
    const NAME: &'static str = "lstm";
    const GATES: i64 = 4;
    const STATES: usize = 2;
    const CUDNN_MODE: i64 = 2;

    fn run(x: &Tensor, initial: &[Tensor], weights: &[Tensor; 4], sizes: Option<&Tensor>) -> (Tensor, Vec<Tensor>) {
        let (y, h, c) = match sizes {
            None => x.lstm(initial, weights, true, 1, 0.0, true, false, true),
            Some(sizes) => Tensor::lstm_data(x, sizes, initial, weights, true, 1, 0.0, true, false),
        };
        (y, vec![h, c])
    }

    /// Opens the forget gates, second of four: it remembers by default, the deeper the longer.
    fn prepare(bias_ih: &Tensor, width: i64, layers: usize) -> Result<(), TchError> {
        let bias = 1.0 + (layers as f64).ln();
        let _ = bias_ih.f_narrow(0, width, width)?.f_fill_(bias)?;
        Ok(())
    }
}

/// `x ← x + LayerNorm(cell(x))`, one cell of one layer at a time.
#[derive(Debug)]
pub struct RecurrentCore<C> {
    width: i64,
    layers: Vec<RecurrentLayer<C>>,
}

#[derive(Debug)]
struct RecurrentLayer<C> {
    /// Input weights, hidden weights, input bias, hidden bias.
    weights: [Tensor; 4],
    norm: LayerNorm,
    cell: PhantomData<C>,
}

impl<C: RecurrentCell> RecurrentCore<C> {
    /// A core of as many layers as `config` says.
    ///
    /// # Errors
    /// libtorch's.
    pub fn new(config: &NetConfig, params: &mut ParamSet) -> Result<Self, TchError> {
        let width = config.hidden_dim as i64;
        let layer = |layer| RecurrentLayer::new(params, &format!("core.{layer}"), width);
        let layers = (0..config.layers).map(layer).collect::<Result<_, _>>()?;
        Ok(Self { width, layers })
    }
}

impl<C: RecurrentCell> NetCore for RecurrentCore<C> {
    fn state_shapes(&self, rows: i64) -> Vec<[i64; 3]> {
        vec![[self.layers.len() as i64, rows, self.width]; C::STATES]
    }

    fn prepare(&self) -> Result<(), TchError> {
        let _no_grad = NoGrad::new();
        self.layers.iter().try_for_each(|layer| {
            let [_, _, bias_ih, _] = &layer.weights;
            C::prepare(bias_ih, self.width, self.layers.len())
        })
    }

    fn forward(&self, x: &Tensor, state: &RecurrentState, packing: Option<&Packing>) -> Result<CoreOutput, TchError> {
        let state = packing.map_or_else(|| state.shallow_clone(), |packing| packing.pack_state(state));
        let sizes = packing.map(|packing| &packing.batch_sizes);
        let mut x = x.shallow_clone();
        let mut finals: Vec<Vec<Tensor>> = (0..C::STATES).map(|_| Vec::new()).collect();
        for (index, layer) in self.layers.iter().enumerate() {
            let initial: Vec<Tensor> = state.0.iter().map(|s| s.narrow(0, index as i64, 1)).collect();
            let (y, after) = C::run(&x, &initial, &layer.weights, sizes);
            // The first `x` is the caller's and the graph still reads the others, so this isn't in place.
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

impl<C: RecurrentCell> RecurrentLayer<C> {
    fn new(params: &mut ParamSet, layer: &str, width: i64) -> Result<Self, TchError> {
        let gates = C::GATES * width;
        let mut add = |part: &str, shape: &[i64], init| params.add(format!("{layer}.{}.{part}", C::NAME), shape, init);
        let weights = [
            add("weight_ih", &[gates, width], Init::Orthogonal(1.0))?,
            add("weight_hh", &[gates, width], Init::Orthogonal(1.0))?,
            add("bias_ih", &[gates], Init::Constant(0.0))?,
            add("bias_hh", &[gates], Init::Constant(0.0))?,
        ];
        if params.device().is_cuda() && tch::Cuda::cudnn_is_available() {
            // One buffer for all weights: otherwise cuDNN would copy them together at every call.
            let _no_grad = NoGrad::new();
            let _ =
                Tensor::internal_cudnn_rnn_flatten_weight(&weights, 4, width, C::CUDNN_MODE, width, 0, 1, true, false);
        }
        Ok(Self {
            weights,
            norm: LayerNorm::new(params, &format!("{layer}.ln"), width)?,
            cell: PhantomData,
        })
    }
}
