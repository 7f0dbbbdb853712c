//! Envs that play all their batches one after the other do what they do when all play each batch together.

use bevy_app::App;
use bevy_ecs::prelude::*;
use simic_engine::internals::env::HostModel;
use simic_engine::internals::health::Failure;
use simic_engine::internals::nn::{Init, Mode, ParamSet};
use simic_engine::internals::random::RunRng;
use simic_engine::internals::seed::BlueprintError;
use simic_engine::internals::torch::Backend;
use simic_engine::internals::validation::BatchOrder;
use simic_engine::prelude::*;
use tch::{TchError, Tensor};

use super::support::*;

/// What every step left: losses and the host's bits, in the order of envs.
#[derive(Resource, Default, PartialEq)]
struct Steps(Vec<(usize, [f64; 2], Vec<Vec<u32>>)>);

fn note(mut envs: Query<(&EnvId, &TrainMetrics, &ValMetrics, &mut HostModel)>, mut steps: ResMut<Steps>) {
    for (id, train, val, mut host) in envs.iter_mut().sort_unstable::<&EnvId>() {
        steps.0.push((id.index, [train.loss, val.loss], host_bits(&mut host)));
    }
}

fn noted(order: BatchOrder) -> Steps {
    play(app(&scenario(MINIMAL, 3, 18, GROW_ONE_SEED), move |app: &mut App| {
        app.init_resource::<Steps>()
            .insert_resource(order)
            .add_systems(StepEnd, note.after(Work::EmitStep));
    }))
}

#[test]
fn both_orders_of_envs_and_batches_give_the_same_bits() {
    let [by_env, by_batch] = [BatchOrder::EnvByEnv, BatchOrder::BatchByBatch].map(noted);

    assert_eq!(by_env.0.len(), 3 * 18);
    assert!(by_env == by_batch);
}

/// A seed module that fails in training, though not on the few samples that it is tried on at start-up.
struct Brittle;

struct BrittleModule(ParamSet);

/// Of the tasks on digits.
const BATCH_SIZE: i64 = 64;

impl SeedModule for BrittleModule {
    fn delta(&self, x: &Tensor, mode: Mode) -> Result<Option<Tensor>, TchError> {
        match mode {
            Mode::Train if x.size()[0] == BATCH_SIZE => Err(TchError::Torch("it broke".into())),
            _ => Ok(Some(x.f_mul(&self.0.trainable()[0].tensor)?)),
        }
    }

    fn params(&self) -> &ParamSet {
        &self.0
    }

    fn macs(&self, positions: u64) -> u64 {
        positions
    }
}

impl Blueprint for Brittle {
    fn id(&self) -> &'static str {
        "brittle"
    }

    fn summary(&self) -> &'static str {
        "fails in training"
    }

    fn param_count(&self, dim: i64) -> u64 {
        dim as u64
    }

    fn build(&self, dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError> {
        let mut params = ParamSet::new(backend);
        let _weight = params.add("weight", &[dim, 1, 1], Init::Constant(0.0))?;
        params.initialise(rng)?;
        Ok(Box::new(BrittleModule(params)))
    }
}

fn register(app: &mut App) {
    let mut blueprints = app.world_mut().resource_mut::<BlueprintRegistry>();
    blueprints.register(Arc::new(Brittle));
}

#[test]
fn a_failure_names_part_batch_and_env_in_either_order() {
    let policy = schedule(&[(1, &germinate("r0c0", "brittle")), (2, &advance("r0c0"))]);
    let fail = |order: BatchOrder| {
        let builder = Engine::builder().threads(2).with(register);
        let engine = builder.from_ron(&scenario(MINIMAL, 2, 4, &policy));
        let mut engine = engine.unwrap_or_else(|problems| panic!("{problems}"));
        engine.app_mut().insert_resource(order);
        engine.run().expect_err("the module fails").to_string()
    };

    let [by_env, by_batch] = [BatchOrder::EnvByEnv, BatchOrder::BatchByBatch].map(fail);

    assert!(
        by_env.starts_with("train failed at round 1, step 3, batch 1, env 0") && by_env.contains("it broke"),
        "{by_env}"
    );
    assert_eq!(by_env, by_batch);
}

#[test]
fn an_error_of_a_hook_stops_the_run_and_is_told_as_that_of_a_batch() {
    let engine = app(&scenario(MINIMAL, 2, 4, WAIT), |app: &mut App| {
        app.on_train_batch(BatchPoint::Updated, |batch| match (batch.env.id.index, batch.index) {
            (1, 1) => Err(Failure::message("seen enough")),
            _ => Ok(()),
        });
    });
    let mut engine = engine;

    let error = engine.run().expect_err("the hook fails").to_string();

    assert_eq!(
        error,
        "a hook of the batch failed at round 1, step 1, batch 2, env 1: seen enough"
    );
}
