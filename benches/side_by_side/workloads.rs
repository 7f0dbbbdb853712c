//! What is played: scenarios that old builds can read as well, and the part of each that is measured.
//!
//! Seeds are held at full amplitude in every measured step: they train with their own optimizers, and the validation
//! pass evaluates every coalition of them. A schedule germinates them in the first steps, which are not measured.

/// Validation samples of the digits.
const DIGITS_VAL: u64 = 355;
/// Slots of all hosts below.
const SLOTS: [&str; 3] = ["r0c0", "r0c1", "r0c2"];
/// Steps from the germination of a seed until it is held.
const STEPS_OF_A_SEED: u32 = 5;
/// Steps from one germination to the next: a seed has to wait until the one before it is being blended in.
const STEPS_BETWEEN_SEEDS: u32 = 2;

/// Where the measured part begins and ends.
#[derive(Clone, Copy, Debug)]
pub enum Span {
    /// From the end of this step of the only round to the end of its last.
    Steps { after: u32 },
    /// From the end of the first round to the end of the last, updates of the policy included.
    Rounds,
}

/// A scenario and how much of it counts.
#[derive(Debug)]
pub struct Workload {
    pub name: &'static str,
    pub what: &'static str,
    pub scenario: String,
    pub span: Span,
    /// Live seeds in every measured step; `None` where a policy decides.
    pub seeds: Option<u32>,
    pub val_samples: u64,
}

/// A task as scenarios name it, and its validation samples.
type Task = (&'static str, u64);

const DIGITS: Task = (r#"preset("digits_baseline")"#, DIGITS_VAL);
const IMPAIRED: Task = (r#"preset("digits_impaired")"#, DIGITS_VAL);
const CIFAR_SHAPED: Task = (
    r#"preset("synth_baseline", (
        batch_size: 512, batches_per_step: count(2), val_batch_size: 512,
        data: synth_images((train: 1024, val: 512, test: 512)),
    ))"#,
    512,
);

/// No seeds, of no blueprint.
const ALONE: (&str, u32) = ("", 0);

/// All workloads, in the order of the tables.
pub fn all() -> Vec<Workload> {
    vec![
        scheduled("T0", "8x8 digits, batch 64, 8 envs", DIGITS, 8, ALONE, 60),
        scheduled("T1", "T0 and 1 conv_light", DIGITS, 8, ("conv_light", 1), 40),
        scheduled("T3", "T0 and 3 conv_light", DIGITS, 8, ("conv_light", 3), 20),
        scheduled("T3S", "T0 and 3 conv_small", DIGITS, 8, ("conv_small", 3), 20),
        scheduled("T3A", "T0 and 3 attention", DIGITS, 8, ("attention", 3), 20),
        scheduled("I", "8x8 digits, the quickstart's host, 8 envs", IMPAIRED, 8, ALONE, 60),
        scheduled("C0", "32x32 images, batch 512, 4 envs", CIFAR_SHAPED, 4, ALONE, 8),
        scheduled("C1", "C0 and 1 conv_light", CIFAR_SHAPED, 4, ("conv_light", 1), 6),
        scheduled("C3", "C0 and 3 conv_light", CIFAR_SHAPED, 4, ("conv_light", 3), 5),
        policy_bound(),
        scheduled("N2", "T0 with 2 envs", DIGITS, 2, ALONE, 240),
        scheduled("N8", "T0 with 8 envs", DIGITS, 8, ALONE, 60),
        scheduled("N64", "T0 with 64 envs", DIGITS, 64, ALONE, 8),
    ]
}

/// Live seeds of one blueprint, and `steps` steps with them.
fn scheduled(
    name: &'static str,
    what: &'static str,
    (task, val_samples): Task,
    n_envs: u32,
    (blueprint, seeds): (&str, u32),
    steps: u32,
) -> Workload {
    let germinations = SLOTS.iter().zip((1..).step_by(STEPS_BETWEEN_SEEDS as usize));
    let entry = |(slot, step)| {
        format!(
            r#"(step: {step}, command: germinate(slot: "{slot}", blueprint: "{blueprint}", style: "sigmoid_add", tempo: "fast", target: "full")), "#
        )
    };
    let entries: String = germinations.take(seeds as usize).map(entry).collect();
    let (controller, after) = match seeds {
        0 => (r#"controller: "wait""#.to_owned(), 2),
        _ => (
            format!(r#"controller: "schedule", tracker: (stabilization_steps: 0), schedule: (entries: [{entries}])"#),
            1 + STEPS_BETWEEN_SEEDS * (seeds - 1) + STEPS_OF_A_SEED,
        ),
    };
    let max_steps = after + steps;
    let scenario = format!(
        r#"(
    name: "{name}",
    task: {task},
    run: (rounds: 1, n_envs: {n_envs}, max_steps: {max_steps}),
    policy: ({controller}),
    lifecycle: (auto_forward: (g1: true, g2: true, g3: true), gates: (min_training_steps: 1, min_blending_steps: 1)),
)"#
    );
    Workload {
        name,
        what,
        scenario,
        span: Span::Steps { after },
        seeds: Some(seeds),
        val_samples,
    }
}

/// Small hosts that train on two batches a step, so that deciding and the policy's update weigh.
fn policy_bound() -> Workload {
    let scenario = r#"(
    name: "P",
    preset: "digits",
    task: preset("digits_impaired", (batches_per_step: count(2))),
    run: (rounds: 3, n_envs: 64, max_steps: 20),
    policy: (controller: "actor_critic"),
)"#;
    Workload {
        name: "P",
        what: "64 envs under a policy that learns, 2 batches a step",
        scenario: scenario.into(),
        span: Span::Rounds,
        seeds: None,
        val_samples: DIGITS_VAL,
    }
}
