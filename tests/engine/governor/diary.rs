//! Plays a scenario and notes what every env was at the end of every step.

use simic_engine::extend::EngineBuilder;
use simic_engine::internals::controller::{Chosen, Feedback};
use simic_engine::internals::env::{HostOptimizer, SeedOptimizers};
use simic_engine::internals::governor::Rollback;
use simic_engine::internals::growth::PruneReason;
use simic_engine::internals::torch::HostSyncCounter;
use simic_engine::prelude::*;

use crate::recorded::ONE_SEED;
use crate::support::builder;
use crate::training_loop::support::{bits, host_bits};

/// State of one env at the end of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub env: usize,
    pub round: u32,
    pub step: u32,
    pub status: StepStatus,
    /// Bits of the validation loss: NaN equals NaN.
    pub loss: u64,
    pub command: Option<LifecycleOp>,
    /// The last command as the controller sees it, and whether it worked.
    pub feedback: (LifecycleOp, bool),
    pub stages: Vec<Option<SeedStage>>,
    pub prune_reasons: Vec<Option<PruneReason>>,
    /// Parameters and buffers of the host, then the parameters of every seed, as bits.
    pub host: Vec<Vec<u32>>,
    pub seeds: Vec<Vec<Vec<u32>>>,
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
        let params = host.0.get().params().all();
        let addresses = params.map(|param| param.tensor.data_ptr().addr());
        diary.addresses.push(addresses.collect());
        let seed_optimizers = optimizers.0.iter_mut().flatten().map(|optimizer| optimizer.get());
        let mut state = std::iter::once(optimizer.0.get())
            .chain(seed_optimizers)
            .flat_map(|optimizer| bits(optimizer.state_tensors().into_iter().flat_map(|(_, list)| list)));
        let is_momentum_zero = state.all(|tensor| tensor.iter().all(|&bits| f32::from_bits(bits) == 0.0));
        let seeds = slots.0.iter_mut().map(|slot| {
            let module = slot.module.as_mut();
            let seed = module.map(|module| bits(module.get().params().map(|param| &param.tensor)));
            seed.unwrap_or_default()
        });
        let seeds = seeds.collect();
        let page = Page {
            env: id.index,
            round: clock.round(),
            step: clock.step(),
            status: **status,
            loss: val.loss.to_bits(),
            command: chosen.0.as_ref().map(|decision| decision.command.op()),
            feedback: (feedback.0.last_op, feedback.0.last_ok),
            stages: slots.records().map(|record| Some(record?.stage)).collect(),
            prune_reasons: slots.records().map(|record| record?.prune_reason).collect(),
            host: host_bits(host),
            seeds,
            is_momentum_zero,
            rollback: verdict.and_then(|verdict| verdict.0.clone()),
            snapshot_step: governor.map(|governor| governor.snapshots.known_good().step),
            panics: governor.map(|governor| governor.counts.panics),
        };
        diary.pages.push(page);
    }
    let reads = syncs.count();
    diary.reads.push(reads);
}

/// The course of a run.
pub struct Played {
    pub diary: Diary,
    pub stats: Vec<EpisodeStats>,
}

impl Played {
    pub fn of_env(&self, env: usize) -> Vec<&Page> {
        self.diary.pages.iter().filter(|page| page.env == env).collect()
    }

    pub fn of_round(&self, env: usize, round: u32) -> Vec<&Page> {
        let pages = self.of_env(env).into_iter();
        pages.filter(|page| page.round == round).collect()
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
            policy: (controller: "schedule", schedule: ({ONE_SEED}, wait_on_illegal: true)),
            {rest}
        )"#
    )
}

pub fn play_with(builder: EngineBuilder, text: &str) -> Played {
    played(builder.from_ron(text).unwrap_or_else(|problems| panic!("{problems}")))
}

pub fn played(mut engine: Engine) -> Played {
    let write_page = write_page.in_set(EngineSet::Record).before(Work::EndEpisodes);
    engine
        .app_mut()
        .init_resource::<Diary>()
        .add_systems(StepEnd, write_page);
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
    play_with(builder().threads(2), text)
}

/// Steps of pages with that status.
pub fn steps_with<'a>(pages: impl IntoIterator<Item = &'a Page>, status: StepStatus) -> Vec<u32> {
    let pages = pages.into_iter().filter(|page| page.status == status);
    pages.map(|page| page.step).collect()
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
