//! What `eval` plays: a run's policy, the scenario that it decides in, and episodes that are new to it.

use std::path::PathBuf;

use super::prepare::prepare_file;
use super::rejection::Rejection;
use super::{Context, EvalOptions};
use crate::checkpoint::{CheckpointName, FrozenPolicy};
use crate::compare::Episodes;
use crate::env::Experiment;
use crate::eval::{PlayedCheckpoint, Subject};
use crate::record::find_run;

/// Episodes of an env unless a number is asked for.
const EPISODES_PER_ENV: u32 = 2;

/// A policy, where it is played, and on what.
pub struct Evaluated {
    /// Folder of the run, or of a policy without one.
    pub place: PathBuf,
    from: CheckpointName,
    pub policy: FrozenPolicy,
    pub experiment: Experiment,
    /// One entry per seed, at least one.
    pub episodes: Vec<Episodes>,
}

impl Evaluated {
    /// # Errors
    /// No such run, checkpoint or policy; a scenario with problems.
    pub fn find(options: &EvalOptions, context: &Context) -> Result<Self, Rejection> {
        let place = find_run(&options.run, options.out.as_deref())?;
        let policy = FrozenPolicy::find(&place, options.from)?;
        let origin = policy.origin.as_ref();
        let own = origin.map(|origin| origin.scenario.as_path());
        let Some(scenario) = options.scenario.as_deref().or(own) else {
            let place = place.display();
            return Err(
                format!("{place} is a policy without its run: say by --scenario FILE what it decides in").into(),
            );
        };
        let prepared = prepare_file(scenario, &options.sets, context)?;
        let run = &prepared.loaded.scenario.run;
        // Rounds that no policy of the run was trained in: the same, whichever is played.
        let first_round = run.rounds.max(origin.map_or(0, |origin| origin.rounds_played));
        let envs = run.n_envs;
        let per_env = u32::try_from(envs).unwrap_or(u32::MAX).saturating_mul(EPISODES_PER_ENV);
        let count = options.episodes.unwrap_or(per_env);
        let seeds = if options.seeds.is_empty() {
            vec![run.seed]
        } else {
            options.seeds.clone()
        };
        Ok(Self {
            experiment: prepared.experiment(context.threads()),
            from: options.from,
            place,
            policy,
            episodes: seeds
                .into_iter()
                .map(|seed| Episodes::at_least(count, seed, first_round, envs))
                .collect(),
        })
    }

    /// What is evaluated.
    pub fn subject(&self) -> Subject {
        let (origin, saved) = (self.policy.origin.as_ref(), self.policy.saved.as_ref());
        Subject {
            policy: saved.map_or_else(|| self.place.clone(), |saved| saved.path().into()),
            checkpoint: origin.map(|origin| PlayedCheckpoint {
                from: self.from.to_string(),
                rounds: origin.rounds,
            }),
            trained_on: origin.map(|origin| origin.data_hash.clone()),
        }
    }
}
