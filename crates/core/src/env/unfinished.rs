//! State of an env that lasts from step to step, for checkpoints inside a round: plain components by themselves, hosts and
//! seeds with their optimizers tensor by tensor.

use std::borrow::BorrowMut;

use bevy_app::App;
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_ecs::system::SystemId;
use bevy_platform::cell::SyncCell;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::{EnvBackend, EnvId, EnvStream, GrowthContext, HostModel, HostOptimizer, SeedOptimizers, SeedSlots};
use crate::health::{Failure, InEnv};
use crate::nn::{Optimizer, ParamSet};
use crate::scenario::OptimizerConfig;
use crate::seed::{SeedInstance, SeedRecord};
use crate::unfinished::{UnfinishedRound, UnfinishedRoundError};

/// State that lasts from step to step, in order of registration: a system that keeps it, and one that takes it back.
#[derive(Resource, Default)]
pub(crate) struct RoundKeepers(Vec<[Keeper; 2]>);

type Keeper = SystemId<(), Result<(), Failure>>;

/// Keeps state of applications in checkpoints inside a round.
pub trait KeepInRounds: BorrowMut<App> {
    /// Gives every env a `C`, and makes its value after a step part of checkpoints inside a round, under `name`. For plain data that
    /// the next step reads before it overwrites it; for anything else see [`keep_in_rounds_by`](Self::keep_in_rounds_by).
    ///
    /// ```
    /// # extern crate simic_core as simic_engine;
    /// # use bevy_app::App;
    /// # use bevy_ecs::prelude::*;
    /// use serde::{Deserialize, Serialize};
    /// use simic_engine::prelude::*;
    ///
    /// #[derive(Component, Default, Serialize, Deserialize)]
    /// struct StepsAboveHalf(u32);
    ///
    /// fn count(mut envs: Query<(&ValMetrics, &mut StepsAboveHalf)>) {
    ///     for (val, mut steps) in &mut envs {
    ///         steps.0 += u32::from(val.accuracy_percent > 50.0);
    ///     }
    /// }
    ///
    /// # let mut app = App::new();
    /// # app.add_plugins(SchedulePlugin);
    /// app.add_systems(Assess, count.in_set(EngineSet::Observe));
    /// app.keep_in_rounds::<StepsAboveHalf>("steps_above_half");
    /// ```
    fn keep_in_rounds<C>(&mut self, name: &'static str) -> &mut Self
    where
        C: Component<Mutability = Mutable> + Default + Serialize + DeserializeOwned,
    {
        let save = move |envs: Query<(&EnvId, &C)>, mut round: ResMut<UnfinishedRound>| -> Result<(), Failure> {
            envs.iter()
                .try_for_each(|(id, component)| round.put(name_of(id, name), component).in_env(id.index))
        };
        let restore = move |mut envs: Query<(&EnvId, &mut C)>, round: Res<UnfinishedRound>| -> Result<(), Failure> {
            for (id, mut component) in &mut envs {
                *component = round.get(&name_of(id, name)).in_env(id.index)?;
            }
            Ok(())
        };
        let app: &mut App = self.borrow_mut();
        app.register_required_components::<EnvId, C>();
        self.keep_in_rounds_by(save, restore)
    }

    /// `save` puts something into the [`UnfinishedRound`] when a checkpoint inside a round is made, `restore` takes it back when the
    /// run is resumed there.
    fn keep_in_rounds_by<M, N>(
        &mut self,
        save: impl IntoSystem<(), Result<(), Failure>, M> + 'static,
        restore: impl IntoSystem<(), Result<(), Failure>, N> + 'static,
    ) -> &mut Self {
        let app: &mut App = self.borrow_mut();
        let pair = [app.register_system(save), app.register_system(restore)];
        app.init_resource::<RoundKeepers>();
        app.world_mut().resource_mut::<RoundKeepers>().0.push(pair);
        self
    }
}

impl KeepInRounds for App {}

/// Everything that was registered goes into the [`UnfinishedRound`].
pub(crate) fn keep_round(world: &mut World) -> Result<(), Failure> {
    run_all(world, |[save, _]| save)
}

/// Everything that was registered is taken back from the [`UnfinishedRound`].
pub(crate) fn restore_round(world: &mut World) -> Result<(), Failure> {
    run_all(world, |[_, restore]| restore)
}

fn run_all(world: &mut World, chosen: impl Fn([Keeper; 2]) -> Keeper) -> Result<(), Failure> {
    let keepers = world.resource::<RoundKeepers>().0.clone();
    keepers.into_iter().try_for_each(|pair| {
        let outcome = world.run_system(chosen(pair));
        outcome.map_err(|error| Failure::message(error.to_string())).flatten()
    })
}

/// The name of something of an env.
pub fn name_of(id: &EnvId, what: &str) -> String {
    format!("env{}.{what}", id.index)
}

/// Everything of an env that learns.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct KeptNetwork {
    id: &'static EnvId,
    backend: &'static EnvBackend,
    stream: &'static mut EnvStream,
    host: &'static mut HostModel,
    optimizer: &'static mut HostOptimizer,
    slots: &'static mut SeedSlots,
    optimizers: &'static mut SeedOptimizers,
}

/// A slot without its tensors. An optimizer's settings change with its seed's stage.
#[derive(Serialize, Deserialize)]
struct KeptSlot {
    record: Option<SeedRecord>,
    germinations: u32,
    optimizer: Option<OptimizerConfig>,
}

/// Hosts, seeds and their optimizers.
pub fn save_networks(mut envs: Query<KeptNetwork>, mut round: ResMut<UnfinishedRound>) -> Result<(), Failure> {
    for mut env in &mut envs {
        save_network(&mut env, &mut round).in_env(env.id.index)?;
    }
    Ok(())
}

fn save_network(env: &mut KeptNetworkItem, round: &mut UnfinishedRound) -> Result<(), Failure> {
    let _guard = env.stream.0.get().enter()?;
    let host = name_of(env.id, "host");
    save_params(&host, env.host.0.get().params(), round)?;
    save_optimizer(&host, env.optimizer.0.get(), round)?;
    for (slot, optimizer) in env.slots.0.iter_mut().zip(&mut env.optimizers.0) {
        let name = name_of(env.id, &slot.spec.slot.to_string());
        let optimizer = optimizer.as_mut().map(|optimizer| &*optimizer.get());
        let kept = KeptSlot {
            record: slot.record.clone(),
            germinations: slot.germinations,
            optimizer: optimizer.map(|optimizer| *optimizer.config()),
        };
        round.put(&name, &kept)?;
        if let Some(seed) = &mut slot.module {
            for (part, params) in parts(seed.get()) {
                save_params(&format!("{name}.{part}"), params, round)?;
            }
        }
        if let Some(optimizer) = optimizer {
            save_optimizer(&name, optimizer, round)?;
        }
    }
    Ok(())
}

/// Puts hosts, seeds and their optimizers where they were: hosts in place, seeds built as when they germinated.
pub fn restore_networks(
    mut envs: Query<KeptNetwork>,
    round: Res<UnfinishedRound>,
    growth: GrowthContext,
) -> Result<(), Failure> {
    for mut env in &mut envs {
        restore_network(&mut env, &round, &growth).in_env(env.id.index)?;
    }
    Ok(())
}

fn restore_network(env: &mut KeptNetworkItem, round: &UnfinishedRound, growth: &GrowthContext) -> Result<(), Failure> {
    let _guard = env.stream.0.get().enter()?;
    let host = name_of(env.id, "host");
    restore_params(&host, env.host.0.get().params(), round)?;
    restore_optimizer(&host, env.optimizer.0.get(), round)?;
    let builder = growth.builder(env.id, env.backend.0);
    for (slot, optimizer) in env.slots.0.iter_mut().zip(&mut env.optimizers.0) {
        let name = name_of(env.id, &slot.spec.slot.to_string());
        let kept: KeptSlot = round.get(&name)?;
        let seed = kept.record.as_ref().filter(|seed| seed.stage.is_occupied());
        let module = seed.map(|seed| builder.rebuild(seed, &slot.spec)).transpose()?;
        if let Some(seed) = &module {
            for (part, params) in parts(seed) {
                restore_params(&format!("{name}.{part}"), params, round)?;
            }
        }
        *optimizer = match (kept.optimizer, &module) {
            (Some(config), Some(seed)) => {
                let optimizer = builder.build_optimizer(&config, seed)?;
                restore_optimizer(&name, &optimizer, round)?;
                Some(SyncCell::new(optimizer))
            }
            _ => None,
        };
        (slot.record, slot.module, slot.germinations) = (kept.record, module.map(SyncCell::new), kept.germinations);
    }
    Ok(())
}

/// A seed's sets of parameters, each with its name.
fn parts(seed: &SeedInstance) -> impl Iterator<Item = (&'static str, &ParamSet)> {
    let gate = seed.gate.as_ref().map(|gate| ("gate", gate.params()));
    std::iter::once(("module", seed.module.params())).chain(gate)
}

fn save_params(owner: &str, params: &ParamSet, round: &mut UnfinishedRound) -> Result<(), UnfinishedRoundError> {
    let mut params = params.all();
    params.try_for_each(|param| round.put_tensor(format!("{owner}.{}", param.name), &param.tensor))
}

fn restore_params(owner: &str, params: &ParamSet, round: &UnfinishedRound) -> Result<(), UnfinishedRoundError> {
    let mut params = params.all();
    params.try_for_each(|param| round.copy_to(&format!("{owner}.{}", param.name), &param.tensor))
}

/// The live state of an optimizer, each tensor with its name.
fn state<'a>(owner: &'a str, optimizer: &'a Optimizer) -> impl Iterator<Item = (String, &'a Tensor)> {
    let kinds = optimizer.state_tensors().into_iter();
    kinds.flat_map(move |(kind, tensors)| {
        let tensors = tensors.iter().enumerate();
        tensors.map(move |(index, tensor)| (format!("{owner}.optimizer.{kind}.{index}"), tensor))
    })
}

fn save_optimizer(owner: &str, optimizer: &Optimizer, round: &mut UnfinishedRound) -> Result<(), UnfinishedRoundError> {
    state(owner, optimizer).try_for_each(|(name, tensor)| round.put_tensor(name, tensor))
}

fn restore_optimizer(owner: &str, optimizer: &Optimizer, round: &UnfinishedRound) -> Result<(), UnfinishedRoundError> {
    state(owner, optimizer).try_for_each(|(name, tensor)| round.copy_to(&name, tensor))
}
