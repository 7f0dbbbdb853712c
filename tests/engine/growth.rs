//! What growth does to the tensors of a running engine, and what it leaves alone.

use bevy_ecs::prelude::*;
use simic_engine::internals::actions::{Decision, MaskSet, PolicyError};
use simic_engine::internals::controller::{BuildContext, Controller, ControllerRegistry, DecisionView};
use simic_engine::internals::env::HostModel;
use simic_engine::internals::growth::{
    AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, LifecycleCommand, SeedStage, Tempo,
};
use simic_engine::prelude::*;
use tch::Tensor;

const SCENARIO: &str = r#"(
    name: "growth",
    preset: "manual", task: preset("digits_impaired", (batches_per_step: count(2))),
    run: (rounds: 1, n_envs: 2, max_steps: 12),
    lifecycle: (
        auto_forward: (g1: true, g2: true, g3: true),
        gates: (min_training_epochs: 1, min_gradient_health: 0.0),
        min_prune_age: 0,
    ),
)"#;

/// Orders commands for env 0 alone.
struct Script(&'static [(u32, LifecycleCommand)]);

impl Controller for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn decide(&mut self, view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        let due = self
            .0
            .iter()
            .find(|(step, _)| *step == view.step)
            .map(|(_, command)| *command);
        Ok(view
            .envs
            .iter()
            .zip(masks)
            .map(|(env, masks)| {
                let command = due.filter(|_| env.row.env == 0).unwrap_or(LifecycleCommand::Wait);
                Decision::new(command, masks, "scripted")
            })
            .collect())
    }
}

const GERMINATE: LifecycleCommand = LifecycleCommand::Germinate {
    slot: 1,
    blueprint: 1,
    style: GerminationStyle::LinearAdd,
    tempo: Tempo::Fast,
    target: AlphaTarget::Full,
};
const PRUNE_SLOWLY: LifecycleCommand = LifecycleCommand::Prune {
    slot: 1,
    speed: AlphaSpeed::Fast,
    curve: AlphaCurveAction::Cosine,
};

fn growing(_: &BuildContext) -> Result<Box<dyn Controller>, PolicyError> {
    Ok(Box::new(Script(&[(1, GERMINATE), (7, PRUNE_SLOWLY)])))
}

fn idle(_: &BuildContext) -> Result<Box<dyn Controller>, PolicyError> {
    Ok(Box::new(Script(&[])))
}

/// An env at the end of a step.
#[derive(Clone, Debug, PartialEq)]
struct Snapshot {
    env: usize,
    step: u32,
    /// Of slot 1.
    stage: SeedStage,
    alpha: f64,
    seed: Vec<f32>,
    host: Vec<f32>,
    val_loss: f64,
}

#[derive(Resource, Default)]
struct Log(Vec<Snapshot>);

fn values<'a>(tensors: impl Iterator<Item = &'a Tensor>) -> Vec<f32> {
    let flat: Vec<Tensor> = tensors.map(|tensor| tensor.detach().reshape([-1])).collect();
    match flat.is_empty() {
        true => Vec::new(),
        false => Vec::try_from(Tensor::cat(&flat, 0)).expect("f32 tensors"),
    }
}

fn remember(
    mut envs: Query<(&EnvId, &ValMetrics, &mut HostModel, &mut SeedSlots)>,
    clock: Res<RunClock>,
    mut log: ResMut<Log>,
) {
    for (id, val, mut host, mut slots) in &mut envs {
        let slot = &mut slots.0[1];
        let record = slot.record.as_ref();
        log.0.push(Snapshot {
            env: id.index,
            step: clock.step(),
            stage: record.map_or(SeedStage::Dormant, |seed| seed.stage),
            alpha: record.map_or(0.0, |seed| seed.alpha.alpha()),
            seed: slot.module.as_mut().map_or(Vec::new(), |module| {
                values(module.get().params().map(|param| &param.tensor))
            }),
            host: values(host.0.get().params().all().map(|param| &param.tensor)),
            val_loss: val.loss,
        });
    }
}

fn play(factory: fn(&BuildContext) -> Result<Box<dyn Controller>, PolicyError>) -> Vec<Snapshot> {
    let mut engine = crate::support::engine(SCENARIO);
    let mut experiment = engine.world_mut().resource_mut::<Experiment>();
    experiment.scenario.policy.controller = "script".into();
    engine
        .app_mut()
        .init_resource::<Log>()
        .add_systems(StepEnd, remember.in_set(EngineSet::Record).after(Work::EmitStep));
    let mut controllers = engine.world_mut().resource_mut::<ControllerRegistry>();
    controllers.register("script", "what the test orders", Arc::new(factory));
    engine.run().expect("the run succeeds");
    engine.world_mut().remove_resource::<Log>().expect("inserted above").0
}

fn of_env(log: &[Snapshot], env: usize) -> Vec<&Snapshot> {
    log.iter().filter(|snapshot| snapshot.env == env).collect()
}

/// What fades is not trained.
#[test]
fn a_seed_that_fades_keeps_its_parameters_bit_for_bit() {
    let log = play(growing);
    let env = of_env(&log, 0);
    let at = |step: u32| env[step as usize - 1];

    assert_eq!(at(6).stage, SeedStage::Holding);
    assert_ne!(at(6).seed, at(5).seed, "a held seed trains");
    assert_eq!(
        [at(7).alpha, at(8).alpha].map(|alpha| (alpha * 1e4).round()),
        [7500.0, 2500.0]
    );
    assert_eq!(at(8).seed, at(7).seed);
    assert_ne!(at(8).host, at(7).host, "the host continues to train");
    assert_eq!((at(9).stage, at(9).seed.len()), (SeedStage::Pruned, 0));
}

/// Envs share nothing, not even random numbers.
#[test]
fn growth_in_one_env_changes_nothing_in_another() {
    let (growing, idle) = (play(growing), play(idle));

    assert_ne!(of_env(&growing, 0), of_env(&idle, 0));
    assert_eq!(of_env(&growing, 1), of_env(&idle, 1));
}
