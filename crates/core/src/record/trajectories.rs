//! Writing the trajectories of a run: one shard per round.

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;

use super::directory::RunDirectory;
use crate::actions::Head;
use crate::clock::RunClock;
use crate::controller::ObservationSchema;
use crate::env::{EnvId, Experiment, round_is_complete};
use crate::growth::LifecycleOp;
use crate::hash::sha256;
use crate::health::Failure;
use crate::reward::{EpisodeReward, RewardHorizon};
use crate::scenario::{resolved_ron, ron_text};
use crate::schedule::{AddWork, RoundEnd, Startup, Work};
use crate::seed::BlueprintRegistry;
use crate::telemetry::BigInteger;
use crate::trajectory::{CollectorPlugin, EnvTrajectory, FOLDER, Manifest, Sizes, TrajectorySet};

/// Records trajectories of a run that has a folder; added where the scenario asks for them (`run.trajectories`).
#[derive(Clone)]
pub struct TrajectoryPlugin;

impl Plugin for TrajectoryPlugin {
    fn build(&self, app: &mut App) {
        CollectorPlugin::ensure(app);
        app.init_resource::<Recorder>()
            .add_work(Startup, Work::BeginTrajectories, begin_set)
            .add_work_if(RoundEnd, Work::WriteTrajectories, write_trajectories, round_is_complete);
    }
}

/// The writer of trajectories; nothing until the run has a folder.
#[derive(Resource, Debug, Default)]
pub struct Recorder {
    set: Option<TrajectorySet>,
    /// The reason why some of them are not on disk; `None` if all are.
    pub failure: Option<String>,
}

/// Begins the set of the run, or continues it after the rounds that it keeps.
pub(crate) fn begin_set(
    mut recorder: ResMut<Recorder>,
    experiment: Res<Experiment>,
    horizon: Res<RewardHorizon>,
    schema: Option<Res<ObservationSchema>>,
    blueprints: Res<BlueprintRegistry>,
    directory: Option<Res<RunDirectory>>,
) -> Result<(), Failure> {
    let (Some(directory), Some(schema)) = (directory, schema) else {
        return Ok(());
    };
    let (scenario, task) = (&experiment.scenario, &experiment.task);
    let slots: Vec<String> = schema.slots().iter().map(ToString::to_string).collect();
    let names: Vec<String> = blueprints.names().map(String::from).collect();
    let heads = Head::ALL.map(|head| (head.name().to_owned(), head.size(slots.len(), names.len())));
    let resolved = resolved_ron(scenario)?;
    let (format, parts) = Manifest::format();
    let manifest = Manifest {
        format,
        engine: env!("CARGO_PKG_VERSION").into(),
        scenario: scenario.name.clone(),
        scenario_sha256: sha256(resolved.as_bytes()),
        task: task.name.clone(),
        host: ron_text(&task.host),
        controller: scenario.policy.controller.clone(),
        seed: BigInteger(scenario.run.seed),
        max_steps: task.max_steps,
        gamma: horizon.gamma,
        reward: ron_text(&scenario.reward),
        price: experiment.reward.price,
        observation: schema.names().to_vec(),
        masks: Sizes::of(&schema, &blueprints).masks,
        slots,
        blueprints: names,
        operations: LifecycleOp::ALL.map(|op| op.name().to_owned()).into(),
        heads: heads.into(),
        parts,
        shards: Vec::new(),
    };
    let set = TrajectorySet::begin(directory.path().join(FOLDER), manifest, experiment.rounds.start);
    recorder.set = Some(set?);
    Ok(())
}

/// Writes the round's segments, with the final rewards of their steps. A segment that fails twice is a gap of the record.
pub(crate) fn write_trajectories(
    envs: Query<(&EnvId, &EpisodeReward, &EnvTrajectory)>,
    mut recorder: ResMut<Recorder>,
    clock: Res<RunClock>,
) {
    let Recorder { set, failure } = &mut *recorder;
    let Some(set) = set else { return };
    let envs = envs.iter().sort_unstable::<&EnvId>();
    let segments: Vec<_> = envs.flat_map(|(_, paid, did)| did.paid(clock.round(), paid)).collect();
    let mut put = || set.put(clock.round(), &segments);
    if let Err(error) = put().or_else(|_| put()) {
        tracing::warn!(%error, "trajectories could not be written");
        *failure = Some(error.to_string());
    }
}
