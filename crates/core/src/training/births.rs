//! Fits new seeds whose init needs data to a batch of their env, once, right after they were inserted.
//!
//! The batch is drawn from its own stream, so that the order of the training batches is the same with and without.
//! It goes through the network as validation runs it: no running statistic moves, no gradient is left behind.

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_ecs::system::SystemParam;
use smallvec::SmallVec;
use tch::{Reduction, Tensor};

use super::components::EnvFeed;
use crate::clock::RunClock;
use crate::data::{Batch, StepKey};
use crate::env::grafted::{Graft, forward_through, graft_kind};
use crate::env::{EnvId, EnvPool, EnvStream, Experiment, HostModel, SeedSlots, Slot, StepStatus, participating};
use crate::health::Failure;
use crate::host::Host;
use crate::nn::Mode;
use crate::scenario::{SeedInit, StageIsolation};
use crate::seed::{BirthBatch, BlueprintRegistry};
use crate::torch::{NoGrad, TorchError};

/// Everything of an env that a birth touches.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct BirthEnv {
    id: &'static EnvId,
    stream: &'static mut EnvStream,
    host: &'static mut HostModel,
    slots: &'static mut SeedSlots,
    feed: &'static mut EnvFeed,
}

/// What new seeds are fitted by.
#[derive(SystemParam)]
pub struct Births<'w> {
    experiment: Res<'w, Experiment>,
    blueprints: Res<'w, BlueprintRegistry>,
    clock: Res<'w, RunClock>,
    pool: Res<'w, EnvPool>,
}

/// Fits the seeds that an episode starts with.
pub fn adapt_initial(mut envs: Query<BirthEnv>, births: Births) -> Result<(), Failure> {
    births.adapt(envs.iter_mut())
}

/// Fits the seeds that germinated in this step. What takes part in the step and is older has been tracked since.
pub fn adapt_new_seeds(mut envs: Query<(BirthEnv, &StepStatus)>, births: Births) -> Result<(), Failure> {
    births.adapt(participating(envs.iter_mut()))
}

impl Births<'_> {
    fn adapt<'e, 's>(&self, envs: impl Iterator<Item = BirthEnvItem<'e, 's>>) -> Result<(), Failure> {
        let with_new: Vec<_> = envs
            .filter(|env| env.slots.0.iter().any(|slot| self.init_of(slot).is_some()))
            .map(|env| (*env.id, env))
            .collect();
        if with_new.is_empty() {
            return Ok(());
        }
        self.pool.for_each(with_new, |_, mut env| self.adapt_env(&mut env))
    }

    /// The init by which a new seed in `slot` is fitted; `None` where there is no new seed, or where its init needs no data.
    fn init_of(&self, slot: &Slot) -> Option<SeedInit> {
        let seed = slot.record.as_ref()?;
        let is_new = slot.module.is_some() && seed.age_steps == 0;
        let blueprint = self.blueprints.get(seed.identity.blueprint_index).ok()?;
        Some(self.blueprints.init_of(blueprint)).filter(|init| is_new && init.needs_data())
    }

    fn adapt_env(&self, env: &mut BirthEnvItem) -> Result<(), Failure> {
        let _guard = env.stream.0.get().enter()?;
        let batch = env.feed.0.get().fetch_birth(StepKey {
            seed: self.experiment.scenario.run.seed,
            round: u64::from(self.clock.round()),
            step: u64::from(self.clock.step()),
        })?;
        let (host, slots) = (&**env.host.0.get(), &mut env.slots.0);
        for index in 0..slots.len() {
            let Some(init) = self.init_of(&slots[index]) else {
                continue;
            };
            let birth = self.meet(host, slots, index, &batch)?;
            if let Some(module) = &mut slots[index].module {
                module.get().module.adapt(init, &birth)?;
            }
        }
        Ok(())
    }

    /// Features and gradient at the seed in slot `new`, for `batch` through the network.
    fn meet(&self, host: &dyn Host, slots: &mut [Slot], new: usize, batch: &Batch) -> Result<BirthBatch, Failure> {
        let boundary = slots[new].spec.boundary;
        let grafts = evaluated_slots(slots, new, self.experiment.isolation());
        let split = grafts.partition_point(|graft| graft.boundary < boundary);
        let features = {
            let _no_grad = NoGrad::new();
            forward_through(host, &grafts[..split], 0..boundary, &batch.x, Mode::Eval)?
        };
        let features = features
            .f_detach()
            .and_then(|leaf| leaf.f_set_requires_grad(true))
            .map_err(TorchError::from)?;
        let rest = boundary..host.num_ops();
        let logits = forward_through(host, &grafts[split..], rest, &features, Mode::Eval)?;
        let gradient = gradient_of_loss(&logits, batch, self.experiment.task.label_smoothing, &features)?;
        let features = features.f_detach().map_err(TorchError::from)?;
        Ok(BirthBatch { features, gradient })
    }
}

/// Of the mean loss with respect to `features` alone: parameters keep the gradients that they have.
fn gradient_of_loss(logits: &Tensor, batch: &Batch, smoothing: f64, features: &Tensor) -> Result<Tensor, TorchError> {
    /// A label of this value counts for nothing; there is none.
    const IGNORED_LABEL: i64 = -100;
    let loss = logits.f_cross_entropy_loss::<&Tensor>(&batch.y, None, Reduction::Mean, IGNORED_LABEL, smoothing)?;
    let mut gradients = Tensor::f_run_backward(&[&loss], &[features], false, false)?;
    gradients
        .pop()
        .ok_or_else(|| TorchError::Other("the loss has no gradient at the slot of a new seed".into()))
}

/// The slots other than `new` that contribute to an evaluation, in execution order.
fn evaluated_slots<'a>(slots: &'a mut [Slot], new: usize, isolation: &StageIsolation) -> SmallVec<[Graft<'a>; 4]> {
    let mut grafts: SmallVec<[Graft; 4]> = slots
        .iter_mut()
        .enumerate()
        .filter(|(index, _)| *index != new)
        .filter_map(|(_, slot)| {
            let (seed, module) = (slot.record.as_ref()?, slot.module.as_mut()?);
            let kind = graft_kind(seed.stage, seed.alpha.alpha(), seed.algorithm, isolation, Mode::Eval)?;
            Some(Graft {
                boundary: slot.spec.boundary,
                instance: module.get(),
                kind,
            })
        })
        .collect();
    grafts.sort_unstable_by_key(|graft| graft.boundary);
    grafts
}
