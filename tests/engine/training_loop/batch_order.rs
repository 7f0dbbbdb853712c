//! Envs that play all their batches one after the other do what they do when all play each batch together.

use simic_engine::internals::health::Failure;
use simic_engine::internals::training::BatchOrder;
use simic_engine::prelude::*;

use super::support::*;
use crate::custom_names::ChannelScale;
use crate::recorded::NOTHING;

/// State after every step: losses and the host's bits, in the order of envs.
type Steps = Vec<(usize, [f64; 2], Vec<Vec<u32>>)>;

fn note(mut envs: Query<(&EnvId, &TrainMetrics, &ValMetrics, &mut HostModel)>, mut steps: ResMut<Notes<Steps>>) {
    for (id, train, val, mut host) in envs.iter_mut().sort_unstable::<&EnvId>() {
        steps.0.push((id.index, [train.loss, val.loss], host_bits(&mut host)));
    }
}

fn in_order(order: BatchOrder, mut engine: Engine) -> Engine {
    engine.app_mut().insert_resource(order);
    engine
}

#[test]
fn both_orders_of_envs_and_batches_give_the_same_bits() {
    let [by_env, by_batch] = [BatchOrder::EnvByEnv, BatchOrder::BatchByBatch].map(|order| -> Steps {
        noted(
            in_order(order, app(&scenario(MINIMAL, 3, 18, &grow_one_seed()), NOTHING)),
            note,
        )
    });

    assert_eq!(by_env.len(), 3 * 18);
    assert!(by_env == by_batch);
}

#[test]
fn a_system_of_an_application_stands_between_training_and_validation_of_all_envs_in_either_order() {
    type Played = Vec<&'static str>;
    for order in [BatchOrder::EnvByEnv, BatchOrder::BatchByBatch] {
        let engine = app(&scenario(MINIMAL, 2, 1, WAIT), |app: &mut App| {
            hook(app, BatchPoint::Updated, |_, played: &mut Played| {
                played.push("trained")
            });
            hook(app, BatchPoint::Validated, |_, played: &mut Played| {
                played.push("validated")
            });
            let stand = |played: Res<Shared<Played>>| played.lock().push("between");
            app.add_systems(Batches, stand.after(EngineSet::TrainStep).before(EngineSet::Validate));
        });

        let played: Played = play_hooked(in_order(order, engine));

        assert_eq!(played[..5], ["trained", "trained", "trained", "trained", "between"]);
        let validated = &played[5..];
        assert!(validated.len() > 1 && validated.iter().all(|what| *what == "validated"));
    }
}

fn register(app: &mut App) {
    let mut blueprints = app.world_mut().resource_mut::<BlueprintRegistry>();
    blueprints.register(Arc::new(ChannelScale::Brittle));
}

#[test]
fn a_failure_names_part_batch_and_env_in_either_order() {
    let policy = schedule(&[(1, &germinate("r0c0", "channel_scale")), (2, &advance("r0c0"))]);
    let fail = |order: BatchOrder| {
        let engine = app(&scenario(MINIMAL, 2, 4, &policy), register);
        let failure = in_order(order, engine).run().expect_err("the module fails");
        failure.to_string()
    };

    let [by_env, by_batch] = [BatchOrder::EnvByEnv, BatchOrder::BatchByBatch].map(fail);

    let place = "train failed at round 1, step 3, batch 1, env 0";
    assert!(by_env.starts_with(place) && by_env.contains("it broke"), "{by_env}");
    assert_eq!(by_env, by_batch);
}

#[test]
fn an_error_of_a_hook_stops_the_run_and_is_reported_as_that_of_a_batch() {
    let mut engine = app(&scenario(MINIMAL, 2, 4, WAIT), |app: &mut App| {
        app.on_batch(BatchPoint::Updated, |batch| match (batch.env.id.index, batch.index) {
            (1, 1) => Err(Failure::message("seen enough")),
            _ => Ok(()),
        });
    });

    let error = engine.run().expect_err("the hook fails").to_string();

    let expected = "a hook of the batch failed at round 1, step 1, batch 2, env 1: seen enough";
    assert_eq!(error, expected);
}
