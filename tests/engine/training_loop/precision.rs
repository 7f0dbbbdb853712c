//! Mixed precision: what is asked for is what is computed, scales move as they should, and nothing else is touched.

use bevy_app::App;
use bevy_ecs::prelude::*;
use simic_engine::internals::env::{EpisodeStats, GradReport, HostModel};
use simic_engine::internals::torch::NoGrad;
use simic_engine::prelude::*;
use tch::Kind;

use super::support::*;

/// Of every step: training and validation loss, and the scale of the loss.
#[derive(Resource, Default, Debug, PartialEq)]
struct Notes(Vec<(f64, f64, Option<f64>)>);

fn note(envs: Query<(&TrainMetrics, &ValMetrics)>, mut notes: ResMut<Notes>) {
    let envs = envs.iter();
    notes
        .0
        .extend(envs.map(|(train, val)| (train.loss, val.loss, train.loss_scale)));
}

/// By env, in the last step: the scale of the loss, and updates of the host that the episode has suppressed so far.
#[derive(Resource, Default, Debug)]
struct Scales(Vec<(f64, u64)>);

fn note_scales(envs: Query<(&EnvId, &TrainMetrics, &EpisodeStats)>, mut scales: ResMut<Scales>) {
    let envs = envs.iter().sort_unstable::<&EnvId>();
    scales.0 = envs
        .map(|(_, train, stats)| (train.loss_scale.expect("float16 has a scale"), stats.skipped_updates))
        .collect();
}

/// Of every step: the norm of the host's gradient as gates and records see it, and the host's parameters at its end.
#[derive(Resource, Default, Debug)]
struct Descent(Vec<(f64, Vec<f32>)>);

fn note_descent(mut envs: Query<(&GradReport, &mut HostModel)>, mut notes: ResMut<Descent>) {
    let (gradients, mut host) = envs.single_mut().expect("one env");
    let params = host.0.get().params().trainable();
    let params = params.iter().flat_map(|param| values(&param.tensor)).collect();
    let norm = gradients.host.norm().expect("the step was sampled");
    notes.0.push((norm, params));
}

/// One seed that learns from the second step on and is blended in from the third.
fn grown(amp: &str, rounds: u32) -> String {
    let policy = schedule(&[
        (1, &germinate("r0c1", "conv_small")),
        (2, &advance("r0c1")),
        (3, &advance("r0c1")),
    ]);
    scenario(MINIMAL, 1, 6, &policy).replace(
        "run: (rounds: 1",
        &format!("training: (amp: {amp}), run: (rounds: {rounds}"),
    )
}

fn train(text: &str, tamper: impl Fn(&mut HookedBatch) + Send + Sync + Copy + 'static) -> Notes {
    play(app(text, move |app: &mut App| {
        app.init_resource::<Notes>()
            .add_systems(StepEnd, note.after(Work::EmitStep));
        hook(app, BatchPoint::Backward, move |batch, _: &mut ()| tamper(batch));
    }))
}

fn untouched(amp: &str) -> Notes {
    train(&grown(amp, 1), |_| {})
}

#[test]
fn auto_on_a_cpu_is_f32_to_the_bit() {
    assert_eq!(untouched("auto"), untouched("off"));
}

#[test]
fn lower_precision_trains_as_f32_does_up_to_rounding() {
    let Notes(exact) = untouched("off");
    for (amp, tolerance) in [("bf16", 0.1), ("fp16", 0.02)] {
        let Notes(rounded) = untouched(amp);

        assert_ne!(rounded, exact, "{amp}");
        for ((train, val, scale), (exact_train, exact_val, none)) in rounded.into_iter().zip(&exact) {
            assert!(
                (train - exact_train).abs() < tolerance,
                "{amp}: {train} and {exact_train}"
            );
            assert!((val - exact_val).abs() < tolerance, "{amp}: {val} and {exact_val}");
            assert_eq!((scale.is_some(), *none), (amp == "fp16", None));
        }
    }
}

fn spoil_seed(batch: &mut HookedBatch) {
    let mut seeds = batch.env.seed_optimizers.0.iter_mut().flatten();
    let seed = seeds.next().expect("the seed trains");
    let _ = seed.get().params()[0].grad().fill_(f64::NAN);
}

fn spoil_host(batch: &mut HookedBatch) {
    let _ = host_gradients(&mut batch.env.host)[0].fill_(f64::INFINITY);
}

/// Meets the last batch alone.
fn at_last(tamper: fn(&mut HookedBatch)) -> impl Fn(&mut HookedBatch) + Copy {
    move |batch| {
        if is_last_batch(batch) {
            tamper(batch);
        }
    }
}

fn last_scale(notes: &Notes) -> f64 {
    let (.., scale) = notes.0.last().expect("steps were played");
    scale.expect("float16 has a scale")
}

#[test]
fn an_overflow_of_the_host_halves_its_scale_and_a_seed_that_diverges_does_not() {
    let text = grown("fp16", 1);
    let plain = last_scale(&untouched("fp16"));

    assert_eq!(last_scale(&train(&text, at_last(spoil_seed))), plain);
    assert_eq!(last_scale(&train(&text, at_last(spoil_host))), plain / 2.0);
}

#[test]
fn every_env_has_a_scale_of_its_own_and_counts_the_updates_that_it_skipped() {
    let text = scenario(MINIMAL, 3, 3, WAIT).replace("run: (", "training: (amp: fp16), run: (");
    let played = |is_spoilt: bool| -> Scales {
        let mut engine = app(&text, |app: &mut App| {
            app.init_resource::<Scales>()
                .add_systems(StepEnd, note_scales.after(Work::EmitStep));
        });
        hook(engine.app_mut(), BatchPoint::Backward, move |batch, _: &mut ()| {
            if is_spoilt && is_last_batch(batch) && batch.env.id.index == 1 {
                spoil_host(batch);
            }
        });
        play(engine)
    };

    let (Scales(plain), Scales(spoilt)) = (played(false), played(true));

    let (scale, skipped) = plain[1];
    assert_eq!(spoilt[1], (scale / 2.0, skipped + 1));
    assert_eq!((spoilt[0], spoilt[2]), (plain[0], plain[2]));
}

/// A gradient that were measured or clipped while it is still scaled would be tens of thousands of times too large, and
/// the clipped update as many times too small.
#[test]
fn gradients_are_unscaled_before_they_are_measured_and_clipped() {
    let limit = 0.1;
    let task = MINIMAL.replace(
        "(batches_per_step",
        &format!("(max_grad_norm: {limit}, batches_per_step"),
    );
    let played = |amp: &str| {
        let text = scenario(&task, 1, 4, WAIT).replace("run: (", &format!("training: (amp: {amp}), run: ("));
        let Descent(notes) = play(app(&text, |app: &mut App| {
            app.init_resource::<Descent>()
                .add_systems(StepEnd, note_descent.after(Work::EmitStep));
        }));
        let distance = |(from, to): (&f32, &f32)| f64::from(to - from).powi(2);
        let way: f64 = notes[0].1.iter().zip(&notes[3].1).map(distance).sum();
        (
            notes.into_iter().map(|(norm, _)| norm).collect::<Vec<f64>>(),
            way.sqrt(),
        )
    };

    let ((exact_norms, exact_way), (norms, way)) = (played("off"), played("fp16"));

    assert!(
        exact_norms.iter().all(|&norm| norm > limit),
        "all are clipped: {exact_norms:?}"
    );
    for (norm, exact) in norms.iter().zip(&exact_norms) {
        assert!((norm / exact - 1.0).abs() < 0.05, "{norms:?} and {exact_norms:?}");
    }
    assert!((way / exact_way - 1.0).abs() < 0.05, "{way} and {exact_way}");
}

#[test]
fn every_episode_begins_with_a_fresh_scale() {
    let in_the_first_round = |batch: &mut HookedBatch| {
        if batch.clock.round() == 0 {
            spoil_host(batch);
        }
    };

    let Notes(notes) = train(&grown("fp16", 2), in_the_first_round);

    let scales: Vec<f64> = notes.iter().map(|(.., scale)| scale.expect("a scale")).collect();
    assert_eq!(
        scales[5],
        65536.0 / 2.0_f64.powi(12),
        "two batches a step, halved in each"
    );
    assert!(scales[6] > 1000.0 * scales[5], "{scales:?}");
}

/// What seeds contribute is a difference of accuracies: it must not be rounding noise.
#[test]
fn validation_does_not_know_in_which_precision_hosts_were_trained() {
    fn equalise(batch: &mut HookedBatch, _: &mut ()) {
        let _no_grad = NoGrad::new();
        for param in batch.env.host.0.get().params().all() {
            let values = tch::Tensor::linspace(
                0.1,
                0.4,
                param.tensor.numel() as i64,
                (Kind::Float, param.tensor.device()),
            );
            param.tensor.shallow_clone().copy_(&values.view_as(&param.tensor));
        }
    }
    let val = |amp: &str| {
        let text = scenario(MINIMAL, 1, 1, WAIT).replace("run: (", &format!("training: (amp: {amp}), run: ("));
        let notes: Notes = play(app(&text, |app: &mut App| {
            hook(app, BatchPoint::Updated, equalise);
            app.init_resource::<Notes>()
                .add_systems(StepEnd, note.after(Work::EmitStep));
        }));
        notes.0[0].1.to_bits()
    };

    assert_eq!(val("bf16"), val("off"));
    assert_eq!(val("fp16"), val("off"));
}
