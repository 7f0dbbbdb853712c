//! An env's numbers depend on nothing but the scenario, its index and the seed.

use simic_engine::internals::env::SeedOptimizers;
use simic_engine::prelude::*;

use super::support::*;
use crate::recorded::NOTHING;

/// Weights and metrics of env 2, after every step.
#[derive(Default, PartialEq)]
struct Trajectory {
    host: Vec<Vec<Vec<u32>>>,
    seeds: Vec<Vec<Vec<Vec<u32>>>>,
    metrics: Vec<[u64; 4]>,
}

fn note(
    mut envs: Query<(&EnvId, &mut HostModel, &mut SeedOptimizers, &TrainMetrics, &ValMetrics)>,
    mut notes: ResMut<Notes<Trajectory>>,
) {
    for (_, mut host, mut optimizers, train, val) in envs.iter_mut().filter(|(id, ..)| id.index == 2) {
        notes.0.host.push(host_bits(&mut host));
        notes.0.seeds.push(seed_bits(&mut optimizers));
        let metrics = [train.loss, train.accuracy_percent, val.loss, val.accuracy_percent];
        notes.0.metrics.push(metrics.map(f64::to_bits));
    }
}

/// Plays `envs` of a run of four, two rounds long.
fn trajectory(policy: &str, envs: &[usize]) -> Trajectory {
    let text = scenario(MINIMAL, 4, 14, policy).replace("rounds: 1", "rounds: 2");
    let mut engine = app(&text, NOTHING);
    engine.world_mut().resource_mut::<Experiment>().envs = envs.to_vec();
    noted(engine, note)
}

#[test]
fn an_env_alone_is_bit_for_bit_the_env_among_others() {
    // Growing on a timetable, with the seed blending at the end; and drawing its decisions.
    let growing = schedule(&[
        (1, &germinate("r0c0", "conv_small")),
        (2, &advance("r0c0")),
        (12, &advance("r0c0")),
    ]);
    for policy in [
        growing.as_str(),
        r#"(controller: "random")"#,
        r#"(controller: "heuristic")"#,
    ] {
        let among_others = trajectory(policy, &[0, 1, 2, 3]);
        let alone = trajectory(policy, &[2]);

        assert_eq!(alone.metrics.len(), 2 * 14);
        assert!(alone == among_others, "{policy}");
        assert!(alone.host[0] != alone.host[14], "another round, another host");
        assert!(alone.metrics[0] != alone.metrics[14]);
    }
}
