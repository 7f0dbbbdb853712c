//! What takes memory, and how many bytes of it: plain arithmetic on a scenario.
//!
//! Everything is either known to the byte, or a stated estimate from above:
//! - seeds: the largest blueprint in the widest slots, as many as may live at once;
//! - activations: of the ops of a host, and of its seeds, twice what they put out, value and gradient, for the
//!   rows that are worked on at a time;
//! - the program: what the libraries take before anything is trained.

use serde::Serialize;

use crate::controller::{ObservationFeatures, ObservationSchema};
use crate::growth::SlotId;
use crate::scenario::{DeviceSpec, ImageShape, Loaded, OptimizerConfig, PartSizes, Residency};
use crate::torch::POOL_STREAMS;
use crate::validation::max_configurations;

/// Bytes of an element of most tensors.
const F32_BYTES: u128 = 4;
/// Bytes of a label, of an index, of a column of the read pack.
const WORD_BYTES: u128 = 8;
/// Policies train with Adam: parameters, gradients and two moments.
const POLICY_COPIES: u128 = 4;
/// Value and gradient.
const ACTIVATION_COPIES: u128 = 2;
/// A seed's inner layers and its residual, each as large as its slot's features.
const SEED_LAYERS: u128 = 3;
/// Known good and new.
const SNAPSHOTS: u128 = 2;
/// Rows that are validated at a time on a CPU.
const CPU_VALIDATION_ROWS: u128 = 1024;
/// The same on CUDA.
const CUDA_VALIDATION_ROWS: u128 = 8192;
/// As measured on a CPU run of small hosts: libtorch, its threads, and what it keeps for itself.
const PROGRAM_BYTES: u128 = 256 << 20;
/// What CUDA takes before the first tensor, roughly: its context, and the kernels of libtorch and its libraries.
const CUDA_BYTES: u128 = 500 << 20;
/// What cuBLAS takes for a thread and a stream: see [`fix_cublas_workspace`](crate::torch::fix_cublas_workspace).
const WORKSPACE_BYTES: u128 = 32 << 20;
/// The controller whose policy is trained.
const LEARNED: &str = "actor_critic";

/// The largest seed that may grow in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grown {
    /// Where.
    pub slot: SlotId,
    /// Its trainable elements.
    pub parameters: u64,
}

/// One of the things that take memory, in bytes, and the fields that it grows with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Need {
    /// What it is.
    pub what: &'static str,
    /// What makes it smaller.
    pub fields: &'static str,
    /// Once.
    pub fixed: u128,
    /// For each env.
    pub per_env: u128,
    /// For each env that is worked on at the same time.
    pub per_worker: u128,
    /// Every run allocates it, whether its hosts grow or not.
    pub is_certain: bool,
}

impl Need {
    const fn fixed(what: &'static str, fields: &'static str, bytes: u128) -> Self {
        Self {
            what,
            fields,
            fixed: bytes,
            per_env: 0,
            per_worker: 0,
            is_certain: true,
        }
    }

    const fn per_env(what: &'static str, fields: &'static str, bytes: u128) -> Self {
        Self {
            per_env: bytes,
            ..Self::fixed(what, fields, 0)
        }
    }

    const fn uncertain(self) -> Self {
        Self {
            is_certain: false,
            ..self
        }
    }

    /// With `envs` envs, `workers` of them at work at once.
    pub fn bytes(&self, envs: usize, workers: usize) -> u128 {
        let of_envs = self.per_env.saturating_mul(envs as u128);
        let of_workers = self.per_worker.saturating_mul(workers as u128);
        self.fixed.saturating_add(of_envs).saturating_add(of_workers)
    }
}

/// What lies in one memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlaceMemory {
    /// Whose memory it is; `cpu` is the machine's.
    pub device: DeviceSpec,
    /// Envs that live there.
    pub envs: usize,
    /// Those of them that are worked on at once.
    pub workers: usize,
    /// What takes it.
    pub needs: Vec<Need>,
}

impl PlaceMemory {
    /// Bytes with everything grown that may grow.
    pub fn bytes(&self) -> u128 {
        self.bytes_with(self.envs)
    }

    /// The same with another number of envs there.
    fn bytes_with(&self, envs: usize) -> u128 {
        let workers = self.workers.min(envs);
        let needs = self.needs.iter().map(|need| need.bytes(envs, workers));
        needs.fold(0, u128::saturating_add)
    }

    /// The largest number of envs there that fits; 0 if not even one does.
    pub(super) fn most_envs(&self, room: u64) -> usize {
        let fits = |envs: usize| self.bytes_with(envs) <= u128::from(room);
        let (mut fewest, mut most) = (0, self.envs);
        while fewest < most {
            let middle = (fewest + most).div_ceil(2);
            match fits(middle) {
                true => fewest = middle,
                false => most = middle - 1,
            }
        }
        fewest
    }
}

/// What a run takes of the machine's memory, then of that of each other device, given the largest seed of each slot.
pub(super) fn estimate(loaded: &Loaded, largest: &[Grown], threads: usize) -> Vec<PlaceMemory> {
    let mut devices = loaded.scenario.devices();
    devices.retain(|&device| device != DeviceSpec::Cpu);
    devices.insert(0, DeviceSpec::Cpu);
    let places = devices
        .into_iter()
        .map(|device| place(loaded, largest, (device, threads)));
    places.collect()
}

/// What the process takes of one memory, then the envs and the policy that are there.
fn place(loaded: &Loaded, largest: &[Grown], (device, threads): (DeviceSpec, usize)) -> PlaceMemory {
    let scenario = &loaded.scenario;
    let entries = &scenario.run.devices;
    let is_here = |listed: &&DeviceSpec| **listed == device;
    let copies = entries.iter().filter(is_here).count();
    let envs = entries.iter().cycle().take(scenario.run.n_envs).filter(is_here).count();
    let mut needs = match device {
        DeviceSpec::Cpu => machine_needs(loaded),
        DeviceSpec::Cuda(_) => cuda_needs(envs),
    };
    if copies > 0 {
        needs.extend(env_needs(loaded, largest, (device, copies)));
    }
    if scenario.policy.controller == LEARNED && scenario.policy_device() == device {
        needs.extend(policy_needs(loaded, envs));
    }
    PlaceMemory {
        device,
        envs,
        workers: threads.max(1).min(envs),
        needs,
    }
}

/// What a run takes of the machine wherever its envs are.
fn machine_needs(loaded: &Loaded) -> Vec<Need> {
    let mut needs = vec![
        Need::fixed("data", "the sizes of its parts in task.data", data_bytes(loaded)),
        Need::fixed("the program", "nothing", PROGRAM_BYTES).uncertain(),
    ];
    if run_gathers_ahead(loaded) {
        needs.push(Need::fixed(
            "batches gathered ahead",
            "data.prefetch, run.n_envs, task.batch_size",
            gathered_bytes(loaded),
        ));
    }
    needs
}

/// What the libraries take of a CUDA device. Envs of one stream share a workspace, in training and on the test part, which another
/// thread measures; the policy has one.
fn cuda_needs(envs: usize) -> Vec<Need> {
    let workspaces = product([2 * envs.min(POOL_STREAMS) as u128 + 1, WORKSPACE_BYTES]);
    vec![
        Need::fixed("CUDA's context and kernels", "nothing", CUDA_BYTES).uncertain(),
        Need::fixed("workspaces of cuBLAS", "run.n_envs", workspaces).uncertain(),
    ]
}

/// What the envs of a device take there; the data are there once for each time that it is listed.
fn env_needs(loaded: &Loaded, largest: &[Grown], (device, copies): (DeviceSpec, usize)) -> Vec<Need> {
    let (scenario, task) = (&loaded.scenario, &loaded.task);
    let parameters = u128::from(loaded.host.parameters);
    let seeds = seed_parameters(loaded, largest);
    let mut needs = vec![
        Need::fixed(
            "data on the device",
            "the sizes of its parts in task.data, task.augment",
            product([copies as u128, resident_bytes(loaded)]),
        )
        .uncertain(),
        Need::per_env(
            "hosts",
            "run.n_envs, task.host",
            product([parameters, 2 + moments(&task.host_opt), F32_BYTES]),
        ),
        // Its convolutions once more, batch norm worked into them.
        Need::per_env(
            "hosts as validated",
            "run.n_envs, task.host",
            product([parameters, F32_BYTES]),
        )
        .uncertain(),
        Need::per_env(
            "seeds",
            "run.n_envs, lifecycle.max_seeds, lifecycle.slots, task.host",
            product([seeds, 2 + moments(&task.seed_opt), F32_BYTES]),
        )
        .uncertain(),
        Need::per_env("batches", "run.n_envs, task.batch_size", batch_bytes(loaded)).uncertain(),
        Need {
            per_worker: activation_bytes(loaded, largest, device),
            ..Need::fixed("activations", "task.batch_size, training.micro_batches, --threads", 0).uncertain()
        },
    ];
    if scenario.run.cuda_graphs && device != DeviceSpec::Cpu {
        let bytes = activation_bytes(loaded, largest, device);
        needs.push(Need::per_env("recorded batches", "run.cuda_graphs, task.batch_size", bytes).uncertain());
    }
    if scenario.governor.enabled {
        let bytes = product([parameters.saturating_add(seeds), SNAPSHOTS, F32_BYTES]);
        needs.push(Need::per_env("snapshots", "run.n_envs, governor.enabled", bytes).uncertain());
    }
    needs
}

/// Moments that an optimizer keeps of each parameter.
fn moments(optimizer: &OptimizerConfig) -> u128 {
    match optimizer {
        OptimizerConfig::Sgd { momentum: 0.0, .. } => 0,
        OptimizerConfig::Sgd { .. } => 1,
        OptimizerConfig::Adamw { .. } => 2,
    }
}

/// Of the largest seeds that may live at once.
fn seed_parameters(loaded: &Loaded, largest: &[Grown]) -> u128 {
    let mut sizes: Vec<u128> = largest.iter().map(|seed| seed.parameters.into()).collect();
    sizes.sort_unstable_by_key(|&size| std::cmp::Reverse(size));
    let most = match loaded.task.max_seeds {
        0 => sizes.len(),
        most => most as usize,
    };
    sizes.into_iter().take(most).fold(0, u128::saturating_add)
}

/// The kept batch of an env, the order of its samples, what it predicts, and what is read of it.
fn batch_bytes(loaded: &Loaded) -> u128 {
    let (scenario, task) = (&loaded.scenario, &loaded.task);
    let rows = task.batch_size as u128;
    let batches = |sizes: PartSizes| task.train_batches(sizes.train, scenario.run.n_envs) as u128;
    let (pixels, words) = if let Some((sizes, block)) = known_text(loaded) {
        // Inputs of a batch; targets of the step as stored, as numbers of 64 bits, and what was predicted of them.
        let targets = product([rows, batches(sizes), block, TOKEN_BYTES + 2 * WORD_BYTES]);
        (product([rows, block, TOKEN_BYTES]), targets)
    } else if let Some((sizes, shape)) = known_data(loaded) {
        let words = product([2, rows, batches(sizes), WORD_BYTES]);
        (product([rows, pixels(shape), F32_BYTES]), words)
    } else {
        return 0;
    };
    let configurations = max_configurations(&scenario.attribution, loaded.slots.len()) as u128;
    pixels
        .saturating_add(words)
        .saturating_add(product([3, configurations, WORD_BYTES]))
}

/// Of one env at work: those of a training batch, or of the rows that are validated at a time.
fn activation_bytes(loaded: &Loaded, largest: &[Grown], device: DeviceSpec) -> u128 {
    let (scenario, task) = (&loaded.scenario, &loaded.task);
    let outputs = || loaded.host.op_outputs.iter().map(|&values| u128::from(values));
    let sum = outputs().fold(0, u128::saturating_add);
    let widest = outputs().max().unwrap_or(0);
    let most = match task.max_seeds {
        0 => largest.len(),
        most => largest.len().min(most as usize),
    } as u128;
    let with_seeds = sum.saturating_add(product([most, SEED_LAYERS, widest]));
    let rows = (task.batch_size as u128).div_ceil(scenario.training.micro_batches.max(1) as u128);
    let training = product([rows, with_seeds, ACTIVATION_COPIES, F32_BYTES]);
    let at_once = match device {
        DeviceSpec::Cpu => CPU_VALIDATION_ROWS,
        _ => CUDA_VALIDATION_ROWS,
    };
    // An operation's input and output, and a seed's residual between them.
    let validation = product([at_once, 3, widest, F32_BYTES]);
    training.max(validation)
}

/// The rollout of all envs, of which there are `envs` on this device, and the policy that learns from it.
fn policy_needs(loaded: &Loaded, envs: usize) -> [Need; 2] {
    let (policy, learner, task) = (&loaded.scenario.policy, &loaded.scenario.learner, &loaded.task);
    let schema = ObservationSchema::new(
        &loaded.slots,
        task.max_steps,
        &policy.features,
        &ObservationFeatures::default(),
    );
    let observation = schema.len() as u128;
    // Observations are kept as they came and as the policy saw them.
    let rollout = product([
        learner.episodes_learnt_from().into(),
        task.max_steps.into(),
        observation,
        2,
        F32_BYTES,
    ]);
    let hidden = policy.net_cfg.hidden_dim as u128;
    // What every kind of network has; a recurrent core has a few times as much.
    let weights = product([hidden, observation.saturating_add(hidden)]);
    let all = product([loaded.scenario.run.n_envs as u128, rollout]);
    let fields = "run.n_envs, run.max_steps, learner.episodes_per_update";
    [
        // Those elsewhere become fewer with those that are here.
        match envs {
            0 => Need::fixed("a rollout", fields, all),
            envs => Need::per_env("a rollout", fields, all.div_ceil(envs as u128)),
        },
        Need::fixed(
            "the policy",
            "policy.net_cfg",
            product([weights, POLICY_COPIES, F32_BYTES]),
        ),
    ]
}

/// Bytes of a stored token.
const TOKEN_BYTES: u128 = 4;

/// A text of known length: its windows and the tokens of each, inputs alone.
fn known_text(loaded: &Loaded) -> Option<(PartSizes, u128)> {
    let data = &loaded.task.data;
    Some((data.part_sizes(&loaded.task.split)?, data.text()?.block as u128))
}

/// As it is loaded, and as envs read it: a stream, with one token more than inputs in each window.
fn stream_bytes(sizes: PartSizes, block: u128) -> u128 {
    let windows = [sizes.train, sizes.val, sizes.test].map(|windows| windows as u128);
    let windows = windows.into_iter().fold(0, u128::saturating_add);
    product([windows, block.saturating_add(1), TOKEN_BYTES])
}

/// Files are as large as they are; they are read before anything is made of them.
fn known_data(loaded: &Loaded) -> Option<(PartSizes, ImageShape)> {
    let data = &loaded.task.data;
    Some((data.part_sizes(&loaded.task.split)?, data.shape()?))
}

/// As it is loaded: a byte a value, and labels.
fn data_bytes(loaded: &Loaded) -> u128 {
    if let Some((sizes, block)) = known_text(loaded) {
        return stream_bytes(sizes, block);
    }
    let Some((sizes, shape)) = known_data(loaded) else {
        return 0;
    };
    let samples = [sizes.train, sizes.val, sizes.test].map(|samples| samples as u128);
    let samples = samples.into_iter().fold(0, u128::saturating_add);
    product([samples, pixels(shape).saturating_add(WORD_BYTES)])
}

/// Training data that are known to lie in the machine's memory, from which batches are gathered before they are due.
fn run_gathers_ahead(loaded: &Loaded) -> bool {
    loaded.scenario.data.residency == Residency::Host
}

/// The buffers of all envs: those gathered ahead, and one for the batches that seeds are initialized from. Images take a byte
/// a value, texts windows with their targets.
fn gathered_bytes(loaded: &Loaded) -> u128 {
    let row = match (known_text(loaded), known_data(loaded)) {
        (Some((_, block)), _) => product([block.saturating_add(1), TOKEN_BYTES]),
        (None, Some((_, shape))) => pixels(shape),
        (None, None) => 0,
    };
    let (data, envs) = (&loaded.scenario.data, loaded.scenario.run.n_envs);
    product([
        data.prefetch as u128 + 1,
        envs as u128,
        loaded.task.batch_size as u128,
        row,
    ])
}

/// As envs read it: training images with their padding and their mirrored copies, a byte a value, unless they lie
/// elsewhere; the other parts normalised.
fn resident_bytes(loaded: &Loaded) -> u128 {
    if let Some((mut sizes, block)) = known_text(loaded) {
        if run_gathers_ahead(loaded) {
            sizes.train = 0;
        }
        let evaluated = (sizes.val as u128).saturating_add(sizes.test as u128);
        return stream_bytes(sizes, block).saturating_add(product([evaluated, block, WORD_BYTES]));
    }
    let Some((sizes, shape)) = known_data(loaded) else {
        return 0;
    };
    let augment = loaded.task.augment;
    let padding = 2 * augment.map_or(0, |augment| u128::from(augment.pad));
    let copies = 1 + u128::from(augment.is_some_and(|augment| augment.flip_p > 0.0));
    let stored = product([
        unsigned(shape.channels),
        unsigned(shape.height).saturating_add(padding),
        unsigned(shape.width).saturating_add(padding),
        copies,
    ]);
    let stored = if run_gathers_ahead(loaded) { 0 } else { stored };
    let train = product([sizes.train as u128, stored.saturating_add(WORD_BYTES)]);
    let evaluated = (sizes.val as u128).saturating_add(sizes.test as u128);
    let normalised = product([pixels(shape), F32_BYTES]).saturating_add(WORD_BYTES);
    train.saturating_add(product([evaluated, normalised]))
}

fn pixels(shape: ImageShape) -> u128 {
    product([shape.channels, shape.height, shape.width].map(unsigned))
}

/// Sizes are never negative.
fn unsigned(size: i64) -> u128 {
    u128::from(size.max(0).unsigned_abs())
}

fn product<const N: usize>(factors: [u128; N]) -> u128 {
    factors.into_iter().fold(1, u128::saturating_mul)
}

#[cfg(test)]
mod tests;
