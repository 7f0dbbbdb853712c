//! An env's numbers depend on nothing but the scenario, its index and the seed.

use bevy_app::App;
use bevy_ecs::prelude::*;
use simic_engine::internals::env::{HostModel, SeedOptimizers};
use simic_engine::prelude::*;

use super::support::*;

/// Weights and metrics of env 2, after every step.
#[derive(Resource, Default, PartialEq)]
struct Trajectory {
    host: Vec<Vec<Vec<u32>>>,
    seeds: Vec<Vec<Vec<Vec<u32>>>>,
    metrics: Vec<[u64; 4]>,
}

type Trained = (
    &'static EnvId,
    &'static mut HostModel,
    &'static mut SeedOptimizers,
    &'static TrainMetrics,
    &'static ValMetrics,
);

fn note(mut envs: Query<Trained>, mut trajectory: ResMut<Trajectory>) {
    for (id, mut host, mut optimizers, train, val) in &mut envs {
        if id.index == 2 {
            trajectory.host.push(host_bits(&mut host));
            trajectory.seeds.push(seed_bits(&mut optimizers));
            trajectory
                .metrics
                .push([train.loss, train.accuracy_percent, val.loss, val.accuracy_percent].map(f64::to_bits));
        }
    }
}

/// Plays `envs` of a run of four, two rounds long.
fn trajectory(policy: &str, envs: &[usize]) -> Trajectory {
    let text = format!(
        r#"(name: "test", preset: "manual", task: {MINIMAL}, policy: {policy}, run: (rounds: 2, n_envs: 4, max_steps: 14))"#
    );
    let mut app = app(&text, |app: &mut App| {
        app.init_resource::<Trajectory>()
            .add_systems(StepEnd, note.after(Work::EmitStep));
    });
    app.world_mut().resource_mut::<Experiment>().envs = envs.to_vec();
    play(app)
}

#[test]
fn an_env_alone_is_bit_for_bit_the_env_among_others() {
    // Waiting; growing on a timetable, with the seed blending at the end; and drawing its decisions.
    let growing = schedule(&[
        (1, &germinate("r0c0", "conv_small")),
        (2, &advance("r0c0")),
        (12, &advance("r0c0")),
    ]);
    for policy in [
        WAIT,
        growing.as_str(),
        r#"(controller: "random")"#,
        r#"(controller: "heuristic")"#,
    ] {
        let among_others = trajectory(policy, &[0, 1, 2, 3]);
        let alone = trajectory(policy, &[2]);

        assert_eq!(alone.metrics.len(), 2 * 14);
        assert!(alone == among_others, "{policy}");
    }
}

#[test]
fn envs_differ_from_each_other_and_rounds_too() {
    let run = trajectory(WAIT, &[2]);

    assert!(run.host[0] != run.host[14], "another round, another host");
    assert!(run.metrics[0] != run.metrics[14]);
}
