//! The slots of an env: records, modules and optimizers that change together or not at all (spec 01 §16.3, 06 §7.4).
//!
//! The lifecycle decides on plain data (`seed::lifecycle`); this file carries its effects out on tensors.

use bevy_ecs::prelude::*;
use bevy_platform::cell::SyncCell;
use smallvec::SmallVec;
use tch::Device;

use crate::health::Failure;
use crate::host::InjectionSpec;
use crate::random::{Domain, derive};
use crate::scenario::OptimizerConfig;
use crate::seed::{
    AlphaAlgorithm, BlueprintRegistry, Change, Effect, GateNetwork, Plan, SeedInstance, SeedRecord, SeedReport, trains,
};
use crate::torch::{Implementation, Optimizer};

/// One place where the host can grow. Empty, occupied or cooling down: see spec 01 §2.3.
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
    pub fn new(specs: impl IntoIterator<Item = InjectionSpec>) -> Self {
        Self(specs.into_iter().map(|spec| Slot { spec, record: None, module: None, germinations: 0 }).collect())
    }

    /// Slots without their tensors, in policy order.
    pub fn records(&self) -> impl Iterator<Item = Option<&SeedRecord>> {
        self.0.iter().map(|slot| slot.record.as_ref())
    }

    /// What everyone else sees of the slots, in policy order.
    pub fn reports(&self, blueprints: &BlueprintRegistry) -> SmallVec<[Option<SeedReport>; 4]> {
        self.records()
            .map(|record| record.map(|seed| seed.report(blueprints.name(seed.identity.blueprint_index))))
            .collect()
    }
}

impl SeedOptimizers {
    pub fn new(slots: usize) -> Self {
        Self((0..slots).map(|_| None).collect())
    }
}

/// What growing a seed takes besides its plan.
pub struct Nursery<'a> {
    pub blueprints: &'a BlueprintRegistry,
    pub optimizer: OptimizerConfig,
    pub implementation: Implementation,
    pub device: Device,
    /// `derive(seed, 5, …)` with these indices: round, env, germination (spec 00 §5).
    pub run_seed: u64,
    pub round: u32,
    pub env: usize,
    /// Germinations of the env in this episode before this one.
    pub germination: u32,
}

impl Nursery<'_> {
    fn module_seed(&self) -> u64 {
        derive(self.run_seed, Domain::SeedModule, &self.indices())
    }

    /// The stream of a gate that is created after its seed.
    fn gate_seed(&self) -> u64 {
        let [round, env, germination] = self.indices();
        derive(self.run_seed, Domain::SeedModule, &[round, env, germination, 1])
    }

    fn indices(&self) -> [u64; 3] {
        [u64::from(self.round), self.env as u64, u64::from(self.germination)]
    }
}
