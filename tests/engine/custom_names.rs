//! Seed modules and controllers of an application: known to scenarios by the names that they are registered by.

use bevy_app::App;
use simic_engine::internals::controller::{ControllerRegistry, WaitController};
use simic_engine::internals::engine::RunReport;
use simic_engine::internals::nn::{Init, Mode, ParamSet};
use simic_engine::internals::random::RunRng;
use simic_engine::internals::scenario::{self, Input, Loaded, Report};
use simic_engine::internals::seed::{Blueprint, BlueprintError, BlueprintRegistry, SeedModule};
use simic_engine::internals::torch::Backend;
use simic_engine::prelude::*;
use tch::{TchError, Tensor};

/// δ(x) = w·x per channel; `seed_init` is where w starts, which has to be 0.
pub struct ChannelScale {
    pub seed_init: f32,
}

struct ChannelScaleModule {
    weight: Tensor,
    params: ParamSet,
}

impl SeedModule for ChannelScaleModule {
    fn delta(&self, x: &Tensor, _: Mode) -> Result<Option<Tensor>, TchError> {
        Ok(Some(x.f_mul(&self.weight)?))
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }

    fn macs(&self, positions: u64) -> u64 {
        self.params.count() * positions
    }
}

impl Blueprint for ChannelScale {
    fn id(&self) -> &'static str {
        "channel_scale"
    }

    fn summary(&self) -> &'static str {
        "one learned factor a channel"
    }

    fn param_count(&self, dim: i64) -> u64 {
        dim as u64
    }

    fn build(&self, dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError> {
        let mut params = ParamSet::new(backend);
        let weight = params.add("weight", &[dim, 1, 1], Init::Constant(self.seed_init))?;
        params.initialise(rng)?;
        Ok(Box::new(ChannelScaleModule { weight, params }))
    }
}

fn add(app: &mut App, seed_init: f32) {
    let world = app.world_mut();
    world
        .resource_mut::<BlueprintRegistry>()
        .register(Arc::new(ChannelScale { seed_init }));
    world.resource_mut::<ControllerRegistry>().register(
        "patience",
        "waits, under another name",
        Arc::new(|_| Ok(Box::new(WaitController))),
    );
}

fn sound(app: &mut App) {
    add(app, 0.0)
}

fn broken(app: &mut App) {
    add(app, 0.5)
}

const SCENARIO: &str = r#"(
    name: "custom",
    preset: "manual", task: preset("digits_minimal", (batches_per_step: count(1))),
    run: (rounds: 1, n_envs: 1, max_steps: 8),
    lifecycle: (auto_forward: (g1: true, g2: true, g3: true)),
    policy: (controller: "schedule", schedule: (entries: [(step: 1, command: germinate(
        slot: "r0c0", blueprint: "channel_scale", style: "linear_add", tempo: "fast", target: "full"))])),
)"#;

fn load(text: &str) -> Result<Loaded, Report> {
    let input = Input {
        label: "custom.ron",
        text,
        overrides: &[],
    };
    scenario::load(
        &input,
        &Extension::new(sound)
            .names()
            .expect("the names are free")
            .catalog
            .clone(),
    )
}

#[test]
fn registered_names_are_valid_and_listed() {
    let names = Extension::new(sound)
        .names()
        .expect("the names are free")
        .catalog
        .clone();

    let blueprint = names.blueprints.last().expect("blueprints");
    assert_eq!((blueprint.index, blueprint.name.as_str()), (13, "channel_scale"));
    assert_eq!(blueprint.summary, "one learned factor a channel");
    assert!(blueprint.selectable);
    assert!(load(SCENARIO).is_ok());
    assert!(load(r#"(policy: (controller: "patience"))"#).is_ok());
}

#[test]
fn a_slip_in_a_registered_name_is_recognised() {
    let text = r#"(policy: (controller: "patence", heuristic: (rotation: ["chanel_scale"])))"#;

    let report = load(text).expect_err("no such names").to_string();

    assert!(report.contains("did you mean `patience`?"), "{report}");
    assert!(report.contains("did you mean `channel_scale`?"), "{report}");
}

fn play(extend: fn(&mut App)) -> (RunReport, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = Engine::builder().with(extend).recorded(folder.path().join("runs"));
    let report = engine.from_ron(SCENARIO).expect("a sound scenario").play();
    (report, folder)
}

#[test]
fn a_registered_seed_module_grows() {
    let (report, _folder) = play(sound);

    assert!(report.failure.is_none(), "{:?}", report.failure);
    let directory = report.record.expect("the run was recorded").directory;
    let events = std::fs::read_to_string(directory.join("events.jsonl")).expect("events");
    assert!(events.contains(r#""type":"seed_germinated""#));
    assert!(events.contains(r#""blueprint":"channel_scale""#));
}

#[test]
fn a_bad_seed_module_is_named_at_start_up_and_nothing_is_touched() {
    let (report, folder) = play(broken);

    let failure = report.failure.expect("the module is refused").to_string();
    assert!(failure.contains("blueprint `channel_scale` cannot grow"), "{failure}");
    assert!(failure.contains("its residual must start at exactly 0"), "{failure}");
    assert!(report.record.is_none());
    assert!(!folder.path().join("runs").exists());
}

fn measure(app: &mut App) {
    let mut metrics = app.world_mut().resource_mut::<Metrics>();
    metrics.register(
        "best_env",
        "the highest validation accuracy of any env, %",
        Arc::new(|world: &mut World| {
            let mut envs = world.query::<&ValMetrics>();
            let accuracies = envs.iter(world).map(|metrics| metrics.accuracy_percent);
            accuracies.fold(0.0, f64::max)
        }),
    );
    metrics.register("unmeasured", "nothing", Arc::new(|_: &mut World| f64::NAN));
}

#[test]
fn a_metric_of_a_plugin_is_recorded_with_every_round_and_shown_beside_its_numbers() {
    let folder = tempfile::tempdir().expect("a temporary folder");

    let report = crate::recorded::play(
        r#"(
            name: "measured",
            task: preset("digits_minimal", (batches_per_step: count(1))),
            run: (rounds: 2, n_envs: 2, max_steps: 2),
            policy: (controller: "wait"),
        )"#,
        folder.path(),
        measure,
    );

    let record = report.record.expect("it was recorded");
    let lines = crate::support::lines(&record.directory);
    let rounds: Vec<_> = lines.iter().filter(|line| line["type"] == "round_finished").collect();
    assert_eq!(rounds.len(), 2);
    for round in rounds {
        let metrics = round["data"]["metrics"].as_object().expect("metrics");
        assert_eq!(metrics.keys().collect::<Vec<_>>(), ["best_env"]);
        assert!(metrics["best_env"].as_f64().is_some_and(|best| best > 0.0), "{round}");
    }
    let results = record.results.expect("it was folded");
    let text = simic_engine::internals::report::summary(&results, &record.directory, 100);
    assert!(text.contains("best_env"), "{text}");
}
