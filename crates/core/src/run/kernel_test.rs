//! A comparison of the engine's own kernels with libtorch's operators, on a small network, before a run computes with them.

use tch::{Device, Kind, Tensor};

use crate::env::grafted::{self, Graft, GraftKind};
use crate::growth::{AlphaAlgorithm, Topology};
use crate::health::Failure;
use crate::host::{Conv, HostPlan, ResidualBlock};
use crate::kernels;
use crate::nn::{self, Implementation, Mode};
use crate::random::{Domain, RunRng};
use crate::scenario::Kernels;
use crate::seed::{BlueprintRegistry, SeedInstance};
use crate::torch::{self, Backend, NoGrad};
use crate::training::{Accumulators, PackLayout};

/// Share of the largest value of a tensor beyond which a difference can't be rounding.
const TOLERANCE: f64 = 1e-3;
/// Labels of the samples, images of `SIDE × SIDE` pixels.
const LABELS: [i64; 4] = [0, 1, 2, 1];
const SIDE: i64 = 16;

/// The reason not to use the kernels of this CPU; `None` if they agree with libtorch's operators. Draws nothing of a run.
pub(super) fn refusal() -> Option<String> {
    let why = match torch::catch(difference).map_err(Failure::from).flatten() {
        Ok(share) if share <= TOLERANCE => nn::self_test(Device::Cpu, Implementation::Own)?,
        Ok(share) => format!("their results differ from libtorch's by {share:e}"),
        Err(failure) => format!("they fail: {failure}"),
    };
    let level = kernels::kernel_levels().into_iter().find(|level| level.is_available)?;
    let name = level.name;
    Some(format!("the engine's own kernels for {name} are not used: {why}"))
}

/// The largest, as a share of the largest value, over all that both kinds of kernels make of the network.
fn difference() -> Result<f64, Failure> {
    let (own, libtorch) = (results(Kernels::Own)?, results(Kernels::Libtorch)?);
    let share = |(own, libtorch): (&Tensor, &Tensor)| {
        let share = (own - libtorch).abs().max() / libtorch.abs().max().clamp_min(1.0);
        share.to_kind(Kind::Double)
    };
    let shares: Vec<_> = own.iter().zip(&libtorch).map(share).collect();
    // A share that isn't a number counts as the largest.
    Ok(torch::peek(&Tensor::stack(&shares, 0).max())?.unwrap_or(f64::NAN))
}

/// Images, logits in training, all gradients, logits in validation and sums of a host with every seed in its slot.
fn results(kernels: Kernels) -> Result<Vec<Tensor>, Failure> {
    let (backend, algorithm) = (Backend::new(Device::Cpu, kernels), AlphaAlgorithm::Add);
    let rng = || RunRng::new(0, Domain::HostInit, &[]);
    let plan = HostPlan::new(1, SIDE).layer("block", Conv::new(8, 3)).pool();
    let plan = plan.layer("point", Conv::new(16, 1)).slot(0, 0).pool();
    let mut host = plan
        .layer("residual", ResidualBlock::new(32, 2))
        .head(3)
        .build(&mut rng(), backend)?;
    let (registry, slot) = (BlueprintRegistry::default(), host.injection_specs()[0]);
    let plant = |(index, _)| SeedInstance::germinate(&registry, index, 16, algorithm, &mut rng(), backend);
    let seeds = registry.for_topology(Topology::Image).map(plant);
    let seeds = seeds.collect::<Result<Vec<_>, _>>()?;
    let params = host.params().trainable().iter();
    let params: Vec<_> = params.chain(seeds.iter().flat_map(SeedInstance::params)).collect();
    // New seeds output zero: their weights are stirred.
    let stir = |param: &Tensor| param.shallow_clone().g_add_(&(waves(&param.size()) * 0.1));
    {
        let _no_grad = NoGrad::new();
        params.iter().for_each(|param| drop(stir(&param.tensor)));
    }
    let (boundary, isolated) = (slot.boundary, false);
    let kind = GraftKind::Blend {
        alpha: 0.5,
        algorithm,
        isolated,
    };
    let grafts = seeds.iter().map(|instance| Graft {
        boundary,
        instance,
        kind,
    });

    let mut sums = Accumulators::new(backend, PackLayout { configs: 1, slots: 0 }, 1, (LABELS.len(), 1))?;
    let (x, y) = (images(kernels)?, Tensor::from_slice(&LABELS));
    let logits = grafted::forward(&*host, &grafts.collect::<Vec<_>>(), &x, Mode::Train)?;
    kernels::backward(&sums.train_loss((0, 0), &logits, &y, 0.1)?, backend)?;
    let gradients = params.iter().map(|param| param.tensor.grad()).filter(Tensor::defined);
    let gradients: Vec<Tensor> = gradients.collect();
    let _no_grad = NoGrad::new();
    host.refill()?;
    let evaluated = host.evaluate(0..host.num_ops(), &x)?;
    sums.add_val(&evaluated, &y, 0)?;
    let found = [x, logits.detach(), evaluated, sums.pack().shallow_clone()];
    Ok(gradients.into_iter().chain(found).collect())
}

/// Images of bytes, as a feed makes them.
fn images(kernels: Kernels) -> Result<Tensor, Failure> {
    let shape = [LABELS.len() as i64, SIDE, SIDE];
    let bytes = (waves(&shape) * 50 + 100).to_kind(Kind::Uint8);
    let (order, a, b) = (
        Tensor::from_slice(&LABELS),
        waves(&shape[1..]) * 0.01,
        waves(&shape[1..]),
    );
    let mut rows = bytes.index_select(0, &order) * &a + &b;
    if kernels == Kernels::Own {
        kernels::gather_images([&bytes, &order], None, [&a, &b], &rows.zero_())?;
    }
    Ok(rows.unsqueeze(-1).permute([0, 3, 1, 2]))
}

/// Values of mixed sign.
fn waves(shape: &[i64]) -> Tensor {
    let steps = Tensor::arange(shape.iter().product::<i64>(), (Kind::Double, Device::Cpu)) * 0.7;
    steps.sin().to_kind(Kind::Float).view(shape)
}

#[cfg(test)]
mod tests;
