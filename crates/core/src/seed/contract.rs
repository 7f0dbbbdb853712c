//! The contract of seed modules, tried on one: what its declaration cannot show.

use tch::{Kind, TchError, Tensor};

use super::{Blueprint, BlueprintError, SeedModule};
use crate::growth::Topology;
use crate::kernels::backward;
use crate::nn::{Mode, ParamSet};
use crate::random::{Domain, Draw, RunRng};
use crate::torch::{Backend, HostSyncCounter, NoGrad, TorchError, read_f64};

/// Samples, height and width of the images that modules are tried on: one is large, one uneven, one a single position.
const IMAGES: [[i64; 3]; 3] = [[1, 8, 8], [2, 3, 5], [2, 1, 1]];

/// Texts and tokens of each.
const TEXTS: [[i64; 2]; 3] = [[2, 8], [1, 5], [2, 1]];

/// Steps within which every parameter must have had a gradient.
const STEPS_TO_LIFE: u64 = 3;

/// Learning rate of those steps.
const LEARNING_RATE: f64 = 0.1;

/// Samples, height and width of the images that a module is trained on; a text has a token for each of their pixels.
const LIFE: [i64; 3] = [2, 4, 4];

/// The breach of the contract by the module at this width, in words; an error if it cannot even be tried.
pub fn breach_of_contract(
    blueprint: &dyn Blueprint,
    dim: i64,
    backend: Backend,
    syncs: &HostSyncCounter,
) -> Result<Option<String>, BlueprintError> {
    let module = blueprint.build(dim, &mut RunRng::new(0, Domain::SeedInit, &[]), backend)?;
    let (declared, actual) = (blueprint.param_count(dim), module.params().count());
    if declared != actual {
        return Ok(Some(format!("it declares {declared} parameters, but has {actual}")));
    }
    for shape in shapes(blueprint.topology(), dim) {
        let probe = || probe(&shape, backend);
        if let Some(why) = breach_of_forward(&*module, [&probe()?, &probe()?], syncs)? {
            return Ok(Some(why));
        }
    }
    breach_of_life(
        &*module,
        |draw| noise(blueprint.topology(), dim, draw, backend),
        backend,
        syncs,
    )
}

/// Sizes of the features that a module is tried on.
fn shapes(topology: Topology, dim: i64) -> Vec<Vec<i64>> {
    match topology {
        Topology::Image => IMAGES
            .map(|[batch, height, width]| vec![batch, dim, height, width])
            .into(),
        Topology::Tokens => TEXTS.map(|[batch, tokens]| vec![batch, tokens, dim]).into(),
    }
}

/// Shape and type are kept, the input is not written to, the network is not changed. The module gets the first of two
/// equal probes.
fn breach_of_forward(
    module: &dyn SeedModule,
    [probe, untouched]: [&Tensor; 2],
    syncs: &HostSyncCounter,
) -> Result<Option<String>, BlueprintError> {
    let _no_grad = NoGrad::new();
    let Some(delta) = module.delta(probe, Mode::Eval)? else {
        return Ok(None);
    };
    if delta.size() != probe.size() || delta.kind() != probe.kind() {
        return Ok(Some(format!(
            "it turns {:?} {:?} into {:?} {:?}; a seed must keep its input's shape and type",
            probe.kind(),
            probe.size(),
            delta.kind(),
            delta.size()
        )));
    }
    let largest = |of: Tensor| -> Result<Tensor, TchError> { of.f_abs()?.f_max() };
    let found = Tensor::f_stack(&[largest(delta)?, largest(probe.f_sub(untouched)?)?], 0)?;
    Ok(match read_f64(&found, syncs)?.as_slice() {
        [0.0, 0.0] => None,
        [0.0, _] => Some("it writes to its input; a seed must leave its input unchanged".into()),
        _ => Some("it changes the network at initialisation; its residual must start at exactly 0".into()),
    })
}

/// Every parameter has a gradient within a few steps of plain SGD towards random targets.
fn breach_of_life(
    module: &dyn SeedModule,
    noise: impl Fn(u64) -> Result<Tensor, TchError>,
    backend: Backend,
    syncs: &HostSyncCounter,
) -> Result<Option<String>, BlueprintError> {
    let params = module.params().trainable();
    let mut largest = Tensor::f_zeros([params.len() as i64], (Kind::Float, backend.device))?;
    for step in 0..STEPS_TO_LIFE {
        let x = noise(2 * step)?;
        let Some(delta) = module.delta(&x, Mode::Train)? else {
            return Ok(None);
        };
        if delta.requires_grad() {
            let error = delta.f_add(&x)?.f_sub(&noise(2 * step + 1)?)?;
            backward(&error.f_square()?.f_mean(Kind::Float)?, backend)?;
            largest = largest.f_maximum(&descend(module.params())?)?;
        }
    }
    let largest = read_f64(&largest, syncs)?;
    let untouched = params.iter().zip(&largest).filter(|(_, largest)| **largest <= 0.0);
    let names: Vec<String> = untouched.map(|(param, _)| format!("`{}`", param.name)).collect();
    Ok((!names.is_empty()).then(|| {
        format!(
            "no gradient reaches {} within {STEPS_TO_LIFE} steps of SGD; a seed must be alive at initialisation",
            names.join(", ")
        )
    }))
}

/// One step of SGD; the largest gradient of each tensor, `f32 [tensors]`.
fn descend(params: &ParamSet) -> Result<Tensor, TorchError> {
    let _no_grad = NoGrad::new();
    let mut largest = Vec::with_capacity(params.trainable().len());
    for param in params.trainable() {
        let gradient = param.tensor.f_grad()?;
        if !gradient.defined() {
            largest.push(Tensor::f_zeros([], (Kind::Float, params.device()))?);
            continue;
        }
        largest.push(gradient.f_abs()?.f_max()?);
        let _ = param
            .tensor
            .shallow_clone()
            .f_sub_(&gradient.f_mul_scalar(LEARNING_RATE)?)?;
        let _ = gradient.shallow_clone().f_zero_()?;
    }
    Ok(Tensor::f_stack(&largest, 0)?)
}

/// Features without two equal values.
fn probe(shape: &[i64], backend: Backend) -> Result<Tensor, TchError> {
    let count = shape.iter().product();
    Tensor::f_linspace(-1.0, 1.0, count, (Kind::Float, backend.device))?.f_view(shape)
}

/// Normal noise, the same in every process: images channels-last as features are, texts of as many tokens.
fn noise(topology: Topology, dim: i64, draw: u64, backend: Backend) -> Result<Tensor, TchError> {
    let [batch, height, width] = LIFE;
    let mut values = vec![0.0_f32; (batch * dim * height * width) as usize];
    RunRng::new(0, Domain::SeedInit, &[draw]).fill_normal(&mut values, 1.0);
    let values = Tensor::f_from_slice(&values)?;
    match topology {
        Topology::Image => values.f_view([batch, height, width, dim])?.f_permute([0, 3, 1, 2])?,
        Topology::Tokens => values.f_view([batch, height * width, dim])?,
    }
    .f_to_device(backend.device)
}
