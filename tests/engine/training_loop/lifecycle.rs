//! A seed's life in the real loop keeps its timetable.

use simic_engine::internals::growth::PruneReason;
use simic_engine::internals::growth::SeedStage::{self, *};
use simic_engine::internals::seed::SeedRecord;
use simic_engine::internals::telemetry::{Event, EventReader, Payload};
use simic_engine::prelude::*;

use super::support::*;
use crate::recorded::NOTHING;
use crate::support::builder;

/// Stage and alpha in the first slot at the end of every step; `Dormant` if it is empty.
#[derive(Default)]
struct Life(Vec<(SeedStage, f64)>);

fn stage_and_alpha(record: &Option<SeedRecord>) -> (SeedStage, f64) {
    let seed = record.as_ref();
    seed.map_or((Dormant, 0.0), |seed| (seed.stage, seed.alpha.alpha()))
}

fn note(envs: Query<&SeedSlots>, mut life: ResMut<Notes<Life>>) {
    let slots = envs.single().expect("one env");
    life.0.0.push(stage_and_alpha(&slots.0[0].record));
}

fn live(policy: &str, steps: u32) -> Life {
    noted(app(&scenario(MINIMAL, 1, steps, policy), NOTHING), note)
}

impl Life {
    /// Each step at whose end the stage was another than before.
    fn changes(&self) -> Vec<(usize, SeedStage)> {
        let before = std::iter::once(Dormant).chain(self.0.iter().map(|step| step.0));
        let steps = (1..).zip(self.0.iter().map(|step| step.0)).zip(before);
        let changes = steps.filter(|((_, now), before)| now != before);
        changes.map(|(now, _)| now).collect()
    }

    #[track_caller]
    fn assert_alphas(&self, first_step: usize, expected: &[f64]) {
        for (step, expected) in (first_step..).zip(expected) {
            let alpha = self.0[step - 1].1;
            assert!((alpha - expected).abs() < 5e-5, "alpha {alpha} at step {step}");
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

/// Its updates are suppressed, so nothing else would show that it has diverged.
#[test]
fn a_held_seed_with_gradients_that_are_not_numbers_is_not_committed_but_given_up() {
    let spoil = |batch: &mut HookedBatch, _: &mut ()| {
        if (18..=20).contains(&batch.clock.step()) {
            let seed = batch.env.seed_optimizers.0[0].as_mut().expect("the seed trains");
            let _ = seed.get().params()[0].grad().fill_(f64::NAN);
        }
    };
    let note = |slots: Query<&SeedSlots>, mut records: ResMut<Notes<Vec<Option<SeedRecord>>>>| {
        records.0.push(slots.single().expect("one env").0[0].record.clone());
    };
    let policy = schedule(&[
        (1, &germinate("r0c0", "conv_small")),
        (2, &advance("r0c0")),
        (12, &advance("r0c0")),
        (17, &advance("r0c0")),
        (18, r#"commit(slot: "r0c0")"#),
    ]);

    let hooked = move |app: &mut App| hook(app, BatchPoint::Backward, spoil);
    let records: Vec<Option<SeedRecord>> = noted(app(&scenario(MINIMAL, 1, 20, &policy), hooked), note);

    let seed = |step: usize| records[step - 1].as_ref().expect("the slot is not empty");
    assert_eq!((seed(17).stage, seed(17).gradient.skipped_updates), (Holding, Some(0)));
    assert_eq!((seed(18).stage, seed(18).gradient.skipped_updates), (Holding, Some(2)));
    assert!(seed(17).healthy() && !seed(18).healthy());
    assert_eq!(seed(20).stage, Pruned);
    assert_eq!(seed(20).prune_reason, Some(PruneReason::SeedNonfinite));
}

/// A fading seed is not trained.
#[test]
fn a_seed_that_fades_keeps_its_parameters_bit_for_bit() {
    /// One entry a step: stage and alpha in the second slot, bits of the seed and of the host.
    type Steps = Vec<(SeedStage, f64, Vec<Vec<u32>>, Vec<Vec<u32>>)>;
    let note = |mut envs: Query<(&mut SeedSlots, &mut HostModel)>, mut steps: ResMut<Notes<Steps>>| {
        let (mut slots, mut host) = envs.single_mut().expect("one env");
        let slot = &mut slots.0[1];
        let (stage, alpha) = stage_and_alpha(&slot.record);
        let module = slot.module.as_mut();
        let seed = module.map(|module| bits(module.get().params().map(|param| &param.tensor)));
        let step = (stage, alpha, seed.unwrap_or_default(), host_bits(&mut host));
        steps.0.push(step);
    };
    let germinate = germinate("r0c1", "conv_light").replace("sigmoid", "linear");
    let policy = schedule(&[
        (1, &germinate.replace("standard", "fast")),
        (7, r#"prune(slot: "r0c1", speed: "fast", curve: "cosine")"#),
    ]);
    let lifecycle = "lifecycle: (
        auto_forward: true, min_prune_age: 0,
        gates: (min_training_steps: 1, min_gradient_health: 0.0),
    ), run: (";
    let text = scenario(&MINIMAL.replace("minimal", "impaired"), 1, 12, &policy).replace("run: (", lifecycle);

    let steps: Steps = noted(app(&text, NOTHING), note);

    let at = |step: usize| &steps[step - 1];
    assert_eq!(at(6).0, Holding);
    assert_ne!(at(6).2, at(5).2, "a held seed trains");
    assert_eq!([at(7).1, at(8).1].map(|alpha| (alpha * 1e4).round()), [7500.0, 2500.0]);
    assert_eq!(at(8).2, at(7).2);
    assert_ne!(at(8).3, at(7).3, "the host continues to train");
    assert_eq!((at(9).0, at(9).2.len()), (Pruned, 0));
}

#[test]
fn a_growing_seed_is_recorded_step_by_step_in_order_and_ends_committed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let watched = |app: &mut App| {
        let app = app.init_resource::<Notes<Life>>();
        app.add_systems(StepEnd, note.after(Work::EmitStep));
    };
    let engine = builder().threads(2).recorded(folder.path()).with(watched);
    let text = scenario(MINIMAL, 1, 20, &grow_one_seed());

    let Notes(life) = play::<Notes<Life>>(engine.from_ron(&text).expect("the scenario is sound"));

    assert_eq!(life.0[19], (Committed, 1.0));
    let run = crate::support::latest(folder.path());
    let events = EventReader::open(&run).expect("the run has events");
    let events: Vec<Event> = events.collect::<Result<_, _>>().expect("events are readable");
    let of_seed = events.iter().filter(|event| event.seed_id.is_some());
    let of_seed: Vec<_> = of_seed.map(|event| (event.step, event.payload.kind())).collect();
    let gate = |step: u32| [(Some(step), "seed_gate_evaluated"), (Some(step), "seed_stage_changed")];
    let mut expected = vec![(Some(1), "seed_germinated")];
    expected.extend([1, 2, 12, 17, 18].map(gate).concat());
    expected.push((Some(18), "seed_committed"));
    assert_eq!(of_seed, expected);
    let stages = events.iter().filter_map(|event| match &event.payload {
        Payload::SeedStageChanged(change) => Some((change.from, change.to)),
        _ => None,
    });
    let expected = [
        (Dormant, Germinated),
        (Germinated, Training),
        (Training, Blending),
        (Blending, Holding),
        (Holding, Committed),
    ];
    assert_eq!(stages.collect::<Vec<_>>(), expected);
}
