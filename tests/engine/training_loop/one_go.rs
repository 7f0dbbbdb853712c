//! Envs that play the batches of a step in one go do what they do batch by batch.

use bevy_app::App;
use bevy_ecs::prelude::*;
use simic_engine::env::HostModel;
use simic_engine::prelude::*;
use simic_engine::random::RunRng;
use simic_engine::seed::BlueprintError;
use simic_engine::torch::{Backend, Init, Mode, ParamSet};
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

/// A system of an application in a batch: the schedules are then played batch by batch.
fn watch() {}

fn is_watched(train: bool, val: bool) -> Engine {
    app(&scenario(MINIMAL, 3, 18, GROW_ONE_SEED), move |app: &mut App| {
        app.init_resource::<Steps>()
            .add_systems(StepEnd, note.after(Work::EmitStep));
        if train {
            app.add_systems(TrainBatch, watch);
        }
        if val {
            app.add_systems(ValBatch, watch);
        }
    })
}

#[test]
fn one_go_and_batch_by_batch_give_the_same_bits() {
    let in_one_go: Steps = play(is_watched(false, false));

    assert_eq!(in_one_go.0.len(), 3 * 18);
    for (train, val) in [(true, false), (false, true), (true, true)] {
        assert!(play::<Steps>(is_watched(train, val)) == in_one_go);
    }
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

fn register(app: &mut App) -> Result<(), ExtensionError> {
    let mut blueprints = app.world_mut().resource_mut::<BlueprintRegistry>();
    blueprints.register(Box::new(Brittle))?;
    Ok(())
}

#[test]
fn a_failure_names_work_batch_and_env_either_way() {
    let policy = schedule(&[(1, &germinate("r0c0", "brittle")), (2, &advance("r0c0"))]);
    let fail = |is_watched: bool| {
        let builder = Engine::builder().threads(2).extended(register);
        let engine = builder.from_ron(&scenario(MINIMAL, 2, 4, &policy));
        let mut engine = engine.unwrap_or_else(|problems| panic!("{problems}"));
        if is_watched {
            engine.app_mut().add_systems(TrainBatch, watch);
        }
        engine.run().expect_err("the module fails").to_string()
    };

    let (in_one_go, batch_by_batch) = (fail(false), fail(true));

    assert!(
        in_one_go.starts_with("train failed at round 1, step 3, batch 1, env 0") && in_one_go.contains("it broke"),
        "{in_one_go}"
    );
    assert_eq!(in_one_go, batch_by_batch);
}
