//! Two more cores of the engine's network: gated recurrent units, and a perceptron without memory.

use crate::prelude::*;

/// Residual blocks of the perceptron.
const BLOCKS: usize = 2;

/// Adds both networks.
pub fn register(nets: &mut NetRegistry) {
    nets.register_core("gru", "residual GRU layers", |config, params| {
        Ok(Box::new(RecurrentCore::<Gru>::new(config, params)?))
    });
    nets.register_core("mlp", "two residual blocks, no memory", |config, params| {
        Ok(Box::new(Perceptron::new(params, config.hidden_dim as i64)?))
    });
}

/// Gated recurrent units.
#[derive(Debug)]
struct Gru;

impl RecurrentCell for Gru {
    const NAME: &'static str = "gru";
    const GATES: i64 = 3;
    const STATES: usize = 1;
    const CUDNN_MODE: i64 = 3;

    fn run(x: &Tensor, initial: &[Tensor], weights: &[Tensor; 4], sizes: Option<&Tensor>) -> (Tensor, Vec<Tensor>) {
        let (y, h) = match sizes {
            None => x.gru(&initial[0], weights, true, 1, 0.0, true, false, true),
            Some(sizes) => Tensor::gru_data(x, sizes, &initial[0], weights, true, 1, 0.0, true, false),
        };
        (y, vec![h])
    }
}

/// `x ← x + LayerNorm(Linear(ReLU(Linear x)))`, without memory.
#[derive(Debug)]
struct Perceptron(Vec<Block>);

#[derive(Debug)]
struct Block {
    linear: [Linear; 2],
    norm: LayerNorm,
}

impl Perceptron {
    /// All linear layers come before the norms: the order in which saved policies list them.
    fn new(params: &mut ParamSet, width: i64) -> Result<Self, TchError> {
        let mut linear = |block: usize, place: usize| {
            let (name, bias) = (format!("core.{block}.{place}"), Some(Init::Constant(0.0)));
            Linear::new(params, &name, [width, width], Init::HIDDEN, bias)
        };
        let pairs = (0..BLOCKS).map(|block| Ok([linear(block, 0)?, linear(block, 2)?]));
        let pairs = pairs.collect::<Result<Vec<_>, TchError>>()?;
        let blocks = pairs.into_iter().enumerate().map(|(block, linear)| {
            let norm = LayerNorm::new(params, &format!("core.{block}.ln"), width)?;
            Ok(Block { linear, norm })
        });
        Ok(Self(blocks.collect::<Result<_, TchError>>()?))
    }
}

impl NetCore for Perceptron {
    fn forward(&self, x: &Tensor, _: &RecurrentState, _: Option<&Packing>) -> Result<CoreOutput, TchError> {
        let x = self.0.iter().try_fold(x.shallow_clone(), |x, block| {
            let [first, second] = &block.linear;
            let hidden = second.forward(&first.forward(&x)?.f_relu()?)?;
            Ok::<_, TchError>(x + block.norm.forward(&hidden)?)
        })?;
        Ok((x, RecurrentState::default()))
    }
}
