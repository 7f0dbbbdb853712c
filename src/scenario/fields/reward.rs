//! The fields of section `reward` (spec 05 §13).

use super::*;
use crate::scenario::Entry;

const NOT_POSITIVE: Kind = Kind::Float(float(f64::NEG_INFINITY, 0.0));

/// Modes and families that the specification names and this version lacks; see [`super::not_in_this_version`].
pub(super) const LATER: [&str; 4] = ["escrow", "basic_plus", "minimal", "custom"];

/// Coefficients that may all be left out, as in `shaped()`.
const fn coefficients(fields: &'static [Field]) -> Item {
    Item {
        optional: true,
        ..unnamed(Kind::Record(fields))
    }
}

pub(super) const REWARD: Kind = variants! {
    contribution(unnamed(MODE)) => "what the seeds contribute, measured by ablation";
    loss(coefficients(LOSS)) => "how the validation loss changes";
};

/// Every family and mode, as a scenario writes it.
pub fn reward_forms() -> Vec<Entry> {
    forms_of(&REWARD)
}

fn forms_of(kind: &Kind) -> Vec<Entry> {
    let Kind::Choice(variants) = kind else {
        return Vec::new();
    };
    variants
        .iter()
        .flat_map(|variant| {
            let inner = match &variant.content {
                Content::Items([item]) => forms_of(&item.kind),
                _ => Vec::new(),
            };
            let own = inner
                .is_empty()
                .then(|| Entry::new(format!("{}()", variant.name), variant.doc));
            let wrap = |entry: Entry| Entry::new(format!("{}({})", variant.name, entry.name), entry.summary);
            own.into_iter().chain(inner.into_iter().map(wrap)).collect::<Vec<_>>()
        })
        .collect()
}

const MODE: Kind = variants! {
    shaped(coefficients(SHAPED)) => "every step: contribution less rent, shaped towards committing";
    simplified(coefficients(SIMPLIFIED)) => "stage potentials and final accuracy, no rent: for diagnosis";
    basic(coefficients(BASIC)) => "a bonus per commit, accuracy gained at the end, linear rent";
    sparse(coefficients(SPARSE)) => "at the end: committed accuracy less the cost of committed parameters";
};

const FORMULA: Kind = variants! {
    harmonic => "harmonic mean of progress and contribution";
    minimum => "the smaller of progress and contribution";
};

const SHAPED: &[Field] = fields! {
    contribution_weight: NOT_NEGATIVE => "Reward per percentage point attributed to a seed.";
    attribution_formula: FORMULA => "What a seed is credited with whose contribution exceeds the env's progress.";
    attribution_clip: NOT_NEGATIVE => "Bound of a seed's attribution per step; 0: none.";
    attribution_sigmoid_steepness: NOT_NEGATIVE => "How fast credit fades when the seeds together do harm.";
    fossil_attribution: variants! {
        frozen => "the least of its last three attributions, every step";
        live => "its contribution as measured, every step";
        none => "nothing";
    } => "What a committed seed goes on earning.";
    max_staleness: at_least(0) => "Steps for which a measured contribution is reused.";
    min_fossilize_contribution: ANY_NUMBER => "Contribution from which a commit counts as contributing, percentage points.";
    min_holding_epochs: at_least(0) => "Steps of holding from which a commit earns its bonus in full.";
    germination_warmup_epochs: at_least(0) => "First step at which germinating is credited in full.";
    germination_discount_floor: FRACTION => "Share of the credit for a seed germinated at step 0.";
    disable_timing_discount: Kind::Bool => "Credit early seeds in full.";
    improvement_safe_threshold: NOT_NEGATIVE => "Joint improvement below which large contributions are fined at once, percentage points.";
    hacking_ratio_threshold: POSITIVE => "Contribution per joint improvement above which a seed is fined.";
    ransomware_contribution: NOT_NEGATIVE => "Contribution above which a seed of a harmful coalition counts as ransomware, percentage points.";
    ransomware_improvement: NOT_POSITIVE => "Joint improvement below which a coalition counts as harmful, percentage points.";
    disable_anti_gaming: Kind::Bool => "No ratio penalty and no alpha shock.";
    pbrs_weight: NOT_NEGATIVE => "Weight of the potential-based shaping.";
    epoch_progress_bonus: NOT_NEGATIVE => "Potential gained per step in a stage.";
    progress_gap_fraction: BELOW_ONE => "Most of the gap to the next stage's potential that waiting can gain.";
    disable_pbrs: Kind::Bool => "No potential-based shaping.";
    rent_weight: NOT_NEGATIVE => "Weight of the logarithmic rent on seed parameters.";
    max_rent: NOT_NEGATIVE => "Most rent per step.";
    rent_host_params_floor: integer(1, u64::MAX as i128) => "Host parameters that rent is reckoned by at least.";
    base_slot_rent_ratio: NOT_NEGATIVE => "Rent of an occupied slot as a share of the host's parameters.";
    seed_occupancy_cost: NOT_NEGATIVE => "Cost per step of each seed beyond the free ones.";
    free_slots: at_least(0) => "Seeds that cost no occupancy.";
    fossilized_maintenance_cost: NOT_NEGATIVE => "Cost per step of each committed seed.";
    alpha_shock_coef: NOT_NEGATIVE => "Cost of moving alpha: per squared change and relative size of the seed.";
    alpha_shock_cap: NOT_NEGATIVE => "Most alpha shock per step.";
    germinate_intervention: NOT_POSITIVE => "Reward of germinating.";
    fossilize_intervention: NOT_POSITIVE => "Reward of the act of committing.";
    prune_intervention: NOT_POSITIVE => "Reward of the act of pruning.";
    set_alpha_target_intervention: NOT_POSITIVE => "Reward of ordering a ramp.";
    advance_from_training_penalty: NOT_POSITIVE => "Reward of moving a training seed on.";
    penalize_rejected: Kind::Bool => "Fine commands that did not take effect.";
    rejected_fossilize_penalty: NOT_POSITIVE => "Reward of a refused commit, if fined.";
    rejected_prune_penalty: NOT_POSITIVE => "Reward of a refused prune, if fined.";
    rejected_germinate_penalty: NOT_POSITIVE => "Reward of a refused germination, if fined.";
    fossilize_base_bonus: NOT_NEGATIVE => "Reward of committing a contributing seed.";
    fossilize_contribution_scale: NOT_NEGATIVE => "Further reward per percentage point that it contributes.";
    fossilize_noncontributing_penalty: NOT_POSITIVE => "Reward of committing a seed that contributes too little.";
    fossilize_terminal_scale: NOT_NEGATIVE => "Scale of the completion bonus.";
    fossilize_quality_ceiling: POSITIVE => "Where the completion bonus saturates.";
    min_prune_age: at_least(0) => "Age below which every missing step is fined when a seed is pruned.";
    prune_hurting_bonus: NOT_NEGATIVE => "Reward of pruning a seed that hurts.";
    prune_acceptable_bonus: NOT_NEGATIVE => "Reward of pruning a seed that hurts a little.";
    prune_good_seed_penalty: NOT_POSITIVE => "Reward of pruning a seed that helps; at most three times as bad for a very good one.";
    prune_hurting_threshold: NOT_POSITIVE => "Contribution below which a seed hurts, percentage points.";
    min_prune_bonus_age: at_least(0) => "Age below which pruning a hurting seed earns nothing.";
    early_prune_threshold: at_least(0) => "Age below which pruning a seed that was never measured is fined.";
    early_prune_penalty: NOT_POSITIVE => "Reward of pruning too early.";
    auto_prune_penalty: NOT_POSITIVE => "Reward per seed that the engine had to remove.";
    terminal_acc_weight: NOT_NEGATIVE => "Reward per percent of final accuracy.";
    disable_terminal_reward: Kind::Bool => "No completion bonus and no reward of the final accuracy.";
    synergy_weight: NOT_NEGATIVE => "Most reward per step of seeds that help each other.";
    synergy_gain: NOT_NEGATIVE => "How fast that reward saturates, per percentage point.";
    hindsight_weight: NOT_NEGATIVE => "Most credit of one seed for having helped a committed one; 0: none.";
    hindsight_gain: NOT_NEGATIVE => "How fast that credit saturates.";
    hindsight_cap: NOT_NEGATIVE => "Most such credit per commit.";
};

const SIMPLIFIED: &[Field] = fields! {
    simplified_action_cost: NOT_NEGATIVE => "Cost of every operation but WAIT.";
    simplified_accuracy_weight: NOT_NEGATIVE => "Reward of 100 % final accuracy.";
    simplified_fossil_bonus: NOT_NEGATIVE => "Reward at the end per contributing commit.";
    max_staleness: at_least(0) => "Steps for which a measured contribution is reused.";
    min_fossilize_contribution: ANY_NUMBER => "Contribution from which a commit counts as contributing, percentage points.";
    pbrs_weight: NOT_NEGATIVE => "Weight of the potential-based shaping.";
    epoch_progress_bonus: NOT_NEGATIVE => "Potential gained per step in a stage.";
    progress_gap_fraction: BELOW_ONE => "Most of the gap to the next stage's potential that waiting can gain.";
    disable_pbrs: Kind::Bool => "No potential-based shaping.";
    disable_terminal_reward: Kind::Bool => "No reward of the final accuracy and of commits.";
};

const BASIC: &[Field] = fields! {
    basic_acc_weight: NOT_NEGATIVE => "Reward of 100 percentage points gained over the episode.";
    basic_base_bonus: NOT_NEGATIVE => "Reward of committing a contributing seed.";
    basic_contribution_scale: NOT_NEGATIVE => "Further reward per percentage point that it is credited with.";
    basic_invalid_penalty: NOT_POSITIVE => "Reward of committing a seed while the seeds together do harm.";
    basic_noncontributing_penalty: NOT_POSITIVE => "Reward of committing a seed that contributes too little.";
    attribution_formula: FORMULA => "What a seed is credited with whose contribution exceeds the joint improvement.";
    max_staleness: at_least(0) => "Steps for which a measured contribution is reused.";
    min_fossilize_contribution: ANY_NUMBER => "Contribution from which a commit counts as contributing, percentage points.";
    min_holding_epochs: at_least(0) => "Steps of holding from which a commit earns its bonus in full.";
    pbrs_weight: NOT_NEGATIVE => "Weight of the potential-based shaping.";
    epoch_progress_bonus: NOT_NEGATIVE => "Potential gained per step in a stage.";
    progress_gap_fraction: BELOW_ONE => "Most of the gap to the next stage's potential that waiting can gain.";
    disable_pbrs: Kind::Bool => "No potential-based shaping.";
    base_slot_rent_ratio: NOT_NEGATIVE => "Rent of an occupied slot as a share of the host's parameters.";
    param_penalty_weight: NOT_NEGATIVE => "Cost of a full parameter budget.";
    param_budget: integer(1, u64::MAX as i128) => "Parameters that make up the budget.";
    auto_prune_penalty: NOT_POSITIVE => "Reward per seed that the engine had to remove.";
};

const SPARSE: &[Field] = fields! {
    sparse_reward_scale: POSITIVE => "Factor on the reward of the episode.";
    param_penalty_weight: NOT_NEGATIVE => "Cost of a full parameter budget.";
    param_budget: integer(1, u64::MAX as i128) => "Parameters that make up the budget.";
};

const LOSS: &[Field] = fields! {
    preset: variants! {
        default => "no particular task";
        cifar10 => "ten classes of images";
        tiny_stories => "a language model";
    } => "Kind of task; fields that are None take its values.";
    loss_delta_weight: NOT_NEGATIVE => "Reward per typical change of the loss.";
    max_loss_delta: POSITIVE => "Most typical changes that count in one step.";
    regression_penalty_scale: NOT_NEGATIVE => "Factor on the penalty of a rising loss.";
    typical_loss_delta_std: Kind::Optional(&POSITIVE) => "A typical change of the loss between steps, nats. None: the preset's.";
    compute_rent_weight: Kind::Optional(&NOT_NEGATIVE) => "Weight of the logarithmic rent on seed parameters. None: the preset's.";
    max_rent_penalty: NOT_NEGATIVE => "Most rent per step.";
    grace_epochs: at_least(0) => "Age from which a seed pays rent.";
    stage_potential_weight: NOT_NEGATIVE => "Weight of the potential-based shaping.";
    baseline_loss: Kind::Optional(&POSITIVE) => "Loss of guessing, nats; must exceed target_loss. None: the preset's.";
    target_loss: Kind::Optional(&NOT_NEGATIVE) => "Loss of a solved task, nats. None: the preset's.";
    terminal_loss_weight: NOT_NEGATIVE => "Reward at the end of reaching the target loss.";
    auto_prune_penalty: NOT_POSITIVE => "Reward per seed that the engine had to remove.";
};
