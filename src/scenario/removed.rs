//! What scenarios of earlier versions could say, since when they cannot, and what stands in its place.

/// What to do instead, and the paths that it answers: a field with all that was below it, or one value of a choice as
/// `path: value`.
type Removed = (&'static str, &'static [&'static str]);

/// Since when they are gone: the version that first went without them.
pub(super) const SINCE: &str = "removed in 0.2.0";

const REMOVED: &[Removed] = &[
    (
        "what was its default always holds now: leave it out",
        &[
            "governor.sensitivity",
            "governor.multiplier",
            "governor.absolute_limit",
            "governor.history_window",
            "governor.min_history",
            "governor.min_panics",
            "governor.collapse",
            "governor.death_penalty",
            "governor.snapshot",
            "attribution.max_fused_rows",
            "attribution.velocity_decay",
            "learner.norm_min_count",
            "lifecycle.ratio_max",
            "policy.tracker.history_window",
            "policy.tracker.regression_threshold",
            "task.data.periods",
            "learner.adv_std_floor",
            "learner.entropy_floor",
            "learner.entropy_floor_coef",
            "learner.entropy_coef_min",
            "learner.prob_floor_end_scale",
            "learner.betas",
            "learner.eps",
            "learner.critic_weight_decay",
            "learner.ev_var_floor",
            "policy.heuristic.blueprint_penalty_on_prune",
            "policy.heuristic.dependency_contribution_threshold",
            "policy.heuristic.dependency_improvement_threshold",
            "policy.heuristic.embargo_epochs_after_prune",
            "policy.heuristic.prune_after_epochs_without_improvement",
        ],
    ),
    (
        "rollbacks of networks that a seed took part in are charged, as `contributing` said: leave it out",
        &["governor.blame"],
    ),
    (
        "what the rollback loses earns nothing and its step the penalty, as `penalize_lost` said: leave it out",
        &["governor.rollback_credit"],
    ),
    (
        "a finite loss that a rollback could only repeat is accepted: leave it out",
        &["governor.repeated_rollback"],
    ),
    (
        "up to 16 MiB stay on the device, more goes to pinned memory, as `auto` said: leave it out",
        &["governor.placement"],
    ),
    (
        "the clock must not decide what is measured: limit `attribution.max_configs`",
        &["attribution.time_budget_ms"],
    ),
    (
        "write `strategy: auto, full_factorial_max: 12`",
        &["attribution.strategy: full_factorial"],
    ),
    ("write `strategy: off`", &["attribution.cadence: off"]),
    (
        "a run without memory keeps its checkpoint: `simic-engine resume RUN --allow training.micro_batches --set training.micro_batches=N`",
        &["run.on_oom"],
    ),
    (
        "envs run side by side on `--threads` workers; for one after the other: `--threads 1`",
        &["run.launch"],
    ),
    (
        "write `all`",
        &["telemetry.tensorboard: mean", "telemetry.tensorboard: per_env"],
    ),
    (
        "every env has an order of its own, as `per_env` said: leave it out",
        &["data.feed"],
    ),
    (
        "`v1` is the default; for `v2` write `features: [reward_parts]`",
        &["policy.obs.schema"],
    ),
    (
        "the critic reads the core of the policy, as `shared` said: leave it out",
        &["policy.net_cfg.critic_core"],
    ),
    (
        "no head predicts contributions: leave it out",
        &[
            "policy.net_cfg.contribution_head",
            "policy.net_cfg.aux_dropout",
            "learner.aux_coef",
            "learner.aux_warmup_updates",
            "learner.aux_horizon",
            "learner.aux_clip",
            "learner.aux_stop_gradient",
        ],
    ),
    (
        "the mlp sees one step; for memory take net `lstm` or `gru`",
        &["policy.net_cfg.frame_stack"],
    ),
    (
        "floors mix a uniform distribution in, as `mixture` said; for none set them to 0",
        &["policy.floor.mode"],
    ),
    (
        "the critic learns in the passes of the policy: more of them by `learner.epochs`",
        &["learner.critic"],
    ),
    (
        "each head is clipped on its own, as `per_head` said: leave it out",
        &["learner.ratio_mode"],
    ),
    (
        "every parameter of an executed operation is learnt from: leave it out",
        &["learner.fine_relevance"],
    ),
    (
        "`target_kl` ends an update that diverges; courses are constant, linear and cosine",
        &["learner.lr_schedule: kl_adaptive"],
    ),
    (
        "belonged to `kl_adaptive`: leave it out",
        &["learner.lr_min", "learner.lr_max"],
    ),
    (
        "frozen play uses the weights as they are: leave it out",
        &["learner.policy_ema"],
    ),
    (
        "advantages are standardised over the rollout: leave it out",
        &["learner.adv_norm"],
    ),
    (
        "observations are standardised by running statistics: leave it out",
        &[
            "learner.obs_norm.mode",
            "learner.obs_norm.momentum",
            "learner.obs_norm.clip",
            "learner.obs_norm.warmup_rollouts",
            "learner.obs_norm.freeze_after_updates",
        ],
    ),
    (
        "rewards are divided by their root mean square: leave it out",
        &["learner.reward_norm"],
    ),
    (
        "the critic learns by PopArt: leave it out",
        &["learner.value_norm.mode"],
    ),
    (
        "values are not clipped: leave it out",
        &["learner.clip_value", "learner.value_clip"],
    ),
    (
        "what was its default is a constant of the reward now: leave it out",
        &[
            "reward.advance_from_training_penalty",
            "reward.param_penalty_weight",
            "reward.early_prune_threshold",
            "reward.early_prune_penalty",
            "reward.alpha_shock_cap",
            "reward.alpha_shock_coef",
            "reward.attribution_clip",
            "reward.attribution_formula",
            "reward.attribution_sigmoid_steepness",
            "reward.auto_prune_penalty",
            "reward.base_slot_rent_ratio",
            "reward.basic_base_bonus",
            "reward.basic_contribution_scale",
            "reward.basic_invalid_penalty",
            "reward.basic_noncontributing_penalty",
            "reward.carry",
            "reward.compute_rent_weight",
            "reward.delta_clip",
            "reward.disable_timing_discount",
            "reward.drip_fraction",
            "reward.epoch_progress_bonus",
            "reward.fossilize_base_bonus",
            "reward.fossilize_contribution_scale",
            "reward.fossilize_intervention",
            "reward.fossilize_noncontributing_penalty",
            "reward.fossilize_quality_ceiling",
            "reward.fossilize_terminal_scale",
            "reward.fossilized_maintenance_cost",
            "reward.free_slots",
            "reward.germinate_intervention",
            "reward.germination_discount_floor",
            "reward.germination_warmup_epochs",
            "reward.grace_epochs",
            "reward.hacking_ratio_threshold",
            "reward.hindsight_cap",
            "reward.hindsight_gain",
            "reward.hindsight_weight",
            "reward.improvement_safe_threshold",
            "reward.loss_delta_weight",
            "reward.max_drip_per_epoch",
            "reward.max_loss_delta",
            "reward.max_rent_penalty",
            "reward.min_drip_epochs",
            "reward.min_fossilize_contribution",
            "reward.min_holding_epochs",
            "reward.min_prune_age",
            "reward.min_prune_bonus_age",
            "reward.negative_drip_ratio",
            "reward.pbrs_weight",
            "reward.penalize_rejected",
            "reward.progress_gap_fraction",
            "reward.prune_acceptable_bonus",
            "reward.prune_good_seed_penalty",
            "reward.prune_hurting_threshold",
            "reward.prune_intervention",
            "reward.ransomware_contribution",
            "reward.ransomware_improvement",
            "reward.rejected_fossilize_penalty",
            "reward.rejected_germinate_penalty",
            "reward.rejected_prune_penalty",
            "reward.rent_host_params_floor",
            "reward.seed_occupancy_cost",
            "reward.set_alpha_target_intervention",
            "reward.simplified_accuracy_weight",
            "reward.simplified_action_cost",
            "reward.simplified_fossil_bonus",
            "reward.stable_window",
            "reward.stage_potential_weight",
            "reward.synergy_gain",
            "reward.synergy_weight",
            "reward.target_loss",
            "reward.terminal_acc_weight",
            "reward.terminal_loss_weight",
            "reward.typical_loss_delta_std",
        ],
    ),
];

/// What to do in place of a field that scenarios have no more; `None` if they never had it.
pub(super) fn field(path: &str) -> Option<&'static str> {
    find(|removed| {
        path.strip_prefix(removed)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// As [`field`], of the value `word` of the choice at `path`.
pub(super) fn value(path: &str, word: &str) -> Option<&'static str> {
    let asked = format!("{path}: {word}");
    find(|removed| removed == asked)
}

fn find(fits: impl Fn(&str) -> bool) -> Option<&'static str> {
    let mut rows = REMOVED.iter();
    rows.find(|(_, paths)| paths.iter().any(|path| fits(path)))
        .map(|(instead, _)| *instead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Catalog, Input, Override, SCENARIO, load, paths};

    #[test]
    fn nothing_in_the_table_can_be_written_today() {
        for path in REMOVED.iter().flat_map(|(_, paths)| *paths) {
            match path.split_once(": ") {
                None => assert!(paths::lookup(&SCENARIO, path).is_err(), "{path}"),
                Some((field, value)) => {
                    paths::lookup(&SCENARIO, field).expect("the choice is there");
                    assert!(rejection(&format!("{field}={value}")).contains("removed in"), "{path}");
                }
            }
        }
    }

    /// What a scenario with one setting is answered.
    fn rejection(setting: &str) -> String {
        let (path, value) = setting.split_once('=').expect("a setting");
        let input = Input {
            label: "test.ron",
            text: "()",
            overrides: &[Override::flag("--set", path, value)],
        };
        load(&input, &Catalog::default())
            .expect_err("it is removed")
            .to_string()
    }

    #[test]
    fn a_removed_field_is_answered_by_what_stands_in_its_place() {
        let input = Input {
            label: "old.ron",
            text: "(learner: (critic: (epochs: 20)), attribution: (strategy: full_factorial))",
            overrides: &[],
        };
        insta::assert_snapshot!(load(&input, &Catalog::default()).expect_err("both are removed"));
        insta::assert_snapshot!(rejection("run.on_oom=fail"));
    }
}
