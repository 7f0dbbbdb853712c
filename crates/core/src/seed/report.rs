//! The view of a seed from outside the lifecycle: an immutable row of plain data per slot and step.

use super::stages::gate_readiness;
use super::{GradientTrack, SeedRecord};
use crate::growth::{AlphaAlgorithm, AlphaMode, GerminationStyle, SeedStage, SlotId, Tempo};
use crate::scenario::GateConfig;

/// One non-empty slot at one step. Accuracies in percent, contributions in percentage points;
/// `None` means never measured.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedReport {
    /// `e{episode}.{slot}.{n}`.
    pub seed_id: String,
    /// The slot in which it grows.
    pub slot: SlotId,
    /// Id of the blueprint; empty if this build has none of that index.
    pub blueprint: &'static str,
    /// Index of the blueprint in the registry.
    pub blueprint_index: usize,
    /// The current stage.
    pub stage: SeedStage,
    /// Steps since germination.
    pub age_steps: u32,
    /// Steps in the current stage.
    pub steps_in_stage: u32,
    /// Ticks of embargo left.
    pub cooldown_left: u32,

    /// Amplitude in [0, 1].
    pub alpha: f64,
    /// Target of the amplitude in [0, 1].
    pub alpha_target: f64,
    /// State of the amplitude.
    pub alpha_mode: AlphaMode,
    /// Ticks of the last ramp.
    pub alpha_steps_total: u32,
    /// Ticks of it that are over.
    pub alpha_steps_done: u32,
    /// Ticks until the target is reached, 0 at rest.
    pub time_to_target: u32,
    /// Mean change of alpha per tick of the ramp, 0 at rest.
    pub alpha_velocity: f64,
    /// Blend operator.
    pub algorithm: AlphaAlgorithm,
    /// Curve and operator of the first blend.
    pub style: GerminationStyle,
    /// Length of the first blend.
    pub tempo: Tempo,
    /// Percentage points since germination.
    pub total_improvement: f64,
    /// Percentage points in the current stage.
    pub improvement_since_stage_start: f64,

    /// Accuracy with the seed minus accuracy without it.
    pub contribution: Option<f64>,
    /// Steps since that measurement.
    pub contribution_age: Option<u32>,
    /// Smoothed change of the contribution per step.
    pub contribution_velocity: f64,
    /// Sum of the pairwise interactions, percentage points.
    pub interaction_sum: f64,

    /// The last measurement of its gradients.
    pub gradient: GradientTrack,

    /// Share of the passed checks in the gate before the next stage or the commit; `None` if no gate follows.
    pub gate_readiness: Option<f64>,
    /// The reward's account of the seed, as of the last step that paid: what a commit would keep, and what a
    /// committed seed earns per step from then on. Reward units.
    pub account: f64,

    /// Trainable elements without the gate.
    pub seed_params: u64,
}

impl SeedReport {
    /// A `conv_light` that has just entered a stage, its amplitude at rest, nothing measured: what tests of a custom
    /// controller or reward begin with.
    pub fn at_rest(slot: SlotId, stage: SeedStage) -> Self {
        let alpha = match stage {
            SeedStage::Blending | SeedStage::Holding | SeedStage::Committed => 1.0,
            _ => 0.0,
        };
        Self {
            seed_id: format!("e0.{slot}.0"),
            slot,
            blueprint: "conv_light",
            blueprint_index: 1,
            stage,
            age_steps: 1,
            steps_in_stage: 1,
            cooldown_left: 0,
            alpha,
            alpha_target: alpha,
            alpha_mode: AlphaMode::Hold,
            alpha_steps_total: 0,
            alpha_steps_done: 0,
            time_to_target: 0,
            alpha_velocity: 0.0,
            algorithm: AlphaAlgorithm::Add,
            style: GerminationStyle::SigmoidAdd,
            tempo: Tempo::Standard,
            total_improvement: 0.0,
            improvement_since_stage_start: 0.0,
            contribution: None,
            contribution_age: None,
            contribution_velocity: 0.0,
            interaction_sum: 0.0,
            gradient: GradientTrack::default(),
            seed_params: 1,
            gate_readiness: None,
            account: 0.0,
        }
    }
}

impl SeedRecord {
    /// The row that everyone outside the lifecycle reads. `blueprint` is the registry's name of the record's
    /// `blueprint_index`: a record may come from a checkpoint and owns its copy.
    pub fn report(&self, blueprint: &'static str, gates: &GateConfig) -> SeedReport {
        SeedReport {
            seed_id: self.identity.seed_id.clone(),
            slot: self.identity.slot,
            blueprint,
            blueprint_index: self.identity.blueprint_index,
            stage: self.stage,
            age_steps: self.age_steps,
            steps_in_stage: self.steps_in_stage,
            cooldown_left: self.cooldown_left,

            alpha: self.alpha.alpha(),
            alpha_target: self.alpha.target(),
            alpha_mode: self.alpha.mode(),
            alpha_steps_total: self.alpha.steps_total(),
            alpha_steps_done: self.alpha.steps_done(),
            time_to_target: self.alpha.time_to_target(),
            alpha_velocity: self.alpha.velocity(),
            algorithm: self.algorithm,
            style: self.identity.style,
            tempo: self.identity.tempo,
            total_improvement: self.total_improvement(),
            improvement_since_stage_start: self.improvement_since_stage_start(),

            contribution: self.contribution.value,
            contribution_age: self.contribution.age,
            contribution_velocity: self.contribution.velocity,
            interaction_sum: self.interaction_sum,

            gradient: self.gradient,

            gate_readiness: gate_readiness(self, gates),
            account: self.account,

            seed_params: self.identity.seed_params,
        }
    }
}
