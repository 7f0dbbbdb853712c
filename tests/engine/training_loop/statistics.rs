//! Gradient statistics come from every tenth batch; the step's last sampled one is reported.

use simic_engine::internals::env::GradReport;
use simic_engine::internals::growth::AlphaAlgorithm;
use simic_engine::internals::seed::SeedRecord;
use simic_engine::prelude::*;

use super::support::*;

/// Squared gradient norms of host and seed at each batch of the last step, and the report on it.
#[derive(Default)]
struct Measured {
    host: Vec<f64>,
    seed: Vec<f64>,
    report: GradReport,
}

fn sum_of_squares(gradients: impl IntoIterator<Item = Tensor>) -> f64 {
    let values = gradients.into_iter().flat_map(|gradient| values(&gradient));
    values.map(|value| f64::from(value).powi(2)).sum()
}

fn note_gradients(batch: &mut HookedBatch, notes: &mut Measured) {
    if !batch.clock.is_last_step() {
        return;
    }
    let env = &mut batch.env;
    let seed = env.slots.0[0].module.as_mut().expect("the seed is there").get();
    notes.host.push(sum_of_squares(host_gradients(&mut env.host)));
    notes
        .seed
        .push(sum_of_squares(seed.params().map(|param| param.tensor.grad())));
}

fn note_report(envs: Query<&GradReport>, notes: Res<Shared<Measured>>) {
    notes.lock().report = envs.single().expect("one env").clone();
}

#[test]
fn of_24_batches_the_statistics_of_batch_20_are_reported_before_clipping() {
    let policy = schedule(&[(1, &germinate("r0c0", "conv_small")), (2, &advance("r0c0"))]);
    let task = r#"preset("digits_minimal", (batch_size: 16, batches_per_step: count(24), max_grad_norm: 1e-3))"#;

    let notes: Measured = play_hooked(app(&scenario(task, 1, 3, &policy), |app: &mut App| {
        hook(app, BatchPoint::Backward, note_gradients);
        app.add_systems(StepEnd, note_report.after(Work::EmitStep));
    }));

    assert_eq!(notes.host.len(), 24);
    let reported = |sum: f64, batches: &[f64]| -> Vec<usize> {
        let is_it = |&batch: &usize| (batches[batch] / sum - 1.0).abs() < 1e-6;
        (0..24).filter(is_it).collect()
    };
    assert_eq!(reported(notes.report.host.sum_squares, &notes.host), [20]);
    let seed = notes.report.seeds[0].expect("the seed is trained");
    let gradients = seed.gradients.expect("gradients of a training seed are measured");
    assert_eq!(reported(gradients.sum_squares, &notes.seed), [20]);
    assert_eq!(notes.report.seeds[1], None);
}

fn vanish(batch: &mut HookedBatch, _: &mut ()) {
    // None in the first step, which germinates it.
    let Some(seed) = batch.env.slots.0[0].module.as_mut() else {
        return;
    };
    let seed = seed.get();
    for param in seed.module.params().trainable() {
        let mut gradient = param.tensor.grad();
        if gradient.defined() {
            let _ = gradient.zero_();
        }
    }
}

/// A gate learns nothing before its seed has an amplitude: it may not stand for the module's gradients.
#[test]
fn a_gated_seed_whose_gradients_have_all_vanished_does_not_pass_g2() {
    let germinate = germinate("r0c0", "conv_small").replace("sigmoid_add", "gated_gate");
    let policy = schedule(&[(1, &germinate), (2, &advance("r0c0")), (12, &advance("r0c0"))]);
    let tampered = app(&scenario(MINIMAL, 1, 12, &policy), |app: &mut App| {
        hook(app, BatchPoint::Backward, vanish);
    });
    let note = |slots: Query<&SeedSlots>, mut seed: ResMut<Notes<Option<SeedRecord>>>| {
        seed.0.clone_from(&slots.single().expect("one env").0[0].record);
    };
    let seed: Option<SeedRecord> = noted(tampered, note);

    let seed = seed.expect("the seed is there");
    assert_eq!(seed.algorithm, AlphaAlgorithm::Gate);
    assert_eq!(seed.gradient.health, Some(0.5));
    assert_eq!(seed.stage, SeedStage::Training);
}
