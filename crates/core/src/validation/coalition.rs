//! All configurations of the live seeds in one forward pass: the walk over the coalition tree.
//!
//! Per chunk of a validation batch: the host runs from slot to slot on all blocks at once, each seed runs once on the
//! blocks that have it on in some configuration, and its result is written straight into the next stack. Nothing of
//! the model is changed; a seed that is off is not even multiplied by 0, so its values cannot leak.

use tch::Tensor;

use super::coalition_tree::{CoalitionError, CoalitionTree, LiveSlot, Stop};
use crate::host::Host;
use crate::nn::Mode;
use crate::seed::Residual;
use crate::torch::NoGrad;

/// Logits `[K·b, classes]` of the `b` samples of `x`: those of the plan's configuration `k` are the rows `p·b..(p+1)·b` with
/// `p = tree.places()[k]`.
///
/// `slots` are those for which `tree` was compiled. The caller bounds `b` by [`CoalitionTree::chunk_samples`].
///
/// # Errors
/// [`CoalitionError`]; nothing was changed.
pub fn coalition_forward(
    host: &dyn Host,
    slots: &[LiveSlot],
    tree: &CoalitionTree,
    x: &Tensor,
) -> Result<Tensor, CoalitionError> {
    let same = |(stop, slot): (&Stop, &LiveSlot)| stop.slot == slot.slot;
    debug_assert!(tree.stops.len() == slots.len() && tree.stops.iter().zip(slots).all(same));
    let _no_grad = NoGrad::new();
    let samples = x.size().first().copied().unwrap_or(0);
    let mut features = x.shallow_clone();
    let mut done = 0;
    for (stop, slot) in tree.stops.iter().zip(slots) {
        features = host.evaluate(done..slot.boundary, &features)?;
        features = pass(stop, slot, &features, samples)?;
        done = slot.boundary;
    }
    Ok(host.evaluate(done..host.num_ops(), &features)?)
}

/// Features after a slot, for blocks of `samples` rows.
fn pass(stop: &Stop, slot: &LiveSlot, h: &Tensor, samples: i64) -> Result<Tensor, CoalitionError> {
    if stop.is_uniform() {
        return Ok(slot.instance.blend(h, slot.alpha, slot.algorithm, false, Mode::Eval)?);
    }
    let rows = |blocks: usize| blocks as i64 * samples;
    let residual = match stop.seed_blocks {
        0 => None,
        blocks => slot
            .instance
            .residual(&h.f_narrow(0, 0, rows(blocks))?, slot.alpha, slot.algorithm, Mode::Eval)?,
    };
    // It has the strides of `h`, so that the stack keeps its layout in every topology.
    let mut size = h.size();
    size[0] = rows(stop.leaving);
    let stack = h.f_new_empty_strided(size, h.stride(), (h.kind(), h.device()))?;
    for run in &stop.runs {
        let mut target = stack.f_narrow(0, rows(run.to), rows(run.count))?;
        let source = h.f_narrow(0, rows(run.from), rows(run.count))?;
        let blended: Option<&Residual> = residual.as_ref().filter(|_| run.blended);
        match blended {
            Some(residual) => {
                residual
                    .rows(rows(run.from), rows(run.count))?
                    .apply_into(&target, &source)?;
            }
            None => target.f_copy_(&source)?,
        }
    }
    Ok(stack)
}

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod text_tests;
