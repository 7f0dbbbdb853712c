//! Sections `data`, `run` and `training`: the size of the run, its devices, and what it keeps.

use crate::scenario::{AmpMode, DeviceSpec, Kernels, MatmulPrecision, Scenario};
use crate::schema::{choice, section};

choice! {
    /// Place of the training data during a run. The batches are the same in every case.
    #[derive(Copy, Eq)]
    pub enum Residency {
        /// device, host or stream: the first for which enough memory is left
        Auto,
        /// one copy on each device
        Device,
        /// one copy in the machine's memory; batches are gathered ahead of time
        Host,
        /// in their files, which must not be compressed; batches are read ahead of time
        Stream,
    }
}

section! {
    /// Section `data`: the place and the loading of the data.
    #[derive(Copy)]
    pub struct DataConfig {
        /// Place of the training data. Validation and test parts are always on each device.
        residency: Residency = Residency::Auto;
        /// Threads that gather batches ahead of time, for data that isn't on the device.
        workers: usize = 2, integer(1, 256);
        /// Batches of each env that are gathered ahead of time, for data that isn't on the device.
        prefetch: usize = 2, integer(1, 1024);
    }
}

section! {
    /// Section `run`: size and placement of the run.
    pub struct RunConfig {
        /// Number of rounds. In each round, every env plays one episode from a fresh host.
        rounds: u32 = 100, at_least(1);
        /// Steps of an episode. A step is one epoch of the host and one decision. None: the task's.
        max_steps: Option<u32>, at_least(1);
        /// Number of envs that train at once.
        n_envs: usize = 4, integer(1, 4096);
        /// Seed of every random draw of the run.
        seed: u64 = 42;
        /// Devices over which envs are spread; each runs at least one env.
        devices: Vec<DeviceSpec> = vec![DeviceSpec::Cpu];
        /// Uses only kernels that give the same bits every time.
        deterministic: bool;
        /// Precision of float32 matrix products on CUDA. On a CPU and with run.deterministic it is always highest.
        matmul_precision: MatmulPrecision = MatmulPrecision::High;
        /// Kernels that train and validate.
        kernels: Kernels = Kernels::Own;
        /// Records training batches (once for each topology) and the policy's updates as CUDA graphs, and replays them. Those
        /// that can't be recorded are played as usual.
        cuda_graphs: bool = false;
        /// Steps between two checkpoints inside a round. A checkpoint is also written after ten minutes without
        /// one. None: only then.
        checkpoint_every_steps: Option<u32>, at_least(1);
        /// Networks that are kept after their episodes, in the folder networks of the run and as values.
        keep: Keep = Keep::Best;
        /// Records what the controller saw, could have done and did, and what followed, in `episodes.traj` in the run's folder.
        /// It is data to learn from, about 1 KB per env and step.
        trajectories: bool;
        /// Response to an error in the batches of one env.
        on_env_error: OnEnvError = OnEnvError::AbortRun;
        /// Response to an anomaly of severity error or critical. Others are only recorded.
        on_anomaly: AnomalyAnswer = AnomalyAnswer::Note;
        /// Machine memory that the run may use. None: the memory that is free when it starts.
        #[unit = "GiB"]
        memory_limit_gib: Option<f64>, POSITIVE;
        /// Ends an episode after this many steps without a rise of the validation accuracy by more than 0.5 points. None: never.
        early_stop: Option<u32>, at_least(1);
        /// Ends the run after this many rounds without a rise of the rolling accuracy by more than 0.5 points. None: never.
        run_early_stop: Option<u32>, at_least(1);
    }
}

choice! {
    /// Networks that are kept: host and committed seeds, with their weights.
    #[derive(Copy, Eq)]
    pub enum Keep {
        /// the network with the highest validation accuracy of each round (the smallest of equals), and all of the last round
        Best,
        /// the networks of the last round
        Last,
        /// the networks of every round
        All,
        /// no networks
        None,
    }
}

choice! {
    /// Response to an error in the training or validation batches of one env.
    #[derive(Copy, Eq)]
    pub enum OnEnvError {
        /// the run fails
        AbortRun,
        /// the env sits out the rest of its round and starts again in the next; the run fails if no env is left
        DropEnv,
    }
}

choice! {
    /// Response to an anomaly.
    #[derive(Copy, Eq, PartialOrd, Ord)]
    pub enum AnomalyAnswer {
        /// it is recorded
        Note,
        /// it is recorded, the run is saved in a checkpoint, and the steps that led to it are saved in anomalies/ of the run
        Checkpoint,
        /// the same, and the run is asked to stop
        Stop,
    }
}

impl Scenario {
    /// Device on which the policy acts and learns.
    pub fn policy_device(&self) -> DeviceSpec {
        let first = self.run.devices.first().copied();
        self.policy.device.or(first).unwrap_or(DeviceSpec::Cpu)
    }

    /// The devices of envs and policy, each once.
    pub fn devices(&self) -> Vec<DeviceSpec> {
        let mut devices = Vec::new();
        for device in self.run.devices.iter().copied().chain(self.policy.device) {
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
        devices
    }

    /// Indices of the CUDA devices among them.
    pub fn cuda_devices(&self) -> Vec<usize> {
        let index = |device| match device {
            DeviceSpec::Cuda(index) => Some(index),
            DeviceSpec::Cpu => None,
        };
        self.devices().into_iter().filter_map(index).collect()
    }
}

impl RunConfig {
    /// Precision of float32 matrix products in this run: below `highest` only with envs on CUDA, and never where results must
    /// be the same bits every time.
    pub fn matmul_precision_in_force(&self) -> MatmulPrecision {
        if self.deterministic || self.devices.iter().all(|&device| device == DeviceSpec::Cpu) {
            MatmulPrecision::Highest
        } else {
            self.matmul_precision
        }
    }
}

section! {
    /// Section `training`: batch splitting, precision and learning rates.
    #[derive(Copy)]
    pub struct TrainingConfig {
        /// Parts into which a batch is split; their gradients are added up. At most the batch size.
        micro_batches: usize = 1, at_least(1);
        /// Mixed precision of the training batch.
        amp: AmpMode = AmpMode::Off;
        /// Course of the host's learning rate over an episode.
        host_lr: LearningRateCourse = LearningRateCourse::Constant;
        /// Course of the seeds' learning rate over an episode. It doesn't depend on the age of a seed.
        seed_lr: LearningRateCourse = LearningRateCourse::Constant;
    }
}

choice! {
    /// Course of an optimizer's learning rate over the steps of an episode.
    #[derive(Copy)]
    pub enum LearningRateCourse {
        /// the optimizer's rate throughout
        Constant,
        /// half a cosine, from the optimizer's rate down to a share of it
        Cosine {
            /// Share of the optimizer's rate that is left in the last step.
            end: f64, FRACTION;
        },
        /// the optimizer's rate while a seed develops, then half a cosine over the remaining steps once all are settled
        CosineAfterGrowth {
            /// Share of the optimizer's rate that is left in the last step.
            end: f64, FRACTION;
        },
        /// the rate is multiplied by a factor every N steps
        Step {
            /// Steps from one multiplication to the next.
            every: u32, at_least(1);
            /// Factor that the rate is multiplied by.
            factor: f64, SHARE;
        },
    }
}

#[cfg(test)]
mod tests;
