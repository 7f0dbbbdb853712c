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

mod learner;
mod policy;
mod reward;
mod task;

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
    task: task::TASK => "What every env trains on: data, host network, optimizers, episode length.";
    data: Kind::Record(fields! { feed: FEED => "How training batches reach the envs."; }) =>
        "How data is fed.";
    run: Kind::Record(RUN) => "Size and placement of the run.";
    training: Kind::Record(TRAINING) => "How a training batch is computed.";
    lifecycle: Kind::Record(LIFECYCLE) => "Slots, quality gates and the rules of growing and pruning.";
    initial_topology: policy::INITIAL_TOPOLOGY => "Seeds that are committed, with fresh weights, before an episode's first step.";
    governor: Kind::Record(GOVERNOR) => "When an env counts as wrecked, and what happens then.";
    attribution: Kind::Record(ATTRIBUTION) => "How each seed's contribution is measured.";
    policy: Kind::Record(policy::POLICY) => "Who decides what to grow, and within which limits.";
    reward: reward::REWARD => "What the policy is paid for.";
    learner: Kind::Record(learner::LEARNER) => "How the policy is trained.";
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
