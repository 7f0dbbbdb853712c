//! Everything that a scenario can name resumes after an interruption as if there had been none: every controller, host,
//! blueprint, reward, policy network, optimizer and normaliser, of the engine and of an application, down to every batch
//! served; between rounds and inside them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use simic_engine::internals::checkpoint::{CheckpointId, CheckpointName, Checkpoints};
use simic_engine::internals::controller::SavedFolder;
use simic_engine::internals::engine::RunReport;
use simic_engine::internals::growth::{AlphaTarget, GerminationStyle, Tempo};
use simic_engine::internals::host::{Conv, ResidualBlock};
use simic_engine::internals::prior_art::PriorArtPlugin;
use simic_engine::internals::record::RunDirectory;
use simic_engine::internals::reward::{RewardInputs, RewardTerms};
use simic_engine::internals::run::StopRequest;
use simic_engine::internals::torch::{HostSyncCounter, read_f64};
use simic_engine::prelude::*;
use tch::{Kind, Tensor};

use crate::custom_names::ChannelScale;
use crate::recorded::resumed;
use crate::support::first_difference;

/// What a batch was, by run, round, step, batch and env. A batch that is served again must be the same.
type Served = BTreeMap<(PathBuf, [u32; 4]), Vec<u64>>;
static SERVED: Mutex<Served> = Mutex::new(BTreeMap::new());

fn note_batch(batch: &HookedBatch, run: &Path) {
    let bits = |tensor: &Tensor| {
        let values = tensor.to_kind(Kind::Double).flatten(0, -1);
        // Order counts.
        let sum = (&values * Tensor::arange(values.numel() as i64, (Kind::Double, values.device()))).sum(Kind::Double);
        read_f64(&sum, &HostSyncCounter::default()).expect("it is read")[0].to_bits()
    };
    let (clock, env) = (batch.clock, batch.env.id.index);
    let place = [clock.round(), clock.step(), batch.index as u32, env as u32];
    let served = vec![bits(&batch.samples.x), bits(&batch.samples.y)];
    let mut all = SERVED.lock().unwrap_or_else(PoisonError::into_inner);
    let before = all.insert((run.into(), place), served.clone());
    assert!(
        before.is_none_or(|before| before == served),
        "another batch at {place:?}"
    );
}

fn served(run: &Path) -> Vec<([u32; 4], Vec<u64>)> {
    let all = SERVED.lock().unwrap_or_else(PoisonError::into_inner);
    let own = all.iter().filter(|((folder, _), _)| folder == run);
    own.map(|((_, place), bits)| (*place, bits.clone())).collect()
}

/// Remembers across rounds how often it was asked, and plants every other time.
struct Alternating {
    asked: u32,
    blueprint: usize,
}

impl Controller for Alternating {
    fn name(&self) -> &str {
        "alternating"
    }

    fn decide(&mut self, _: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        let mut decide = |masks: &MaskSet| {
            self.asked += 1;
            let slot = masks.slots_for(LifecycleOp::Germinate).iter().next();
            let plant = slot.map(|slot| LifecycleCommand::Germinate {
                slot,
                blueprint: self.blueprint,
                style: GerminationStyle::SigmoidAdd,
                tempo: Tempo::Fast,
                target: AlphaTarget::Full,
            });
            let command = plant.filter(|command| self.asked % 2 == 1 && masks.allows(command));
            Decision::new(command.unwrap_or(LifecycleCommand::Wait), masks, self.asked.to_string())
        };
        Ok(masks.iter().map(&mut decide).collect())
    }

    fn save(&self, folder: &Path) -> Result<(), PolicyError> {
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(folder.join("asked"), self.asked.to_string()).expect("a file");
        Ok(())
    }

    fn load(&mut self, saved: &SavedFolder) -> Result<(), PolicyError> {
        let text = std::str::from_utf8(saved.file("asked")?).expect("a number");
        self.asked = text.parse().expect("a number");
        Ok(())
    }
}

fn short(classes: i64) -> HostPlan {
    let stem = HostPlan::new(1, 8).layer("stem", Conv::new(4, 3)).slot(0, 0);
    stem.layer("block", ResidualBlock::new(8, 2)).slot(0, 1).head(classes)
}

fn thrift(inputs: &RewardInputs) -> f64 {
    -0.05 * inputs.slots.iter().filter(|slot| slot.after.is_some()).count() as f64
}

fn register(app: &mut App) {
    app.add_plugins(PriorArtPlugin);
    let world = app.world_mut();
    world.resource_mut::<ControllerRegistry>().register(
        "alternating",
        "plants every other time",
        Arc::new(|context| {
            let blueprint = context.blueprint("policy.controller", "channel_scale")?;
            Ok(Box::new(Alternating { asked: 0, blueprint }))
        }),
    );
    world
        .resource_mut::<BlueprintRegistry>()
        .register(Arc::new(ChannelScale { seed_init: 0.0 }));
    world
        .resource_mut::<HostRegistry>()
        .register("short", "a stem and a residual block", Arc::new(short));
    let folder = Arc::new(Mutex::new(PathBuf::new()));
    let known = Arc::clone(&folder);
    let find = move |run: Res<RunDirectory>| run.path().clone_into(&mut known.lock().expect("no hook panicked"));
    app.add_systems(RoundStart, find.after(Work::BeginRound).before(Work::ResetEnvs))
        .on_train_batch(BatchPoint::Fetched, move |batch| {
            note_batch(batch, &folder.lock().expect("no hook panicked"));
            Ok(())
        });
}

fn register_with_a_term(app: &mut App) {
    register(app);
    app.world_mut()
        .resource_mut::<RewardTerms>()
        .register("thrift", "a price on every seed", Arc::new(thrift));
}

/// Asks the run to stop inside the second round.
fn interrupted(app: &mut App) {
    register(app);
    app.add_systems(StepEnd, interrupt.before(EngineSet::Checkpoint));
}

fn interrupted_with_a_term(app: &mut App) {
    register_with_a_term(app);
    app.add_systems(StepEnd, interrupt.before(EngineSet::Checkpoint));
}

fn interrupt(clock: Res<RunClock>, stop: Res<StopSignal>) {
    let position = clock.position();
    if (position.round, position.step) == (Some(1), Some(3)) {
        stop.request(StopRequest::Interrupt);
    }
}

/// The sections of a scenario, each of which a case may give in another form.
#[derive(Clone)]
struct Case {
    name: String,
    task: String,
    policy: String,
    reward: String,
    lifecycle: String,
    learner: String,
    /// Further sections.
    more: String,
    has_term: bool,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            name: "as it is".into(),
            task: r#"preset("digits_impaired", (batches_per_step: count(2), val_batches_per_step: count(1)))"#.into(),
            policy: r#"controller: "actor_critic", net: "lstm", net_cfg: (feature_dim: 16, hidden_dim: 16)"#.into(),
            reward: "contribution(committed())".into(),
            lifecycle: String::new(),
            learner: String::new(),
            more: String::new(),
            has_term: false,
        }
    }
}

impl Case {
    fn scenario(&self) -> String {
        let Self {
            task,
            policy,
            reward,
            lifecycle,
            learner,
            more,
            ..
        } = self;
        format!(
            r#"(
                name: "kinds", preset: "manual", task: {task}, run: (rounds: 3, n_envs: 2, max_steps: 6),
                policy: ({policy}), reward: {reward}, learner: ({learner}),
                lifecycle: (auto_forward: (g1: true, g2: true, g3: true), gates: (min_training_steps: 1), {lifecycle}), {more}
            )"#
        )
    }

    /// Plays it whole, and with an interruption, from which it resumes both inside the round and before it: all must end with
    /// the same bits and have been served the same batches.
    fn holds(&self) {
        let (whole, halves) = if self.has_term {
            (
                register_with_a_term as fn(&mut App),
                interrupted_with_a_term as fn(&mut App),
            )
        } else {
            (register as fn(&mut App), interrupted as fn(&mut App))
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let undisturbed = self.play(whole, &folder.path().join("whole"));
        let stopped = self.play(halves, &folder.path().join("halves"));
        assert!(stopped.stopped_by.is_some(), "{}: it was not interrupted", self.name);
        let (expected, run) = (directory(&undisturbed), directory(&stopped));
        let newest = Checkpoints::of(&run).ids()[0];
        assert_eq!(newest, CheckpointId { round: 1, step: 3 }, "{}", self.name);
        let other = folder
            .path()
            .join("before")
            .join(run.file_name().expect("it has a name"));
        copy(&run, &other);

        self.resumes(&run, CheckpointName::Last, whole, &expected);
        if Checkpoints::of(&other).rounds().contains(&1) {
            self.resumes(&other, CheckpointName::Round(1), whole, &expected);
        }

        let (one, other) = (served(&expected), served(&run));
        assert_eq!(one.len(), 3 * 6 * 2 * 2, "{}", self.name);
        assert!(one == other, "{}: other batches were served", self.name);
    }

    fn resumes(&self, run: &Path, from: CheckpointName, extend: fn(&mut App), expected: &Path) {
        let mut engine =
            resumed(run, from, extend, 2).unwrap_or_else(|error| panic!("{} from {from}: {error}", self.name));
        let report = engine.play();
        assert!(
            report.failure.is_none(),
            "{} from {from}: {:?}",
            self.name,
            report.failure
        );
        if let Some(difference) = first_difference(expected, run) {
            panic!("{} from {from}: {difference}", self.name);
        }
    }

    fn play(&self, extend: fn(&mut App), out: &Path) -> RunReport {
        let engine = Engine::builder().with(extend).threads(1).recorded(out);
        let engine = engine.from_ron(&self.scenario());
        let report = engine.unwrap_or_else(|error| panic!("{}: {error}", self.name)).play();
        assert!(report.failure.is_none(), "{}: {:?}", self.name, report.failure);
        report
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_symlink() {
            // Of checkpoints; tidying creates them again.
        } else if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).expect("a file is copied");
        }
    }
}

fn directory(report: &RunReport) -> PathBuf {
    report.record.as_ref().expect("it was recorded").directory.clone()
}

/// A case for each of `forms`, which `change` puts into its section.
fn cases(forms: &[&str], change: impl Fn(&mut Case, &str)) -> Vec<Case> {
    let case = |form: &&str| {
        let mut case = Case {
            name: (*form).into(),
            ..Case::default()
        };
        change(&mut case, form);
        case
    };
    forms.iter().map(case).collect()
}

const SMALL: &str = "feature_dim: 16, hidden_dim: 16";
const COMMANDS: &str = r#"schedule: (wait_on_illegal: true, entries: [
    (step: 1, command: germinate(slot: "r0c0", blueprint: "conv_light", style: "sigmoid_add", tempo: "fast", target: "full")),
    (step: 5, command: commit(slot: "r0c0"))])"#;

#[test]
fn every_controller_resumes_as_it_was() {
    let forms = [
        "heuristic",
        "periodic",
        "fragrow",
        "random",
        "wait",
        "static",
        "alternating",
        "schedule",
    ];
    let all = cases(&forms, |case, name| {
        let more = if name == "schedule" { COMMANDS } else { "" };
        case.policy = format!(r#"controller: "{name}", {more}"#);
        if name == "static" {
            case.more = r#"initial_topology: seeds([(slot: "r0c0", blueprint: "conv_light")])"#.into();
        }
    });
    all.iter().for_each(Case::holds);
}

#[test]
fn every_policy_network_resumes_as_it_was() {
    let forms = ["lstm", "gru", "mlp"];
    let all = cases(&forms, |case, net| {
        case.policy = format!(r#"controller: "actor_critic", net: "{net}", net_cfg: ({SMALL})"#);
    });
    all.iter().for_each(Case::holds);
}

#[test]
fn every_host_resumes_as_it_was() {
    let forms = [
        "cnn((in_channels: 1, base_channels: 2, n_blocks: 2, kernel_size: 3, pool_layers: 2, input_hw: 8, norm: group))",
        "resnet((in_channels: 1, base_channels: 4, blocks: [1, 1], input_hw: 8))",
        "resnet((in_channels: 1, base_channels: 4, blocks: [1, 1], input_hw: 8, pre_activation: true, shortcut: projection))",
        "vgg((in_channels: 1, base_channels: 4, blocks: [1, 1], input_hw: 8))",
        r#"named("short")"#,
    ];
    let all = cases(&forms, |case, host| {
        case.task = format!(
            r#"preset("digits_impaired", (batches_per_step: count(2), val_batches_per_step: count(1), host: {host}))"#
        );
        case.lifecycle = r#"slots: ["r0c0"]"#.into();
    });
    all.iter().for_each(Case::holds);
}

#[test]
fn a_language_model_resumes_as_it_was() {
    let case = Case {
        name: "synth_tokens".into(),
        task: r#"preset("synth_tokens", (batch_size: 4, batches_per_step: count(2), val_batch_size: 16,
            val_batches_per_step: count(1)))"#
            .into(),
        reward: "loss()".into(),
        ..Case::default()
    };
    case.holds();
}

#[test]
fn every_blueprint_and_birth_resumes_as_it_was() {
    let blueprints = [
        "conv_light",
        "conv_small",
        "conv_heavy",
        "depthwise",
        "bottleneck",
        "attention",
        "norm",
        "channel_scale",
    ];
    let plants = |case: &mut Case, blueprint: &str| {
        case.policy = format!(
            r#"controller: "schedule", schedule: (wait_on_illegal: true, entries: [
                (step: 1, command: germinate(slot: "r0c1", blueprint: "{blueprint}", style: "sigmoid_add", tempo: "fast",
                    target: "full")),
                (step: 6, command: commit(slot: "r0c1")),
            ])"#
        );
    };
    cases(&blueprints, plants).iter().for_each(Case::holds);
}

#[test]
fn every_reward_resumes_as_it_was() {
    let forms = [
        "contribution(committed())",
        "contribution(shaped())",
        "contribution(shaped((committed_attribution: live)))",
        "contribution(escrow())",
        "contribution(simplified())",
        "contribution(basic())",
        "contribution(basic_plus())",
        "contribution(sparse())",
        "contribution(minimal())",
        "loss()",
    ];
    let mut all = cases(&forms, |case, reward| case.reward = reward.into());
    all.push(Case {
        name: "a term of an application".into(),
        has_term: true,
        ..Case::default()
    });
    all.iter().for_each(Case::holds);
}

#[test]
fn every_optimizer_resumes_as_it_was() {
    let forms = [
        "sgd(lr: 0.01, momentum: 0.0, weight_decay: 0.0)",
        "sgd(lr: 0.01, momentum: 0.9, weight_decay: 5e-4)",
        "adamw(lr: 1e-3, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.1)",
    ];
    let all = cases(&forms, |case, optimizer| {
        case.task = format!(
            r#"preset("digits_impaired", (batches_per_step: count(2), val_batches_per_step: count(1),
                host_opt: {optimizer}, seed_opt: {optimizer}))"#
        );
    });
    all.iter().for_each(Case::holds);
}

#[test]
fn every_switch_of_the_learner_resumes_as_it_was() {
    let forms = [
        "value_norm: (momentum: 0.9)",
        "advantage_baseline: leave_one_out",
        "entropy_anneal_episodes: 4, entropy_coef_end: 0.02",
        "episodes_per_update: 2",
    ];
    let all = cases(&forms, |case, learner| {
        case.learner = learner.into();
    });
    all.iter().for_each(Case::holds);
}
