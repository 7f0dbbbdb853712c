//! Hosts that never grew, played after the run for comparison.

use bevy_ecs::prelude::*;

use super::Engine;
use crate::data::DataRegistry;
use crate::env::{EnvId, EpisodeStats, Experiment, ValMetrics};
use crate::health::{EngineError, Failure, Position, RunHealth};
use crate::network::HostRegistry;
use crate::reward::RewardModes;
use crate::run::StopSignal;
use crate::scenario::{InitialTopology, Keep};
use crate::seed::BlueprintRegistry;
use crate::telemetry::{
    BaselineMeasured, EndReason, EpisodeFinished, Event, GrowthCounts, Num, TelemetryHub, TelemetryOutbox,
};
use crate::validation::TestResult;

/// Hosts that are played at most.
const HOSTS: usize = 8;

/// Plays the best episode, and others of its round, again with a controller that only waits: the same hosts, data, order and
/// number of steps, never grown. A configuration of the same loop, without a record and without the application's systems,
/// which have seen the end of the run.
pub(crate) fn measure_control(world: &mut World) {
    let stop = world.resource::<StopSignal>().clone();
    let has_stopped = world.resource::<RunHealth>().failure.is_some() || stop.is_requested();
    if has_stopped || !world.contains_resource::<TelemetryHub>() {
        return;
    }
    let live = world.resource::<TelemetryHub>().live();
    let Some((best, episode)) = live.best_episode().map(|best| (best.at, best.data.clone())) else {
        return;
    };
    let nothing_grew = live.seed_ends.germinated == 0;
    let mut experiment = world.resource::<Experiment>().clone();
    if nothing_grew && has_never_grown(&episode, &experiment) {
        emit_baseline(world, baseline_of(&episode));
        return;
    }
    if episode.end == EndReason::EarlyStop {
        experiment.task.max_steps = episode.length;
    }
    experiment.scenario.run.early_stop = None;
    experiment.scenario.run.run_early_stop = None;
    experiment.scenario.policy.controller = "wait".into();
    experiment.scenario.initial_topology = InitialTopology::Empty;
    experiment.scenario.faults.clear();
    experiment.scenario.run.keep = Keep::None;
    let best_env = best.env as usize;
    let others = experiment.envs.iter().copied().filter(|&env| env != best_env);
    let mut envs: Vec<usize> = std::iter::once(best_env).chain(others).take(HOSTS).collect();
    envs.sort_unstable();
    experiment.envs = envs;
    experiment.rounds = best.round..best.round + 1;
    let alone = Experiment {
        envs: vec![best_env],
        ..experiment.clone()
    };
    let measured = play_control(experiment, best_env, world);
    // Next to the hosts of the run there may be room for one more but not for eight.
    let measured = measured.or_else(|error| match stop.is_requested() {
        true => Err(error),
        false => play_control(alone, best_env, world),
    });
    match measured {
        // A part of an episode isn't a measurement.
        _ if stop.is_requested() => {}
        Ok(baseline) => emit_baseline(world, baseline),
        Err(error) => tracing::warn!("the host that never grew could not be measured: {error}"),
    }
}

fn emit_baseline(world: &mut World, baseline: BaselineMeasured) {
    world.resource_scope(|world, mut hub: Mut<TelemetryHub>| {
        let mut outbox = world.resource_mut::<TelemetryOutbox>();
        outbox.push(Event::run(baseline));
        hub.flush(&mut outbox);
    });
}

/// Returns whether the episode was that of the control, so that playing it again would have the same result.
fn has_never_grown(episode: &EpisodeFinished, experiment: &Experiment) -> bool {
    let scenario = &experiment.scenario;
    let begins_empty = scenario.initial_topology == InitialTopology::Empty;
    begins_empty && scenario.faults.is_empty() && episode.growth == GrowthCounts::default() && episode.rollbacks == 0
}

/// The episode as a measured control.
fn baseline_of(episode: &EpisodeFinished) -> BaselineMeasured {
    BaselineMeasured {
        val_accuracy: episode.final_accuracy,
        test_accuracy: episode.test_accuracy,
        hosts: vec![episode.final_accuracy],
    }
}

fn play_control(experiment: Experiment, best_env: usize, run: &mut World) -> Result<BaselineMeasured, EngineError> {
    let stop = run.resource::<StopSignal>().clone();
    let failed = |failure: Failure| failure.during("control", Position::default());
    let mut engine = Engine::builder()
        .build_experiment(experiment)
        .map_err(|error| failed(error.into()))?;
    engine.world_mut().insert_resource(stop.clone());
    lend_names(run, engine.world_mut());
    engine.run()?;
    if stop.is_requested() {
        // Perhaps before there were any envs.
        return Err(failed(Failure::message("the run was asked to stop")));
    }
    let world = engine.world_mut();
    let mut envs = world.query::<(&EnvId, &ValMetrics, &EpisodeStats, &TestResult)>();
    let mut hosts: Vec<_> = envs
        .iter(world)
        .filter(|(_, _, stats, ..)| stats.error.is_none())
        .collect();
    hosts.sort_unstable_by_key(|(id, ..)| id.index);
    let shown = |val: &ValMetrics, stats: &EpisodeStats| stats.last_val.unwrap_or(*val);
    let ends = hosts.iter().map(|&(_, val, stats, ..)| shown(val, stats));
    let accuracies = ends.map(|end| Num(end.accuracy_percent)).collect();
    let best = hosts.into_iter().find(|(id, ..)| id.index == best_env);
    let (_, val, stats, test) = best.ok_or_else(|| failed(Failure::message("its env has failed")))?;
    let last = shown(val, stats);
    Ok(BaselineMeasured {
        val_accuracy: Num(last.accuracy_percent),
        test_accuracy: test.0.map(|(accuracy, _)| Num(accuracy)),
        hosts: accuracies,
    })
}

/// The names that a scenario may use, an application's among them: all that the control has of its extension.
fn lend_names(from: &World, to: &mut World) {
    fn lend<R: Resource + Clone>(from: &World, to: &mut World) {
        if let Some(names) = from.get_resource::<R>() {
            to.insert_resource(names.clone());
        }
    }
    lend::<DataRegistry>(from, to);
    lend::<HostRegistry>(from, to);
    lend::<BlueprintRegistry>(from, to);
    lend::<RewardModes>(from, to);
}

#[cfg(test)]
mod tests;
