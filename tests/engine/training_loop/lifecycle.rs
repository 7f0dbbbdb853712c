//! A seed's life in the real loop keeps its timetable.

use bevy_app::App;
use bevy_ecs::prelude::*;
use simic_engine::internals::growth::PruneReason;
use simic_engine::internals::growth::SeedStage::{self, *};
use simic_engine::internals::seed::SeedRecord;
use simic_engine::internals::telemetry::{Event, EventReader, Payload};
use simic_engine::prelude::*;

use super::support::*;

/// Stage and alpha in the first slot at the end of every step; `Dormant` if it is empty.
#[derive(Resource, Default)]
struct Life(Vec<(SeedStage, f64)>);

fn note(envs: Query<&SeedSlots>, mut life: ResMut<Life>) {
    let slots = envs.single().expect("one env");
    let record = slots.0[0].record.as_ref();
    life.0
        .push(record.map_or((Dormant, 0.0), |seed| (seed.stage, seed.alpha.alpha())));
}

fn live(policy: &str, steps: u32) -> Life {
    play(app(&scenario(MINIMAL, 1, steps, policy), |app: &mut App| {
        app.init_resource::<Life>()
            .add_systems(StepEnd, note.after(Work::EmitStep));
    }))
}

impl Life {
    /// Each step at whose end the stage was another than before.
    fn changes(&self) -> Vec<(usize, SeedStage)> {
        let before = std::iter::once(Dormant).chain(self.0.iter().map(|step| step.0));
        let steps = self.0.iter().zip(before).enumerate();
        steps
            .filter(|(_, (now, before))| now.0 != *before)
            .map(|(index, (now, _))| (index + 1, now.0))
            .collect()
    }

    #[track_caller]
    fn assert_alphas(&self, first_step: usize, expected: &[f64]) {
        for (index, alpha) in expected.iter().enumerate() {
            let step = first_step + index;
            assert!(
                (self.0[step - 1].1 - alpha).abs() < 5e-5,
                "alpha {} at step {step}",
                self.0[step - 1].1
            );
        }
    }
}

#[test]
fn a_life_ordered_as_early_as_possible_keeps_the_timetable() {
    let life = live(
        &schedule(&[
            (1, &germinate("r0c0", "conv_small")),
            (2, &advance("r0c0")),
            (12, &advance("r0c0")),
            (17, &advance("r0c0")),
            (20, r#"prune(slot: "r0c0", speed: "fast", curve: "sigmoid")"#),
            (30, &germinate("r0c0", "conv_small")),
        ]),
        30,
    );

    assert_eq!(
        life.changes(),
        [
            (1, Germinated),
            (2, Training),
            (12, Blending),
            (17, Holding),
            (20, Blending),
            (22, Pruned),
            (23, Embargoed),
            (28, Resetting),
            (29, Dormant),
            (30, Germinated),
        ]
    );
    life.assert_alphas(12, &[0.0242, 0.2301, 0.7699, 0.9758, 1.0]);
    life.assert_alphas(20, &[0.8827, 0.1173, 0.0]);
}

#[test]
fn an_instant_prune_frees_the_slot_six_steps_later() {
    let life = live(
        &schedule(&[
            (1, &germinate("r0c0", "conv_small")),
            (2, &advance("r0c0")),
            (8, r#"prune(slot: "r0c0", speed: "instant", curve: "linear")"#),
            (15, &germinate("r0c0", "conv_small")),
        ]),
        15,
    );

    assert_eq!(
        life.changes(),
        [
            (1, Germinated),
            (2, Training),
            (8, Embargoed),
            (13, Resetting),
            (14, Dormant),
            (15, Germinated),
        ]
    );
}

/// Its updates are suppressed, so nothing else would show that it has diverged.
#[test]
fn a_held_seed_with_gradients_that_are_no_numbers_is_not_committed_but_given_up() {
    #[derive(Resource, Default)]
    struct Records(Vec<Option<SeedRecord>>);
    let spoil = |batch: &mut HookedBatch, _: &mut ()| {
        if (18..=20).contains(&batch.clock.step()) {
            let seed = batch.env.seed_optimizers.0[0].as_mut().expect("the seed trains");
            let _ = seed.get().params()[0].grad().fill_(f64::NAN);
        }
    };
    let note = |slots: Query<&SeedSlots>, mut records: ResMut<Records>| {
        records.0.push(slots.single().expect("one env").0[0].record.clone());
    };
    let policy = schedule(&[
        (1, &germinate("r0c0", "conv_small")),
        (2, &advance("r0c0")),
        (12, &advance("r0c0")),
        (17, &advance("r0c0")),
        (18, r#"commit(slot: "r0c0")"#),
    ]);

    let Records(records) = play(app(&scenario(MINIMAL, 1, 20, &policy), move |app: &mut App| {
        hook(app, BatchPoint::Backward, spoil);
        app.init_resource::<Records>()
            .add_systems(StepEnd, note.after(Work::EmitStep));
    }));

    let seed = |step: usize| records[step - 1].as_ref().expect("the slot is not empty");
    assert_eq!((seed(17).stage, seed(17).gradient.skipped_updates), (Holding, Some(0)));
    assert_eq!((seed(18).stage, seed(18).gradient.skipped_updates), (Holding, Some(2)));
    assert!(seed(17).healthy() && !seed(18).healthy());
    assert_eq!(seed(20).stage, Pruned);
    assert_eq!(seed(20).prune_reason, Some(PruneReason::SeedNonfinite));
}

#[test]
fn growing_one_seed_ends_with_it_committed_at_step_18() {
    let life = live(GROW_ONE_SEED, 20);

    assert_eq!(
        life.changes(),
        [
            (1, Germinated),
            (2, Training),
            (12, Blending),
            (17, Holding),
            (18, Committed)
        ]
    );
    assert_eq!(life.0[19], (Committed, 1.0));
}

#[test]
fn a_growing_seed_is_told_step_by_step_in_order() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let engine = Engine::builder().threads(2).recorded(folder.path());
    let text = scenario(MINIMAL, 1, 20, GROW_ONE_SEED);

    let played = engine.from_ron(&text).expect("the scenario is sound").run();

    assert!(played.is_ok(), "{played:?}");
    let run = crate::support::latest(folder.path());
    let events: Vec<Event> = EventReader::open(&run)
        .expect("the run has events")
        .collect::<Result<_, _>>()
        .expect("events are readable");
    let of_seed: Vec<(u32, &str)> = events
        .iter()
        .filter(|event| event.seed_id.is_some())
        .map(|event| (event.step.expect("a seed's events have a step"), event.payload.kind()))
        .collect();
    assert_eq!(
        of_seed,
        [
            (1, "seed_germinated"),
            (1, "seed_gate_evaluated"),
            (1, "seed_stage_changed"),
            (2, "seed_gate_evaluated"),
            (2, "seed_stage_changed"),
            (12, "seed_gate_evaluated"),
            (12, "seed_stage_changed"),
            (17, "seed_gate_evaluated"),
            (17, "seed_stage_changed"),
            (18, "seed_gate_evaluated"),
            (18, "seed_stage_changed"),
            (18, "seed_committed"),
        ]
    );
    let stages: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.payload {
            Payload::SeedStageChanged(change) => Some((change.from, change.to)),
            _ => None,
        })
        .collect();
    assert_eq!(
        stages,
        [
            (Dormant, Germinated),
            (Germinated, Training),
            (Training, Blending),
            (Blending, Holding),
            (Holding, Committed),
        ]
    );
}
