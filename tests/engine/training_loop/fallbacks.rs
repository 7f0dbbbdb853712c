//! Failed arithmetic is computed in another way, only for its batch: it is counted, and has the bits of that way. On a CPU, which
//! has the engine's own kernels and knows a loss as soon as it is there.

use serde_json::{Value, json};
use simic_engine::internals::checkpoint::CheckpointName;
use simic_engine::internals::env::{Devices, SelfTest};
use simic_engine::internals::kernels::ForcedKernels;
use simic_engine::internals::scenario::Kernels;
use simic_engine::prelude::*;

use super::support::*;
use crate::recorded::{NOTHING, directory, events, resumed, stops_after};
use crate::support::assert_same_run;

/// The steps of a run with one env.
#[derive(Default, Debug, PartialEq)]
struct Steps {
    /// Bits of the training loss of every step.
    losses: Vec<u64>,
    /// The episode's fallbacks so far, of kernels and of autocast.
    counts: Vec<[u32; 2]>,
    /// Those of graphs.
    graphs: u32,
    host: Vec<Vec<u32>>,
}

fn note(mut envs: Query<(&TrainMetrics, &EpisodeStats, &mut HostModel)>, mut steps: ResMut<Notes<Steps>>) {
    let (train, stats, mut host) = envs.single_mut().expect("one env");
    steps.0.losses.push(train.loss.to_bits());
    steps.0.counts.push([stats.fallbacks.kernel, stats.fallbacks.autocast]);
    steps.0.graphs = stats.fallbacks.graph;
    steps.0.host = host_bits(&mut host);
}

const ONE_BATCH: &str = r#"preset("digits_minimal", (batches_per_step: count(1)))"#;
const LIBTORCH: &str = "run: (kernels: libtorch,";

/// One env of `task` for three steps, with `rest` in its scenario.
fn played(task: &str, rest: &str) -> Steps {
    let text = scenario(task, 1, 3, WAIT).replace("run: (", &format!("{rest} run: ("));
    noted(app_of(Engine::builder(), &text, NOTHING), note)
}

fn played_by_libtorch() -> Steps {
    let text = scenario(ONE_BATCH, 1, 3, WAIT).replace("run: (", LIBTORCH);
    noted(app_of(Engine::builder(), &text, NOTHING), note)
}

fn fault(step: u32, fault: &str) -> String {
    format!("faults: [(env: 0, round: 0, step: {step}, fault: {fault})],")
}

/// Whichever use of a kernel fails, forward or backward, the batch is libtorch's, bit for bit.
#[test]
fn a_batch_on_which_a_kernel_fails_has_the_bits_of_libtorch() {
    let (own, libtorch) = (played(ONE_BATCH, ""), played_by_libtorch());
    assert_eq!(own.counts, [[0, 0]; 3]);
    assert_ne!(own.losses[0], libtorch.losses[0], "the two ways differ");

    let first = [1, 4, 8].map(|call| played(ONE_BATCH, &fault(1, &format!("kernel_error({call})"))));

    for steps in &first {
        assert_eq!(steps.counts, [[1, 0]; 3]);
        assert_eq!(steps.losses[0], libtorch.losses[0]);
        assert_eq!(steps, &first[0], "nothing is left of what was begun");
    }
    let second = played(ONE_BATCH, &fault(2, "kernel_error(1)"));
    assert_eq!(second.counts, [[0, 0], [1, 0], [1, 0]]);
    assert_eq!(second.losses[0], own.losses[0]);
}

/// A step is one batch: two are played before one would be recorded.
#[test]
fn batches_that_cannot_be_recorded_as_graphs_have_the_bits_that_they_have_as_usual_and_are_counted() {
    let usual = played(ONE_BATCH, "");
    let text = scenario(ONE_BATCH, 1, 3, WAIT).replace("run: (", "run: (cuda_graphs: true, ");
    let refused: Steps = noted(app_of(Engine::builder(), &text, NOTHING), note);

    assert_eq!((usual.graphs, refused.graphs), (0, 1));
    assert_eq!(Steps { graphs: 0, ..refused }, usual);
}

/// Running statistics and losses of the parts before are forgotten.
#[test]
fn a_batch_in_parts_is_computed_again_as_a_whole() {
    let [first, second, third] = [1, 13, 25].map(|call| {
        let fault = fault(2, &format!("kernel_error({call})"));
        played(ONE_BATCH, &format!("training: (micro_batches: 3), {fault}"))
    });

    assert_eq!(first.counts[1], [1, 0]);
    assert_eq!([&second, &third], [&first; 2]);
}

#[test]
fn a_loss_that_lower_precision_cannot_hold_is_computed_in_f32() {
    let f32 = played(ONE_BATCH, "");
    for amp in ["bf16", "fp16"] {
        let training = format!("training: (amp: {amp}),");
        let lower = played(ONE_BATCH, &training);
        assert_eq!(lower.counts, [[0, 0]; 3]);

        let rescued = played(ONE_BATCH, &format!("{training} {}", fault(1, "nan_loss")));

        assert_eq!(rescued.counts, [[0, 1]; 3], "{amp}");
        assert_eq!(rescued.losses[0], f32.losses[0], "{amp}");
        assert_ne!(rescued.losses[0], lower.losses[0], "{amp}");
    }
}

/// Nothing is left to be done for it: its update is suppressed, as ever.
#[test]
fn a_loss_that_f32_cannot_hold_is_not_a_fallback() {
    let steps = played(ONE_BATCH, &fault(2, "nan_loss"));

    assert_eq!(steps.counts, [[0, 0]; 3]);
    assert!(f64::from_bits(steps.losses[1]).is_nan());
    assert!(f64::from_bits(steps.losses[2]).is_finite());
}

/// Kernels serve in every task whose data need no files, as one that serves can fail, and none fails of itself.
#[test]
#[ignore = "long tier"]
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
        let few = "(batch_size: 8, batches_per_step: count(1), val_batches_per_step: count(1))";
        let failing = played(&format!(r#"preset("{task}", {few})"#), &fault(2, "kernel_error(1)"));
        assert_eq!(failing.counts, [[0, 0], [1, 0], [1, 0]], "{task}");
    }
}

#[test]
fn kernels_that_fail_their_test_compute_nothing_of_the_run() {
    let watched = |app: &mut App| {
        let app = app.init_resource::<Notes<Steps>>();
        app.add_systems(StepEnd, note.after(Work::EmitStep));
    };
    let mut engine = app_of(Engine::builder(), &scenario(ONE_BATCH, 1, 3, WAIT), watched);

    // Start-up is played on this thread.
    let failing = ForcedKernels::failing(20);
    engine.run().expect("the run succeeds");
    drop(failing);

    let world = engine.world_mut();
    let tested = world.resource::<SelfTest>();
    assert_eq!(tested.kernels, Kernels::Libtorch);
    assert_eq!(tested.fallbacks.len(), 1, "{:?}", tested.fallbacks);
    assert!(tested.fallbacks[0].ends_with("are not used: they fail: a kernel failed on request"));
    let devices = &world.resource::<Devices>().0;
    assert!(devices.iter().all(|backend| backend.kernels == Kernels::Libtorch));
    let steps = world.remove_resource::<Notes<Steps>>().map(|notes| notes.0);
    assert_eq!(steps, Some(played_by_libtorch()));
}

/// Two envs that fall back in their first rounds while seeds grow, computed in f32 or in float16.
fn text(training: &str, faults: [&str; 2]) -> String {
    let [first, second] = faults;
    format!(
        r#"(
            name: "falling-back",
            task: preset("digits_minimal", (batches_per_step: count(2), val_batches_per_step: count(1))),
            run: (rounds: 3, n_envs: 2, max_steps: 18), training: ({training}),
            policy: {},
            faults: [
                (env: 1, round: 0, step: 3, batch: Some(1), fault: {first}),
                (env: 0, round: 1, step: 2, fault: {second}),
            ],
        )"#,
        grow_one_seed()
    )
}

fn stopping_after_the_fallback(app: &mut App) {
    app.add_systems(StepEnd, stops_after(0, 4).before(EngineSet::Checkpoint));
}

#[test]
#[ignore = "long tier"]
fn a_round_tells_of_its_fallbacks_and_neither_threads_nor_a_resume_show() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (training, faults, [kernel, autocast]) in [
        ("", ["kernel_error(5)", "kernel_error(9)"], [1, 0]),
        ("amp: fp16", ["nan_loss", "nan_loss"], [0, 1]),
    ] {
        let text = text(training, faults);
        let play = |threads: usize, name: &str, extend: fn(&mut App)| {
            let engine = Engine::builder().threads(threads).with(extend);
            let engine = engine
                .recorded(folder.path().join(format!("{name}{training}")))
                .from_ron(&text);
            directory(&engine.expect("the scenario is sound").play())
        };
        let one = play(1, "one", NOTHING);
        let stopped = play(2, "stopped", stopping_after_the_fallback);
        let mut rest = resumed(&stopped, CheckpointName::Last, NOTHING, 2).expect("it can be resumed");
        directory(&rest.play());

        assert_same_run(&one, &stopped);
        let rounds = events(&one, "round_finished");
        let fallbacks: Vec<_> = rounds.iter().map(|event| &event["data"]["fallbacks"]).collect();
        let once = json!({"kernel": kernel, "autocast": autocast, "graph": 0});
        assert_eq!(fallbacks, [&once, &once, &Value::Null]);
    }
}
