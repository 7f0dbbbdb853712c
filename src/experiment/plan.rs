//! What an experiment plays: fixed before anything is, and kept in its folder.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::compare::Episodes;
use crate::engine::Prepared;
use crate::random::{Domain, derive};
use crate::record::Labels;
use crate::scenario::{
    AbConfig, AmpMode, DecisionTest, DeviceSpec, EvaluationMode, Interleave, MatmulPrecision, Metric,
};
use crate::telemetry::BigInteger;

/// Version of [`Design`].
const FORMAT: u32 = 1;
/// Episodes of an env unless a number is asked for.
const EPISODES_PER_ENV: u32 = 10;
/// Arms are at most one round apart, so that with two checkpoints each there is one that all of them have.
const FEWEST_CHECKPOINTS: u32 = 2;

/// One of the things that are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmDesign {
    /// As written.
    pub id: String,
    /// Who decides in it.
    pub controller: String,
    /// What its policy is paid for.
    pub reward: String,
}

/// Everything that was declared before the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// Version of this structure.
    format: u32,
    /// Of the scenario.
    pub name: String,
    /// Of the task.
    pub task: String,
    /// What is compared.
    pub arms: Vec<ArmDesign>,
    /// Independent trainings of every arm.
    pub replicates: u32,
    /// Of a training.
    pub rounds: u32,
    /// Of every arm.
    pub envs: usize,
    /// Of an episode.
    pub steps: u32,
    /// Of the first replicate.
    pub seed: BigInteger,
    /// Whether the arms of a replicate have the same seed.
    pub common_random_numbers: bool,
    /// How arms take turns.
    pub interleave: Interleave,
    /// Over which envs are spread; each arm of each replicate begins with another one.
    pub devices: Vec<DeviceSpec>,
    /// Mixed precision of the training batches, as asked for.
    pub amp: AmpMode,
    /// Precision of float32 matrix products.
    pub matmul_precision: MatmulPrecision,
    /// Whether only kernels with reproducible results are used.
    pub deterministic: bool,
    /// Episodes under each evaluation seed, in whole rounds.
    pub eval_episodes: u32,
    /// Seeds of the episodes that trained arms are scored by.
    pub eval_seeds: Vec<BigInteger>,
    /// How a learned policy chooses while it is scored.
    pub eval_mode: EvaluationMode,
    /// What arms are compared by.
    pub primary_metric: Metric,
    /// Which test decides.
    pub decision_test: DecisionTest,
    /// Probability of any false claim among all pairs.
    pub alpha: f64,
    /// Least difference that matters, in the unit of the primary metric.
    pub min_effect: f64,
    /// The arm that every other one is compared with; `None`: all pairs.
    pub control: Option<String>,
    /// Whether the task has a part that no reward is made of.
    pub has_test_part: bool,
}

impl Design {
    fn new(prepared: &Prepared, ab: &AbConfig) -> Self {
        let loaded = &prepared.loaded;
        let run = &loaded.scenario.run;
        let arms = loaded.arms.iter().map(|arm| ArmDesign {
            id: arm.id.clone(),
            controller: arm.loaded.scenario.policy.controller.clone(),
            reward: arm.loaded.scenario.reward.mode().into(),
        });
        let envs = ab.envs_per_arm.unwrap_or(run.n_envs);
        let per_env = u32::try_from(envs).unwrap_or(u32::MAX).saturating_mul(EPISODES_PER_ENV);
        let sizes = loaded.task.data.part_sizes(&loaded.task.split);
        Self {
            format: FORMAT,
            name: loaded.scenario.name.clone(),
            task: loaded.task.name.clone(),
            arms: arms.collect(),
            replicates: ab.replicates,
            rounds: run.rounds,
            envs,
            steps: loaded.task.max_steps,
            seed: BigInteger(run.seed),
            common_random_numbers: ab.common_random_numbers,
            interleave: ab.interleave,
            devices: run.devices.clone(),
            amp: loaded.scenario.training.amp,
            matmul_precision: run.matmul_precision_in_force(),
            deterministic: run.deterministic,
            eval_episodes: ab.eval_episodes.unwrap_or(per_env),
            eval_seeds: ab.eval_seeds.iter().copied().map(BigInteger).collect(),
            eval_mode: ab.eval_mode,
            primary_metric: ab.primary_metric,
            decision_test: ab.decision_test,
            alpha: ab.alpha,
            min_effect: ab.min_effect,
            control: ab.control.clone(),
            has_test_part: sizes.is_none_or(|sizes| sizes.test > 0),
        }
    }

    /// Whether this version reads it.
    pub(super) fn is_known(&self) -> bool {
        self.format == FORMAT
    }

    /// The seed of a replicate, by its number from 0.
    pub fn replicate_seed(&self, replicate: u32) -> u64 {
        self.seed.0.wrapping_add(replicate.into())
    }

    /// `run.seed` of an arm: that of its replicate, unless arms share no random numbers.
    pub fn arm_seed(&self, replicate: u32, arm: usize) -> u64 {
        let seed = self.replicate_seed(replicate);
        if self.common_random_numbers {
            seed
        } else {
            derive(seed, Domain::ReplicateSeed, &[arm as u64])
        }
    }

    /// `run.devices` of an arm: its envs begin with the next one, and go round.
    pub fn arm_devices(&self, replicate: u32, arm: usize) -> Vec<DeviceSpec> {
        let mut devices = self.devices.clone();
        let count = devices.len().max(1);
        devices.rotate_left((arm + replicate as usize) % count);
        devices
    }

    /// What a trained arm is scored by: the episodes of each evaluation seed.
    pub fn episodes(&self) -> Vec<Episodes> {
        let seeds = self.eval_seeds.iter();
        seeds
            .map(|seed| Episodes::at_least(self.eval_episodes, seed.0, self.rounds, self.envs))
            .collect()
    }
}

/// An experiment that can be played.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What was declared.
    pub design: Design,
    /// The arms, in the order of the design, as their runs are given them but for seed and devices.
    pub arms: Vec<Prepared>,
    /// What the user says about the runs.
    pub labels: Labels,
}

/// What is kept of a plan beside the texts of its scenarios.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PlanFile {
    pub design: Design,
    pub labels: Labels,
    pub scenario_path: Option<PathBuf>,
    pub scenario_folder: Option<PathBuf>,
}

impl Plan {
    /// The plan of a scenario with an experiment; `None` for a single run.
    pub fn new(prepared: &Prepared, labels: Labels) -> Option<Self> {
        let ab = prepared.loaded.scenario.ab()?;
        let arms = prepared.loaded.arms.iter().map(|arm| {
            let mut loaded = arm.loaded.clone();
            let run = &mut loaded.scenario.run;
            run.keep_last = run.keep_last.max(FEWEST_CHECKPOINTS);
            Prepared {
                loaded,
                file: prepared.file.clone(),
                overrides: prepared.overrides.clone(),
            }
        });
        Some(Self {
            design: Design::new(prepared, ab),
            arms: arms.collect(),
            labels,
        })
    }

    /// The run of an arm in a replicate.
    pub fn arm(&self, replicate: u32, arm: usize) -> Prepared {
        let mut prepared = self.arms[arm].clone();
        let run = &mut prepared.loaded.scenario.run;
        run.seed = self.design.arm_seed(replicate, arm);
        run.devices = self.design.arm_devices(replicate, arm);
        prepared
    }
}

#[cfg(test)]
mod tests;
