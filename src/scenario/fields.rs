//! Every scenario field: what it means, what it may be (spec 00 §3, 01 §16.4, 02 §1 and §8, 03 §9, 04 §13, 05 §13,
//! 06 §2).

use super::schema::{Content, Field, FloatRange, Item, Kind, Names, Variant};

/// `name: kind => doc;`, fields with a default.
macro_rules! fields {
    ($($name:ident: $kind:expr => $doc:literal;)*) => {
        &[$(Field { name: stringify!($name), doc: $doc, kind: $kind, has_default: true }),*]
    };
}

/// The same for fields that must be written, unless they may be `None`.
macro_rules! required {
    ($($name:ident: $kind:expr => $doc:literal;)*) => {
        &[$(Field { name: stringify!($name), doc: $doc, kind: $kind, has_default: false }),*]
    };
}

/// `name content => doc;`
macro_rules! variants {
    ($($name:ident $(($($items:expr),+))? $({$fields:expr})? => $doc:literal;)*) => {
        Kind::Choice(&[$(Variant {
            name: stringify!($name),
            doc: $doc,
            content: variants!(@content $(($($items),+))? $({$fields})?),
        }),*])
    };
    (@content) => { Content::Nothing };
    (@content ($($items:expr),+)) => { Content::Items(&[$($items),+]) };
    (@content {$fields:expr}) => { Content::Fields($fields) };
}

mod reward;

pub use reward::reward_forms;

const fn integer(min: i128, max: i128) -> Kind {
    Kind::Integer(min..=max)
}

const fn float(min: f64, max: f64) -> FloatRange {
    FloatRange {
        min,
        max,
        min_excluded: false,
        max_excluded: false,
    }
}

const fn unnamed(kind: Kind) -> Item {
    Item {
        name: "",
        doc: "",
        kind,
        optional: false,
    }
}

/// Any count of at least `min`.
const fn at_least(min: i128) -> Kind {
    integer(min, u32::MAX as i128)
}

const NOT_NEGATIVE: Kind = Kind::Float(float(0.0, f64::INFINITY));
const ANY_NUMBER: Kind = Kind::Float(float(f64::NEG_INFINITY, f64::INFINITY));
const FRACTION: Kind = Kind::Float(float(0.0, 1.0));
const PERCENT: Kind = Kind::Float(float(0.0, 100.0));
const BELOW_ONE: Kind = Kind::Float(FloatRange {
    max_excluded: true,
    ..float(0.0, 1.0)
});
const AT_LEAST_ONE: Kind = Kind::Float(float(1.0, f64::INFINITY));
const ABOVE_ONE: Kind = Kind::Float(FloatRange {
    min_excluded: true,
    ..float(1.0, f64::INFINITY)
});
const OPEN_FRACTION: Kind = Kind::Float(FloatRange {
    min_excluded: true,
    max_excluded: true,
    ..float(0.0, 1.0)
});
/// More than 0, at most 1.
const SHARE: Kind = Kind::Float(FloatRange {
    min_excluded: true,
    ..float(0.0, 1.0)
});
const POSITIVE: Kind = Kind::Float(FloatRange {
    min_excluded: true,
    ..float(0.0, f64::INFINITY)
});
const SEED: Kind = integer(0, u64::MAX as i128);
const SLOT: Kind = Kind::Text(Names::Slot);
const PERMILLE: Kind = integer(0, 999);

/// The whole scenario.
pub static SCENARIO: Kind = Kind::Record(fields! {
    name: Kind::Text(Names::Run) => "Name of the run; the scenario file's name if left out.";
    preset: Kind::Optional(&Kind::Text(Names::TrainingPreset)) =>
        "Training preset; its values lie between the defaults and this file's.";
    task: TASK => "What every env trains on: data, host network, optimizers, episode length.";
    data: Kind::Record(fields! { feed: FEED => "How training batches reach the envs."; }) =>
        "How data is fed.";
    run: Kind::Record(RUN) => "Size and placement of the run.";
    training: Kind::Record(TRAINING) => "How a training batch is computed.";
    lifecycle: Kind::Record(LIFECYCLE) => "Slots, quality gates and the rules of growing and pruning.";
    initial_topology: INITIAL_TOPOLOGY => "Seeds that are committed, with fresh weights, before an episode's first step.";
    governor: Kind::Record(GOVERNOR) => "When an env counts as wrecked, and what happens then.";
    attribution: Kind::Record(ATTRIBUTION) => "How each seed's contribution is measured.";
    policy: Kind::Record(POLICY) => "Who decides what to grow, and within which limits.";
    reward: reward::REWARD => "What the policy is paid for.";
    learner: Kind::Record(LEARNER) => "How the policy is trained.";
    telemetry: Kind::Record(TELEMETRY) => "What the run writes down.";
    faults: Kind::List(&Kind::Record(FAULT_ENTRY)) => "Damage done on purpose, to see the governor work.";
});

/// Whether `word`, a choice at `path`, is one that the specification names and this version lacks.
pub fn not_in_this_version(path: &str, word: &str) -> bool {
    path == "reward" && reward::LATER.contains(&word)
}

const FEED: Kind = variants! {
    per_env => "every env draws its own order of the training set each step";
    common => "all envs see the same samples in the same order";
};

const RUN: &[Field] = fields! {
    rounds: at_least(1) => "Rounds; in each, every env plays one episode from a fresh host.";
    max_steps: Kind::Optional(&at_least(1)) =>
        "Steps of an episode: host epochs, one decision each. None: the task's.";
    n_envs: integer(1, 4096) => "Envs that train side by side.";
    seed: SEED => "Seed of every random draw of the run.";
    devices: Kind::List(&Kind::Text(Names::Device)) => "Devices over which envs are spread; each runs at least one env.";
    deterministic: Kind::Bool => "Use only kernels that give the same bits every time.";
    matmul_precision: variants! {
        highest => "full float32";
        high => "TensorFloat-32 on CUDA";
        medium => "bfloat16 products where the device has them";
    } => "Precision of float32 matrix products.";
    launch: variants! {
        parallel => "envs of a system run side by side";
        sequential => "envs run one after another";
    } => "Whether envs run side by side.";
    stop_at: variants! {
        step => "the current step; its round is played again after a resume";
        round => "the current round";
    } => "What is played to its end when the run is asked to stop, e.g. by Ctrl-C.";
    checkpoint_every: at_least(1) => "Rounds from one checkpoint to the next; the last round has one in any case.";
    keep_last: at_least(1) => "Newest checkpoints that stay; the best one stays as well.";
};

const TRAINING: &[Field] = fields! {
    micro_batches: at_least(1) => "Parts into which a batch is split, gradients added up; at most the batch size.";
    amp: variants! {
        off => "float32";
        auto => "bfloat16 where the device supports it";
        bf16 => "bfloat16";
    } => "Mixed precision of the training batch.";
    grad_stats_stride: at_least(1) => "Gradient statistics are taken at every so-manieth batch of a step.";
};

const LIFECYCLE: &[Field] = fields! {
    slots: Kind::Optional(&Kind::List(&SLOT)) =>
        "Slots that may grow, e.g. [\"r0c0\"]; r0cX lies before the pool of block X, r1cX after it. None: the task's.";
    max_seeds: Kind::Optional(&at_least(0)) => "Most seeds, live and committed, at a time; 0: no limit. None: the task's.";
    min_prune_age: at_least(0) => "Steps that a seed must have lived before it may be pruned.";
    embargo_epochs: at_least(0) => "Steps for which a slot rests after a prune.";
    max_holding_epochs: Kind::Optional(&at_least(1)) => "Steps after which a seed still in holding is pruned. None: never.";
    auto_forward: Kind::Record(fields! {
        g1: Kind::Bool => "Gate G1, germinated to training.";
        g2: Kind::Bool => "Gate G2, training to blending.";
        g3: Kind::Bool => "Gate G3, blending to holding.";
    }) => "Gates that are tried every step without the controller asking.";
    on_fossilize: variants! {
        reset_momentum => "the committed seed keeps training with fresh momentum";
        keep => "the committed seed keeps training as before";
        freeze => "the committed seed stops training";
    } => "What happens to a seed's optimizer when the seed is committed.";
    gates: Kind::Record(GATES) => "Thresholds of the quality gates.";
    isolation: Kind::Record(fields! {
        cnn: Kind::Record(required! {
            blending: ISOLATION => "While the seed is blended in.";
            holding: ISOLATION => "While the seed is held at full amplitude.";
            fossilized: ISOLATION => "After the seed is committed.";
        }) => "Convolutional hosts.";
    }) => "Whether a seed's gradient reaches the host; a training seed is always isolated.";
    vanishing: NOT_NEGATIVE => "A seed gradient norm below this counts as vanishing.";
    exploding_factor: POSITIVE => "A seed gradient norm above this multiple of the clip norm counts as exploding.";
    ratio_ema: BELOW_ONE => "Weight of the old value in the moving average of the seed/host gradient ratio.";
    ratio_max: POSITIVE => "Upper clamp of the seed/host gradient ratio.";
    allow_parameterless_seeds: Kind::Bool => "Let blueprints without parameters germinate: a placebo control.";
    allow_operator_switch: Kind::Bool => "Let a later alpha command change a seed's blend operator.";
    history_len: at_least(1) => "Stage changes that a seed's record remembers.";
};

const ISOLATION: Kind = variants! {
    isolated => "the host does not feel the seed's gradient";
    co_adapt => "host and seed train together";
};

const GATES: &[Field] = fields! {
    mode: variants! {
        permissive => "structure and age decide; measured quality is reported only";
        strict => "measured quality must reach the thresholds";
    } => "How strict the gates are.";
    min_training_epochs: at_least(0) => "Steps of training before blending.";
    min_blending_epochs: at_least(0) => "Steps of blending before holding.";
    min_training_improvement: ANY_NUMBER => "Accuracy gained in training before blending, percentage points.";
    min_gradient_ratio: NOT_NEGATIVE => "Least seed/host gradient ratio.";
    min_gradient_health: FRACTION => "Least share of healthy gradients, 0 to 1.";
    min_contribution: ANY_NUMBER => "Least measured contribution to be committed, percentage points.";
    max_contribution_age: at_least(0) => "Oldest contribution that a commit may rest on, steps.";
};

const GOVERNOR: &[Field] = fields! {
    enabled: Kind::Bool => "Capture, veto and roll back; if not, alarms are reported and nothing else.";
    sensitivity: POSITIVE => "A loss this many standard deviations above the healthy mean is suspicious.";
    multiplier: ABOVE_ONE => "A loss above this multiple of the healthy mean is suspicious.";
    absolute_limit: Kind::Optional(&POSITIVE) => "A loss up to this is never suspicious, nats. None: the task's.";
    history_window: integer(2, 10_000) => "Healthy losses remembered; at least min_history.";
    min_history: integer(2, 10_000) => "Healthy losses needed before their mean is trusted.";
    min_panics: at_least(1) => "Suspicious steps in a row after which the env is rolled back.";
    collapse: Kind::Record(fields! {
        arm: OPEN_FRACTION => "The healthy mean must lie below this share of the loss of guessing; less than 1 - band.";
        band: OPEN_FRACTION => "The loss now differs from the loss of guessing by less than this share of it.";
    }) => "When a network that was better than chance counts as collapsed to it.";
    death_penalty: NOT_NEGATIVE => "Raw reward that a rollback costs.";
    rollback_credit: variants! {
        penalize_forfeit => "the last reward becomes the penalty, earlier ones of the segment 0";
        penalize_keep => "only the last reward is replaced";
        invalidate => "the segment is left out of learning";
    } => "What a rollback does to the rewards of the segment it ends.";
    snapshot: variants! {
        adaptive { required! {
            min_interval: at_least(1) => "Fewest steps between captures.";
            max_interval: at_least(1) => "Steps after which a capture is due without an improvement.";
            improvement: BELOW_ONE => "Relative improvement of the loss that makes a capture due early.";
            stable_ratio: AT_LEAST_ONE => "Factor by which the loss may exceed the least of the last five.";
            patience: at_least(1) => "Steps after which a capture need not be stable.";
            probation: at_least(0) => "Healthy steps until a capture is trusted.";
        } } => "after improvements, at least every few steps, trusted after a probation";
        every(unnamed(at_least(1))) => "every so many steps, trusted at once";
    } => "When the state to restore is captured.";
    placement: variants! {
        auto => "on the device up to 16 MiB, else pinned_host";
        device => "on the env's device";
        pinned_host => "in host memory";
    } => "Where captured states lie; on a CPU there is but one place.";
    max_rollbacks_per_episode: at_least(0) => "The rollback that ends an env's episode; 0 and 1: the first.";
};

const FAULT_ENTRY: &[Field] = required! {
    env: at_least(0) => "Env to damage.";
    round: at_least(0) => "Round, from 0.";
    step: at_least(1) => "Step, from 1.";
    batch: Kind::Optional(&at_least(0)) => "Training batch of the step, from 0. None: its first.";
    fault: variants! {
        nan_weight => "host weights become NaN";
        nan_grad => "the host's gradient becomes NaN for one batch";
        scale_weights(unnamed(POSITIVE)) => "multiply all weights of the host";
        scale_seed { required! {
            slot: SLOT => "Slot of the seed; nothing happens while it is empty.";
            factor: POSITIVE => "Factor on all of its weights.";
        } } => "multiply all weights of a seed";
        loss_spike(unnamed(POSITIVE)) => "the governor sees this validation loss instead";
    } => "What is done.";
};

const ATTRIBUTION: &[Field] = fields! {
    strategy: variants! {
        auto => "all configurations for few seeds, selected ones for many";
        ablation_only => "each seed off once";
        full_factorial => "all configurations, always";
        off => "none: contributions stay unknown";
    } => "Which on/off configurations of the live seeds are evaluated.";
    cadence: variants! {
        every_step => "at every step";
        every_k(unnamed(at_least(1))) => "at every k-th step";
        terminal => "at the last step of an episode";
        off => "never";
    } => "When contributions are measured.";
    full_factorial_max: integer(0, 12) => "Up to this many seeds `auto` evaluates all 2^n configurations.";
    pairs_max: integer(0, 64) => "Up to this many seeds `auto` evaluates all pairs.";
    shapley_permutations: integer(0, 1000) => "Sampled orders (an even number) for Shapley values where not all configurations are evaluated.";
    include_fossilized: Kind::Bool => "Measure committed seeds as well.";
    max_fused_rows: at_least(1) => "Most rows of one fused evaluation.";
    velocity_decay: BELOW_ONE => "Weight of the old value in the smoothed change of a contribution.";
};

const POLICY: &[Field] = fields! {
    controller: Kind::Text(Names::Controller) => "Who decides.";
    preset: Kind::Optional(&Kind::Text(Names::PolicyPreset)) =>
        "Settings of the learned controller that lie between the defaults and this file's.";
    net: Kind::Text(Names::Net) => "Network of the learned controller.";
    net_cfg: Kind::Record(NET) => "Sizes of the network.";
    obs: Kind::Record(fields! {
        freshness_decay: SHARE => "Factor per step on the freshness of a measured contribution.";
    }) => "What the learned controller sees.";
    floor: Kind::Record(FLOOR) => "Probability that every valid choice of the learned controller keeps.";
    masks: Kind::Record(fields! {
        sequential_germination: Kind::Bool => "Allow germination only while no other seed develops.";
        mask_structural_gates: Kind::Bool => "Hide commands that a gate would refuse for age or structure.";
        action_space: Kind::Record(ACTION_SPACE) => "Choices that controllers have at all; None: every one.";
    }) => "Which legal commands the controller is not offered.";
    init_from: Kind::Optional(&Kind::Text(Names::Free)) =>
        "Folder of a saved policy whose weights the learned controller starts with, relative to this file.";
    heuristic: Kind::Record(HEURISTIC) => "Constants of the rule-based controller.";
    random: Kind::Record(fields! {
        op_weights: Kind::Record(fields! {
            wait: POSITIVE => "Weight of waiting.";
            germinate: NOT_NEGATIVE => "Weight of planting a seed.";
            set_alpha_target: NOT_NEGATIVE => "Weight of ramping a seed's amplitude.";
            prune: NOT_NEGATIVE => "Weight of removing a seed.";
            fossilize: NOT_NEGATIVE => "Weight of committing a seed.";
            advance: NOT_NEGATIVE => "Weight of trying a seed's next gate.";
        }) => "How often each operation is drawn, relative to the others that are legal.";
    }) => "How the `random` controller draws.";
    schedule: Kind::Record(fields! {
        builtin: Kind::Optional(&Kind::Text(Names::Schedule)) => "A built-in schedule instead of entries.";
        entries: Kind::List(&Kind::Record(SCHEDULE_ENTRY)) => "Commands at given steps, in the order of their steps.";
        wait_on_illegal: Kind::Bool => "Wait instead of failing when an entry is illegal at its step.";
    }) => "The list that the `schedule` controller plays.";
    replay: Kind::Record(fields! {
        run: Kind::Optional(&Kind::Text(Names::Free)) => "Folder of the recorded run, relative to this file.";
        wait_on_illegal: Kind::Bool => "Wait instead of failing when a recorded command is illegal now.";
    }) => "The decisions that the `replay` controller repeats, env by env, round by round, step by step.";
    tracker: Kind::Record(fields! {
        plateau_threshold_pct: NOT_NEGATIVE => "A step that gains fewer percentage points extends the plateau.";
        history_window: at_least(5) => "Steps remembered.";
        stabilization_threshold: POSITIVE => "A relative improvement of the loss below this counts as stable.";
        stabilization_epochs: at_least(0) => "Stable steps in a row until the host counts as stabilised.";
        regression_threshold: NOT_NEGATIVE => "A relative worsening of the loss from this on does not count as stable.";
    }) => "When a host counts as stabilised or as standing still.";
};

const INITIAL_TOPOLOGY: Kind = variants! {
    empty => "none: every slot is empty";
    seeds(unnamed(Kind::List(&Kind::Record(INITIAL_SEED)))) => "these seeds, in every episode";
    run { required! {
        path: Kind::Text(Names::Free) => "Folder of the recorded run, relative to this file.";
        episode: Kind::Optional(&EPISODE_CHOICE) => "Which of its episodes. None: the best one.";
    } } => "the seeds that a recorded run had committed at the end of an episode";
};

const INITIAL_SEED: &[Field] = required! {
    slot: SLOT => "Where it stands.";
    blueprint: Kind::Text(Names::Blueprint) => "Recipe of the seed.";
    style: Kind::Optional(&Kind::Text(Names::Style)) => "Its operator is how the seed enters the host. None: sigmoid_add.";
};

const EPISODE_CHOICE: Kind = variants! {
    each => "every env and round starts with what the same env came to in the same round";
    at { required! {
        round: at_least(0) => "Round, from 0.";
        env: at_least(0) => "Env, from 0.";
    } } => "that of one env in one round";
};

const ACTION_SPACE: &[Field] = fields! {
    allowed_ops: Kind::Optional(&Kind::List(&Kind::Text(Names::Op))) => "Operations, \"wait\" among them.";
    blueprint: Kind::Optional(&Kind::List(&Kind::Text(Names::Blueprint))) => "Recipes of seeds.";
    style: Kind::Optional(&Kind::List(&Kind::Text(Names::Style))) => "Curves and operators of a blend.";
    tempo: Kind::Optional(&Kind::List(&Kind::Text(Names::Tempo))) => "Lengths of the first blend.";
    alpha_target: Kind::Optional(&Kind::List(&Kind::Text(Names::Target))) => "Amplitudes to blend to.";
    alpha_speed: Kind::Optional(&Kind::List(&Kind::Text(Names::Speed))) => "Lengths of a later ramp.";
    alpha_curve: Kind::Optional(&Kind::List(&Kind::Text(Names::Curve))) => "Curves of a later ramp.";
};

const NET: &[Field] = fields! {
    feature_dim: integer(1, 65536) => "Width of the layer that reads the observation.";
    hidden_dim: integer(8, 65536) => "Width of the core; a multiple of 8.";
    layers: integer(1, 64) => "Recurrent layers.";
    embed_dim: integer(1, 1024) => "Numbers that stand for a blueprint.";
    head_conditioning: variants! {
        per_op => "every operation has its own logits for slots, styles, targets, speeds and curves";
        shared => "all operations share them";
    } => "Whether parameters of an action are chosen by its operation.";
    contribution_head: Kind::Bool => "Predict the seeds' contributions as an auxiliary task.";
    aux_dropout: BELOW_ONE => "Dropout in the contribution head; more than 0 makes runs irreproducible.";
    frame_stack: integer(1, 8) => "Steps that the mlp sees at once.";
    op_bias: Kind::Record(fields! {
        wait: ANY_NUMBER => "On waiting.";
        germinate: ANY_NUMBER => "On germinating.";
        set_alpha_target: ANY_NUMBER => "On ramping a seed's amplitude.";
        prune: ANY_NUMBER => "On pruning.";
        fossilize: ANY_NUMBER => "On committing.";
        advance: ANY_NUMBER => "On trying a gate.";
    }) => "Added to the logits of a fresh built-in network's operations: what it tries before it has learnt anything.";
};

const FLOOR: &[Field] = fields! {
    mode: variants! {
        mixture => "mixes in a uniform distribution: keeps the direction of the gradient";
        clamp => "raises what is below and shrinks the rest";
        none => "none";
    } => "How probabilities are kept up.";
    op: BELOW_ONE => "Least probability of a valid operation.";
    slot: BELOW_ONE => "Least probability of a valid slot.";
    blueprint: BELOW_ONE => "Least probability of a valid blueprint.";
    style: BELOW_ONE => "Least probability of a blend style.";
    tempo: BELOW_ONE => "Least probability of a tempo.";
    alpha_target: BELOW_ONE => "Least probability of an alpha target.";
    alpha_speed: BELOW_ONE => "Least probability of an alpha speed.";
    alpha_curve: BELOW_ONE => "Least probability of an alpha curve.";
};

const HEURISTIC: &[Field] = fields! {
    plateau_epochs_to_germinate: at_least(0) => "Steps without progress before a seed is germinated.";
    min_epochs_before_germinate: at_least(0) => "First step at which a seed may be germinated.";
    embargo_epochs_after_prune: at_least(0) => "Steps of rest after a prune.";
    prune_after_epochs_without_improvement: at_least(0) => "Steps in a stage before a failing seed is pruned.";
    prune_if_accuracy_drops_by: NOT_NEGATIVE => "Accuracy loss in a stage that counts as failing, percentage points.";
    min_improvement_to_fossilize: ANY_NUMBER => "Contribution above which a held seed is committed, percentage points.";
    min_training_epochs: Kind::Optional(&at_least(0)) =>
        "Steps that a seed trains before it is moved on. None: the minimum of its gate.";
    dependency_contribution_threshold: ANY_NUMBER =>
        "Contribution above which a host without overall gain counts as merely dependent on the seed.";
    dependency_improvement_threshold: ANY_NUMBER => "Accuracy gain since germination below which there is no overall gain.";
    blueprint_penalty_on_prune: NOT_NEGATIVE => "Penalty that a prune puts on the seed's blueprint.";
    blueprint_penalty_decay: FRACTION => "Factor on all penalties per step.";
    blueprint_penalty_threshold: POSITIVE => "Penalty from which a blueprint is skipped.";
    rotation: Kind::List(&Kind::Text(Names::Blueprint)) => "Blueprints in the order in which they are tried.";
};

const ABOVE_ZERO_TO_ONE: Kind = Kind::Float(FloatRange {
    min_excluded: true,
    ..float(0.0, 1.0)
});
const BETWEEN_ZERO_AND_ONE: Kind = Kind::Float(FloatRange {
    min_excluded: true,
    max_excluded: true,
    ..float(0.0, 1.0)
});

const LEARNER: &[Field] = fields! {
    episodes_per_update: integer(1, 64) => "Episodes of each env between two updates.";
    episode_end: variants! {
        truncated => "the episode was cut off: what would follow counts, by the critic's estimate";
        terminal => "nothing follows";
    } => "What the end of a full-length episode means.";
    gamma: ABOVE_ZERO_TO_ONE => "Discount of future rewards per step.";
    gae_lambda: FRACTION => "Weight of long returns against the critic's estimates in advantages.";
    epochs: integer(1, 64) => "Passes over a rollout.";
    num_minibatches: at_least(1) => "Minibatches per pass, of whole sequences; at most the sequences there are.";
    chunk_length: Kind::Optional(&at_least(1)) => "Longest sequence that gradients flow through, steps. None: a whole episode.";
    clip_ratio: BETWEEN_ZERO_AND_ONE => "How far a probability ratio may leave 1 before it stops paying.";
    ratio_mode: variants! {
        per_head => "each head's ratio is clipped on its own";
        joint => "the product of the heads' ratios is clipped";
    } => "How the heads of an action share the objective.";
    head_min_fraction: FRACTION => "Least share of the steps by which a rare head's loss is divided.";
    target_kl: Kind::Optional(&POSITIVE) => "An update stops at 1.5 times this divergence from the old policy. None: never.";
    adv_norm: variants! {
        rollout => "once, over the rollout";
        minibatch => "in each minibatch";
        off => "never";
    } => "Where advantages are standardised.";
    adv_std_floor: NOT_NEGATIVE => "Least deviation by which advantages are divided, reward units.";
    min_actor_steps: at_least(1) => "Fewest free steps of a rollout from which the policy is trained; the critic always is.";
    value_coef: NOT_NEGATIVE => "Weight of the value loss.";
    value_coef_start: Kind::Optional(&NOT_NEGATIVE) => "Its weight at the first update. None: a tenth.";
    value_warmup_updates: at_least(0) => "Updates over which the weight rises to value_coef; 0: at once.";
    clip_value: Kind::Bool => "Clip the change of values as that of ratios.";
    value_clip: POSITIVE => "How far a value may move before it stops paying, normalised units.";
    forced_value_weight: FRACTION => "Weight in the value loss of steps without a choice.";
    entropy_coef: NOT_NEGATIVE => "Weight of the entropy bonus.";
    entropy_coef_start: Kind::Optional(&NOT_NEGATIVE) => "Its weight at the first update. None: entropy_coef.";
    entropy_coef_end: Kind::Optional(&NOT_NEGATIVE) => "Its weight after annealing. None: entropy_coef.";
    entropy_coef_min: NOT_NEGATIVE => "Least weight of the entropy bonus.";
    entropy_anneal_episodes: at_least(0) => "Episodes of all envs together over which the weight moves; 0: it is constant.";
    entropy_head_mult: Kind::Record(HEAD_WEIGHTS) => "Weight of each head in the entropy bonus.";
    entropy_floor: Kind::Record(HEAD_FRACTIONS) => "Normalised entropy below which a head is penalised.";
    entropy_floor_coef: Kind::Record(HEAD_WEIGHTS) => "Strength of that penalty.";
    prob_floor_end_scale: FRACTION => "Factor that the policy's probability floors reach at the last update.";
    total_updates: Kind::Optional(&at_least(1)) => "Updates over which schedules run. None: the rollouts of the run.";
    aux_coef: NOT_NEGATIVE => "Weight of predicting contributions.";
    aux_warmup_updates: at_least(0) => "Updates over which that weight rises from 0.";
    aux_clip: POSITIVE => "Clamp of predicted contributions' targets, percentage points.";
    aux_stop_gradient: Kind::Bool => "Keep the gradient of predicting contributions out of the trunk.";
    lr: BETWEEN_ZERO_AND_ONE => "Learning rate of AdamW.";
    lr_schedule: variants! {
        constant => "as it is";
        linear => "falls in a line";
        cosine => "falls in half a cosine";
    } => "Course of the learning rate over total_updates.";
    lr_warmup_updates: at_least(0) => "Updates over which the learning rate rises first.";
    lr_end_factor: FRACTION => "Share of the learning rate that is left at the end.";
    betas: Kind::Pair(&BELOW_ONE) => "Decay of AdamW's two moments.";
    eps: POSITIVE => "AdamW's epsilon.";
    critic_weight_decay: NOT_NEGATIVE => "Weight decay of the value head; nothing else decays.";
    max_grad_norm: Kind::Optional(&POSITIVE) => "L2 norm to which the policy's gradient is clipped. None: no clipping.";
    obs_norm: Kind::Record(fields! {
        mode: variants! {
            off => "observations as they are";
            running => "standardised by running statistics, frozen during a rollout";
            running_all => "the same for every element by itself, unknowns included";
            fixed(unnamed(Kind::Text(Names::Free))) =>
                "by the statistics of a saved policy, which never move; its folder, relative to this file";
        } => "How observations are normalised.";
        momentum: ABOVE_ZERO_TO_ONE => "Largest weight of the past per rollout; 1: all history counts alike.";
        clip: POSITIVE => "Clamp of normalised observations.";
        warmup_rollouts: at_least(0) =>
            "Rollouts at the start that only fit the statistics: actions are drawn uniformly, nothing is learnt.";
        freeze_after_updates: Kind::Optional(&at_least(0)) =>
            "Updates after which the statistics stay as they are. None: they move to the end.";
        nonfinite_obs: variants! {
            error => "the run ends and names env and feature";
            zero => "it is read as 0, said once";
        } => "What becomes of an element that is NaN or infinite.";
    }) => "Normalisation of observations.";
    reward_norm: Kind::Record(fields! {
        mode: variants! {
            off => "rewards as they are";
            rms => "divided by their root mean square";
            std => "divided by their deviation";
            return_std => "divided by the deviation of their discounted sums";
        } => "How rewards are scaled; nothing is ever subtracted.";
        momentum: ABOVE_ZERO_TO_ONE => "Largest weight of the past per rollout; 1: all history counts alike.";
        clip: POSITIVE => "Clamp of scaled rewards and of penalties.";
    }) => "Scaling of rewards.";
    value_norm: Kind::Record(fields! {
        mode: variants! {
            off => "the critic learns returns as they are";
            scale => "returns divided by their deviation";
            popart => "returns centred and divided; the critic is rewritten when the statistics move";
        } => "In which units the critic learns.";
        momentum: ABOVE_ZERO_TO_ONE => "Largest weight of the past per rollout.";
    }) => "Normalisation of the critic's targets.";
    norm_min_count: at_least(2) => "Elements before which statistics are not used.";
    amp: variants! {
        off => "float32";
        auto => "bfloat16 on CUDA devices that have it";
        bf16 => "bfloat16 on CUDA";
    } => "Mixed precision of the policy; on a CPU always float32.";
    max_consecutive_failures: at_least(1) => "Rejected updates in a row after which the run stops.";
    ev_var_floor: POSITIVE => "Variance of returns below which explained variance is flagged.";
};

/// By head, in storage order.
const HEAD_WEIGHTS: &[Field] = fields! {
    slot: NOT_NEGATIVE => "Which slot.";
    blueprint: NOT_NEGATIVE => "Which blueprint.";
    style: NOT_NEGATIVE => "Which blend style.";
    tempo: NOT_NEGATIVE => "Which tempo.";
    alpha_target: NOT_NEGATIVE => "Which amplitude.";
    alpha_speed: NOT_NEGATIVE => "Which length of a ramp.";
    alpha_curve: NOT_NEGATIVE => "Which curve of a ramp.";
    op: NOT_NEGATIVE => "Which operation.";
};

const HEAD_FRACTIONS: &[Field] = fields! {
    slot: FRACTION => "Which slot.";
    blueprint: FRACTION => "Which blueprint.";
    style: FRACTION => "Which blend style.";
    tempo: FRACTION => "Which tempo.";
    alpha_target: FRACTION => "Which amplitude.";
    alpha_speed: FRACTION => "Which length of a ramp.";
    alpha_curve: FRACTION => "Which curve of a ramp.";
    op: FRACTION => "Which operation.";
};

const SCHEDULE_ENTRY: &[Field] = required! {
    step: at_least(1) => "Step at which the command is given, from 1.";
    command: variants! {
        germinate { required! {
            slot: SLOT => "Slot to grow in.";
            blueprint: Kind::Text(Names::Blueprint) => "Recipe of the seed.";
            style: Kind::Text(Names::Style) => "Curve and operator of the first blend.";
            tempo: Kind::Text(Names::Tempo) => "Length of the first blend.";
            target: Kind::Text(Names::Target) => "Amplitude to blend to.";
        } } => "plant a seed";
        set_alpha_target { required! {
            slot: SLOT => "Slot of the seed.";
            style: Kind::Text(Names::Style) => "Blend operator from now on.";
            target: Kind::Text(Names::Target) => "New amplitude.";
            speed: Kind::Text(Names::Speed) => "Length of the ramp.";
            curve: Kind::Text(Names::Curve) => "Curve of the ramp.";
        } } => "ramp a seed's amplitude";
        prune { required! {
            slot: SLOT => "Slot of the seed.";
            speed: Kind::Text(Names::Speed) => "Length of the ramp down.";
            curve: Kind::Text(Names::Curve) => "Curve of the ramp down.";
        } } => "remove a seed";
        fossilize { required! { slot: SLOT => "Slot of the seed."; } } => "commit a seed";
        advance { required! { slot: SLOT => "Slot of the seed."; } } => "try the seed's next gate";
    } => "The command.";
};

const TELEMETRY: &[Field] = fields! {
    level: variants! {
        off => "only the start and the end of the run";
        lifecycle => "stage changes, episodes and rounds";
        full => "every step as well";
        debug => "everything";
    } => "How much is recorded.";
    require: Kind::Bool => "Fail the run if a durable record cannot be written.";
    step_stride: at_least(1) => "Record every so-manieth step.";
    tensorboard: variants! {
        off => "none";
        mean => "rounds, policy updates, and steps averaged over the envs";
        per_env => "the steps of each env as well";
    } => "Curves for TensorBoard, in tb/ of the run directory.";
};

const TASK: Kind = variants! {
    preset(
        Item { name: "preset", doc: "Name of a task; `simic-engine list tasks` shows all.", kind: Kind::Text(Names::Task), optional: false },
        Item { name: "", doc: "", kind: Kind::Record(TASK_OVERRIDES), optional: true }
    ) => "a known task, single fields changed";
    custom(unnamed(Kind::Record(TASK_SPEC))) => "a task written out in full";
};

const BATCHES: Kind = variants! {
    full => "one pass over the training part";
    count(unnamed(at_least(1))) => "this many batches";
    shard => "one pass shared by all envs";
};
const VAL_BATCHES: Kind = variants! {
    full => "the whole validation part";
    count(unnamed(at_least(1))) => "its first batches, this many";
};
const CLIP: Kind = Kind::Optional(&POSITIVE);

const TASK_OVERRIDES: &[Field] = fields! {
    batch_size: Kind::Optional(&at_least(1)) => "Samples per training batch, at most the training part.";
    batches_per_step: Kind::Optional(&BATCHES) => "Training batches per env and step.";
    val_batch_size: Kind::Optional(&at_least(1)) => "Samples per validation batch. None: the task's.";
    val_batches_per_step: Kind::Optional(&VAL_BATCHES) => "Validation batches per step.";
    max_steps: Kind::Optional(&at_least(1)) => "Steps of an episode, unless run.max_steps says otherwise.";
    host_opt: Kind::Optional(&OPTIMIZER) => "Optimizer of the host.";
    seed_opt: Kind::Optional(&OPTIMIZER) => "Optimizer of each seed.";
    max_grad_norm: CLIP => "L2 norm to which host and each seed are clipped separately. None: the task's.";
    label_smoothing: Kind::Optional(&BELOW_ONE) => "Label smoothing of the training loss.";
    data: Kind::Optional(&DATA_SOURCE) => "Where samples come from.";
    host: Kind::Optional(&Kind::Record(CNN)) => "Shape of the host network.";
};

const TASK_SPEC: &[Field] = required! {
    name: Kind::Text(Names::Run) => "Name of the task in reports.";
    classes: integer(2, 65536) => "Classes; must agree with the data.";
    data: DATA_SOURCE => "Where samples come from.";
    split: Kind::Record(required! {
        seed: SEED => "Seed of the split.";
        val_permille: PERMILLE => "Share of each class for validation, in thousandths.";
        test_permille: PERMILLE => "Share of each class for the final test, in thousandths.";
    }) => "Stratified split into training, validation and test parts; procedural data brings its own.";
    normalise: variants! {
        constants { required! {
            mean: Kind::List(&ANY_NUMBER) => "Mean per channel, of pixels scaled to 0..1.";
            std: Kind::List(&POSITIVE) => "Standard deviation per channel.";
        } } => "given constants";
        auto => "measured on the training part";
        none => "none";
    } => "Normalisation (pixel/scale - mean)/std per channel.";
    augment: Kind::Optional(&Kind::Record(required! {
        pad: integer(0, 64) => "Pixels of padding before the random crop.";
        flip_p: FRACTION => "Probability of a horizontal flip.";
    })) => "Random crop and flip of training samples.";
    host: Kind::Record(CNN) => "Shape of the host network.";
    slots: Kind::List(&SLOT) => "Slots that may grow, unless lifecycle.slots says otherwise.";
    max_seeds: at_least(0) => "Most seeds at a time, unless lifecycle.max_seeds says otherwise; 0: no limit.";
    batch_size: at_least(1) => "Samples per training batch, at most the training part.";
    batches_per_step: BATCHES => "Training batches per env and step.";
    val_batch_size: Kind::Optional(&at_least(1)) => "Samples per validation batch. None: four training batches.";
    val_batches_per_step: VAL_BATCHES => "Validation batches per step.";
    max_steps: at_least(1) => "Steps of an episode, unless run.max_steps says otherwise.";
    host_opt: OPTIMIZER => "Optimizer of the host.";
    seed_opt: OPTIMIZER => "Optimizer of each seed.";
    max_grad_norm: CLIP => "L2 norm to which host and each seed are clipped separately. None: no clipping.";
    label_smoothing: BELOW_ONE => "Label smoothing of the training loss.";
    baseline_loss: POSITIVE => "Loss of guessing; must exceed target_loss.";
    target_loss: NOT_NEGATIVE => "Loss of a solved task.";
    typical_loss_delta_std: POSITIVE => "Typical spread of the loss between steps.";
    success_accuracy: PERCENT => "Accuracy from which an episode counts as a success, percent.";
};

const OPTIMIZER: Kind = variants! {
    sgd { required! {
        lr: POSITIVE => "Learning rate.";
        momentum: BELOW_ONE => "Momentum.";
        weight_decay: NOT_NEGATIVE => "Weight decay.";
    } } => "stochastic gradient descent with momentum";
    adamw { required! {
        lr: POSITIVE => "Learning rate.";
        beta1: BELOW_ONE => "Decay of the first moment.";
        beta2: BELOW_ONE => "Decay of the second moment.";
        eps: POSITIVE => "Added to the denominator.";
        weight_decay: NOT_NEGATIVE => "Decoupled weight decay.";
    } } => "AdamW";
};

const DATA_SOURCE: Kind = variants! {
    digits => "1797 handwritten digits, 8x8, embedded in the program";
    synth_images(unnamed(Kind::Record(SYNTH_IMAGES))) => "procedural gratings among distractors";
    idx { required! {
        images: Kind::Text(Names::Free) => "Path of the IDX image file.";
        labels: Kind::Text(Names::Free) => "Path of the IDX label file.";
        scale: POSITIVE => "Pixel value that means 1.0.";
    } } => "a pair of IDX files";
};

const SYNTH_IMAGES: &[Field] = fields! {
    seed: SEED => "Seed of the generator.";
    classes: integer(2, 64) => "Classes: orientations and frequencies of the grating.";
    channels: integer(1, 4) => "Colour channels.";
    height: integer(8, 1024) => "Height in pixels, a multiple of 8.";
    width: integer(8, 1024) => "Width in pixels, a multiple of 8.";
    noise: integer(0, 255) => "Amplitude of the pixel noise.";
    distractors: integer(0, 8) => "Gratings of other classes in each image.";
    periods: Kind::Pair(&integer(2, 1024)) => "Periods of the two frequencies in pixels.";
    train: at_least(1) => "Training samples.";
    val: at_least(1) => "Validation samples.";
    test: at_least(1) => "Test samples.";
};

const CNN: &[Field] = required! {
    in_channels: integer(1, 1024) => "Channels of the input; must agree with the data.";
    base_channels: integer(1, 4096) => "Channels of the first block; each further block doubles them.";
    n_blocks: integer(2, 12) => "Blocks of convolution, batch norm and ReLU.";
    kernel_size: integer(1, 31) => "Kernel of every convolution; odd.";
    pool_layers: integer(0, 12) => "First blocks that a 2x2 max pool follows; at most n_blocks.";
    input_hw: integer(1, 4096) => "Height and width of the input; must agree with the data.";
};
