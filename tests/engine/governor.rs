//! The governor through the real loop: what is wrecked on purpose in one env is undone in that env, and nowhere else.

use std::ops::Range;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use simic_engine::clock::RunClock;
use simic_engine::controller::{Chosen, Feedback};
use simic_engine::engine::Engine;
use simic_engine::env::{
    EnvId, EpisodeStats, HostModel, HostOptimizer, SeedOptimizers, SeedSlots, StepStatus, ValMetrics,
};
use simic_engine::governor::{Governor, GovernorPlugin, Rollback, RollbackVerdict};
use simic_engine::growth::{LifecycleOp, PruneReason, SeedStage};
use simic_engine::host::{FoldedHost, HostError, OpCost};
use simic_engine::schedule::{EngineSet, Startup, StepEnd, Work};
use simic_engine::telemetry::{AlarmKind, EpisodeEnd};
use simic_engine::torch::{HostSyncCounter, read_f32};
use simic_engine::validation::FoldedModel;
use tch::Tensor;

/// What one env was at the end of one step.
#[derive(Clone, Debug, PartialEq)]
struct Page {
    env: usize,
    round: u32,
    step: u32,
    status: StepStatus,
    /// Bits of the validation loss: NaN equals NaN.
    loss: u64,
    command: Option<LifecycleOp>,
    /// The last command as the controller is told, and whether it worked.
    feedback: (LifecycleOp, bool),
    stages: Vec<Option<SeedStage>>,
    prune_reasons: Vec<Option<PruneReason>>,
    /// Parameters and buffers of the host, then the parameters of every seed, as bits.
    host: Vec<u32>,
    seeds: Vec<Vec<u32>>,
    is_momentum_zero: bool,
    rollback: Option<Rollback>,
    snapshot_step: Option<u32>,
    panics: Option<u32>,
}

impl Page {
    fn loss(&self) -> f64 {
        f64::from_bits(self.loss)
    }
}

/// Written at the end of every step, in env order; `reads` counts device reads so far.
#[derive(Resource, Default)]
struct Diary {
    pages: Vec<Page>,
    addresses: Vec<Vec<usize>>,
    reads: Vec<u64>,
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
            snapshot_step: governor.map(|governor| governor.snapshots.known_good().moment.step),
            panics: governor.map(|governor| governor.panics),
        };
        diary.pages.push(page);
    }
    let reads = syncs.count();
    diary.reads.push(reads);
}

/// How a run went.
struct Played {
    diary: Diary,
    stats: Vec<EpisodeStats>,
}

impl Played {
    fn of_env(&self, env: usize) -> Vec<&Page> {
        self.diary.pages.iter().filter(|page| page.env == env).collect()
    }

    fn page(&self, env: usize, step: u32) -> &Page {
        let mut pages = self.diary.pages.iter();
        pages.find(|page| page.env == env && page.step == step).unwrap()
    }
}

/// Three envs with little work, in which a schedule grows one seed.
fn scenario_text(run: &str, rest: &str) -> String {
    format!(
        r#"(
            task: preset("digits_impaired", (batches_per_step: count(4), val_batches_per_step: count(1))),
            run: ({run}),
            policy: (controller: "schedule", schedule: (builtin: "grow_one_seed", wait_on_illegal: true)),
            {rest}
        )"#
    )
}

fn play_with(text: &str, threads: usize, has_governor: bool) -> Played {
    let builder = Engine::builder().threads(threads);
    let builder = if has_governor {
        builder
    } else {
        builder.without::<GovernorPlugin>()
    };
    let engine = builder.from_ron(text).unwrap_or_else(|problems| panic!("{problems}"));
    played(engine)
}

fn played(engine: Engine) -> Played {
    let mut engine = engine.with(DiaryPlugin);
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

fn play(text: &str) -> Played {
    play_with(text, 2, true)
}

const THREE_ENVS: &str = "n_envs: 3, rounds: 1, max_steps: 20";

/// The seed blends from step 12 on.
fn nan_at_step(step: u32) -> String {
    format!("faults: [(env: 1, round: 0, step: {step}, fault: nan_weight)],")
}

#[test]
fn a_nan_in_one_env_rolls_back_that_env_and_leaves_the_others_bit_for_bit() {
    let calm = play(&scenario_text(THREE_ENVS, ""));
    let struck = play(&scenario_text(THREE_ENVS, &nan_at_step(13)));
    let again = play_with(&scenario_text(THREE_ENVS, &nan_at_step(13)), 1, true);

    for env in [0, 2] {
        assert_eq!(struck.of_env(env), calm.of_env(env), "env {env}");
    }
    assert_eq!(struck.of_env(1)[..12], calm.of_env(1)[..12], "until the fault");
    let rolled_back: Vec<u32> = struck
        .of_env(1)
        .iter()
        .filter(|page| page.status == StepStatus::RolledBack)
        .map(|page| page.step)
        .collect();
    assert_eq!(rolled_back, [13]);
    // As text, in which a loss that is no number equals itself.
    let text = |played: &Played| format!("{:?}", played.diary.pages);
    assert_eq!(text(&struck), text(&again), "two threads and one");
}

#[test]
fn a_rollback_restores_the_captured_network_in_place() {
    let played = play(&scenario_text(THREE_ENVS, &nan_at_step(13)));
    let (before, after) = (played.page(1, 12), played.page(1, 13));
    let rollback = after.rollback.as_ref().expect("rolled back");

    // Given a seed that blends and a state that is known to be good.
    assert_eq!(before.stages[0], Some(SeedStage::Blending));
    assert_eq!(rollback.alarm.kind, AlarmKind::NonFinite);
    assert!(after.loss().is_nan());

    // Then the host is that of the snapshot, bit for bit, in the old storage, with empty optimizers.
    assert_eq!(after.host, played.page(1, rollback.snapshot_step).host);
    assert_eq!(rollback.steps_lost, 13 - rollback.snapshot_step);
    let addresses = |step: usize| &played.diary.addresses[3 * (step - 1) + 1];
    assert_eq!(addresses(12), addresses(13));
    assert!(!before.is_momentum_zero && after.is_momentum_zero);

    // And the live seed is gone, its slot cooling down from here.
    assert_eq!(after.stages[0], Some(SeedStage::Pruned));
    assert_eq!(after.prune_reasons[0], Some(PruneReason::GovernorNan));
    assert_eq!(rollback.pruned[..], [0]);
    assert_eq!(played.page(1, 14).stages[0], Some(SeedStage::Embargoed));

    // And nothing was decided, which the controller is told as a failed wait.
    assert_eq!(after.command, None);
    assert_eq!(after.feedback, (LifecycleOp::Wait, false));
    assert_eq!((rollback.raw_penalty, rollback.last_action_step), (-10.0, Some(12)));

    // And the env trains on.
    assert!(played.page(1, 14).loss().is_finite());
    assert_ne!(played.page(1, 14).host, after.host);
    assert_eq!(played.stats[1].rollbacks, 1);
    assert_eq!(played.stats[0].rollbacks, 0);
}

#[test]
fn the_step_after_a_rollback_is_what_the_captured_step_was_followed_by_but_for_its_momentum() {
    // Given rollbacks of the same damage in two runs, one step apart, to the same snapshot.
    let early = play(&scenario_text(THREE_ENVS, &nan_at_step(3)));
    let late = play(&scenario_text(THREE_ENVS, &nan_at_step(4)));
    let steps = [early.page(1, 3), late.page(1, 4)].map(|page| page.rollback.as_ref().unwrap().snapshot_step);

    // Step 3 restores the fresh host; the capture of step 2 has not proven itself by then.
    assert_eq!(steps, [0, 0]);
    assert_eq!(early.page(1, 3).host, late.page(1, 4).host);
}

/// The same seed in the last slot, right before the classifier, where no batch norm tames what it does.
const SEED_IN_LAST_SLOT: &str = r#"entries: [
    (step: 1, command: germinate(slot: "r0c2", blueprint: "conv_light", style: "sigmoid_add", tempo: "standard", target: "full")),
    (step: 2, command: advance(slot: "r0c2")),
    (step: 12, command: advance(slot: "r0c2")),
]"#;

#[test]
fn an_exploding_seed_is_rolled_back_and_the_host_recovers() {
    let explosion = r#"faults: [(env: 1, round: 0, step: 15, fault: scale_seed(slot: "r0c2", factor: 1e5))],"#;
    let text = scenario_text("n_envs: 3, rounds: 1, max_steps: 26", explosion);
    let played = play(&text.replace(r#"builtin: "grow_one_seed""#, SEED_IN_LAST_SLOT));

    assert_eq!(played.page(1, 14).stages[2], Some(SeedStage::Blending));
    let mut pages = played.of_env(1).into_iter();
    let hit = pages
        .find(|page| page.status == StepStatus::RolledBack)
        .expect("rolled back");
    let rollback = hit.rollback.as_ref().unwrap();
    assert!((15..=17).contains(&hit.step), "{}", hit.step);
    assert_eq!(rollback.pruned[..], [2]);
    let reasons = [PruneReason::GovernorNan, PruneReason::GovernorDivergence];
    assert!(reasons.map(Some).contains(&hit.prune_reasons[2]));
    let (captured, recovered) = (played.page(1, rollback.snapshot_step).loss(), played.page(1, 26).loss());
    assert!(recovered < captured, "{recovered} at the end, {captured} when captured");
}

#[test]
fn the_shipped_scenario_shows_all_of_it() {
    let played = play(include_str!("../../scenarios/wrecked_on_purpose.ron"));

    let rollbacks: Vec<u32> = played.stats.iter().map(|stats| stats.rollbacks).collect();
    assert_eq!(rollbacks, [0, 1, 1, 3]);
    let ends: Vec<_> = played.stats.iter().map(|stats| stats.end.unwrap().reason).collect();
    assert_eq!(ends[..3], [EpisodeEnd::Horizon; 3]);
    assert_eq!(ends[3], EpisodeEnd::GovernorLimit);
}

#[test]
fn a_commit_is_captured_in_its_own_step() {
    // Given a seed that is committed in step 18 and a host that breaks in step 19.
    let played = play(&scenario_text(THREE_ENVS, &nan_at_step(19)));
    let (committed, restored) = (played.page(1, 18), played.page(1, 19));
    assert_eq!(committed.stages[0], Some(SeedStage::Fossilized));

    // Then host and seed of step 18 stand again, and the seed stays.
    assert_eq!(committed.snapshot_step, Some(18));
    assert_eq!(restored.rollback.as_ref().unwrap().snapshot_step, 18);
    assert_eq!(restored.stages[0], Some(SeedStage::Fossilized));
    assert_eq!(restored.host, committed.host);
    assert_eq!(restored.seeds, committed.seeds);
    assert!(!committed.seeds[0].is_empty());
}

#[test]
fn at_the_limit_the_env_idles_and_the_others_finish() {
    let entry = |step| format!("(env: 1, round: 0, step: {step}, fault: nan_weight)");
    let faults = [entry(5), entry(8), entry(11)].join(", ");
    let faults = format!("governor: (repeated_rollback: restore), faults: [{faults}],");
    let played = play(&scenario_text("n_envs: 3, rounds: 2, max_steps: 20", &faults));

    let first_round: Vec<_> = played.of_env(1).into_iter().filter(|page| page.round == 0).collect();
    let with = |status| -> Vec<u32> {
        let pages = first_round.iter().filter(|page| page.status == status);
        pages.map(|page| page.step).collect()
    };
    assert_eq!(with(StepStatus::RolledBack), [5, 8, 11]);
    assert_eq!(with(StepStatus::Idle), (12..=20).collect::<Vec<_>>());
    let last = first_round[10].rollback.as_ref().unwrap();
    assert!(last.ends_episode);
    // Idle means idle: the restored host is left as it is.
    assert_eq!(first_round[19].host, first_round[10].host);
    // The next round begins afresh for all.
    let second: Vec<_> = played.of_env(1).into_iter().filter(|page| page.round == 1).collect();
    assert!(second.iter().all(|page| page.status == StepStatus::Participating));
    assert_eq!((second.len(), played.stats[1].rollbacks), (20, 0));
}

/// With no rollback allowed the first panic ends the episode, and a round without active envs is over.
#[test]
fn a_round_ends_early_once_every_env_idles() {
    let faults = "governor: (max_rollbacks_per_episode: 0), faults: [
        (env: 0, round: 0, step: 4, fault: nan_weight), (env: 1, round: 0, step: 6, fault: nan_weight)],";
    let played = play(&scenario_text("n_envs: 2, rounds: 2, max_steps: 18", faults));

    let steps = |round| -> Vec<u32> {
        let pages = played.of_env(0).into_iter().filter(|page| page.round == round);
        pages.map(|page| page.step).collect()
    };
    assert_eq!(steps(0), (1..=6).collect::<Vec<_>>());
    assert_eq!(steps(1), (1..=18).collect::<Vec<_>>());
    assert_eq!(played.page(0, 5).status, StepStatus::Idle);
}

#[test]
fn an_ended_episode_shows_what_its_snapshot_had_shown() {
    let faults = "governor: (max_rollbacks_per_episode: 1), faults: [
        (env: 0, round: 0, step: 9, fault: nan_weight),
        (env: 1, round: 0, step: 9, fault: nan_weight),
    ],";
    let played = play(&scenario_text("n_envs: 2, rounds: 1, max_steps: 20", faults));

    // All envs are idle after step 9: the round is over.
    assert_eq!(played.of_env(0).len(), 9);
    for env in [0, 1] {
        let stats = &played.stats[env];
        let end = stats.end.unwrap();
        assert_eq!((end.reason, end.step), (EpisodeEnd::GovernorLimit, 9));
        let rollback = played.page(env, 9).rollback.as_ref().unwrap();
        let captured = played.page(env, rollback.snapshot_step);
        assert_eq!(stats.last_val.unwrap().loss, captured.loss());
    }
}

#[test]
fn a_divergence_is_suspected_twice_before_it_panics() {
    let spike = |step| format!("(env: 0, round: 0, step: {step}, fault: loss_spike(50.0))");
    let faults = format!("faults: [{}, {}, {}],", spike(14), spike(15), spike(16));
    let played = play(&scenario_text("n_envs: 1, rounds: 1, max_steps: 18", &faults));

    let statuses = [14, 15, 16].map(|step| played.page(0, step).status);

    assert_eq!(
        statuses,
        [
            StepStatus::Participating,
            StepStatus::Participating,
            StepStatus::RolledBack
        ]
    );
    let rollback = played.page(0, 16).rollback.as_ref().unwrap();
    assert_eq!(
        (rollback.alarm.kind, rollback.alarm.consecutive),
        (AlarmKind::Divergence, 3)
    );
    assert!(rollback.alarm.loss > rollback.alarm.threshold.unwrap());
}

#[test]
fn a_nan_gradient_is_no_reason_to_panic() {
    let faults = "faults: [(env: 1, round: 0, step: 6, batch: 2, fault: nan_grad)],";
    let played = play(
        &scenario_text("n_envs: 2, rounds: 1, max_steps: 8", faults).replace("grow_one_seed", "germinate_first_slot"),
    );

    assert!(
        played
            .diary
            .pages
            .iter()
            .all(|page| page.status == StepStatus::Participating)
    );
    assert!(played.page(1, 8).loss().is_finite());
}

#[test]
fn watching_costs_no_read_and_changes_nothing() {
    let watched = play(&scenario_text(THREE_ENVS, ""));
    let disabled = play(&scenario_text(THREE_ENVS, "governor: (enabled: false),"));
    let absent = play_with(&scenario_text(THREE_ENVS, ""), 2, false);

    // Captures happened, and yet every step read as often as without.
    assert_eq!(watched.page(0, 18).snapshot_step, Some(18));
    assert_eq!(watched.diary.reads, disabled.diary.reads);
    assert_eq!(watched.diary.reads, absent.diary.reads);
    let trajectory = |played: &Played| -> Vec<_> {
        let pages = played.diary.pages.iter();
        pages
            .map(|page| (page.loss, page.command, page.host.clone(), page.seeds.clone()))
            .collect()
    };
    assert_eq!(trajectory(&watched), trajectory(&disabled));
    assert_eq!(trajectory(&watched), trajectory(&absent));
}

#[test]
fn without_a_governor_a_wrecked_env_stays_wrecked_and_the_run_goes_on() {
    let text = scenario_text(THREE_ENVS, &nan_at_step(13)).replace("grow_one_seed", "germinate_first_slot");
    let absent = play_with(&text, 2, false);
    let disabled = play(&text.replace("faults:", "governor: (enabled: false), faults:"));
    // It looks and reports all the same.
    assert_eq!(disabled.page(1, 12).panics, Some(0));
    assert!(disabled.page(1, 20).panics > Some(1));
    assert_eq!(disabled.page(1, 20).rollback, None);

    for played in [absent, disabled] {
        assert!(played.page(1, 20).loss().is_nan());
        assert!(played.page(0, 20).loss().is_finite());
        assert_eq!(played.of_env(1).len(), 20);
    }
}

/// A network that trains well and whose evaluation is wrecked from a step on, as batch norm does over features that have
/// next to no variance.
struct Diverging {
    host: Box<dyn FoldedHost>,
    step: u32,
    from: u32,
    factor: f64,
}

impl FoldedHost for Diverging {
    fn num_ops(&self) -> usize {
        self.host.num_ops()
    }

    fn op_costs(&self) -> &[OpCost] {
        self.host.op_costs()
    }

    fn evaluate(&self, ops: Range<usize>, x: &Tensor) -> Result<Tensor, HostError> {
        let is_last = ops.end == self.num_ops();
        let features = self.host.evaluate(ops, x)?;
        if is_last && self.step >= self.from {
            return Ok(features.f_mul_scalar(self.factor)?);
        }
        Ok(features)
    }

    fn refill(&mut self) -> Result<(), HostError> {
        self.step += 1;
        self.host.refill()
    }
}

/// One env that is left alone, whose logits in evaluation are multiplied by `factor` from step `from` on.
fn play_diverging(from: u32, factor: f64, rest: &str) -> Played {
    let text = scenario_text("n_envs: 1, rounds: 1, max_steps: 20", rest);
    let text = text.replace(
        r#"controller: "schedule", schedule: (builtin: "grow_one_seed", wait_on_illegal: true)"#,
        r#"controller: "wait""#,
    );
    let engine = Engine::builder().threads(2).from_ron(&text);
    let mut engine = engine.unwrap_or_else(|problems| panic!("{problems}"));
    let diverge = move |mut envs: Query<(&mut HostModel, &mut FoldedModel)>| {
        for (mut host, mut folded) in &mut envs {
            let host = host.0.get().fold().unwrap();
            *folded.0.get() = Box::new(Diverging {
                host,
                step: 0,
                from,
                factor,
            });
        }
    };
    let startup = diverge.in_set(EngineSet::Prepare).after(Work::EquipValidation);
    engine.app_mut().add_systems(Startup, startup.before(Work::Restore));
    played(engine)
}

fn steps_with(played: &Played, status: StepStatus) -> Vec<u32> {
    let pages = played.diary.pages.iter().filter(|page| page.status == status);
    pages.map(|page| page.step).collect()
}

#[test]
fn a_host_that_diverges_in_evaluation_alone_is_rolled_back_once_then_taken_as_it_is() {
    let played = play_diverging(12, 1e4, "");

    // Suspected in steps 12 and 13, rolled back in step 14, and not again in step 17: nothing has changed since.
    assert_eq!(steps_with(&played, StepStatus::RolledBack), [14]);
    assert_eq!(played.page(0, 17).panics, Some(2));
    assert!(played.page(0, 17).loss() > 12.0);
    assert_eq!(played.page(0, 17).command, Some(LifecycleOp::Wait), "nothing is vetoed");
    assert_eq!(
        played.page(0, 20).panics,
        Some(2),
        "later steps are compared with step 17"
    );

    // The episode goes on, nobody is charged.
    let end = played.stats[0].end.unwrap();
    assert_eq!((end.reason, end.step), (EpisodeEnd::Horizon, 20));
    let rollback = played.page(0, 14).rollback.as_ref().unwrap();
    assert!(!rollback.blamed && rollback.raw_penalty == 0.0);
}

#[test]
fn on_request_a_rollback_is_repeated_until_the_limit() {
    let played = play_diverging(12, 1e4, "governor: (repeated_rollback: restore)");

    assert_eq!(steps_with(&played, StepStatus::RolledBack), [14, 17, 20]);
    let restored = [14, 17, 20].map(|step| played.page(0, step).rollback.as_ref().unwrap().snapshot_step);
    assert!(restored.iter().all(|&step| step == restored[0] && step > 0));
    assert_eq!(played.stats[0].end.unwrap().reason, EpisodeEnd::GovernorLimit);
}

#[test]
fn a_rollback_that_nothing_can_come_of_ends_the_episode() {
    let played = play_diverging(8, f64::NAN, "");

    assert_eq!(steps_with(&played, StepStatus::RolledBack), [8, 9]);
    let end = played.stats[0].end.unwrap();
    assert_eq!((end.reason, end.step), (EpisodeEnd::GovernorLimit, 9));
    assert!(played.page(0, 9).rollback.as_ref().unwrap().ends_episode);
}

#[test]
fn an_episode_that_has_played_a_step_has_a_measured_accuracy_however_it_ends() {
    // Rolled back to the fresh host, which nobody has validated.
    let played = play_diverging(1, f64::NAN, "");

    let stats = &played.stats[0];
    assert_eq!(
        (stats.end.unwrap().reason, stats.rollbacks),
        (EpisodeEnd::GovernorLimit, 2)
    );
    let shown = stats
        .last_val
        .expect("measured in the step of the rollback")
        .accuracy_percent;
    assert!(shown.is_finite() && stats.best_accuracy_percent >= shown, "{shown}");
}

#[test]
fn a_seed_that_only_learns_from_the_host_survives_a_rollback_and_is_not_to_blame_for_it() {
    // Given a seed that trains from step 2 to step 12, and a host that breaks in step 8.
    let played = play(&scenario_text(THREE_ENVS, &nan_at_step(8)));
    let (before, after) = (played.page(1, 7), played.page(1, 8));
    let rollback = after.rollback.as_ref().expect("rolled back");

    // Then it goes on training, with its momentum, and lives on.
    assert!(!rollback.blamed && rollback.pruned.is_empty());
    assert_eq!(rollback.raw_penalty, 0.0);
    assert_eq!(
        [before, after].map(|page| page.stages[0]),
        [Some(SeedStage::Training); 2]
    );
    assert!(!after.is_momentum_zero);
    assert!(after.seeds[0].iter().all(|&bits| f32::from_bits(bits).is_finite()));
    assert_ne!(played.page(1, 9).seeds, after.seeds);
    assert!(played.page(1, 20).stages[0].is_some_and(SeedStage::is_occupied));

    // On request everyone is blamed, and every live seed goes.
    let faults = format!("governor: (blame: everyone), {}", nan_at_step(8));
    let everyone = play(&scenario_text(THREE_ENVS, &faults));
    let rollback = everyone.page(1, 8).rollback.clone().expect("rolled back");
    assert!(rollback.blamed && rollback.pruned[..] == [0]);
    assert_eq!(rollback.raw_penalty, -10.0);
}

#[test]
fn a_seed_that_stood_in_the_network_since_the_restored_state_is_to_blame_even_if_it_is_gone() {
    // Given a seed that blends from step 12 on and is pruned by the controller in step 18, and a host that breaks in step
    // 19, before any later state has proven itself.
    let entries = SEED_IN_LAST_SLOT.trim_end_matches(']').to_string()
        + r#"    (step: 18, command: prune(slot: "r0c2", speed: "instant", curve: "linear")),
]"#;
    let text = scenario_text(THREE_ENVS, &nan_at_step(19)).replace(r#"builtin: "grow_one_seed""#, &entries);
    let played = play(&text);

    let rollback = played.page(1, 19).rollback.clone().expect("rolled back");
    assert!(!played.page(1, 18).stages[2].unwrap().is_occupied());
    assert!(rollback.snapshot_step <= 18 && rollback.pruned.is_empty());
    assert!(rollback.blamed && rollback.raw_penalty == -10.0);
}
