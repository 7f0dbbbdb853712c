//! Rollouts that reach the learner: a step that was rolled back leaves no trace in them.

use simic_engine::internals::controller::{ActiveController, Chosen, Observation};
use simic_engine::internals::learner::{LastUpdate, PolicyLearner};
use simic_engine::internals::reward::RewardedStep;
use simic_engine::internals::telemetry::UpdateSkip;
use simic_engine::internals::torch::{HostSyncCounter, catch, read_f32};
use simic_engine::prelude::*;

use crate::support::engine;

const STEPS: u32 = 16;
/// The env that is damaged, and when.
const DAMAGED: usize = 1;
const STEP: u32 = 9;
const DAMAGE: &str = "faults: [(env: 1, round: 0, step: 9, fault: nan_weight)],";

fn scenario(rounds: u32, faults: &str) -> String {
    format!(
        r#"(
    preset: "manual", task: preset("digits_impaired"),
    run: (rounds: {rounds}, n_envs: 3, max_steps: {STEPS}),
    policy: (controller: "actor_critic"),
    {faults}
)"#
    )
}

/// Observations of a run.
#[derive(Resource, Default)]
struct Seen {
    /// Env, step and what it chose.
    chosen: Vec<(usize, u32, [u8; 8])>,
    /// Env, step and the largest number in its recurrent rows when decisions are due.
    remembered: Vec<(usize, u32, f32)>,
    /// By env, at the end of the first round.
    transitions: Vec<usize>,
    /// By env, at the end of the first round: steps whose reward is the penalty of a rollback.
    charged: Vec<usize>,
    /// The number of counts of each feature of the env, after the first round's commit.
    counted: Option<u64>,
}

impl Seen {
    /// The memory of the damaged env.
    fn memory_of_damaged(&self, step: u32) -> f32 {
        let mut rows = self.remembered.iter();
        let row = rows.find(|row| (row.0, row.1) == (DAMAGED, step));
        row.expect("it was asked to decide").2
    }
}

fn note_memory(ids: Query<&EnvId>, clock: Res<RunClock>, mut active: ResMut<ActiveController>, mut seen: ResMut<Seen>) {
    let policy = active.0.get().learned().expect("it learns");
    let state = policy.recurrent().expect("no device fails");
    let reads = HostSyncCounter::default();
    for id in &ids {
        let largest = |tensor: &Tensor| tensor.narrow(1, id.index as i64, 1).abs().max();
        let numbers = catch(|| Tensor::stack(&state.0.iter().map(largest).collect::<Vec<_>>(), 0).max());
        let largest = read_f32(&numbers.expect("no device fails"), &reads).expect("no device fails")[0];
        seen.remembered.push((id.index, clock.step(), largest));
    }
}

fn note_choices(envs: Query<(&EnvId, &Chosen)>, clock: Res<RunClock>, mut seen: ResMut<Seen>) {
    for (id, chosen) in &envs {
        let chosen = chosen.0.iter();
        seen.chosen
            .extend(chosen.map(|decision| (id.index, clock.step(), decision.indices)));
    }
}

fn note_rollout(envs: Query<(&EnvId, &EpisodeReward)>, mut policy: ResMut<PolicyLearner>, mut seen: ResMut<Seen>) {
    let is_charged = |step: &&RewardedStep| step.breakdown.get(Term::Governor) != 0.0;
    let steps = envs.iter().sort_unstable::<&EnvId>().map(|(_, reward)| &reward.steps);
    seen.charged = steps.map(|steps| steps.iter().filter(is_charged).count()).collect();
    let buffer = policy.buffer.get();
    seen.transitions = (0..3).map(|env| buffer.len(env)).collect();
}

fn note_statistics(mut controller: ResMut<ActiveController>, mut seen: ResMut<Seen>) {
    let policy = controller.0.get().learned().expect("it learns");
    seen.counted = policy.normaliser().statistics().first().map(|moments| moments.count);
}

fn play(text: &str) -> Seen {
    let mut engine = engine(text);
    let memory = note_memory.in_set(EngineSet::Decide).before(Work::Decide);
    let choices = note_choices.in_set(EngineSet::Record).after(Work::EndSegments);
    let rollout = note_rollout.in_set(EngineSet::PpoUpdate).before(Work::UpdatePolicy);
    let statistics = note_statistics.in_set(EngineSet::PpoUpdate).after(Work::UpdatePolicy);
    let app = engine.app_mut().init_resource::<Seen>();
    app.add_systems(Decide, memory)
        .add_systems(StepEnd, choices.before(Work::EvaluateTest))
        .add_systems(RoundEnd, (rollout, statistics));
    engine.run().expect("the run ends well");
    let mut seen = engine.world_mut().remove_resource::<Seen>().expect("it was there");
    seen.chosen.sort_unstable();
    seen
}

#[test]
fn a_step_that_was_rolled_back_reaches_neither_rollout_nor_statistics() {
    // Given envs whose network holds a seed throughout, which is to blame.
    let seed = r#"initial_topology: seeds([(slot: "r0c2", blueprint: "conv_light")]),"#;
    let sound = play(&scenario(1, seed));
    let wrecked = play(&scenario(1, &format!("{seed} {DAMAGE}")));

    // No transition and no row of the statistics for the step.
    assert_eq!(sound.transitions, [16, 16, 16]);
    assert_eq!(wrecked.transitions, [16, 15, 16]);
    assert_eq!((sound.counted, wrecked.counted), (Some(48), Some(47)));
    let mut chosen = wrecked.chosen.iter();
    assert!(!chosen.any(|&(env, step, _)| (env, step) == (DAMAGED, STEP)));

    // The env remembers nothing in the step after; before it did.
    assert!(wrecked.memory_of_damaged(STEP - 1) > 0.0);
    assert_eq!(wrecked.memory_of_damaged(STEP + 1), 0.0);

    assert_eq!(wrecked.charged, [0, 1, 0]);

    // The others decide as they would have.
    let [wrecked, sound] = [wrecked, sound].map(|seen| {
        let chosen = seen.chosen.into_iter();
        chosen.filter(|(env, ..)| *env != DAMAGED).collect::<Vec<_>>()
    });
    assert_eq!(wrecked, sound);
}

/// Rows of the newest step, raw and as the policy saw them, before the update moves the statistics.
#[test]
fn a_rollback_that_no_seed_can_have_caused_leaves_segment_memory_and_rewards_as_they_are() {
    // Given a policy whose seeds never get beyond training.
    let without_advance =
        r#"controller: "actor_critic", masks: (action_space: (allowed_ops: Some(["wait", "germinate"])))"#;
    let play = |rest: &str| play(&scenario(1, rest).replace(r#"controller: "actor_critic""#, without_advance));

    let wrecked = play(DAMAGE);

    // Then the step is missing, as always, but the segment continues after it with what the policy remembers.
    assert_eq!(wrecked.transitions, [16, 15, 16]);
    assert!(wrecked.memory_of_damaged(STEP + 1) > 0.0);
    // And no reward has become a penalty.
    assert_eq!(wrecked.charged, [0, 0, 0]);
}

fn check_frozen(envs: Query<&Observation>, mut controller: ResMut<ActiveController>, clock: Res<RunClock>) {
    let policy = controller.0.get().learned().expect("it learns");
    let mut again = Vec::new();
    for observation in &envs {
        policy.normaliser().normalise(&observation.raw, &mut again);
        assert_eq!(again, observation.normalised);
    }
    let moved = policy.normaliser().statistics().iter().any(|moments| moments.count > 0);
    assert_eq!(moved, clock.round() > 0, "statistics move with the first update");
}

#[test]
fn what_the_policy_saw_is_what_its_statistics_still_say_before_the_update() {
    let mut engine = engine(&scenario(2, ""));
    let before = check_frozen.in_set(EngineSet::PpoUpdate).before(Work::UpdatePolicy);
    engine.app_mut().add_systems(RoundEnd, before);
    engine.run().expect("the run ends well");
}

/// A host that diverges in its first step is rolled back to where it began until its episode ends: no decision is recorded.
#[test]
fn a_rollout_in_which_nothing_was_decided_is_skipped_and_the_run_continues() {
    #[derive(Resource, Default)]
    struct Skipped(Vec<(UpdateSkip, u32)>);
    let note = |update: Res<LastUpdate>, mut skipped: ResMut<Skipped>| {
        let update = update.0.as_ref().expect("one a round");
        skipped.0.push((update.skip_reason, update.consecutive_failures));
    };
    let mut engine = engine(
        r#"(
            preset: "manual", task: preset("digits_minimal", (
                batches_per_step: count(1), host_opt: sgd(lr: 1e30, momentum: 0.0, weight_decay: 0.0),
            )),
            run: (rounds: 2, n_envs: 1, max_steps: 8),
            policy: (controller: "actor_critic"),
        )"#,
    );
    engine
        .app_mut()
        .init_resource::<Skipped>()
        .add_systems(RoundEnd, note.in_set(EngineSet::PpoUpdate).after(Work::UpdatePolicy));

    engine.run().expect("an unlucky round isn't a failure");

    assert_eq!(engine.world().resource::<Skipped>().0, [(UpdateSkip::Empty, 0); 2]);
}
