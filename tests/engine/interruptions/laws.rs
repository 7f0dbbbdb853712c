//! Invariants of every env after every step and of every command, checked by systems next to the engine's own.

use std::collections::BTreeMap;

use simic_engine::internals::controller::{Chosen, CommandOutcome, Masks};
use simic_engine::internals::env::{HostParams, SeedOptimizers, Slot};
use simic_engine::internals::health::running;
use simic_engine::internals::nn::{Optimizer, Param};
use simic_engine::internals::seed::{SeedInstance, SeedRecord, broken_law, has_optimizer};
use simic_engine::prelude::*;

use crate::training_loop::support::bits;

/// Adds the systems that look.
#[derive(Clone)]
pub struct LawsPlugin;

impl Plugin for LawsPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<Broken>().init_resource::<Pictures>();
        let look = look_at_slots.in_set(EngineSet::Act).after(Work::CaptureRewardInputs);
        // A step that fails leaves off in the middle.
        let judge = judge_commands.in_set(EngineSet::Act).run_if(running);
        app.add_systems(Act, look.before(Work::ExecuteAction))
            .add_systems(Act, judge.after(Work::ExecuteAction))
            .add_systems(StepEnd, judge_envs.after(EngineSet::Record).run_if(running));
    }
}

/// Laws that were broken, with env and time.
#[derive(Resource, Default)]
pub struct Broken(pub Vec<String>);

impl Broken {
    fn add(&mut self, id: &EnvId, clock: &RunClock, what: impl std::fmt::Display) {
        let (round, step, env) = (clock.round(), clock.step(), id.index);
        let law = format!("round {round}, step {step}, env {env}: {what}");
        self.0.push(law);
    }
}

/// The slots of each env before the step's command.
#[derive(Resource, Default)]
struct Pictures(BTreeMap<usize, Picture>);

/// Everything that a command may change.
#[derive(PartialEq)]
struct Picture {
    /// As text: what is not a number equals itself.
    records: Vec<String>,
    /// Bits, by slot that has a module.
    weights: Vec<Vec<Vec<u32>>>,
    has_optimizer: Vec<bool>,
}

impl Picture {
    fn of(slots: &mut SeedSlots, optimizers: &SeedOptimizers) -> Self {
        let records = slots.records().map(|record| format!("{record:?}")).collect();
        let modules = slots.0.iter_mut().flat_map(|slot| &mut slot.module);
        let weights = modules.map(|module| bits(module.get().params().map(|param| &param.tensor)));
        Self {
            records,
            weights: weights.collect(),
            has_optimizer: optimizers.0.iter().map(Option::is_some).collect(),
        }
    }
}

fn look_at_slots(mut envs: Query<(&EnvId, &mut SeedSlots, &SeedOptimizers)>, mut pictures: ResMut<Pictures>) {
    for (id, mut slots, optimizers) in &mut envs {
        pictures.0.insert(id.index, Picture::of(&mut slots, optimizers));
    }
}

/// A command is carried out if the masks allow it; one that is not changes nothing.
fn judge_commands(
    mut envs: Query<(
        &EnvId,
        &Chosen,
        &CommandOutcome,
        &Masks,
        &mut SeedSlots,
        &SeedOptimizers,
    )>,
    pictures: Res<Pictures>,
    mut broken: ResMut<Broken>,
    clock: Res<RunClock>,
) {
    for (id, chosen, outcome, masks, mut slots, optimizers) in &mut envs {
        let command = chosen.0.as_ref().map(|decision| decision.command);
        let executed = command.filter(|_| outcome.refusal.is_none());
        if let (Some(command), Some(masks)) = (executed, &masks.0)
            && let Some(objection) = masks.objection(&command)
        {
            broken.add(id, &clock, format!("{command:?} was carried out though {objection}"));
        }
        if executed.is_some_and(|command| command.op() != LifecycleOp::Wait) {
            continue;
        }
        if pictures.0.get(&id.index) != Some(&Picture::of(&mut slots, optimizers)) {
            broken.add(id, &clock, format!("{command:?}, not carried out, changed a slot"));
        }
    }
}

/// Records say what the tensors are.
fn judge_envs(
    mut envs: Query<(&EnvId, &HostParams, &mut HostModel, &mut SeedSlots, &mut SeedOptimizers)>,
    mut broken: ResMut<Broken>,
    experiment: Res<Experiment>,
    clock: Res<RunClock>,
) {
    let most = experiment.task.max_seeds as usize;
    for (id, recorded, mut host, mut slots, mut optimizers) in &mut envs {
        let found = elements(host.0.get().params().trainable().iter());
        if recorded.0 != found {
            let what = format!("the host has {found} parameters, {} are recorded", recorded.0);
            broken.add(id, &clock, what);
        }
        let seeds = slots.records().flatten();
        let grown = seeds.filter(|seed| seed.stage.is_occupied()).count();
        if most > 0 && grown > most {
            broken.add(id, &clock, format!("{grown} seeds where {most} may grow"));
        }
        for (slot, optimizer) in slots.0.iter_mut().zip(&mut optimizers.0) {
            let optimizer = optimizer.as_mut().map(|optimizer| &*optimizer.get());
            if let Some(what) = broken_slot_law(slot, optimizer) {
                broken.add(id, &clock, format!("slot {}: {what}", slot.spec.slot));
            }
        }
    }
}

fn broken_slot_law(slot: &mut Slot, optimizer: Option<&Optimizer>) -> Option<String> {
    let module = slot.module.as_mut().map(|module| &*module.get());
    let Some(seed) = &slot.record else {
        return (module.is_some() || optimizer.is_some()).then(|| "a seed without a record".into());
    };
    let alpha = seed.alpha.alpha();
    if !(0.0..=1.0).contains(&alpha) {
        return Some(format!("alpha is {alpha}"));
    }
    let of_record = broken_law(seed).map(String::from);
    of_record.or_else(|| broken_tensor_law(seed, module, optimizer))
}

fn broken_tensor_law(
    seed: &SeedRecord,
    module: Option<&SeedInstance>,
    optimizer: Option<&Optimizer>,
) -> Option<String> {
    let stage = seed.stage;
    let is_there = [module.is_some(), optimizer.is_some()];
    if is_there != [stage.is_occupied(), has_optimizer(stage)] {
        return Some(format!(
            "the seed is {stage}, its module and optimizer there: {is_there:?}"
        ));
    }
    let module = module?;
    let (recorded, found) = (seed.identity.seed_params + seed.gate_params, elements(module.params()));
    if recorded != found {
        return Some(format!("{found} parameters, {recorded} are recorded"));
    }
    let trained = optimizer?.params();
    let own = module.params().map(|param| param.tensor.data_ptr());
    let is_its_own = own.eq(trained.iter().map(tch::Tensor::data_ptr));
    (!is_its_own).then(|| "its optimizer trains other tensors".into())
}

fn elements<'a>(params: impl Iterator<Item = &'a Param>) -> u64 {
    params.map(|param| param.tensor.numel() as u64).sum()
}
