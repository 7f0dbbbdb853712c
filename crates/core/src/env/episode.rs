//! Birth of the envs and the start and end of their episodes.

use bevy_ecs::prelude::*;
use bevy_platform::cell::SyncCell;

use super::*;
use crate::health::{Failure, InEnv};
use crate::network::HostRegistry;
use crate::nn::Optimizer;
use crate::random::{Domain, RunRng};
use crate::seed::STATISTICS_STRIDE;
use crate::telemetry::EndReason;
use crate::torch::Stream;

/// Gives every env its storage: from here on values change, tensors stay.
pub fn spawn_envs(
    mut commands: Commands,
    experiment: Res<Experiment>,
    devices: Res<Devices>,
    tested: Res<SelfTest>,
    hosts: Res<HostRegistry>,
) -> Result<(), Failure> {
    let task = &experiment.task;
    let design = hosts.of(&task.host, experiment.folder.as_deref())?;
    let plan = design
        .plan(task.classes)
        .frozen(task.freeze.as_deref().unwrap_or_default());
    for &index in &experiment.envs {
        let backend = devices.of_env(index);
        let storage = || -> Result<_, Failure> {
            let stream = Stream::from_pool(backend.device)?;
            let guard = stream.enter()?;
            let mut rng = RunRng::new(experiment.scenario.run.seed, Domain::HostInit, &[0, index as u64]);
            let host = plan.build(&mut rng, backend)?;
            let params = host
                .params()
                .trainable()
                .iter()
                .map(|param| param.tensor.shallow_clone())
                .collect();
            let optimizer = Optimizer::new(&task.host_opt, params, tested.implementation(backend))?;
            drop(guard);
            Ok((stream, host, optimizer))
        };
        let (stream, host, optimizer) = storage().in_env(index)?;
        let slots = experiment.layout.slots();
        commands.spawn((
            EnvId { index },
            EnvBackend(backend),
            EnvStream(SyncCell::new(stream)),
            HostParams(host.params().count()),
            HostModel(SyncCell::new(host)),
            HostOptimizer(SyncCell::new(optimizer)),
            SeedSlots::new(slots),
            SeedOptimizers::new(slots.len()),
        ));
    }
    Ok(())
}

/// A fresh host in the old storage, with given weights where there are some, empty slots, empty tallies. A seed left from the last episode is an
/// error.
pub fn reset_envs(
    mut envs: Query<(
        &EnvId,
        &mut EnvStream,
        &mut HostModel,
        &mut HostOptimizer,
        &mut SeedSlots,
        &mut SeedOptimizers,
        &mut EpisodeStats,
    )>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
    weights: Res<StartingWeights>,
    pool: Res<EnvPool>,
) -> Result<(), Failure> {
    let (seed, round) = (experiment.scenario.run.seed, u64::from(clock.round()));
    let envs = envs
        .iter_mut()
        .map(|(id, stream, host, optimizer, slots, optimizers, stats)| {
            (*id, (stream, host, optimizer, slots, optimizers, stats))
        });
    pool.for_each(envs, |id, env| {
        let (mut stream, mut host, mut optimizer, mut slots, mut optimizers, mut stats) = env;
        let _guard = stream.0.get().enter()?;
        let mut rng = RunRng::new(seed, Domain::HostInit, &[round, id.index as u64]);
        host.0.get().reinitialise(&mut rng)?;
        weights.copy_to(host.0.get().params(), id.index)?;
        optimizer.0.get().zero_state()?;
        optimizer.0.get().drop_gradients()?;
        if let Some(seed) = slots.records().flatten().next() {
            return Err(Failure::message(format!(
                "slot {} still holds seed {}; the last episode was not torn down",
                seed.identity.slot, seed.identity.seed_id
            )));
        }
        slots.clear();
        optimizers.clear();
        *stats = EpisodeStats::default();
        Ok(())
    })
}

/// Makes every env with a running episode take part in the step.
pub fn activate_envs(mut envs: Query<(&EpisodeStats, &mut StepStatus)>) {
    for (stats, mut status) in &mut envs {
        *status = match stats.end {
            None => StepStatus::Participating,
            Some(_) => StepStatus::Idle,
        };
    }
}

/// Ends the episodes of envs that have failed in this step, which counts for nothing: they are idle until the next round
/// resets them.
pub fn drop_failed_envs(
    mut envs: Query<(&EnvId, &mut StepStatus, &mut EpisodeStats)>,
    clock: Res<RunClock>,
    pool: Res<EnvPool>,
) -> Result<(), Failure> {
    let mut failed = pool.take_failed();
    for (id, mut status, mut stats) in &mut envs {
        let Some(failure) = failed.get(&id.index) else { continue };
        let (round, step) = (clock.round(), clock.step());
        tracing::warn!(
            "env {} failed at round {round}, step {step}, and sits out the rest of the round: {failure}",
            id.index
        );
        *status = StepStatus::Idle;
        stats.error = Some(failure.to_string());
        stats.end = Some(EpisodeEnding {
            reason: EndReason::Failed,
            step,
        });
    }
    let is_lost = |(_, _, stats): (_, _, &EpisodeStats)| stats.end.is_some_and(|end| end.reason == EndReason::Failed);
    match failed.pop_first() {
        Some((env, failure)) if envs.iter().all(is_lost) => Err(failure.in_env(env)),
        _ => Ok(()),
    }
}

/// Writes the step's accuracy and gradients into every seed's record.
pub fn track_seeds(
    mut envs: Query<(&StepStatus, &ValMetrics, &GradReport, &mut SeedSlots, &mut EpisodeStats)>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
) {
    let (batches, _) = clock.batches_per_step();
    let samples = batches.div_ceil(STATISTICS_STRIDE) as u32;
    for (status, val, gradients, mut slots, mut stats) in &mut envs {
        if !status.participates() {
            continue;
        }
        stats.last_val = Some(*val);
        stats.note_accuracy(clock.step(), val.accuracy_percent);
        for (index, slot) in slots.0.iter_mut().enumerate() {
            let Some(seed) = &mut slot.record else { continue };
            seed.record_step(val.accuracy_percent);
            let training = gradients.seeds.get(index).copied().flatten();
            seed.gradient.skipped_updates = training.map(|training| training.skipped_updates);
            let Some(training) = training else { continue };
            for sample in 0..samples {
                seed.note_sampled_batch(sample + training.nonfinite_streak < samples);
            }
            if let Some(sums) = training.gradients {
                seed.measure_gradients(&sums, &gradients.host, &experiment.scenario.lifecycle);
            }
        }
    }
}

/// Ends the episodes that have reached the horizon, or that have nothing to gain any more.
pub fn end_episodes(
    mut envs: Query<(&StepStatus, &ValMetrics, &mut EpisodeStats)>,
    clock: Res<RunClock>,
    experiment: Res<Experiment>,
) {
    let (step, patience) = (clock.step(), experiment.scenario.run.early_stop);
    for (status, val, mut stats) in &mut envs {
        if stats.end.is_some() {
            continue;
        }
        let stops_early = patience.filter(|_| status.participates()).is_some_and(|patience| {
            stats.plateau.note(val.accuracy_percent);
            stats.plateau.length() >= patience
        });
        let reason = if clock.is_last_step() {
            EndReason::Horizon
        } else if stops_early {
            EndReason::EarlyStop
        } else {
            continue;
        };
        stats.end = Some(EpisodeEnding { reason, step });
    }
}

/// Run condition of `RoundEnd` for work that a round has to be played to its end for: a run that was asked to stop leaves
/// its round unfinished.
pub fn round_is_complete(envs: Query<&EpisodeStats>) -> bool {
    envs.iter().all(|stats| stats.end.is_some())
}

/// Removes seeds and their optimizers. Everything else waits for the next episode.
pub fn teardown_round(mut envs: Query<(&mut SeedSlots, &mut SeedOptimizers)>) {
    for (mut slots, mut optimizers) in &mut envs {
        slots.clear();
        optimizers.clear();
    }
}
