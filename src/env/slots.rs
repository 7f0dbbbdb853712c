//! The slots of an env: records, modules and optimizers that change together or not at all (spec 01 §16.3, 06 §7.4).
//!
//! The lifecycle decides on plain data (`seed::lifecycle`); this file carries its effects out on tensors.

use bevy_ecs::prelude::*;
use bevy_platform::cell::SyncCell;
use smallvec::SmallVec;
use tch::Device;

use crate::health::Failure;
use crate::host::InjectionSpec;
use crate::random::{Domain, RunRng, derive};
use crate::scenario::OptimizerConfig;
use crate::seed::{
    BlueprintRegistry, Change, Effect, GateNetwork, Plan, SeedIdentity, SeedInstance, SeedRecord, SeedReport,
};
use crate::torch::{Implementation, Optimizer, TorchError};

/// One place where the host can grow: empty, occupied or cooling down (spec 01 §2.3).
pub struct Slot {
    pub spec: InjectionSpec,
    /// Present unless the slot is empty.
    pub record: Option<SeedRecord>,
    /// Present while the slot is occupied; reached through `&mut` only.
    pub module: Option<SyncCell<SeedInstance>>,
    /// Seeds germinated here in this episode.
    pub germinations: u32,
}

/// All slots of an env, in policy order.
#[derive(Component)]
pub struct SeedSlots(pub SmallVec<[Slot; 4]>);

/// One optimizer per trainable seed, same index as [`SeedSlots`].
#[derive(Component)]
pub struct SeedOptimizers(pub SmallVec<[Option<SyncCell<Optimizer>>; 4]>);

impl SeedSlots {
    pub fn new(specs: &[InjectionSpec]) -> Self {
        let empty = |&spec| Slot {
            spec,
            record: None,
            module: None,
            germinations: 0,
        };
        Self(specs.iter().map(empty).collect())
    }

    /// Slots without their tensors, in policy order.
    pub fn records(&self) -> impl Iterator<Item = Option<&SeedRecord>> {
        self.0.iter().map(|slot| slot.record.as_ref())
    }

    /// What everyone outside the lifecycle sees, in policy order.
    pub fn reports(&self, blueprints: &BlueprintRegistry) -> SmallVec<[Option<SeedReport>; 4]> {
        self.records()
            .map(|record| record.map(|seed| seed.report(blueprints.name_of(seed.identity.blueprint_index))))
            .collect()
    }

    /// Empties every slot for a new episode.
    pub fn clear(&mut self) {
        for slot in &mut self.0 {
            (slot.record, slot.module, slot.germinations) = (None, None, 0);
        }
    }
}

impl SeedOptimizers {
    pub fn new(slots: usize) -> Self {
        Self((0..slots).map(|_| None).collect())
    }

    pub fn clear(&mut self) {
        self.0.fill_with(|| None);
    }
}

/// What growing takes besides a plan: where modules and their random numbers come from.
pub struct Nursery<'a> {
    pub blueprints: &'a BlueprintRegistry,
    pub optimizer: OptimizerConfig,
    pub implementation: Implementation,
    pub device: Device,
    pub run_seed: u64,
    pub round: u32,
    /// Index of the env within its group.
    pub env: usize,
}

impl Nursery<'_> {
    /// Indices of a seed's stream; `germination` counts the env's germinations before it (spec 00 §5, domain 5).
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
            self.device,
        )?)
    }

    /// A gate that comes after its seed has a stream of its own, so that its weights do not depend on the seed's.
    fn build_gate(&self, seed: &SeedRecord, spec: &InjectionSpec) -> Result<GateNetwork, Failure> {
        let [round, env, germination] = self.indices(seed.identity.germination);
        let mut rng = RunRng::new(self.run_seed, Domain::SeedInit, &[round, env, germination, 1]);
        Ok(GateNetwork::new(spec.channels, &mut rng, self.device).map_err(TorchError::from)?)
    }
}

/// Carries out `plan` on a slot and its optimizer. Whatever can fail is built before anything is changed.
///
/// # Errors
/// A module, gate or optimizer that could not be made; slot and optimizer are then as before.
pub fn carry_out(
    plan: Plan,
    slot: &mut Slot,
    optimizer: &mut Option<SyncCell<Optimizer>>,
    nursery: &Nursery,
) -> Result<Change, Failure> {
    let does = |effect| plan.change.effects.contains(&effect);
    let germinates = does(Effect::InsertSeed);
    let seedling = match &plan.next {
        Some(seed) if germinates => Some(nursery.build_seed(&seed.identity, &slot.spec)?),
        _ => None,
    };
    let gate = match &plan.next {
        Some(seed) if does(Effect::AddGate) && !germinates => Some(nursery.build_gate(seed, &slot.spec)?),
        _ => None,
    };
    let new_optimizer = match &mut slot.module {
        Some(module) if does(Effect::CreateOptimizer) => {
            let params = module
                .get()
                .params()
                .map(|param| param.tensor.shallow_clone())
                .collect();
            Some(Optimizer::new(&nursery.optimizer, params, nursery.implementation)?)
        }
        _ => None,
    };
    if let (Some(gate), Some(optimizer)) = (&gate, optimizer.as_mut()) {
        let params = gate
            .params()
            .trainable()
            .iter()
            .map(|param| param.tensor.shallow_clone());
        optimizer.get().append(params.collect())?;
    }

    for effect in &plan.change.effects {
        match effect {
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
            Effect::RemoveGate => {
                if let Some(module) = &mut slot.module {
                    module.get().gate = None;
                    if let Some(optimizer) = optimizer {
                        optimizer.get().truncate(module.get().params().count());
                    }
                }
            }
            Effect::DropSeed => {
                slot.module = None;
                *optimizer = None;
            }
            // Built above, put into place below; a frozen seed is left out of the step by `SeedRecord::trains`.
            Effect::InsertSeed | Effect::AddGate | Effect::CreateOptimizer | Effect::FreezeForever => {}
        }
    }
    if let Some(seedling) = seedling {
        slot.module = Some(SyncCell::new(seedling));
        slot.germinations += 1;
    }
    if let (Some(gate), Some(module)) = (gate, &mut slot.module) {
        module.get().gate = Some(gate);
    }
    if let Some(new) = new_optimizer {
        *optimizer = Some(SyncCell::new(new));
    }
    Ok(plan.commit(&mut slot.record))
}
