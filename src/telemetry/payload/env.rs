//! Events of an env: its steps and the end of its episode (spec 07 §5.2).

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::EpisodeRewards;
use crate::growth::{AlphaMode, LifecycleOp, SeedStage, SlotId};
use crate::telemetry::encoding::{Num, by_name};
use crate::telemetry::env_status::EnvStatus;

/// One env after the validation of one step. Accuracies in percent, losses in nats, params in scalars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvStep {
    pub train_loss: Num,
    pub train_accuracy: Num,
    pub val_loss: Num,
    pub val_accuracy: Num,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_grad_norm: Option<Num>,
    pub params_total: u64,
    pub params_seeds_active: u64,
    pub params_fossilized: u64,
    /// (host + fossilized) / host.
    pub growth_ratio: Num,
    pub best_accuracy: Num,
    pub steps_since_best: u32,
    pub status: EnvStatus,
    pub seeds: Vec<SeedRow>,
}

/// One occupied slot in an [`EnvStep`]. A gradient that was not measured leaves its fields out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedRow {
    pub slot: SlotId,
    pub seed_id: String,
    #[serde(with = "by_name")]
    pub stage: SeedStage,
    pub blueprint: String,
    pub params: u64,
    pub alpha: Num,
    pub alpha_target: Num,
    #[serde(with = "by_name")]
    pub alpha_mode: AlphaMode,
    pub epochs_in_stage: u32,
    pub age_epochs: u32,
    /// Since germination, in points.
    pub accuracy_delta: Num,
    /// Accuracy with the seed minus without it, in points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contribution: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contribution_velocity: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction_sum: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boost_received: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient_norm: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient_health: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient_ratio: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vanishing: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exploding: Option<bool>,
}

impl From<&crate::seed::SeedReport> for SeedRow {
    /// A seed that was never measured has neither velocity nor interaction: the report's zeros are left out.
    fn from(report: &crate::seed::SeedReport) -> Self {
        let if_measured = |value: f64| report.contribution.map(|_| Num(value));
        Self {
            slot: report.slot,
            seed_id: report.seed_id.clone(),
            stage: report.stage,
            blueprint: report.blueprint.into(),
            params: report.seed_params,
            alpha: Num(report.alpha),
            alpha_target: Num(report.alpha_target),
            alpha_mode: report.alpha_mode,
            epochs_in_stage: report.epochs_in_stage,
            age_epochs: report.age_epochs,
            accuracy_delta: Num(report.total_improvement),
            contribution: report.contribution.map(Num),
            contribution_velocity: if_measured(report.contribution_velocity),
            interaction_sum: if_measured(report.interaction_sum),
            boost_received: if_measured(report.boost_received),
            gradient_norm: report.gradient_norm.map(Num),
            gradient_health: report.gradient_health.map(Num),
            gradient_ratio: report.gradient_ratio.map(Num),
            vanishing: report.has_vanishing,
            exploding: report.has_exploding,
        }
    }
}

/// The latch that first permits germination has closed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostStabilized {
    pub stable_count: u32,
    pub required: u32,
    pub val_loss: Num,
}

/// A count per operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub struct OpCounts {
    pub wait: u32,
    pub germinate: u32,
    pub set_alpha_target: u32,
    pub prune: u32,
    pub fossilize: u32,
    pub advance: u32,
}

impl OpCounts {
    pub const fn record(&mut self, op: LifecycleOp) {
        *match op {
            LifecycleOp::Wait => &mut self.wait,
            LifecycleOp::Germinate => &mut self.germinate,
            LifecycleOp::SetAlphaTarget => &mut self.set_alpha_target,
            LifecycleOp::Prune => &mut self.prune,
            LifecycleOp::Fossilize => &mut self.fossilize,
            LifecycleOp::Advance => &mut self.advance,
        } += 1;
    }
}

impl AddAssign for OpCounts {
    fn add_assign(&mut self, other: Self) {
        self.wait += other.wait;
        self.germinate += other.germinate;
        self.set_alpha_target += other.set_alpha_target;
        self.prune += other.prune;
        self.fossilize += other.fossilize;
        self.advance += other.advance;
    }
}

/// What was ordered and what grew: per episode, summed over envs per round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrowthCounts {
    pub germinated: u32,
    pub fossilized: u32,
    pub pruned: u32,
    /// Operations ordered.
    pub ops: OpCounts,
    /// Operations that executed.
    pub ops_ok: OpCounts,
}

impl GrowthCounts {
    pub const fn record(&mut self, op: LifecycleOp, success: bool) {
        self.ops.record(op);
        if success {
            self.ops_ok.record(op);
        }
    }
}

impl AddAssign for GrowthCounts {
    fn add_assign(&mut self, other: Self) {
        self.germinated += other.germinated;
        self.fossilized += other.fossilized;
        self.pruned += other.pruned;
        self.ops += other.ops;
        self.ops_ok += other.ops_ok;
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlueprintCounts {
    pub germinated: u32,
    pub fossilized: u32,
    pub pruned: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EpisodeEnd {
    Horizon,
    GovernorLimit,
    EarlyStop,
    Stopped,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Success,
    Timeout,
}

/// The end of an env's episode, once per env and round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeFinished {
    pub final_accuracy: Num,
    /// With the fossilized seeds alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed_accuracy: Option<Num>,
    pub final_loss: Num,
    pub best_accuracy: Num,
    pub best_step: u32,
    /// On the test split, which nothing was chosen by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_accuracy: Option<Num>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_loss: Option<Num>,
    pub length: u32,
    pub end: EpisodeEnd,
    pub outcome: Outcome,
    #[serde(flatten)]
    pub paid: Option<EpisodeRewards>,
    /// Total / host; 1 = no growth.
    pub param_ratio: Num,
    /// Fossilized seeds whose contribution reaches the lifecycle's threshold.
    pub contributing: u32,
    /// Times the governor restored an earlier state.
    pub rollbacks: u32,
    #[serde(flatten)]
    pub growth: GrowthCounts,
    pub blueprints: BTreeMap<String, BlueprintCounts>,
}
