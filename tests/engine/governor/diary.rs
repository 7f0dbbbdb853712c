//! Plays a scenario and notes what every env was at the end of every step.

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use simic_engine::internals::clock::RunClock;
use simic_engine::internals::controller::{Chosen, Feedback};
use simic_engine::internals::engine::Engine;
use simic_engine::internals::env::{
    EnvId, EpisodeStats, HostModel, HostOptimizer, SeedOptimizers, SeedSlots, StepStatus, ValMetrics,
};
use simic_engine::internals::governor::{Governor, GovernorPlugin, Rollback, RollbackVerdict};
use simic_engine::internals::growth::{LifecycleOp, PruneReason, SeedStage};
use simic_engine::internals::schedule::{EngineSet, StepEnd, Work};
use simic_engine::internals::torch::{HostSyncCounter, read_f32};
use tch::Tensor;

/// What one env was at the end of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub env: usize,
    pub round: u32,
    pub step: u32,
    pub status: StepStatus,
    /// Bits of the validation loss: NaN equals NaN.
    pub loss: u64,
    pub command: Option<LifecycleOp>,
    /// The last command as the controller is told, and whether it worked.
    pub feedback: (LifecycleOp, bool),
    pub stages: Vec<Option<SeedStage>>,
    pub prune_reasons: Vec<Option<PruneReason>>,
    /// Parameters and buffers of the host, then the parameters of every seed, as bits.
    pub host: Vec<u32>,
    pub seeds: Vec<Vec<u32>>,
    pub is_momentum_zero: bool,
    pub rollback: Option<Rollback>,
    pub snapshot_step: Option<u32>,
    pub panics: Option<u32>,
}

impl Page {
    pub fn loss(&self) -> f64 {
        f64::from_bits(self.loss)
    }
}

/// Written at the end of every step, in env order; `reads` counts device reads so far.
#[derive(Resource, Default)]
pub struct Diary {
    pub pages: Vec<Page>,
    pub addresses: Vec<Vec<usize>>,
    pub reads: Vec<u64>,
}

struct DiaryPlugin;

impl Plugin for DiaryPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<Diary>()
            .add_systems(StepEnd, write_page.in_set(EngineSet::Record).before(Work::EndEpisodes));
    }
}

fn bits<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Vec<u32> {
    let uncounted = HostSyncCounter::default();
    let values = tensors
        .into_iter()
        .flat_map(|tensor| read_f32(tensor, &uncounted).unwrap());
    values.map(f32::to_bits).collect()
}

#[expect(clippy::type_complexity, reason = "a diary notes everything")]
fn write_page(
    mut envs: Query<(
        (&EnvId, &StepStatus, &ValMetrics, &Chosen, &Feedback),
        (&mut HostModel, &mut HostOptimizer, &mut SeedSlots, &mut SeedOptimizers),
        (Option<&RollbackVerdict>, Option<&Governor>),
    )>,
    clock: Res<RunClock>,
    syncs: Res<HostSyncCounter>,
    mut diary: ResMut<Diary>,
) {
    let mut envs: Vec<_> = envs.iter_mut().collect();
    envs.sort_unstable_by_key(|((id, ..), ..)| id.index);
    for ((id, status, val, chosen, feedback), (host, optimizer, slots, optimizers), (verdict, governor)) in &mut envs {
        let params = host.0.get().params();
        diary
            .addresses
            .push(params.all().map(|param| param.tensor.data_ptr().addr()).collect());
        let seed_optimizers = optimizers.0.iter_mut().flatten().map(|optimizer| optimizer.get());
        let state = std::iter::once(optimizer.0.get())
            .chain(seed_optimizers)
            .flat_map(|optimizer| bits(optimizer.state_tensors().into_iter().flat_map(|(_, list)| list)))
            .collect::<Vec<_>>();
        let page = Page {
            env: id.index,
            round: clock.round(),
            step: clock.step(),
            status: **status,
            loss: val.loss.to_bits(),
            command: chosen.0.as_ref().map(|decision| decision.command.op()),
            feedback: (feedback.0.last_op, feedback.0.last_ok),
            stages: slots.records().map(|record| record.map(|seed| seed.stage)).collect(),
            prune_reasons: slots
                .records()
                .map(|record| record.and_then(|seed| seed.prune_reason))
                .collect(),
            host: bits(params.all().map(|param| &param.tensor)),
            seeds: slots
                .0
                .iter_mut()
                .map(|slot| match &mut slot.module {
                    Some(module) => bits(module.get().params().map(|param| &param.tensor)),
                    None => Vec::new(),
                })
                .collect(),
            is_momentum_zero: state.iter().all(|&bits| f32::from_bits(bits) == 0.0),
            rollback: verdict.and_then(|verdict| verdict.0.clone()),
            snapshot_step: governor.map(|governor| governor.snapshots.known_good().step),
            panics: governor.map(|governor| governor.counts.panics),
        };
        diary.pages.push(page);
    }
    let reads = syncs.count();
    diary.reads.push(reads);
}

/// How a run went.
pub struct Played {
    pub diary: Diary,
    pub stats: Vec<EpisodeStats>,
}

impl Played {
    pub fn of_env(&self, env: usize) -> Vec<&Page> {
        self.diary.pages.iter().filter(|page| page.env == env).collect()
    }

    pub fn page(&self, env: usize, step: u32) -> &Page {
        let mut pages = self.diary.pages.iter();
        pages.find(|page| page.env == env && page.step == step).unwrap()
    }
}

/// Three envs with little work, in which a schedule grows one seed.
pub fn scenario_text(run: &str, rest: &str) -> String {
    format!(
        r#"(
            preset: "manual", task: preset("digits_impaired", (batches_per_step: count(4), val_batches_per_step: count(1))),
            run: ({run}),
            policy: (controller: "schedule", schedule: (builtin: "grow_one_seed", wait_on_illegal: true)),
            {rest}
        )"#
    )
}

pub fn play_with(text: &str, threads: usize, has_governor: bool) -> Played {
    let builder = Engine::builder().threads(threads);
    let builder = if has_governor {
        builder
    } else {
        builder.without::<GovernorPlugin>()
    };
    let engine = builder.from_ron(text).unwrap_or_else(|problems| panic!("{problems}"));
    played(engine)
}

pub fn played(mut engine: Engine) -> Played {
    engine.app_mut().add_plugins(DiaryPlugin);
    engine.run().unwrap_or_else(|error| panic!("{error}"));
    let world = engine.world_mut();
    let mut envs: Vec<_> = world.query::<(&EnvId, &EpisodeStats)>().iter(world).collect();
    envs.sort_unstable_by_key(|(id, _)| id.index);
    let stats = envs.into_iter().map(|(_, stats)| stats.clone()).collect();
    Played {
        diary: world.remove_resource::<Diary>().unwrap(),
        stats,
    }
}

pub fn play(text: &str) -> Played {
    play_with(text, 2, true)
}

pub const THREE_ENVS: &str = "n_envs: 3, rounds: 1, max_steps: 20";

/// The seed blends from step 12 on.
pub fn nan_at_step(step: u32) -> String {
    format!("faults: [(env: 1, round: 0, step: {step}, fault: nan_weight)],")
}

/// The same seed in the last slot, right before the classifier, where no batch norm tames what it does.
pub const SEED_IN_LAST_SLOT: &str = r#"entries: [
    (step: 1, command: germinate(slot: "r0c2", blueprint: "conv_light", style: "sigmoid_add", tempo: "standard", target: "full")),
    (step: 2, command: advance(slot: "r0c2")),
    (step: 12, command: advance(slot: "r0c2")),
]"#;
