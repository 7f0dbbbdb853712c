//! The governor through the real loop: what is wrecked on purpose in one env is undone in that env, and nowhere else.

mod blame;
mod diary;
mod diverging;
mod limits;

use std::sync::LazyLock;

use diary::{Played, SEED_IN_LAST_SLOT, THREE_ENVS, nan_at_step, play, play_with, scenario_text, steps_with};
use simic_engine::extend::{EngineBuilder, GovernorPlugin};
use simic_engine::internals::growth::PruneReason;
use simic_engine::internals::telemetry::AlarmKind;
use simic_engine::prelude::*;

use crate::recorded::ONE_SEED;
use crate::support::builder;

/// Entries of a schedule that leaves a seed in training in the first slot.
const GERMINATION: &str = r#"entries: [
    (step: 1, command: germinate(slot: "r0c0", blueprint: "norm", style: "sigmoid_add", tempo: "standard", target: "full")),
]"#;

fn ungoverned() -> EngineBuilder {
    builder().threads(2).without::<GovernorPlugin>()
}

static CALM: LazyLock<Played> = LazyLock::new(|| play(&scenario_text(THREE_ENVS, "")));
/// In step 13, while the seed blends.
static STRUCK: LazyLock<Played> = LazyLock::new(|| play(&scenario_text(THREE_ENVS, &nan_at_step(13))));

#[test]
fn a_nan_in_one_env_rolls_back_that_env_and_leaves_the_others_bit_for_bit() {
    let one_thread = builder().threads(1);
    let again = play_with(one_thread, &scenario_text(THREE_ENVS, &nan_at_step(13)));

    for env in [0, 2] {
        assert_eq!(STRUCK.of_env(env), CALM.of_env(env), "env {env}");
    }
    let struck = STRUCK.of_env(1);
    assert_eq!(struck[..12], CALM.of_env(1)[..12], "until the fault");
    assert_eq!(steps_with(struck, StepStatus::RolledBack), [13]);
    // As text, in which a loss that isn't a number equals itself.
    let text = |played: &Played| format!("{:?}", played.diary.pages);
    assert_eq!(text(&STRUCK), text(&again), "two threads and one");
}

#[test]
fn a_rollback_restores_the_captured_network_in_place() {
    let played = &*STRUCK;
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
    let decisions = &played.stats[1].decisions;
    assert_eq!((decisions.pruned, decisions.lost), (0, 1), "by no order");
    assert_eq!(played.page(1, 14).stages[0], Some(SeedStage::Embargoed));

    // And nothing was decided, which the controller sees as a failed wait.
    assert_eq!(after.command, None);
    assert_eq!(after.feedback, (LifecycleOp::Wait, false));
    assert_eq!(rollback.raw_penalty, -10.0);

    // And the env trains on.
    assert!(played.page(1, 14).loss().is_finite());
    assert_ne!(played.page(1, 14).host, after.host);
    assert_eq!(played.stats[1].rollbacks, 1);
    assert_eq!(played.stats[0].rollbacks, 0);
}

#[test]
fn the_step_after_a_rollback_is_the_one_after_the_captured_step_except_for_its_momentum() {
    // Given rollbacks of the same damage in two runs, one step apart, to the same snapshot.
    let early = play(&scenario_text(THREE_ENVS, &nan_at_step(3)));
    let late = play(&scenario_text(THREE_ENVS, &nan_at_step(4)));
    let steps = [early.page(1, 3), late.page(1, 4)].map(|page| page.rollback.as_ref().unwrap().snapshot_step);

    // Step 3 restores the fresh host; the capture of step 2 has not proven itself by then.
    assert_eq!(steps, [0, 0]);
    assert_eq!(early.page(1, 3).host, late.page(1, 4).host);
}

#[test]
fn an_exploding_seed_is_rolled_back_and_the_host_recovers() {
    let explosion = r#"faults: [(env: 1, round: 0, step: 15, fault: scale_seed(slot: "r0c2", factor: 1e5))],"#;
    let text = scenario_text("n_envs: 3, rounds: 1, max_steps: 26", explosion);
    let played = play(&text.replace(ONE_SEED, SEED_IN_LAST_SLOT));

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
fn a_commit_is_captured_in_its_own_step() {
    // Given a seed that is committed in step 18 and a host that breaks in step 19.
    let played = play(&scenario_text(THREE_ENVS, &nan_at_step(19)));
    let (committed, restored) = (played.page(1, 18), played.page(1, 19));
    assert_eq!(committed.stages[0], Some(SeedStage::Committed));

    // Then host and seed of step 18 stand again, and the seed stays.
    assert_eq!(committed.snapshot_step, Some(18));
    assert_eq!(restored.rollback.as_ref().unwrap().snapshot_step, 18);
    assert_eq!(restored.stages[0], Some(SeedStage::Committed));
    assert_eq!(restored.host, committed.host);
    assert_eq!(restored.seeds, committed.seeds);
    assert!(!committed.seeds[0].is_empty());
}

#[test]
fn a_divergence_is_suspected_twice_before_it_panics() {
    let spike = |step| format!("(env: 0, round: 0, step: {step}, fault: loss_spike(50.0))");
    let faults = format!("faults: [{}, {}, {}],", spike(14), spike(15), spike(16));
    let played = play(&scenario_text("n_envs: 1, rounds: 1, max_steps: 18", &faults));

    let statuses = [14, 15, 16].map(|step| played.page(0, step).status);

    use StepStatus::{Participating, RolledBack};
    assert_eq!(statuses, [Participating, Participating, RolledBack]);
    let alarm = &played.page(0, 16).rollback.as_ref().unwrap().alarm;
    assert_eq!((alarm.kind, alarm.consecutive), (AlarmKind::Divergence, 3));
}

#[test]
fn a_nan_gradient_is_not_a_reason_to_panic() {
    let faults = "faults: [(env: 1, round: 0, step: 6, batch: 2, fault: nan_grad)],";
    let text = scenario_text("n_envs: 2, rounds: 1, max_steps: 8", faults);
    let played = play(&text.replace(ONE_SEED, GERMINATION));

    let mut pages = played.diary.pages.iter();
    assert!(pages.all(|page| page.status == StepStatus::Participating));
    assert!(played.page(1, 8).loss().is_finite());
}

#[test]
fn watching_costs_no_read_and_changes_nothing() {
    let disabled = play(&scenario_text(THREE_ENVS, "governor: (enabled: false),"));
    let absent = play_with(ungoverned(), &scenario_text(THREE_ENVS, ""));

    // Captures happened, and yet every step read as often as without.
    assert_eq!(CALM.page(0, 18).snapshot_step, Some(18));
    let trajectory = |played: &Played| {
        let pages = played.diary.pages.iter();
        let pages = pages.map(|page| (page.loss, page.command, page.host.clone(), page.seeds.clone()));
        pages.collect::<Vec<_>>()
    };
    for unwatched in [disabled, absent] {
        assert_eq!(CALM.diary.reads, unwatched.diary.reads);
        assert_eq!(trajectory(&CALM), trajectory(&unwatched));
    }
}

#[test]
fn without_a_governor_a_wrecked_env_stays_wrecked_and_the_run_continues() {
    let text = scenario_text(THREE_ENVS, &nan_at_step(13)).replace(ONE_SEED, GERMINATION);
    let absent = play_with(ungoverned(), &text);
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
