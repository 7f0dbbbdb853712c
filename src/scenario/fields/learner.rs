//! The fields of section `learner` (spec 04 §13).

use super::*;

pub(super) const LEARNER: &[Field] = fields! {
    episodes_per_update: integer(1, 64) => "Episodes of each env between two updates.";
    episode_end: variants! {
        truncated => "the episode was cut off: what would follow counts, by the critic's estimate";
        terminal => "nothing follows";
    } => "What the end of a full-length episode means.";
    gamma: SHARE => "Discount of future rewards per step.";
    gae_lambda: FRACTION => "Weight of long returns against the critic's estimates in advantages.";
    epochs: integer(1, 64) => "Passes over a rollout.";
    num_minibatches: at_least(1) => "Minibatches per pass, of whole sequences; at most the sequences there are.";
    chunk_length: Kind::Optional(&at_least(1)) => "Longest sequence that gradients flow through, steps. None: a whole episode.";
    clip_ratio: OPEN_FRACTION => "How far a probability ratio may leave 1 before it stops paying.";
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
    lr: OPEN_FRACTION => "Learning rate of AdamW.";
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
        momentum: SHARE => "Largest weight of the past per rollout; 1: all history counts alike.";
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
        momentum: SHARE => "Largest weight of the past per rollout; 1: all history counts alike.";
        clip: POSITIVE => "Clamp of scaled rewards and of penalties.";
    }) => "Scaling of rewards.";
    value_norm: Kind::Record(fields! {
        mode: variants! {
            off => "the critic learns returns as they are";
            scale => "returns divided by their deviation";
            popart => "returns centred and divided; the critic is rewritten when the statistics move";
        } => "In which units the critic learns.";
        momentum: SHARE => "Largest weight of the past per rollout.";
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
