//! Networks that are brought along: given weights, frozen layers, and networks that were grown and are grown further.

use std::path::Path;

use bevy_ecs::prelude::*;
use simic_engine::extend::LayerGraph;
use simic_engine::internals::checkpoint::CheckpointName;
use simic_engine::internals::env::HostModel;
use simic_engine::internals::env::grafted::{self, Graft, graft_kind};
use simic_engine::internals::network::GrownNetwork;
use simic_engine::internals::run::StopRequest;
use simic_engine::prelude::*;
use tch::{Kind, Tensor};

use crate::recorded::{NOTHING, resumed, state};
use crate::support::assert_same_run;

/// A seed is planted in the first slot and committed.
const SCENARIO: &str = r#"(
    name: "import",
    preset: "manual", task: preset("digits_baseline", (batches_per_step: count(2), TASK)),
    run: (rounds: 1, n_envs: 2, max_steps: 14, RUN),
    lifecycle: (
        slots: ["r0c0"],
        auto_forward: (g1: true, g2: true, g3: true),
        gates: (min_training_steps: 1, min_gradient_health: 0.0),
    ),
    policy: (controller: "schedule", masks: (sequential_germination: false), schedule: (entries: [
        (step: 1, command: germinate(slot: "r0c0", blueprint: "conv_light", style: "linear_add", tempo: "fast", target: "full")),
        (step: 12, command: commit(slot: "r0c0")),
    ])),
)"#;

/// Logits of each env's network as the engine has it after the last step, on [`samples`].
#[derive(Resource, Default)]
struct Logits(Vec<Vec<f32>>);

fn samples() -> Tensor {
    let ramp = Tensor::arange(3 * 64, (Kind::Float, tch::Device::Cpu)).view([3, 1, 8, 8]);
    (ramp * 0.7).sin()
}

fn values(tensor: &Tensor) -> Vec<f32> {
    Vec::try_from(tensor.detach().flatten(0, -1)).expect("f32")
}

fn evaluate(
    mut envs: Query<(&mut HostModel, &mut SeedSlots)>,
    experiment: Res<Experiment>,
    mut logits: ResMut<Logits>,
) {
    logits.0.clear();
    for (mut host, mut slots) in &mut envs {
        let grafts: Vec<Graft> = slots
            .0
            .iter_mut()
            .filter_map(|slot| {
                let (seed, module) = (slot.record.as_ref()?, slot.module.as_mut()?);
                let (stage, alpha) = (seed.stage, seed.alpha.alpha());
                let kind = graft_kind(stage, alpha, seed.algorithm, experiment.isolation(), Mode::Eval)?;
                Some(Graft {
                    boundary: slot.spec.boundary,
                    instance: module.get(),
                    kind,
                })
            })
            .collect();
        let made = grafted::forward(&**host.0.get(), &grafts, &samples(), Mode::Eval).expect("logits");
        logits.0.push(values(&made));
    }
}

/// The best network of a run and the logits of all of its envs.
fn played(task: &str, run: &str) -> (GrownNetwork, Vec<Vec<f32>>) {
    let text = SCENARIO.replace("TASK", task).replace("RUN", run);
    let watch = |app: &mut App| {
        app.init_resource::<Logits>();
        app.add_systems(StepEnd, evaluate.in_set(EngineSet::Record).after(Work::EmitStep));
    };
    let mut engine = Engine::builder()
        .with(watch)
        .threads(1)
        .from_ron(&text)
        .unwrap_or_else(|error| panic!("{error}"));
    let report = engine.run().unwrap_or_else(|error| panic!("{error}"));
    let logits = engine.world().resource::<Logits>().0.clone();
    (report.networks.best.expect("a network is kept"), logits)
}

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
    let (first, engine) = played("", "");
    assert_eq!(logits_of(&first), engine[first.origin.env as usize]);
    first.save(&path).unwrap();

    let (second, engine) = played(&grown(folder.path()), "");

    let seeds: Vec<&str> = second
        .graph
        .layers
        .iter()
        .map(|layer| &*layer.name)
        .filter(|name| name.starts_with("r0c0"))
        .collect();
    assert_eq!(seeds, ["r0c0", "r0c0_2"]);
    second.save(&path).unwrap();
    let read = GrownNetwork::load(&path).unwrap();
    assert_eq!(logits_of(&read), engine[second.origin.env as usize]);
    assert!(read.measures.parameters > first.measures.parameters);
    assert_eq!(read.measures.host_parameters, first.measures.parameters);
}

#[test]
fn with_everything_frozen_the_given_network_is_left_bit_for_bit_while_a_seed_learns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept.safetensors");
    let (given, _) = played("", "");
    given.save(&path).unwrap();

    let (adapted, engine) = played(&format!("{}, freeze: [\"all\"]", grown(&path)), "");

    let learnt = adapted
        .parameters
        .keys()
        .filter(|name| !given.parameters.contains_key(*name));
    assert!(learnt.clone().count() > 0 && learnt.clone().all(|name| name.starts_with("r0c0_2.")));
    for (name, tensor) in &given.parameters {
        assert_eq!(adapted.parameters[name].bytes(), tensor.bytes(), "{name}");
    }
    assert_ne!(engine[adapted.origin.env as usize], logits_of(&given));
    let switched_off = GrownNetwork {
        graph: given.graph.clone(),
        parameters: given
            .parameters
            .keys()
            .map(|name| (name.clone(), adapted.parameters[name].clone()))
            .collect(),
        ..adapted
    };
    assert_eq!(logits_of(&switched_off), logits_of(&given));
}

/// Leaves the host.
fn drop_seed(network: &mut GrownNetwork) {
    let graph = &mut network.graph;
    graph.layers.retain(|named| !matches!(named.layer, LayerGraph::Seed(_)));
    let places = graph.slots.iter_mut();
    places.for_each(|(_, place)| *place -= usize::from(*place > 1));
    network.parameters.retain(|name, _| !name.starts_with("r0c0"));
}

#[test]
fn given_weights_are_where_the_first_envs_start_and_frozen_layers_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("given.safetensors");
    let (given, _) = played("", "");
    given.save(&path).unwrap();
    let head = |network: &GrownNetwork| network.parameters["head.weight"].bytes().to_vec();
    let block = |network: &GrownNetwork| network.parameters["block1.conv.weight"].bytes().to_vec();
    let task = format!("weights: (path: {path:?}), freeze: [\"block1\"]");

    let refused = Engine::builder()
        .threads(1)
        .from_ron(&SCENARIO.replace("TASK", &task).replace("RUN", ""));
    let failure = refused
        .expect("a sound scenario")
        .run()
        .expect_err("a seed is no layer of the host")
        .to_string();
    assert!(
        failure.contains("`r0c0.") && failure.contains("belongs to no layer"),
        "{failure}"
    );

    let mut host = given.clone();
    drop_seed(&mut host);
    host.save(&path).unwrap();
    let (tuned, _) = played(&task, "");
    assert_eq!(block(&tuned), block(&given));
    assert_ne!(head(&tuned), head(&given));
}

/// The first env starts from given weights of which all stay, the others from drawn ones.
fn frozen(path: &Path) -> String {
    let task = format!("weights: (path: {path:?}, envs: 1), freeze: [\"all\"]");
    SCENARIO.replace("TASK", &task).replace("RUN", "seed: 5")
}

#[test]
fn a_run_with_given_weights_resumes_inside_a_round_and_not_with_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("given.safetensors");
    let (mut host, _) = played("", "");
    drop_seed(&mut host);
    host.save(&path).unwrap();
    let scenario = frozen(&path);
    let whole = crate::recorded::play(&scenario, &folder.path().join("whole"), NOTHING);
    let whole = whole.record.expect("it was recorded").directory;
    let stop = |clock: Res<RunClock>, stop: Res<StopSignal>| {
        if clock.step() == 6 {
            stop.request(StopRequest::Interrupt);
        }
    };
    let engine = Engine::builder().threads(1).recorded(folder.path().join("part"));
    let mut engine = engine.from_ron(&scenario).unwrap();
    engine
        .app_mut()
        .add_systems(StepEnd, stop.before(EngineSet::Checkpoint));
    let run = engine.play().record.expect("it was recorded").directory;
    drop(engine);
    let of_first: Vec<f32> = {
        let mut engine = resumed(&run, CheckpointName::Last, NOTHING, 2).expect("it can be resumed");
        engine.play();
        let (_, values) = state(&mut engine).swap_remove(0);
        values
    };

    assert_same_run(&whole, &run);
    let given: Vec<f32> = host
        .parameters
        .values()
        .flat_map(|tensor| values(&tensor.to_tensor().unwrap()))
        .collect();
    let sorted = |mut values: Vec<f32>| {
        values.sort_unstable_by(f32::total_cmp);
        values
    };
    assert_eq!(sorted(of_first), sorted(given), "the first env kept what was given");

    let (mut other, _) = played("", "seed: 9");
    drop_seed(&mut other);
    other.save(&path).unwrap();
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
    let said = problems("freeze: [\"block0\", \"blok1\"]", "min_gradient_health: 0.0");
    assert!(
        said.contains("no layer blok1; valid: all, block0, block1, block2, head"),
        "{said}"
    );
    assert!(said.contains(":3:"), "{said}");
    let said = problems(
        "weights: (path: \"given.safetensors\", envs: 3)",
        "min_gradient_health: 0.0",
    );
    assert!(said.contains("the first 3 envs of a run of 2"), "{said}");
    let said = problems("freeze: [\"all\"]", "mode: strict, min_gradient_ratio: 0.1");
    assert!(
        said.contains("no gradient to compare") && said.contains("min_gradient_ratio: 0.0"),
        "{said}"
    );
}
