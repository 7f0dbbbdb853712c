//! What fails in arithmetic is computed in another way, for its batch alone: counted, and to the bits of that way.

use std::path::PathBuf;

use bevy_app::App;
use bevy_ecs::prelude::*;
use serde_json::{Value, json};
use simic_engine::internals::checkpoint::CheckpointName;
use simic_engine::internals::engine::RunReport;
use simic_engine::internals::env::{Devices, HostModel, SelfTest};
use simic_engine::internals::kernels::ForcedKernels;
use simic_engine::internals::run::StopRequest;
use simic_engine::internals::scenario::Kernels;
use simic_engine::internals::telemetry::Fallbacks;
use simic_engine::prelude::*;

use super::support::*;
use crate::recorded::{NOTHING, resumed};
use crate::support::{assert_same_run, lines};

/// Of every step: bits of the training loss, and the episode's fallbacks so far.
#[derive(Resource, Default, Debug, PartialEq)]
struct Notes {
    steps: Vec<(u64, Fallbacks)>,
    host: Vec<Vec<u32>>,
}

fn note(mut envs: Query<(&TrainMetrics, &EpisodeStats, &mut HostModel)>, mut notes: ResMut<Notes>) {
    let (train, stats, mut host) = envs.single_mut().expect("one env");
    notes.steps.push((train.loss.to_bits(), stats.fallbacks));
    notes.host = host_bits(&mut host);
}

fn watched(text: &str) -> Engine {
    app(text, |app: &mut App| {
        app.init_resource::<Notes>()
            .add_systems(StepEnd, note.after(Work::EmitStep));
    })
}

const ONE_BATCH: &str = r#"preset("digits_minimal", (batches_per_step: count(1)))"#;

/// One env of `task` for three steps, with `rest` beside it.
fn played(task: &str, rest: &str) -> Notes {
    play(watched(
        &scenario(task, 1, 3, WAIT).replace("run: (", &format!("{rest} run: (")),
    ))
}

fn fault(step: u32, fault: &str) -> String {
    format!("faults: [(env: 0, round: 0, step: {step}, fault: {fault})],")
}

fn counts(notes: &Notes) -> Vec<(u32, u32)> {
    let steps = notes.steps.iter();
    steps
        .map(|(_, fallbacks)| (fallbacks.kernel, fallbacks.autocast))
        .collect()
}

/// Whichever use of a kernel fails, forward or backward, the batch is libtorch's to the bit.
#[test]
fn a_batch_on_which_a_kernel_fails_has_the_bits_of_libtorch() {
    let own = played(ONE_BATCH, "");
    let libtorch = play::<Notes>(watched(
        &scenario(ONE_BATCH, 1, 3, WAIT).replace("run: (", "run: (kernels: libtorch, "),
    ));
    assert_eq!(counts(&own), [(0, 0); 3]);
    assert_ne!(own.steps[0].0, libtorch.steps[0].0, "the two ways can be told apart");

    let first: Vec<Notes> = [1, 4, 8]
        .map(|call| played(ONE_BATCH, &fault(1, &format!("kernel_error({call})"))))
        .into();

    for notes in &first {
        assert_eq!(counts(notes), [(1, 0); 3]);
        assert_eq!(notes.steps[0].0, libtorch.steps[0].0);
        assert_eq!(notes, &first[0], "nothing is left of what was begun");
    }
    let second = played(ONE_BATCH, &fault(2, "kernel_error(1)"));
    assert_eq!(counts(&second), [(0, 0), (1, 0), (1, 0)]);
    assert_eq!(second.steps[0], own.steps[0]);
}

/// Running statistics and losses of the parts before are forgotten.
#[test]
fn a_batch_in_parts_is_computed_again_as_a_whole() {
    let parts = "training: (micro_batches: 3),";
    let of = |call: u32| {
        played(
            ONE_BATCH,
            &format!("{parts} {}", fault(2, &format!("kernel_error({call})"))),
        )
    };
    let first = of(1);

    for call in [13, 25] {
        let later = of(call);
        assert_eq!(counts(&later)[1], (1, 0), "call {call}");
        assert_eq!(later, first, "call {call}");
    }
}

#[test]
fn a_loss_that_lower_precision_cannot_hold_is_computed_in_f32() {
    for amp in ["bf16", "fp16"] {
        let training = format!("training: (amp: {amp}),");
        let (f32, lower) = (played(ONE_BATCH, ""), played(ONE_BATCH, &training));
        assert_eq!(counts(&lower), [(0, 0); 3]);

        let rescued = played(ONE_BATCH, &format!("{training} {}", fault(1, "nan_loss")));

        assert_eq!(counts(&rescued), [(0, 1); 3], "{amp}");
        assert_eq!(rescued.steps[0].0, f32.steps[0].0, "{amp}");
        assert_ne!(rescued.steps[0].0, lower.steps[0].0, "{amp}");
    }
}

/// Nothing is left to be done for it: its update is suppressed, as ever.
#[test]
fn a_loss_that_f32_cannot_hold_is_no_fallback() {
    let notes = played(ONE_BATCH, &fault(2, "nan_loss"));

    assert_eq!(counts(&notes), [(0, 0); 3]);
    assert!(f64::from_bits(notes.steps[1].0).is_nan());
    assert!(f64::from_bits(notes.steps[2].0).is_finite());
}

/// Kernels serve in every task whose data need no files, and none fails of itself.
#[test]
fn no_task_falls_back_and_kernels_serve_in_all_of_them() {
    for task in [
        "digits_baseline",
        "digits_impaired",
        "digits_minimal",
        "synth_baseline",
        "synth_impaired",
        "synth_scale",
        "synth_resnet20",
        "synth_tokens",
    ] {
        let task_of =
            format!(r#"preset("{task}", (batch_size: 8, batches_per_step: count(1), val_batches_per_step: count(1)))"#);
        assert_eq!(counts(&played(&task_of, "")), [(0, 0); 3], "{task}");
        // A kernel that serves can fail.
        let failing = played(&task_of, &fault(2, "kernel_error(1)"));
        assert_eq!(counts(&failing), [(0, 0), (1, 0), (1, 0)], "{task}");
    }
}

#[test]
fn kernels_that_fail_their_test_compute_nothing_of_the_run() {
    let text = scenario(ONE_BATCH, 1, 3, WAIT);
    let libtorch = play::<Notes>(watched(&text.replace("run: (", "run: (kernels: libtorch, ")));
    let mut engine = watched(&text);

    // Start-up is played on this thread.
    let _failing = ForcedKernels::failing(20);
    engine.run().expect("the run succeeds");

    let world = engine.world_mut();
    let tested = world.resource::<SelfTest>();
    assert_eq!(tested.kernels, Kernels::Libtorch);
    assert_eq!(tested.fallbacks.len(), 1, "{:?}", tested.fallbacks);
    assert!(tested.fallbacks[0].ends_with("are not used: they fail: a kernel was told to fail"));
    let devices = &world.resource::<Devices>().0;
    assert!(devices.iter().all(|backend| backend.kernels == Kernels::Libtorch));
    assert_eq!(world.remove_resource::<Notes>(), Some(libtorch));
}

/// Two envs that fall back in their first rounds while seeds grow, computed in f32 or in float16.
fn text(training: &str, faults: [&str; 2]) -> String {
    let [first, second] = faults;
    format!(
        r#"(
            name: "falling-back",
            task: preset("digits_minimal", (batches_per_step: count(2), val_batches_per_step: count(1))),
            run: (rounds: 3, n_envs: 2, max_steps: 18), training: ({training}),
            policy: (controller: "schedule", schedule: (builtin: Some("grow_one_seed"))),
            faults: [
                (env: 1, round: 0, step: 3, batch: Some(1), fault: {first}),
                (env: 0, round: 1, step: 2, fault: {second}),
            ],
        )"#
    )
}

fn directory(report: &RunReport) -> PathBuf {
    assert!(report.failure.is_none(), "{:?}", report.failure);
    report.record.as_ref().expect("it was recorded").directory.clone()
}

fn stop_behind_the_fallback(clock: Res<RunClock>, stop: Res<StopSignal>) {
    if (clock.round(), clock.step()) == (0, 4) {
        stop.request(StopRequest::Interrupt);
    }
}

#[test]
fn a_round_tells_of_its_fallbacks_and_neither_threads_nor_a_resume_show() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (training, faults, once) in [
        (
            "",
            ["kernel_error(5)", "kernel_error(9)"],
            json!({"kernel": 1, "autocast": 0}),
        ),
        (
            "amp: fp16",
            ["nan_loss", "nan_loss"],
            json!({"kernel": 0, "autocast": 1}),
        ),
    ] {
        let text = text(training, faults);
        let engine = |threads: usize, name: &str| {
            let out = folder.path().join(format!("{name}{training}"));
            let engine = Engine::builder().threads(threads).recorded(out);
            engine.from_ron(&text).expect("the scenario is sound")
        };
        let one = directory(&engine(1, "one").play());
        let two = directory(&engine(2, "two").play());
        // A run that is stopped lets go of its folder when its engine goes.
        let stopped = {
            let mut engine = engine(2, "stopped");
            let stop = stop_behind_the_fallback.before(EngineSet::Checkpoint);
            engine.app_mut().add_systems(StepEnd, stop);
            directory(&engine.play())
        };
        directory(
            &resumed(&stopped, CheckpointName::Last, NOTHING, 1)
                .expect("it can be resumed")
                .play(),
        );

        assert_same_run(&one, &two);
        assert_same_run(&one, &stopped);
        let rounds = lines(&one)
            .into_iter()
            .filter(|event| event["type"] == "round_finished");
        let told: Vec<_> = rounds.map(|event| event["data"]["fallbacks"].clone()).collect();
        assert_eq!(told, [once.clone(), once, Value::Null]);
    }
}
