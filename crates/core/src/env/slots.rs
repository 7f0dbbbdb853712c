//! The slots of an env: records, modules and optimizers that change together or not at all.
//!
//! The lifecycle decides on plain data (`seed::lifecycle`). This file carries its effects out on tensors.

use bevy_ecs::prelude::*;
use bevy_platform::cell::SyncCell;
use smallvec::SmallVec;
use tch::{Device, Tensor};

use super::grafted::{Graft, GraftKind, graft_kind};
use crate::growth::AlphaAlgorithm;
use crate::health::Failure;
use crate::host::InjectionSpec;
use crate::nn::{Implementation, Mode, Optimizer, Param};
use crate::random::{Domain, RunRng, derive};
use crate::scenario::{GateConfig, OptimizerConfig};
use crate::seed::{
    BlueprintRegistry, Change, Effect, GateNetwork, Isolation, SeedIdentity, SeedInstance, SeedPlan, SeedRecord,
    SeedReport, broken_law, has_optimizer,
};
use crate::torch::{Backend, TorchError};

/// One place where the host can grow: empty, occupied or cooling down.
pub struct Slot {
    /// The slot's place in the host.
    pub spec: InjectionSpec,
    /// Present unless the slot is empty.
    pub record: Option<SeedRecord>,
    /// Present while the slot is occupied. Reached only through `&mut`.
    pub module: Option<SyncCell<SeedInstance>>,
    /// Seeds germinated here in this episode.
    pub germinations: u32,
    /// Plans with effects that were carried out here in the run: as long as it stays, so do the tensors of module and optimizer.
    pub revision: u64,
}

impl Slot {
    /// The effect of its seed on the features in training.
    fn training_kind(&self, isolation: Isolation) -> Option<GraftKind> {
        let seed = self.record.as_ref()?;
        graft_kind(seed.stage, seed.alpha.alpha(), seed.algorithm, isolation, Mode::Train)
    }
}

/// All slots of an env, in policy order.
#[derive(Component)]
pub struct SeedSlots(pub SmallVec<[Slot; 4]>);

/// One optimizer per trainable seed, same index as [`SeedSlots`].
#[derive(Component)]
pub struct SeedOptimizers(pub SmallVec<[Option<SyncCell<Optimizer>>; 4]>);

impl SeedSlots {
    /// Empty slots.
    pub fn new(specs: &[InjectionSpec]) -> Self {
        let empty = |&spec| Slot {
            spec,
            record: None,
            module: None,
            germinations: 0,
            revision: 0,
        };
        Self(specs.iter().map(empty).collect())
    }

    /// Slots without their tensors, in policy order.
    pub fn records(&self) -> impl Iterator<Item = Option<&SeedRecord>> {
        self.0.iter().map(|slot| slot.record.as_ref())
    }

    /// The seeds as everything outside the lifecycle sees them, in policy order.
    pub fn reports(&self, blueprints: &BlueprintRegistry, gates: &GateConfig) -> SmallVec<[Option<SeedReport>; 4]> {
        let report = |seed: &SeedRecord| seed.report(blueprints.name_of(seed.identity.blueprint_index), gates);
        self.records().map(|record| record.map(report)).collect()
    }

    /// The seeds that take part in training, in execution order.
    pub fn training_grafts(&mut self, isolation: Isolation) -> SmallVec<[Graft<'_>; 4]> {
        let mut grafts: SmallVec<[Graft; 4]> = self
            .0
            .iter_mut()
            .filter_map(|slot| {
                let kind = slot.training_kind(isolation)?;
                Some(Graft {
                    boundary: slot.spec.boundary,
                    instance: slot.module.as_mut()?.get(),
                    kind,
                })
            })
            .collect();
        grafts.sort_unstable_by_key(|graft| graft.boundary);
        grafts
    }

    /// Puts the amplitudes of seeds that are blended where recorded batches read them.
    ///
    /// # Errors
    /// libtorch's.
    pub fn place_amplitudes(&mut self, isolation: Isolation, device: Device) -> Result<(), TorchError> {
        for slot in &mut self.0 {
            let kind = slot.training_kind(isolation);
            if let (Some(GraftKind::Blend { alpha, .. }), Some(module)) = (kind, &mut slot.module) {
                module.get().place_amplitude(alpha, device)?;
            }
        }
        Ok(())
    }

    /// Empties every slot for a new episode.
    pub fn clear(&mut self) {
        for slot in &mut self.0 {
            (slot.record, slot.module, slot.germinations) = (None, None, 0);
        }
    }
}

impl SeedOptimizers {
    /// No optimizer for any of `slots` slots.
    pub fn new(slots: usize) -> Self {
        Self((0..slots).map(|_| None).collect())
    }

    /// Drops every optimizer.
    pub fn clear(&mut self) {
        self.0.fill_with(|| None);
    }
}

/// Builds the parts that a plan asks for: modules, gates and optimizers, each from its own stream of random numbers.
pub struct SeedBuilder<'a> {
    /// Blueprints that can be built.
    pub blueprints: &'a BlueprintRegistry,
    /// Settings of new optimizers.
    pub optimizer: OptimizerConfig,
    /// The implementation of their steps.
    pub implementation: Implementation,
    /// The device and kernels of new tensors.
    pub backend: Backend,
    /// The seed of the run.
    pub run_seed: u64,
    /// The round, from 0.
    pub round: u32,
    /// Index of the env in the run.
    pub env: usize,
}

impl SeedBuilder<'_> {
    /// Indices of a seed's stream. `germination` counts the env's germinations before it.
    fn indices(&self, germination: u32) -> [u64; 3] {
        [u64::from(self.round), self.env as u64, u64::from(germination)]
    }

    /// Key of a seed's stream.
    pub fn stream_key(&self, germination: u32) -> u64 {
        derive(self.run_seed, Domain::SeedInit, &self.indices(germination))
    }

    fn build_seed(&self, identity: &SeedIdentity, spec: &InjectionSpec) -> Result<SeedInstance, Failure> {
        let mut rng = RunRng::from_seed(self.stream_key(identity.germination));
        let algorithm = identity.style.algorithm();
        let index = identity.blueprint_index;
        Ok(SeedInstance::germinate(
            self.blueprints,
            index,
            spec.channels,
            algorithm,
            &mut rng,
            self.backend,
        )?)
    }

    /// The tensors of a seed that has germinated before, with a gate exactly where its operator needs one by now. Their
    /// values are those that it was created with.
    ///
    /// # Errors
    /// A module or gate that could not be made.
    pub(super) fn rebuild(&self, seed: &SeedRecord, spec: &InjectionSpec) -> Result<SeedInstance, Failure> {
        let mut instance = self.build_seed(&seed.identity, spec)?;
        instance.gate = match (seed.algorithm, instance.gate.take()) {
            (AlphaAlgorithm::Gate, Some(gate)) => Some(gate),
            (AlphaAlgorithm::Gate, None) => Some(self.build_gate(seed, spec)?),
            (AlphaAlgorithm::Add | AlphaAlgorithm::Multiply, _) => None,
        };
        Ok(instance)
    }

    /// A fresh optimizer of a seed with its gate.
    ///
    /// # Errors
    /// Out of memory.
    pub(super) fn build_optimizer(
        &self,
        config: &OptimizerConfig,
        seed: &SeedInstance,
    ) -> Result<Optimizer, TorchError> {
        Optimizer::new(config, handles(seed.params()), self.implementation)
    }

    /// A gate that comes after its seed has its own stream, so that its weights do not depend on the seed's.
    fn build_gate(&self, seed: &SeedRecord, spec: &InjectionSpec) -> Result<GateNetwork, Failure> {
        let [round, env, germination] = self.indices(seed.identity.germination);
        let mut rng = RunRng::new(self.run_seed, Domain::SeedInit, &[round, env, germination, 1]);
        let topology = self.blueprints.served();
        Ok(GateNetwork::new(topology, spec.channels, &mut rng, self.backend).map_err(TorchError::from)?)
    }
}

/// Parts that an effect needs and that may fail to be built.
#[derive(Default)]
struct Parts {
    seed: Option<SeedInstance>,
    gate: Option<GateNetwork>,
    optimizer: Option<Optimizer>,
}

impl Parts {
    fn build(plan: &SeedPlan, slot: &mut Slot, builder: &SeedBuilder) -> Result<Self, Failure> {
        let mut parts = Self::default();
        let Some(next) = &plan.next else { return Ok(parts) };
        let does = |effect| plan.change.effects.contains(&effect);
        if does(Effect::InsertSeed) {
            // With its gate, if the style has one.
            parts.seed = Some(builder.build_seed(&next.identity, &slot.spec)?);
        } else if does(Effect::AddGate) {
            parts.gate = Some(builder.build_gate(next, &slot.spec)?);
        }
        if does(Effect::CreateOptimizer) {
            let present = slot.module.as_mut().map(|module| &*module.get());
            if let Some(seed) = parts.seed.as_ref().or(present) {
                parts.optimizer = Some(builder.build_optimizer(&builder.optimizer, seed)?);
            }
        }
        Ok(parts)
    }
}

fn handles<'a>(params: impl Iterator<Item = &'a Param>) -> Vec<Tensor> {
    params.map(|param| param.tensor.shallow_clone()).collect()
}

/// Carries out `plan` on a slot and its optimizer. Everything that can fail is built before anything is changed.
///
/// # Errors
/// A module, gate or optimizer that couldn't be made. Slot and optimizer are then unchanged.
pub fn carry_out(
    plan: SeedPlan,
    slot: &mut Slot,
    optimizer: &mut Option<SyncCell<Optimizer>>,
    builder: &SeedBuilder,
) -> Result<Change, Failure> {
    let mut parts = Parts::build(&plan, slot, builder)?;
    slot.revision += u64::from(!plan.change.effects.is_empty());
    for effect in &plan.change.effects {
        match effect {
            Effect::InsertSeed => {
                slot.module = parts.seed.take().map(SyncCell::new);
                slot.germinations += 1;
            }
            Effect::AddGate => add_gate(parts.gate.take(), slot, optimizer)?,
            Effect::RemoveGate => remove_gate(slot, optimizer),
            Effect::CreateOptimizer => *optimizer = parts.optimizer.take().map(SyncCell::new),
            Effect::ResetMomentum => {
                if let Some(optimizer) = optimizer {
                    optimizer.get().zero_state()?;
                }
            }
            Effect::StopWeightDecay => {
                if let Some(optimizer) = optimizer {
                    optimizer.get().set_weight_decay(0.0);
                }
            }
            Effect::DropSeed => (slot.module, *optimizer) = (None, None),
        }
    }
    let change = plan.commit(&mut slot.record);
    debug_assert_eq!(
        broken_slot_law(slot, optimizer),
        None,
        "{}: {:?}",
        slot.spec.slot,
        slot.record
    );
    Ok(change)
}

/// Gives the module a gate that came after it, and the optimizer the gate's parameters. Nothing to do for a gate that
/// was built with its seed.
fn add_gate(
    gate: Option<GateNetwork>,
    slot: &mut Slot,
    optimizer: &mut Option<SyncCell<Optimizer>>,
) -> Result<(), TorchError> {
    let (Some(gate), Some(module)) = (gate, &mut slot.module) else {
        return Ok(());
    };
    if let Some(optimizer) = optimizer {
        optimizer.get().append(handles(gate.params().trainable().iter()))?;
    }
    module.get().gate = Some(gate);
    Ok(())
}

/// Drops the gate and its entries in the optimizer, which follow the module's.
fn remove_gate(slot: &mut Slot, optimizer: &mut Option<SyncCell<Optimizer>>) {
    let Some(module) = &mut slot.module else { return };
    module.get().gate = None;
    if let Some(optimizer) = optimizer {
        optimizer.get().truncate(module.get().params().count());
    }
}

/// The first law that the slot's record breaks by itself, or together with module, gate and optimizer.
fn broken_slot_law(slot: &mut Slot, optimizer: &Option<SyncCell<Optimizer>>) -> Option<&'static str> {
    let seed = slot.record.as_ref();
    let is_occupied = seed.is_some_and(|seed| seed.stage.is_occupied());
    let is_gated = is_occupied && seed.is_some_and(|seed| seed.algorithm == AlphaAlgorithm::Gate);
    let is_optimized = seed.is_some_and(|seed| has_optimizer(seed.stage));
    let has_gate = slot.module.as_mut().is_some_and(|module| module.get().gate.is_some());
    let laws = [
        (
            "a module is present exactly in occupied stages",
            slot.module.is_some() == is_occupied,
        ),
        ("a gate is present exactly with the operator GATE", has_gate == is_gated),
        (
            "an optimizer is present exactly from TRAINING to COMMITTED for seeds with parameters",
            optimizer.is_some() == is_optimized,
        ),
    ];
    let of_tensors = laws.into_iter().find(|(_, holds)| !holds).map(|(law, _)| law);
    seed.and_then(broken_law).or(of_tensors)
}

#[cfg(test)]
mod tests;
