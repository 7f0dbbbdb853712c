//! Mixed precision: what is asked for is what is computed, scales move as they should, and nothing else is touched.

use simic_engine::internals::env::GradReport;
use simic_engine::internals::torch::NoGrad;
use simic_engine::prelude::*;
use tch::Kind;

use super::support::*;
use crate::recorded::NOTHING;

/// One entry a step: training and validation loss, and the scale of the loss.
type Steps = Vec<(f64, f64, Option<f64>)>;

fn note(envs: Query<(&TrainMetrics, &ValMetrics)>, mut notes: ResMut<Notes<Steps>>) {
    let steps = envs.iter().map(|(train, val)| (train.loss, val.loss, train.loss_scale));
    notes.0.extend(steps);
}

/// By env, in the last step: the scale of the loss, and updates of the host that the episode has suppressed so far.
type Scales = Vec<(Option<f64>, u64)>;

fn note_scales(envs: Query<(&EnvId, &TrainMetrics, &EpisodeStats)>, mut scales: ResMut<Notes<Scales>>) {
    let envs = envs.iter().sort_unstable::<&EnvId>();
    let of_envs = envs.map(|(_, train, stats)| (train.loss_scale, stats.skipped_updates));
    scales.0 = of_envs.collect();
}

/// One entry a step: the norm of the host's gradient as gates and records see it, and the host's parameters at its end.
type Descent = Vec<(f64, Vec<f32>)>;

fn note_descent(mut envs: Query<(&GradReport, &mut HostModel)>, mut notes: ResMut<Notes<Descent>>) {
    let (gradients, mut host) = envs.single_mut().expect("one env");
    let params = host.0.get().params().trainable().iter();
    let norm = gradients.host.norm().expect("the step was sampled");
    notes
        .0
        .push((norm, params.flat_map(|param| values(&param.tensor)).collect()));
}

/// One env of `task` that waits, trained in this precision.
fn waiting(task: &str, n_envs: usize, steps: u32, amp: &str) -> String {
    scenario(task, n_envs, steps, WAIT).replace("run: (", &format!("training: (amp: {amp}), run: ("))
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

fn train(text: &str, tamper: impl Fn(&mut HookedBatch) + Send + Sync + Copy + 'static) -> Steps {
    let hooked = move |app: &mut App| hook(app, BatchPoint::Backward, move |batch, _: &mut ()| tamper(batch));
    noted(app(text, hooked), note)
}

fn untouched(amp: &str) -> Steps {
    train(&grown(amp, 1), |_| {})
}

#[test]
fn lower_precision_trains_as_f32_does_up_to_rounding_and_auto_on_a_cpu_is_f32() {
    let exact = untouched("off");
    let on_cpu = |amp| -> Steps { noted(app_of(Engine::builder(), &grown(amp, 1), NOTHING), note) };
    assert_eq!(on_cpu("auto"), on_cpu("off"));
    for (amp, tolerance) in [("bf16", 0.1), ("fp16", 0.02)] {
        let rounded = untouched(amp);

        assert_ne!(rounded, exact, "{amp}");
        for ((train, val, scale), (exact_train, exact_val, none)) in rounded.into_iter().zip(&exact) {
            let is_close = (train - exact_train).abs() < tolerance && (val - exact_val).abs() < tolerance;
            assert!(is_close, "{amp}: {train} and {exact_train}, {val} and {exact_val}");
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

/// Reaches only the last batch.
fn at_last(tamper: fn(&mut HookedBatch)) -> impl Fn(&mut HookedBatch) + Copy {
    move |batch| {
        if is_last_batch(batch) {
            tamper(batch);
        }
    }
}

fn last_scale(steps: &Steps) -> f64 {
    let (.., scale) = steps.last().expect("steps were played");
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
    let [plain, spoilt] = [false, true].map(|is_spoilt| -> Scales {
        let spoil = move |batch: &mut HookedBatch, _: &mut ()| {
            if is_spoilt && is_last_batch(batch) && batch.env.id.index == 1 {
                spoil_host(batch);
            }
        };
        let hooked = move |app: &mut App| hook(app, BatchPoint::Backward, spoil);
        noted(app(&waiting(MINIMAL, 3, 3, "fp16"), hooked), note_scales)
    });

    let (scale, skipped) = plain[1];
    assert_eq!(spoilt[1], (scale.map(|scale| scale / 2.0), skipped + 1));
    assert!(scale.is_some() && (spoilt[0], spoilt[2]) == (plain[0], plain[2]));
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
    let [(exact_norms, exact_way), (norms, way)] = ["off", "fp16"].map(|amp| {
        let steps: Descent = noted(app(&waiting(&task, 1, 4, amp), NOTHING), note_descent);
        let distance = |(from, to): (&f32, &f32)| f64::from(to - from).powi(2);
        let way: f64 = steps[0].1.iter().zip(&steps[3].1).map(distance).sum();
        let norms: Vec<f64> = steps.into_iter().map(|(norm, _)| norm).collect();
        (norms, way.sqrt())
    });

    let clipped = exact_norms.iter().filter(|&&norm| norm > limit);
    assert_eq!(clipped.count(), 4, "{exact_norms:?}");
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

    let steps = train(&grown("fp16", 2), in_the_first_round);

    let scales: Vec<f64> = steps.iter().map(|(.., scale)| scale.expect("a scale")).collect();
    // Two batches a step, halved in each.
    assert_eq!(scales[5], 65536.0 / 2.0_f64.powi(12));
    assert!(scales[6] > 1000.0 * scales[5], "{scales:?}");
}

/// Contributions of seeds are differences of accuracies: they must not be rounding noise.
#[test]
fn validation_does_not_know_in_which_precision_hosts_were_trained() {
    fn equalise(batch: &mut HookedBatch, _: &mut ()) {
        let _no_grad = NoGrad::new();
        for param in batch.env.host.0.get().params().all() {
            let mut tensor = param.tensor.shallow_clone();
            let values = Tensor::linspace(0.1, 0.4, tensor.numel() as i64, (Kind::Float, tensor.device()));
            tensor.copy_(&values.view_as(&tensor));
        }
    }
    let val = |amp: &str| {
        let hooked = |app: &mut App| hook(app, BatchPoint::Updated, equalise);
        let steps: Steps = noted(app(&waiting(MINIMAL, 1, 1, amp), hooked), note);
        steps[0].1.to_bits()
    };

    assert_eq!(val("bf16"), val("off"));
    assert_eq!(val("fp16"), val("off"));
}
