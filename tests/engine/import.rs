//! Networks that are brought along: given weights, frozen layers, and networks that were grown and are grown further.

use std::path::Path;
use std::sync::LazyLock;

use simic_engine::extend::LayerGraph;
use simic_engine::internals::checkpoint::CheckpointName;
use simic_engine::internals::env::grafted::{self, Graft, graft_kind};
use simic_engine::internals::network::GrownNetwork;
use simic_engine::internals::torch::PlainTensor;
use simic_engine::prelude::*;
use tch::Kind;

use crate::recorded::{NOTHING, directory, play, resumed, state, stops_after};
use crate::support::assert_same_run;
use crate::training_loop::support::{Notes, values};

/// A seed is planted in the first slot and committed.
const SCENARIO: &str = r#"(
    name: "import",
    preset: "manual", task: preset("digits_baseline", (batches_per_step: count(2), TASK)),
    run: (rounds: 1, n_envs: 2, max_steps: 14, RUN),
    lifecycle: (
        slots: ["r0c0"],
        auto_forward: true,
        gates: (min_training_steps: 1, min_gradient_health: 0.0),
    ),
    policy: (controller: "schedule", masks: (sequential_germination: false), schedule: (entries: [
        (step: 1, command: germinate(slot: "r0c0", blueprint: "conv_light", style: "linear_add", tempo: "fast", target: "full")),
        (step: 12, command: commit(slot: "r0c0")),
    ])),
)"#;

/// Logits of each env's network as the engine has it after the last step, on [`samples`].
type Logits = Vec<Vec<f32>>;

fn samples() -> Tensor {
    let ramp = Tensor::arange(3 * 64, (Kind::Float, tch::Device::Cpu)).view([3, 1, 8, 8]);
    (ramp * 0.7).sin()
}

fn evaluate(
    mut envs: Query<(&mut HostModel, &mut SeedSlots)>,
    experiment: Res<Experiment>,
    mut logits: ResMut<Notes<Logits>>,
) {
    logits.0.clear();
    for (mut host, mut slots) in &mut envs {
        let grafts = slots.0.iter_mut().filter_map(|slot| {
            let (seed, module) = (slot.record.as_ref()?, slot.module.as_mut()?);
            let (stage, alpha) = (seed.stage, seed.alpha.alpha());
            let kind = graft_kind(stage, alpha, seed.algorithm, experiment.isolation(), Mode::Eval)?;
            Some(Graft {
                boundary: slot.spec.boundary,
                instance: module.get(),
                kind,
            })
        });
        let grafts: Vec<Graft> = grafts.collect();
        let made = grafted::forward(&**host.0.get(), &grafts, &samples(), Mode::Eval).expect("logits");
        logits.0.push(values(&made));
    }
}

/// The best network of a run and the logits of all of its envs.
fn played(task: &str, run: &str) -> (GrownNetwork, Logits) {
    let text = SCENARIO.replace("TASK", task).replace("RUN", run);
    let watch = |app: &mut App| {
        app.init_resource::<Notes<Logits>>();
        app.add_systems(StepEnd, evaluate.in_set(EngineSet::Record).after(Work::EmitStep));
    };
    let engine = Engine::builder().with(watch).threads(1).from_ron(&text);
    let mut engine = engine.unwrap_or_else(|error| panic!("{error}"));
    let report = engine.run().unwrap_or_else(|error| panic!("{error}"));
    let logits = engine.world().resource::<Notes<Logits>>().0.clone();
    (report.networks.best.expect("a network is kept"), logits)
}

/// The network that the others begin with, and the logits of all its envs.
static GIVEN: LazyLock<(GrownNetwork, Logits)> = LazyLock::new(|| played("", ""));

fn grown(path: &Path) -> String {
    format!("host: grown({path:?})")
}

fn logits_of(network: &GrownNetwork) -> Vec<f32> {
    let host = network.build(Backend::CPU).expect("it is one");
    values(&host.run(0..host.num_ops(), &samples(), Mode::Eval).expect("logits"))
}

#[test]
fn a_grown_network_is_grown_further_and_kept_with_both_generations() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept.safetensors");
    let (first, engine) = &*GIVEN;
    assert_eq!(logits_of(first), engine[first.origin.env as usize]);
    first.save(&path).unwrap();

    let (second, engine) = played(&grown(folder.path()), "");

    let layers = second.graph.layers.iter().map(|layer| &*layer.name);
    let seeds: Vec<&str> = layers.filter(|name| name.starts_with("r0c0")).collect();
    assert_eq!(seeds, ["r0c0", "r0c0_2"]);
    second.save(&path).unwrap();
    let read = GrownNetwork::load(&path).unwrap();
    assert_eq!(logits_of(&read), engine[second.origin.env as usize]);
    assert!(read.measures.parameters > first.measures.parameters);
    assert_eq!(read.measures.host_parameters, first.measures.parameters);
}

/// Leaves the host.
fn without_seed(network: &GrownNetwork) -> GrownNetwork {
    let mut host = network.clone();
    let graph = &mut host.graph;
    graph.layers.retain(|named| !matches!(named.layer, LayerGraph::Seed(_)));
    let places = graph.slots.iter_mut();
    places.for_each(|(_, place)| *place -= usize::from(*place > 1));
    host.parameters.retain(|name, _| !name.starts_with("r0c0"));
    host
}

#[test]
fn given_weights_are_where_the_first_envs_start_and_frozen_layers_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("given.safetensors");
    let given = &GIVEN.0;
    given.save(&path).unwrap();
    let task = format!("weights: (path: {path:?}), freeze: [\"block1\"]");

    let scenario = SCENARIO.replace("TASK", &task).replace("RUN", "");
    let refused = play(&scenario, folder.path(), NOTHING).failure;
    let failure = refused.expect("a seed isn't a layer of the host").to_string();
    for part in ["`r0c0.", "doesn't belong to any layer"] {
        assert!(failure.contains(part), "{failure}");
    }

    without_seed(given).save(&path).unwrap();
    let (tuned, _) = played(&task, "");
    assert!(tuned.parameters["block1.conv.weight"] == given.parameters["block1.conv.weight"]);
    assert!(tuned.parameters["head.weight"] != given.parameters["head.weight"]);
}

#[test]
fn frozen_layers_that_are_not_given_and_values_of_no_network_end_the_run_at_start_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("given.safetensors");
    let scenario = |task: &str| SCENARIO.replace("TASK", task).replace("RUN", "");
    let weights = format!("weights: (path: {path:?}), freeze: [\"block1\"]");
    let refused = |network: &GrownNetwork, words: [&str; 3]| {
        network.save(&path).unwrap();
        let failure = play(&scenario(&weights), folder.path(), NOTHING).failure;
        let said = failure.expect("it is refused").to_string();
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    };

    let mut part = without_seed(&GIVEN.0);
    part.parameters.remove("head.weight");
    part.parameters.remove("block1.conv.weight");
    refused(
        &part,
        [
            "task.freeze: ",
            "nothing for block1.conv.weight, ",
            "keep its random weights",
        ],
    );

    let mut diverged = without_seed(&GIVEN.0);
    let variance = diverged.parameters.get_mut("block1.norm.running_var").unwrap();
    *variance = PlainTensor::of(&(variance.to_tensor().unwrap() * -1.0)).unwrap();
    let words = [
        "given.safetensors: ",
        "`block1.norm.running_var` has -",
        "variances of 0 or more",
    ];
    refused(&diverged, words);
    let as_host = Engine::builder().from_ron(&scenario(&grown(&path))).err();
    let said = as_host.expect("it is refused").to_string();
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
}

#[test]
fn a_run_with_given_weights_resumes_inside_a_round_and_not_with_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("given.safetensors");
    let host = without_seed(&GIVEN.0);
    host.save(&path).unwrap();
    // The first env starts from given weights that all stay, the others from drawn ones.
    let task = format!("weights: (path: {path:?}, envs: 1), freeze: [\"all\"]");
    let scenario = SCENARIO.replace("TASK", &task).replace("RUN", "seed: 5");
    let stop = |app: &mut App| _ = app.add_systems(StepEnd, stops_after(0, 6).before(EngineSet::Checkpoint));

    let whole = directory(&play(&scenario, &folder.path().join("whole"), NOTHING));
    let run = directory(&play(&scenario, &folder.path().join("part"), stop));
    let mut engine = resumed(&run, CheckpointName::Last, NOTHING, 2).expect("it can be resumed");
    engine.play();
    let (_, mut of_first) = state(&mut engine).swap_remove(0);
    drop(engine);

    assert_same_run(&whole, &run);
    let given = host.parameters.values().map(|tensor| tensor.to_tensor().unwrap());
    let mut given: Vec<f32> = given.flat_map(|tensor| values(&tensor)).collect();
    for values in [&mut of_first, &mut given] {
        values.sort_unstable_by(f32::total_cmp);
    }
    assert_eq!(of_first, given, "the first env kept what was given");

    without_seed(&played("", "seed: 9").0).save(&path).unwrap();
    let mut engine = resumed(&run, CheckpointName::Round(0), NOTHING, 1).expect("a sound scenario");
    let failure = engine.play().failure.expect("other weights").to_string();
    assert!(failure.contains("start from other weights"), "{failure}");
}

#[test]
fn weights_and_frozen_layers_that_cannot_be_are_reported_where_they_stand() {
    let problems = |task: &str, more: &str| {
        let text = SCENARIO
            .replace("TASK", task)
            .replace("RUN", "")
            .replace("min_gradient_health: 0.0", more);
        Engine::builder().from_ron(&text).err().expect("problems").to_string()
    };
    let as_ever = "min_gradient_health: 0.0";
    for (task, more, complaints) in [
        (
            "freeze: [\"block0\", \"blok1\"]",
            as_ever,
            [
                ":3:",
                "no layer blok1; valid: all, statistics, block0, block1, block2, head",
            ],
        ),
        (
            "weights: (path: \"given.safetensors\", envs: 3)",
            as_ever,
            [":3:", "the first 3 envs, but the run has 2"],
        ),
        (
            "freeze: [\"all\"]",
            "mode: strict",
            ["no gradient to compare", "mode: permissive"],
        ),
    ] {
        let said = problems(task, more);
        assert!(complaints.iter().all(|complaint| said.contains(complaint)), "{said}");
    }
}
