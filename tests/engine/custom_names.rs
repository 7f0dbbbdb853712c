//! Seed modules, controllers and metrics of an application: known to scenarios by the names that they are registered by.

use simic_engine::internals::controller::WaitController;
use simic_engine::internals::engine::RunReport;
use simic_engine::internals::report::summary;
use simic_engine::internals::scenario::{Loaded, Report};
use simic_engine::prelude::*;

use crate::recorded::{catalog, directory, events};

/// δ(x) = w·x per channel.
#[derive(Clone, Copy, PartialEq)]
pub enum ChannelScale {
    /// w starts at 0, as it has to.
    Sound,
    /// w starts elsewhere.
    Broken,
    /// Fails in training, though not on the few samples that it is tried on at start-up.
    Brittle,
}

/// Batch size of the tasks on digits.
const BATCH_SIZE: i64 = 64;

struct ChannelScaleModule {
    kind: ChannelScale,
    weight: Tensor,
    params: ParamSet,
}

impl SeedModule for ChannelScaleModule {
    fn delta(&self, x: &Tensor, mode: Mode) -> Result<Option<Tensor>, TchError> {
        if self.kind == ChannelScale::Brittle && mode == Mode::Train && x.size()[0] == BATCH_SIZE {
            return Err(TchError::Torch("it broke".into()));
        }
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
        let start = if *self == Self::Broken { 0.5 } else { 0.0 };
        let weight = params.add("weight", &[dim, 1, 1], Init::Constant(start))?;
        params.initialise(rng)?;
        let kind = *self;
        Ok(Box::new(ChannelScaleModule { kind, weight, params }))
    }
}

fn add(app: &mut App, scale: ChannelScale) {
    let world = app.world_mut();
    world.resource_mut::<BlueprintRegistry>().register(Arc::new(scale));
    world.resource_mut::<ControllerRegistry>().register(
        "patience",
        "waits, under another name",
        Arc::new(|_| Ok(Box::new(WaitController))),
    );
    let mut metrics = world.resource_mut::<Metrics>();
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

fn sound(app: &mut App) {
    add(app, ChannelScale::Sound)
}

const SCENARIO: &str = r#"(
    name: "custom",
    preset: "manual", task: preset("digits_minimal", (batches_per_step: count(1))),
    run: (rounds: 2, n_envs: 1, max_steps: 8),
    lifecycle: (auto_forward: true),
    policy: (controller: "schedule", schedule: (entries: [(step: 1, command: germinate(
        slot: "r0c0", blueprint: "channel_scale", style: "linear_add", tempo: "fast", target: "full"))])),
)"#;

fn load(text: &str) -> Result<Loaded, Report> {
    crate::recorded::load("custom.ron", text, &[], &catalog(sound))
}

#[test]
fn registered_names_are_valid_and_listed_and_slips_recognised() {
    let names = catalog(sound);
    let blueprint = names.blueprints.iter().rfind(|blueprint| blueprint.index.is_some());
    let blueprint = blueprint.expect("blueprints");
    assert_eq!((blueprint.index, blueprint.name.as_str()), (Some(13), "channel_scale"));
    assert_eq!(blueprint.summary, "one learned factor a channel");
    assert!(blueprint.selectable);
    assert!(load(SCENARIO).is_ok());
    assert!(load(r#"(policy: (controller: "patience"))"#).is_ok());

    let slips = r#"(policy: (controller: "patence", heuristic: (rotation: ["chanel_scale"])))"#;
    let report = load(slips).expect_err("no such names").to_string();
    assert!(report.contains("did you mean `patience`?"), "{report}");
    assert!(report.contains("did you mean `channel_scale`?"), "{report}");
}

fn play(extend: fn(&mut App)) -> (RunReport, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let report = crate::recorded::play(SCENARIO, &folder.path().join("runs"), extend);
    (report, folder)
}

#[test]
fn a_registered_seed_module_grows_and_a_metric_is_recorded_with_every_round_and_shown_with_its_numbers() {
    let (report, _folder) = play(sound);

    let run = directory(&report);
    assert_eq!(events(&run, "seed_germinated")[0]["data"]["blueprint"], "channel_scale");
    let rounds = events(&run, "round_finished");
    assert_eq!(rounds.len(), 2);
    for round in rounds {
        let metrics = round["data"]["metrics"].as_object().expect("metrics");
        assert_eq!(metrics.keys().collect::<Vec<_>>(), ["best_env"]);
        assert!(metrics["best_env"].as_f64().is_some_and(|best| best > 0.0), "{round}");
    }
    let results = report.record.and_then(|record| record.results).expect("it was folded");
    let text = summary(&results, &run, 100);
    assert!(text.contains("best_env"), "{text}");
}

#[test]
fn a_bad_seed_module_is_named_at_start_up_and_nothing_is_touched() {
    let (report, folder) = play(|app| add(app, ChannelScale::Broken));

    let failure = report.failure.expect("the module is refused").to_string();
    assert!(failure.contains("blueprint `channel_scale` cannot grow"), "{failure}");
    assert!(failure.contains("its residual must start at exactly 0"), "{failure}");
    assert!(report.record.is_none());
    assert!(!folder.path().join("runs").exists());
}
