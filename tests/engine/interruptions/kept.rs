//! Rows of the matrix: what is kept of a run, and the forms that a scenario may give it.

use std::collections::BTreeMap;

use simic_engine::internals::random::{ContentRng, Draw, mix};

/// Something that a run keeps.
#[derive(Debug)]
pub struct Kept {
    pub name: &'static str,
    /// An event that its runs tell: without one there would be nothing to keep.
    pub shows: &'static str,
    /// Sections of a scenario, one per line, in the place of [`DEFAULTS`]. Where there is none every form is drawn from those of
    /// the other rows.
    forms: &'static [&'static str],
}

/// Scenarios of the row that draws them.
const DRAWN: usize = 12;

/// Sections that a form need not say. The task also has `fields`.
const DEFAULTS: [(&str, &str); 6] = [
    (
        "task",
        r#"preset("digits_impaired", (batches_per_step: count(2), val_batches_per_step: count(1), {fields}))"#,
    ),
    ("fields", ""),
    (
        "run",
        "(rounds: 2, n_envs: 2, max_steps: 6, checkpoint_every_steps: 2, keep: all)",
    ),
    (
        "policy",
        r#"(controller: "actor_critic", net: "lstm", net_cfg: (hidden_dim: 16, op_bias: (germinate: 4.0)))"#,
    ),
    ("reward", "contribution(committed())"),
    (
        "lifecycle",
        "(auto_forward: true, gates: (min_training_steps: 1, min_gradient_health: 0.0))",
    ),
];

macro_rules! learns_with {
    ($net:literal) => {
        concat!(
            r#"policy: (controller: "actor_critic", net: ""#,
            $net,
            r#"", net_cfg: (hidden_dim: 16, op_bias: (germinate: 4.0)))"#
        )
    };
}

macro_rules! plants {
    ($blueprint:literal) => {
        concat!(
            r#"policy: (controller: "schedule", schedule: (wait_on_illegal: true, entries: [(step: 1, command: germinate(slot: "r0c1", "#,
            r#"style: "sigmoid_add", tempo: "fast", target: "full", blueprint: ""#,
            $blueprint,
            r#"")), (step: 6, command: commit(slot: "r0c1"))]))"#
        )
    };
}

macro_rules! descends_by {
    ($optimizer:literal) => {
        concat!("fields: host_opt: ", $optimizer, ", seed_opt: ", $optimizer)
    };
}

/// All rows; the first is the smallest run.
pub const KEPT: [Kept; 15] = [
    Kept {
        name: "record",
        shows: "learner_update",
        forms: &[r#"run: (rounds: 2, n_envs: 1, max_steps: 2, checkpoint_every_steps: 1, trajectories: true)
            policy: (controller: "actor_critic", net: "lstm", net_cfg: (hidden_dim: 8))"#],
    },
    Kept {
        name: "controller",
        shows: "decision",
        forms: &[
            r#"policy: (controller: "heuristic")"#,
            r#"policy: (controller: "periodic")"#,
            r#"policy: (controller: "fragrow")"#,
            r#"policy: (controller: "random")"#,
            r#"policy: (controller: "unruly")"#,
            r#"policy: (controller: "wait")"#,
            r#"policy: (controller: "static")
            initial_topology: seeds([(slot: "r0c1", blueprint: "conv_light")])"#,
        ],
    },
    Kept {
        name: "policy network",
        shows: "learner_update",
        forms: &[learns_with!("lstm"), learns_with!("gru"), learns_with!("mlp")],
    },
    Kept {
        name: "learner",
        shows: "learner_update",
        forms: &[
            "learner: (num_minibatches: 2)",
            "learner: (advantage_baseline: leave_one_out)",
            "learner: (entropy_anneal_episodes: 4, entropy_coef_end: 0.02)",
            "learner: (episodes_per_update: 2)
            run: (rounds: 4, n_envs: 2, max_steps: 4, checkpoint_every_steps: 3)",
            "learner: (algorithm: impala((rollouts: 2)), epochs: 2)
            run: (rounds: 4, n_envs: 2, max_steps: 4, checkpoint_every_steps: 3)",
        ],
    },
    Kept {
        name: "precision",
        shows: "learner_update",
        forms: &[
            "learner: (amp: fp16)
            training: (amp: fp16)
            faults: [(env: 0, round: 1, step: 1, fault: nan_grad)]",
            "learner: (amp: bf16)
            training: (amp: bf16, micro_batches: 2)",
        ],
    },
    Kept {
        name: "host",
        shows: "learner_update",
        forms: &[
            r#"fields: host: cnn((in_channels: 1, base_channels: 2, n_blocks: 2, kernel_size: 3, pool_layers: 2, input_hw: 8, norm: group))
            lifecycle: (slots: ["r0c0"])"#,
            r#"fields: host: resnet((in_channels: 1, base_channels: 4, blocks: [1, 1], input_hw: 8))
            lifecycle: (slots: ["r0c0"])"#,
            r#"fields: host: resnet((in_channels: 1, base_channels: 4, blocks: [1, 1], input_hw: 8, pre_activation: true, shortcut: projection))
            lifecycle: (slots: ["r0c0"])"#,
            r#"fields: host: vgg((in_channels: 1, base_channels: 4, blocks: [1, 1], input_hw: 8))
            lifecycle: (slots: ["r0c0"])"#,
            r#"task: preset("synth_tokens", (batch_size: 4, batches_per_step: count(2), val_batch_size: 16, val_batches_per_step: count(1)))
            reward: loss()"#,
        ],
    },
    Kept {
        name: "seed module",
        shows: "seed_germinated",
        forms: &[
            plants!("conv_light"),
            plants!("conv_small"),
            plants!("conv_heavy"),
            plants!("depthwise"),
            plants!("bottleneck"),
            plants!("attention"),
            plants!("norm"),
            plants!("channel_scale"),
        ],
    },
    Kept {
        name: "reward",
        shows: "seed_germinated",
        forms: &[
            "reward: contribution(committed())",
            "reward: contribution(shaped())",
            "reward: contribution(shaped((committed_attribution: live)))",
            "reward: contribution(escrow())",
            "reward: contribution(simplified())",
            "reward: contribution(basic())",
            "reward: contribution(basic_plus())",
            "reward: contribution(sparse())",
            "reward: contribution(minimal())",
            "reward: loss()",
        ],
    },
    Kept {
        name: "optimizer",
        shows: "env_step",
        forms: &[
            descends_by!("sgd(lr: 0.01, momentum: 0.0, weight_decay: 0.0)"),
            descends_by!("sgd(lr: 0.01, momentum: 0.9, weight_decay: 5e-4)"),
            descends_by!("adamw(lr: 1e-3, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.1)"),
        ],
    },
    Kept {
        name: "governor",
        shows: "governor_rollback",
        forms: &[
            r#"policy: (controller: "random")
            initial_topology: seeds([(slot: "r0c1", blueprint: "conv_light")])
            run: (rounds: 2, n_envs: 2, max_steps: 8, checkpoint_every_steps: 2)
            faults: [(env: 0, round: 0, step: 3, fault: nan_weight), (env: 1, round: 1, step: 7, fault: nan_weight)]"#,
            "run: (rounds: 2, n_envs: 2, max_steps: 6, checkpoint_every_steps: 1, early_stop: 2)
            faults: [(env: 1, round: 1, step: 2, fault: nan_weight), (env: 1, round: 1, step: 3, fault: nan_weight)]",
            "run: (rounds: 3, n_envs: 2, max_steps: 6, checkpoint_every_steps: 2, on_env_error: drop_env)
            governor: (max_rollbacks_per_episode: 1)
            faults: [(env: 0, round: 1, step: 2, fault: env_error), (env: 1, round: 1, step: 3, fault: nan_weight), (env: 1, round: 2, step: 2, fault: scale_weights(1e4))]",
        ],
    },
    Kept {
        name: "measurement",
        shows: "shapley",
        forms: &[
            r#"policy: (controller: "wait")
            reward: loss()
            initial_topology: seeds([(slot: "r0c0", blueprint: "norm"), (slot: "r0c1", blueprint: "conv_light")])
            attribution: (strategy: permutations, cadence: every_k(2), include_committed: true)"#,
            r#"policy: (controller: "wait")
            reward: contribution(sparse())
            initial_topology: seeds([(slot: "r0c0", blueprint: "norm"), (slot: "r0c1", blueprint: "conv_light")])
            attribution: (strategy: permutations, cadence: on_change, include_committed: true)
            training: (host_lr: cosine(end: 0.1))"#,
        ],
    },
    Kept {
        name: "network",
        shows: "seed_germinated",
        forms: &[
            r#"policy: (controller: "random")
            run: (rounds: 3, n_envs: 2, max_steps: 6, checkpoint_every_steps: 2, keep: best)
            initial_topology: seeds([(slot: "r0c1", blueprint: "conv_light")])"#,
            r#"policy: (controller: "random")
            run: (rounds: 3, n_envs: 2, max_steps: 6, keep: last)"#,
        ],
    },
    Kept {
        name: "recording",
        shows: "learner_update",
        forms: &["run: (rounds: 2, n_envs: 2, max_steps: 6, checkpoint_every_steps: 2, keep: all, trajectories: true)"],
    },
    Kept {
        name: "application",
        shows: "user_event",
        forms: &[
            r#"policy: (controller: "alternating")"#,
            r#"fields: host: named("short")
            lifecycle: (slots: ["r0c0"])"#,
            r#"fields: data: custom(name: "shades")"#,
        ],
    },
    Kept {
        name: "anything",
        shows: "episode_finished",
        forms: &[],
    },
];

impl Kept {
    /// The number of its forms.
    pub fn forms(&self) -> usize {
        if self.forms.is_empty() { DRAWN } else { self.forms.len() }
    }

    /// A scenario with the form of that number; of those that are drawn, the first that is sound.
    pub fn scenario(&self, form: usize, is_sound: impl Fn(&str) -> bool) -> String {
        match self.forms.get(form) {
            Some(form) => written(&sections(form), 42),
            None => {
                let mut draws = (0..1000).map(|draw| drawn(1000 * form as u64 + draw));
                draws.find(|text| is_sound(text)).expect("one in a thousand is sound")
            }
        }
    }
}

/// A scenario with forms of any rows that say different things.
fn drawn(seed: u64) -> String {
    let mut rng = ContentRng::from_seed(mix(seed));
    let mut said = BTreeMap::new();
    for Kept { forms, .. } in KEPT.iter().skip(1).filter(|kept| !kept.forms.is_empty()) {
        let form = sections(forms[rng.below(forms.len() as u64) as usize]);
        if rng.below(2) == 0 && form.keys().all(|name| !said.contains_key(name)) {
            said.extend(form);
        }
    }
    written(&said, seed)
}

/// Sections by name.
fn sections(form: &'static str) -> BTreeMap<&'static str, &'static str> {
    form.lines().filter_map(|line| line.trim().split_once(": ")).collect()
}

/// A scenario with these sections.
fn written(said: &BTreeMap<&str, &str>, seed: u64) -> String {
    let mut all: BTreeMap<&str, &str> = DEFAULTS.into_iter().collect();
    all.extend(said);
    let fields = all.remove("fields").unwrap_or_default();
    let sections = all.into_iter().map(|(name, text)| format!("{name}: {text},\n"));
    let sections = sections.collect::<String>().replace("{fields}", fields);
    let text = sections.replace("run: (", &format!("run: (seed: {seed}, "));
    format!("(\nname: \"kept\", preset: \"manual\",\n{text})")
}
