//! What everyone outside the lifecycle sees of a seed: an immutable row of plain data per slot and step.

use serde::Serialize;

use crate::growth::{
    AlphaAlgorithm, AlphaCurve, AlphaMode, AlphaTarget, GerminationStyle, PruneReason, SeedStage, SlotId, Tempo,
};

/// One non-empty slot at one step (spec 01 §12.3). Accuracies in percent, contributions in percentage points;
/// `None` means never measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeedReport {
    pub seed_id: String,
    pub slot: SlotId,
    pub blueprint: &'static str,
    pub blueprint_index: usize,
    pub stage: SeedStage,
    pub previous_stage: SeedStage,
    pub previous_epochs_in_stage: u32,
    pub stage_entered_step: u32,
    pub age_epochs: u32,
    pub epochs_in_stage: u32,
    pub cooldown_left: u32,

    pub alpha: f64,
    pub alpha_target: f64,
    pub alpha_mode: AlphaMode,
    pub alpha_curve: AlphaCurve,
    pub alpha_steps_total: u32,
    pub alpha_steps_done: u32,
    pub time_to_target: u32,
    pub alpha_velocity: f64,
    pub algorithm: AlphaAlgorithm,
    pub style: GerminationStyle,
    pub tempo: Tempo,
    pub germination_target: AlphaTarget,

    pub initial_accuracy: f64,
    pub current_accuracy: f64,
    pub best_accuracy: f64,
    pub accuracy_at_stage_start: f64,
    pub accuracy_at_blending_start: Option<f64>,
    pub total_improvement: f64,
    pub improvement_since_stage_start: f64,
    pub blending_delta: Option<f64>,

    pub contribution: Option<f64>,
    pub contribution_loss: Option<f64>,
    pub contribution_age: Option<u32>,
    pub contribution_velocity: f64,
    pub interaction_sum: f64,
    pub boost_received: f64,
    pub upstream_alpha_sum: f64,
    pub downstream_alpha_sum: f64,

    pub gradient_norm: Option<f64>,
    pub gradient_ratio: Option<f64>,
    pub gradient_health: Option<f64>,
    pub previous_gradient_health: Option<f64>,
    pub has_vanishing: Option<bool>,
    pub has_exploding: Option<bool>,
    pub nonfinite_streak: u32,
    pub healthy: bool,

    pub seed_params: u64,
    pub gate_params: u64,
    pub auto_pruned: bool,
    pub prune_reason: Option<PruneReason>,
}

impl SeedReport {
    /// Improvement in this stage that the seed can have caused, percentage points.
    pub fn accuracy_delta(&self) -> f64 {
        attributable(self.stage, self.improvement_since_stage_start)
    }

    /// Mean rise of alpha per step of blending, 0 in any other stage and in its first step.
    pub fn blending_velocity(&self) -> f64 {
        if self.stage == SeedStage::Blending && self.epochs_in_stage > 0 {
            self.alpha / f64::from(self.epochs_in_stage)
        } else {
            0.0
        }
    }
}

/// Before blending alpha is 0, so that no improvement can be the seed's.
pub(super) fn attributable(stage: SeedStage, improvement: f64) -> f64 {
    match stage {
        SeedStage::Germinated | SeedStage::Training => 0.0,
        _ => improvement,
    }
}
