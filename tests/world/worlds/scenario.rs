//! The scenario of a world: a tiny one, of anything that a scenario may ask for.

use super::dice::Dice;
use super::unruly;

/// What is trained, and what can grow in it.
struct Ground {
    name: &'static str,
    /// Field `task`.
    task: String,
    slots: &'static [&'static str],
    blueprints: &'static [&'static str],
}

const IMAGE_BLUEPRINTS: &[&str] = &[
    "conv_light",
    "attention",
    "norm",
    "depthwise",
    "bottleneck",
    "conv_small",
    "conv_heavy",
];
const TOKEN_BLUEPRINTS: &[&str] = &["attention", "norm", "lora", "mlp_small", "mlp", "flex_attention"];
const STYLES: &[&str] = &["linear_add", "linear_multiply", "sigmoid_add", "gated_gate"];
const CONTRIBUTION_MODES: &[&str] = &[
    "committed",
    "shaped",
    "escrow",
    "simplified",
    "basic",
    "basic_plus",
    "sparse",
    "minimal",
];

/// As it is given to the engine.
pub struct Drawn {
    pub text: String,
    /// In a few words.
    pub outline: String,
    pub rounds: u64,
    pub steps: u64,
    /// Entries of section `faults`.
    pub faults: usize,
}

pub fn draw(seed: u64) -> Drawn {
    let dice = &mut Dice::of(seed, 0);
    let rounds = dice.number(1..=3);
    let envs = dice.number(1..=3);
    // In a long episode a seed may come to its commit.
    let steps = if dice.one_in(4) { 12 } else { dice.number(2..=6) };
    let ground = draw_ground(dice);
    let slots = dice.some_of(ground.slots);
    let controller = dice.one_of(&[
        "heuristic",
        "periodic",
        "fragrow",
        "schedule",
        "random",
        "random",
        "actor_critic",
        "actor_critic",
        unruly::NAME,
        unruly::NAME,
    ]);
    let (reward, is_paid_at_the_end) = draw_reward(dice);
    let faults = draw_faults(dice, &slots, [rounds, envs, steps]);
    let schedule = draw_schedule(dice, &ground, &slots, steps);
    let sections = [
        format!(r#"name: "world-{seed}", task: {},"#, ground.task),
        draw_run(dice, seed, [rounds, envs, steps]),
        draw_measuring(dice),
        draw_lifecycle(dice, &slots),
        draw_initial_seeds(dice, &ground, &slots),
        draw_governor(dice),
        draw_attribution(dice, is_paid_at_the_end),
        draw_policy(dice, controller, &ground, &schedule),
        draw_learner(dice, rounds, steps),
        format!("reward: {reward},"),
        format!("faults: [{}],", faults.join(", ")),
    ];
    Drawn {
        text: format!("(\n{}\n)", sections.join("\n")),
        outline: format!("{} {controller} {reward} {rounds}x{envs}x{steps}", ground.name),
        rounds,
        steps,
        faults: faults.len(),
    }
}

fn draw_ground(dice: &mut Dice) -> Ground {
    let norm = dice.one_of(&["batch", "group"]);
    let positions = dice.one_of(&["learned", "rotary"]);
    let shortcut = dice.one_of(&["pad", "projection"]);
    let is_pre_activated = dice.one_in(2);
    let (batches, val_batches) = (dice.number(1..=2), dice.number(1..=2));
    let batches = format!(
        "batch_size: 16, batches_per_step: count({batches}), val_batch_size: 16, val_batches_per_step: count({val_batches})"
    );
    let images = Ground {
        name: "cnn",
        task: String::new(),
        slots: &["r0c0", "r0c1", "r0c2"],
        blueprints: IMAGE_BLUEPRINTS,
    };
    match dice.index(3) {
        0 => {
            let preset = dice.one_of(&["digits_baseline", "digits_impaired", "digits_minimal"]);
            Ground {
                task: format!(r#"preset("{preset}", ({batches}))"#),
                ..images
            }
        }
        1 => Ground {
            name: "resnet",
            task: format!(
                r#"preset("synth_resnet20", ({batches},
    data: synth_images((height: 8, width: 8, train: 96, val: 32, test: 32)),
    host: resnet((base_channels: 4, blocks: [1, 1, 1], input_hw: 8,
        norm: {norm}, shortcut: {shortcut}, pre_activation: {is_pre_activated}))))"#
            ),
            slots: &["r0c0", "r1c0", "r2c0"],
            ..images
        },
        _ => Ground {
            name: "transformer",
            task: format!(
                r#"preset("synth_tokens", ({batches},
    data: synth_tokens((block: 16, copy: 4, topics: 2, train: 96, val: 32, test: 32)),
    host: transformer((width: 8, heads: 2, block: 16, positions: {positions}))))"#
            ),
            blueprints: TOKEN_BLUEPRINTS,
            ..images
        },
    }
}

fn draw_run(dice: &mut Dice, seed: u64, [rounds, envs, steps]: [u64; 3]) -> String {
    let every = dice.number(1..=2);
    let keep = dice.number(1..=3);
    let stop_at = dice.one_of(&["step", "round"]);
    let on_env_error = dice.one_of(&["abort_run", "drop_env"]);
    let early_stop = dice.one_of(&[
        "None",
        "None",
        "None",
        "Some((min_steps: 2, patience: 1, min_delta: 0.5))",
    ]);
    let run_early_stop = dice.one_of(&["None", "None", "None", "Some((patience_rounds: 1, min_delta: 0.5))"]);
    let kernels = dice.one_of(&["own", "libtorch"]);
    let every_steps = dice.one_of(&["None", "Some(1)", "Some(3)"]);
    format!(
        "run: (rounds: {rounds}, n_envs: {envs}, max_steps: {steps}, seed: {seed}, checkpoint_every: {every}, checkpoint_every_steps: {every_steps}, keep_last: {keep},
    stop_at: {stop_at}, on_env_error: {on_env_error}, kernels: {kernels},
    early_stop: {early_stop}, run_early_stop: {run_early_stop}),"
    )
}

/// Sections `data`, `training` and `telemetry`.
fn draw_measuring(dice: &mut Dice) -> String {
    let (micro_batches, stride, step_stride) = (dice.number(1..=2), dice.number(1..=3), dice.number(1..=2));
    let course = dice.one_of(&["constant", "cosine(end: 0.1)", "cosine_after_growth(end: 0.1)"]);
    let level = dice.one_of(&["off", "lifecycle", "full", "full", "full"]);
    format!(
        "training: (micro_batches: {micro_batches}, grad_stats_stride: {stride}, host_lr: {course}),
telemetry: (level: {level}, step_stride: {step_stride}),"
    )
}

fn draw_lifecycle(dice: &mut Dice, slots: &[&str]) -> String {
    let on_commit = dice.one_of(&["reset_momentum", "keep", "freeze"]);
    let gates = dice.one_of(&["permissive", "strict"]);
    let holding = dice.one_of(&["None", "Some(1)", "Some(3)"]);
    let min_contribution = dice.one_of(&["-100.0", "1.0"]);
    let max_seeds = dice.number(0..=2);
    let [g1, g2, g3] = [(); 3].map(|()| !dice.one_in(3));
    let [embargo, prune_age, training, blending] = [(); 4].map(|()| dice.number(0..=1));
    let isolation = dice.one_of(&["isolated", "co_adapt"]);
    format!(
        "lifecycle: (slots: Some({slots:?}),
    on_commit: {on_commit}, auto_forward: (g1: {g1}, g2: {g2}, g3: {g3}), embargo_steps: {embargo},
    min_prune_age: {prune_age}, max_holding_steps: {holding}, max_seeds: Some({max_seeds}),
    gates: (mode: {gates}, min_training_steps: {training}, min_blending_steps: {blending},
        min_training_improvement: -100.0, min_gradient_health: 0.0, min_contribution: {min_contribution}),
    isolation: (cnn: (blending: {isolation}, holding: {isolation}, committed: co_adapt))),"
    )
}

fn draw_initial_seeds(dice: &mut Dice, ground: &Ground, slots: &[&str]) -> String {
    if !dice.one_in(4) {
        return "initial_topology: empty,".into();
    }
    let (slot, blueprint) = (dice.one_of(slots), dice.one_of(ground.blueprints));
    let style = dice.one_of(STYLES);
    format!(r#"initial_topology: seeds([(slot: "{slot}", blueprint: "{blueprint}", style: Some("{style}"))]),"#)
}

fn draw_governor(dice: &mut Dice) -> String {
    let is_enabled = !dice.one_in(4);
    let rollbacks = dice.number(1..=3);
    format!("governor: (enabled: {is_enabled}, max_rollbacks_per_episode: {rollbacks}),")
}

fn draw_attribution(dice: &mut Dice, is_paid_at_the_end: bool) -> String {
    let strategy = dice.one_of(&["auto", "ablation_only", "permutations"]);
    let cadence = dice.one_of(&["every_step", "every_k(2)", "on_change", "terminal"]);
    let cadence = if is_paid_at_the_end { cadence } else { "every_step" };
    let has_committed = dice.one_in(2);
    format!(
        "attribution: (strategy: {strategy}, cadence: {cadence}, shapley_permutations: 4,
    include_committed: {has_committed}),"
    )
}

/// Entries of a schedule: a seed germinates and, step by step, is ordered through its stages, if it can.
fn draw_schedule(dice: &mut Dice, ground: &Ground, slots: &[&str], steps: u64) -> String {
    let slot = dice.one_of(slots);
    let entries = (1..=steps).map(|step| {
        let (blueprint, style) = (dice.one_of(ground.blueprints), dice.one_of(STYLES));
        let target = dice.one_of(&["half", "full"]);
        let command = match dice.index(8) {
            0 => format!(
                r#"set_alpha_target(slot: "{slot}", style: "{style}", target: "{target}", speed: "instant", curve: "cosine")"#
            ),
            1 => format!(r#"prune(slot: "{slot}", speed: "fast", curve: "sigmoid")"#),
            2 => format!(r#"commit(slot: "{slot}")"#),
            3 | 4 if step > 1 => format!(r#"advance(slot: "{slot}")"#),
            _ => format!(
                r#"germinate(slot: "{slot}", blueprint: "{blueprint}", style: "{style}", tempo: "fast", target: "{target}")"#
            ),
        };
        format!("(step: {step}, command: {command})")
    });
    entries.collect::<Vec<_>>().join(", ")
}

fn draw_policy(dice: &mut Dice, controller: &str, ground: &Ground, schedule: &str) -> String {
    let net = dice.one_of(&["lstm", "gru", "mlp"]);
    let conditioning = dice.one_of(&["per_op", "per_slot", "shared"]);
    let features = dice.one_of(&["[]", "[reward_parts]"]);
    let [is_sequential, hides_gates] = [(); 2].map(|()| dice.one_in(2));
    let styles = dice.some_of(STYLES);
    // Rules know what they want, and the unruly want everything.
    let space = match controller {
        "random" | "actor_critic" => format!("(allowed_ops: None, alpha_target: None, style: Some({styles:?}))"),
        _ => "(allowed_ops: None, alpha_target: None)".into(),
    };
    let (period, blueprint, style) = (dice.number(1..=3), dice.one_of(ground.blueprints), dice.one_of(STYLES));
    let growth = format!(r#"growth: (blueprints: ["{blueprint}"], style: "{style}", tempo: "fast")"#);
    format!(
        r#"policy: (controller: "{controller}", net: "{net}",
    net_cfg: (feature_dim: 8, hidden_dim: 8, head_conditioning: {conditioning}),
    obs: (features: {features}),
    masks: (sequential_germination: {is_sequential}, mask_structural_gates: {hides_gates}, action_space: {space}),
    heuristic: (plateau_steps_to_germinate: 1, min_steps_before_germinate: 1),
    schedule: (entries: [{schedule}], wait_on_illegal: true),
    periodic: (period: {period}, {growth}), fragrow: ({growth})),"#
    )
}

fn draw_learner(dice: &mut Dice, rounds: u64, steps: u64) -> String {
    let rollout = dice.number(1..=rounds.min(2));
    let length = dice.number(1..=steps);
    let chunk = if dice.one_in(2) {
        format!("Some({length})")
    } else {
        "None".into()
    };
    // An env whose weights are lost shows nothing that is a number.
    let nonfinite = dice.one_of(&["error", "zero", "zero"]);
    let epochs = dice.number(1..=2);
    format!(
        "learner: (episodes_per_update: {rollout}, epochs: {epochs}, chunk_length: {chunk}, min_actor_steps: 1,
    obs_norm: (nonfinite_obs: {nonfinite})),"
    )
}

/// Field `reward`, and whether it is paid for the last step's network alone.
fn draw_reward(dice: &mut Dice) -> (String, bool) {
    let preset = dice.one_of(&["default", "synth_tokens"]);
    match dice.index(CONTRIBUTION_MODES.len() + 1) {
        place if place < CONTRIBUTION_MODES.len() => {
            let mode = CONTRIBUTION_MODES[place];
            (
                format!("contribution({mode}(()))"),
                ["sparse", "minimal"].contains(&mode),
            )
        }
        _ => (format!("loss((preset: {preset}))"), true),
    }
}

fn draw_faults(dice: &mut Dice, slots: &[&str], [rounds, envs, steps]: [u64; 3]) -> Vec<String> {
    let mut was_short_of_memory = false;
    let count = if dice.one_in(2) { 0 } else { dice.number(1..=3) };
    let mut draw = || {
        let (env, round, step) = (
            dice.number(0..=envs - 1),
            dice.number(0..=rounds - 1),
            dice.number(1..=steps),
        );
        let slot = dice.one_of(slots);
        let fault = match dice.index(8) {
            0 => "env_error".into(),
            // Memory is short once in a process: a second time would tell a run that was resumed from one that was not.
            1 if !was_short_of_memory => {
                was_short_of_memory = true;
                "out_of_memory".into()
            }
            2 => "nan_weight".into(),
            3 => "scale_weights(1e4)".into(),
            4 => "loss_spike(50.0)".into(),
            5 => format!("scale_seed(slot: \"{slot}\", factor: 1e6)"),
            _ => "nan_grad".to_string(),
        };
        format!("(env: {env}, round: {round}, step: {step}, fault: {fault})")
    };
    (0..count).map(|_| draw()).collect()
}
