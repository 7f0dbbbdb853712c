//! Sections `data`, `run` and `training`: how big the run is, where it takes place, what it keeps.

use crate::scenario::{AmpMode, DeviceSpec, Kernels, MatmulPrecision, Scenario};
use crate::schema::{choice, section};

choice! {
    /// Where training data lie while a run trains on them. The batches are the same in every case.
    #[derive(Copy, Eq)]
    pub enum Residency {
        /// device, host or stream: the first of them for which the memory that is left is enough
        Auto,
        /// one copy on each device
        Device,
        /// one copy in the memory of the machine; batches are gathered ahead of time
        Host,
        /// in their files, which must not be packed; batches are read ahead of time
        Stream,
    }
}

section! {
    /// Section `data`: where data lie and how they are read.
    #[derive(Copy)]
    pub struct DataConfig {
        /// Where training data lie; validation and test parts are on each device in any case.
        residency: Residency = Residency::Auto;
        /// Threads that gather batches ahead of time, for data that are not on the device.
        workers: usize = 2, integer(1, 256);
        /// Batches of each env that are gathered ahead of time, for data that are not on the device.
        prefetch: usize = 2, integer(1, 1024);
    }
}

section! {
    /// Section `run`: size and placement of the run.
    pub struct RunConfig {
        /// Rounds; in each, every env plays one episode from a fresh host.
        rounds: u32 = 100, at_least(1);
        /// Steps of an episode: host epochs, one decision each. None: the task's.
        max_steps: Option<u32>, at_least(1);
        /// Envs that train side by side.
        n_envs: usize = 4, integer(1, 4096);
        /// Seed of every random draw of the run.
        seed: u64 = 42;
        /// Devices over which envs are spread; each runs at least one env.
        devices: Vec<DeviceSpec> = vec![DeviceSpec::Cpu];
        /// Use only kernels that give the same bits every time.
        deterministic: bool;
        /// Precision of float32 matrix products on CUDA; highest on a CPU and with deterministic.
        matmul_precision: MatmulPrecision = MatmulPrecision::High;
        /// Which kernels train and validate.
        kernels: Kernels = Kernels::Own;
        /// On CUDA, records training batches, once for each topology, and the policy's updates as graphs and replays them. Where
        /// that can't be, they are played as usual.
        cuda_graphs: bool = false;
        /// Steps from one checkpoint inside a round to the next; ten minutes without one lead to one as well. None: time alone counts.
        checkpoint_every_steps: Option<u32>, at_least(1);
        /// Which networks stay when their episodes are over, in the folder networks of the run and as values.
        keep: Keep = Keep::Best;
        /// Record what the controller saw, could have done and did, and what followed, in `episodes.traj` of the run's folder:
        /// data to learn from, about 1 KB a step of an env.
        trajectories: bool;
        /// Response to an error of one env in its batches.
        on_env_error: OnEnvError = OnEnvError::AbortRun;
        /// Response to an anomaly of severity error or critical; any other is recorded.
        on_anomaly: AnomalyAnswer = AnomalyAnswer::Note;
        /// Memory of the machine that the run may take. None: what is left when it begins.
        #[unit = "GiB"]
        memory_limit_gib: Option<f64>, POSITIVE;
        /// Steps without a rise of the validation accuracy by more than 0.5 points after which an episode ends. None: never.
        early_stop: Option<u32>, at_least(1);
        /// Rounds without a rise of the rolling accuracy by more than 0.5 points after which the run ends. None: never.
        run_early_stop: Option<u32>, at_least(1);
    }
}

choice! {
    /// Which networks stay, host and committed seeds with their weights.
    #[derive(Copy, Eq)]
    pub enum Keep {
        /// of every round the one with the highest validation accuracy, of equals the smallest; of the last round all
        Best,
        /// those of the last round
        Last,
        /// those of every round
        All,
        /// none
        None,
    }
}

choice! {
    /// Response to an error of one env in its training or validation batches.
    #[derive(Copy, Eq)]
    pub enum OnEnvError {
        /// the run fails
        AbortRun,
        /// the env sits out the rest of its round and starts afresh in the next; the run fails if no env is left
        DropEnv,
    }
}

choice! {
    /// Response to an anomaly.
    #[derive(Copy, Eq, PartialOrd, Ord)]
    pub enum AnomalyAnswer {
        /// it is recorded
        Note,
        /// it is recorded; the run is saved in a checkpoint, and what led to the anomaly in anomalies/ of the run
        Checkpoint,
        /// the same, and the run is asked to stop
        Stop,
    }
}

impl Scenario {
    /// Where the policy acts and learns.
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
    /// Section `training`: how a training batch is computed, and how large the steps are.
    #[derive(Copy)]
    pub struct TrainingConfig {
        /// Parts into which a batch is split, gradients added up; at most the batch size.
        micro_batches: usize = 1, at_least(1);
        /// Mixed precision of the training batch.
        amp: AmpMode = AmpMode::Off;
        /// Course of the host's learning rate over an episode.
        host_lr: LearningRateCourse = LearningRateCourse::Constant;
        /// Course of the seeds' learning rate, which follows the episode and not the age of a seed.
        seed_lr: LearningRateCourse = LearningRateCourse::Constant;
    }
}

choice! {
    /// How the learning rate of an optimizer changes over the steps of an episode.
    #[derive(Copy)]
    pub enum LearningRateCourse {
        /// the optimizer's rate throughout
        Constant,
        /// half a cosine from the optimizer's rate down to a share of it
        Cosine {
            /// Share of the optimizer's rate that is left in the last step.
            end: f64, FRACTION;
        },
        /// the optimizer's rate while a seed develops; half a cosine over the steps that are left once all are settled
        CosineAfterGrowth {
            /// Share of the optimizer's rate that is left in the last step.
            end: f64, FRACTION;
        },
        /// multiplied by a factor every N steps
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
