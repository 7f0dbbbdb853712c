//! An estimate of a run's memory, made before any is allocated. A run that is too large gets an error with a place to repair it
//! and doesn't end in the middle of an allocation.
//!
//! The estimate counts data, parameters with the largest seeds that may live at once, activations of the rows in work, and
//! the rollout. The program itself is a measured constant. For shipped scenarios the sum is within 15 % of the measured
//! peak.

use std::fmt;

use serde::Serialize;

use crate::controller::{ObservationFeatures, ObservationSchema};
use crate::files::counted;
use crate::run::{Room, size};
use crate::scenario::{DeviceSpec, Loaded, OptimizerConfig, Residency};
use crate::seed::BlueprintRegistry;
use crate::torch::POOL_STREAMS;

const MIB: f64 = 1_048_576.0;
/// Bytes of an element of most tensors.
const F32: f64 = 4.0;
/// Bytes of a label.
const LABEL: f64 = 8.0;
/// Bytes of the process before anything is trained, as measured: libtorch, its threads, and what it keeps for itself.
const PROGRAM: f64 = 256.0 * MIB;
/// Bytes of CUDA before the first tensor, roughly: its context, and the kernels of libtorch and its libraries.
const CUDA: f64 = 500.0 * MIB;
/// Bytes of cuBLAS for a thread and a stream: see [`fix_cublas_workspace`](crate::torch::fix_cublas_workspace).
const WORKSPACE: f64 = 32.0 * MIB;
/// Rows that are validated at a time, on a CPU and on CUDA.
const VALIDATED_ROWS: [f64; 2] = [1024.0, 8192.0];
/// The controller whose policy is trained.
const LEARNED: &str = "actor_critic";

/// A run's use of one memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MemoryEstimate {
    /// The device that has the memory. `cpu` is the machine's.
    pub device: DeviceSpec,
    /// Envs that live there.
    pub envs: usize,
    /// With everything grown that may grow.
    pub bytes: u64,
    /// Those of `bytes` that every env adds.
    pub bytes_per_env: u64,
}

impl MemoryEstimate {
    /// A run's use of the machine, then of each other device. Its seeds may be any of `blueprints`, and up to `threads` envs
    /// work at once. The content of files is not known before they are read, and does not count.
    pub fn of(loaded: &Loaded, blueprints: &BlueprintRegistry, threads: usize) -> Vec<Self> {
        let mut devices = loaded.scenario.devices();
        devices.retain(|&device| device != DeviceSpec::Cpu);
        devices.insert(0, DeviceSpec::Cpu);
        let seeds = largest_seeds(loaded, blueprints);
        let of_device = |device| on_device(loaded, &seeds, (device, threads));
        devices.into_iter().map(of_device).collect()
    }

    /// Checks that the run fits into the machine. The room on other devices is unknown before they are opened.
    ///
    /// # Errors
    /// The bytes that it takes, and how many envs would fit, in words.
    pub fn check(loaded: &Loaded, blueprints: &BlueprintRegistry, threads: usize, room: Room) -> Result<(), String> {
        let Some(machine) = Self::of(loaded, blueprints, threads).into_iter().next() else {
            return Ok(());
        };
        if machine.bytes <= room.bytes {
            return Ok(());
        }
        let of_envs = machine.bytes_per_env.saturating_mul(machine.envs as u64);
        let left = room.bytes.saturating_sub(machine.bytes.saturating_sub(of_envs));
        let advice = match left.checked_div(machine.bytes_per_env) {
            Some(envs @ 1..) => format!("it would fit with run.n_envs: {envs}"),
            _ => "use smaller data, hosts or batches (task.data, task.host, task.batch_size)".into(),
        };
        let needed = size(machine.bytes.into());
        Err(format!("the run needs about {needed} of memory, {room}; {advice}"))
    }
}

impl fmt::Display for MemoryEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, envs) = (size(self.bytes.into()), counted(self.envs, "env"));
        write!(f, "memory of {}, {envs}: about {bytes}", self.device)
    }
}

/// Parameters of the largest blueprint of each slot, of as many slots as seeds may live at once, the largest first.
fn largest_seeds(loaded: &Loaded, blueprints: &BlueprintRegistry) -> Vec<f64> {
    let enabled = loaded.host.injections.iter();
    let enabled = enabled.filter(|spec| loaded.slots.contains(&spec.slot));
    let largest = enabled.map(|spec| {
        let sizes = blueprints
            .iter()
            .map(|(_, blueprint)| blueprint.param_count(spec.channels));
        sizes.max().unwrap_or(0) as f64
    });
    let mut seeds: Vec<f64> = largest.collect();
    seeds.sort_unstable_by(|one, other| other.total_cmp(one));
    if loaded.task.max_seeds > 0 {
        seeds.truncate(loaded.task.max_seeds as usize);
    }
    seeds
}

fn on_device(loaded: &Loaded, seeds: &[f64], (device, threads): (DeviceSpec, usize)) -> MemoryEstimate {
    let (scenario, task) = (&loaded.scenario, &loaded.task);
    let is_here = |listed: &&DeviceSpec| **listed == device;
    let copies = scenario.run.devices.iter().filter(is_here).count();
    let listed = scenario.run.devices.iter().cycle().take(scenario.run.n_envs);
    let envs = listed.filter(is_here).count();
    let [loaded_data, resident] = data(loaded);

    let mut fixed = copies as f64 * resident;
    match device {
        DeviceSpec::Cpu => fixed += PROGRAM + loaded_data,
        // Envs of one stream share a workspace, in training and on the test part, which another thread measures.
        // The policy has its own.
        DeviceSpec::Cuda(_) => fixed += CUDA + (2 * envs.min(POOL_STREAMS) + 1) as f64 * WORKSPACE,
    }
    let (host, grown) = (loaded.host.parameters as f64, seeds.iter().sum::<f64>());
    // Parameters, gradients and moments, the host once more during validation, and two snapshots of everything.
    let trained = host * (3.0 + moments(&task.host_opt)) + grown * (2.0 + moments(&task.seed_opt));
    let snapshots = if scenario.governor.enabled { 2.0 } else { 0.0 };
    let mut per_env = F32 * (trained + snapshots * (host + grown));
    let active = activations(loaded, seeds.len(), device);
    if scenario.run.cuda_graphs && device != DeviceSpec::Cpu {
        per_env += active;
    }
    fixed += threads.max(1).min(envs) as f64 * active;
    if scenario.policy.controller == LEARNED {
        per_env += rollout(loaded);
    }
    MemoryEstimate {
        device,
        envs,
        bytes: (fixed + envs as f64 * per_env) as u64,
        bytes_per_env: per_env as u64,
    }
}

/// Moments that an optimizer keeps of each parameter.
fn moments(optimizer: &OptimizerConfig) -> f64 {
    match optimizer {
        OptimizerConfig::Sgd { momentum: 0.0, .. } => 0.0,
        OptimizerConfig::Sgd { .. } => 1.0,
        OptimizerConfig::Adamw { .. } => 2.0,
    }
}

/// Bytes of data of known size as they are loaded, and as envs read them on a device.
fn data(loaded: &Loaded) -> [f64; 2] {
    let task = &loaded.task;
    let Some(sizes) = task.data.part_sizes(&task.split) else {
        return [0.0; 2];
    };
    let [train, val, test] = [sizes.train, sizes.val, sizes.test].map(|samples| samples as f64);
    let (all, evaluated) = (train + val + test, val + test);
    let is_elsewhere = loaded.scenario.data.residency == Residency::Host;
    if let Some(text) = task.data.text() {
        // A stream has one token more than inputs in each window. Targets are numbers of 64 bits.
        let window = (text.block as f64 + 1.0) * F32;
        let trained = if is_elsewhere { 0.0 } else { train * window };
        return [all * window, trained + evaluated * (window + text.block as f64 * LABEL)];
    }
    let Some(shape) = task.data.shape() else {
        return [0.0; 2];
    };
    let values =
        |padding: f64| shape.channels as f64 * (shape.height as f64 + padding) * (shape.width as f64 + padding);
    // A byte a value, with padding and mirrored copies. Evaluated images are normalised.
    let (pad, flips) = task
        .augment
        .map_or((0.0, false), |augment| (f64::from(augment.pad), augment.flip_p > 0.0));
    let image = values(2.0 * pad) * if flips { 2.0 } else { 1.0 };
    let trained = train * (LABEL + if is_elsewhere { 0.0 } else { image });
    [
        all * (values(0.0) + LABEL),
        trained + evaluated * (values(0.0) * F32 + LABEL),
    ]
}

/// Bytes of one env at work: value and gradient of what ops and up to three layers of each seed put out for a training batch, or an
/// operation's input and output with a seed's residual for the rows that are validated at a time.
fn activations(loaded: &Loaded, seeds: usize, device: DeviceSpec) -> f64 {
    let outputs = || loaded.host.op_outputs.iter().map(|&values| values as f64);
    let (sum, widest) = (outputs().sum::<f64>(), outputs().fold(0.0, f64::max));
    let rows = loaded
        .task
        .batch_size
        .div_ceil(loaded.scenario.training.micro_batches.max(1));
    let training = rows as f64 * (sum + 3.0 * seeds as f64 * widest) * 2.0 * F32;
    let validated = VALIDATED_ROWS[usize::from(device != DeviceSpec::Cpu)];
    training.max(validated * 3.0 * widest * F32)
}

/// Bytes of an env's rollout, which keeps raw observations and those that the policy saw.
fn rollout(loaded: &Loaded) -> f64 {
    let (policy, steps) = (&loaded.scenario.policy, loaded.task.max_steps);
    let features = ObservationFeatures::default();
    let observation = ObservationSchema::new(&loaded.slots, steps, &policy.features, &features);
    let episodes = loaded.scenario.learner.episodes_learnt_from();
    f64::from(episodes) * f64::from(steps) * observation.len() as f64 * 2.0 * F32
}

#[cfg(test)]
mod tests;
