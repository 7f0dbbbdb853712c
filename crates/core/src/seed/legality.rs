//! Legality of orders: one pure predicate for action masks and for execution, so that the two cannot disagree.
//!
//! It refuses commands that the stage machine would certainly refuse, never one that is merely unwise.

use super::{ALPHA_TOLERANCE, SeedRecord, SeedReport};
use crate::growth::{AlphaMode, FailureReason, GateLevel, LifecycleCommand, LifecycleOp, SeedStage};
use crate::scenario::{LifecycleConfig, MaskConfig};

/// State of a non-empty slot that legality depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotView {
    /// Stage of the seed.
    pub stage: SeedStage,
    /// Steps since germination.
    pub age: u32,
    /// State of the amplitude.
    pub alpha_mode: AlphaMode,
    /// Amplitude in [0, 1].
    pub alpha: f64,
    /// Target of the amplitude in [0, 1].
    pub alpha_target: f64,
    /// True if its contribution was ever measured.
    pub contribution_known: bool,
    /// Ticks of embargo left.
    pub cooldown_left: u32,
}

impl From<&SeedRecord> for SlotView {
    fn from(seed: &SeedRecord) -> Self {
        Self {
            stage: seed.stage,
            age: seed.age_steps,
            alpha_mode: seed.alpha.mode(),
            alpha: seed.alpha.alpha(),
            alpha_target: seed.alpha.target(),
            contribution_known: seed.contribution.value.is_some(),
            cooldown_left: seed.cooldown_left,
        }
    }
}

impl From<&SeedReport> for SlotView {
    fn from(report: &SeedReport) -> Self {
        Self {
            stage: report.stage,
            age: report.age_steps,
            alpha_mode: report.alpha_mode,
            alpha: report.alpha,
            alpha_target: report.alpha_target,
            contribution_known: report.contribution.is_some(),
            cooldown_left: report.cooldown_left,
        }
    }
}

/// The rules of an env that bear on what may be ordered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Most live and committed seeds; 0 = unlimited.
    pub max_seeds: u32,
    /// Steps that a seed must have lived before a prune.
    pub min_prune_age: u32,
    /// The engine tries the gates without an order.
    pub auto_forward: bool,
    /// Develop one seed at a time.
    pub sequential_germination: bool,
}

impl Limits {
    /// `max_seeds` is the task's or the scenario's, 0 = unlimited.
    pub fn new(config: &LifecycleConfig, masks: &MaskConfig, max_seeds: u32) -> Self {
        Self {
            max_seeds,
            min_prune_age: config.min_prune_age,
            auto_forward: config.auto_forward,
            sequential_germination: masks.sequential_germination,
        }
    }
}

/// May `command` be executed on `slots` (policy order, `None` = empty)?
pub fn command_legal(
    command: &LifecycleCommand,
    slots: &[Option<SlotView>],
    limits: &Limits,
) -> Result<(), FailureReason> {
    match command.slot() {
        Some(slot) => legal(command.op(), slot, slots, limits),
        None => Ok(()),
    }
}

/// May `op` be ordered for `slot`? The reason of a refusal is the same in masks, execution and telemetry.
/// A slot index outside `slots` is that of a disabled slot.
pub fn legal(op: LifecycleOp, slot: usize, slots: &[Option<SlotView>], limits: &Limits) -> Result<(), FailureReason> {
    let seed = slots.get(slot).ok_or(FailureReason::SlotDisabled)?;
    match op {
        LifecycleOp::Wait => Ok(()),
        LifecycleOp::Germinate => {
            slot_is_empty(seed.as_ref())?;
            another_seed_may_grow(slots, limits)
        }
        _ => seed_admits(op, seed.as_ref().ok_or(FailureReason::SlotEmpty)?, limits),
    }
}

fn slot_is_empty(seed: Option<&SlotView>) -> Result<(), FailureReason> {
    match seed {
        None => Ok(()),
        Some(seed) if seed.stage.is_cooling() => Err(cooldown(seed)),
        Some(_) => Err(FailureReason::SlotOccupied),
    }
}

/// The rules across slots: seeds are limited in number, and developed one after the other. The second rule ends the loop
/// of germinations and prunes for a bonus. Seeds that already blend do not block.
fn another_seed_may_grow(slots: &[Option<SlotView>], limits: &Limits) -> Result<(), FailureReason> {
    let seeds = || slots.iter().flatten();
    let total = seeds().filter(|seed| seed.stage.is_occupied()).count();
    let is_full = limits.max_seeds > 0 && total >= limits.max_seeds as usize;
    refuse_if(is_full, FailureReason::SeedLimit)?;
    let must_wait = limits.sequential_germination && seeds().any(|seed| is_developing(seed.stage));
    refuse_if(must_wait, FailureReason::DevelopingSeed)
}

const fn is_developing(stage: SeedStage) -> bool {
    matches!(stage, SeedStage::Germinated | SeedStage::Training) || stage.is_cooling()
}

/// The rules on one seed, for the ops that need one.
pub(super) fn seed_admits(op: LifecycleOp, seed: &SlotView, limits: &Limits) -> Result<(), FailureReason> {
    if seed.stage.is_cooling() {
        return Err(cooldown(seed));
    }
    let wrong_stage = Err(FailureReason::WrongStage { stage: seed.stage });
    let automatic = FailureReason::AdvanceDisabled;
    match (op, seed.stage) {
        (LifecycleOp::Wait, _) => Ok(()),
        (LifecycleOp::Germinate, _) => Err(FailureReason::SlotOccupied),
        (LifecycleOp::SetAlphaTarget, SeedStage::Blending | SeedStage::Holding) => alpha_rests(seed),
        (LifecycleOp::Prune, stage) if stage.is_live() => {
            let (age, min) = (seed.age, limits.min_prune_age);
            refuse_if(age < min, FailureReason::TooYoung { age, min })?;
            alpha_rests(seed)
        }
        (LifecycleOp::Commit, SeedStage::Holding) => refuse_if(
            !seed.contribution_known,
            FailureReason::GateFailed { gate: GateLevel::G5 },
        ),
        (LifecycleOp::Advance, SeedStage::Germinated | SeedStage::Training) => {
            refuse_if(limits.auto_forward, automatic)
        }
        (LifecycleOp::Advance, SeedStage::Blending) => {
            refuse_if(limits.auto_forward, automatic)?;
            refuse_if(
                !is_fully_blended(seed),
                FailureReason::GateFailed { gate: GateLevel::G3 },
            )
        }
        _ => wrong_stage,
    }
}

fn is_fully_blended(seed: &SlotView) -> bool {
    seed.alpha_mode == AlphaMode::Hold
        && seed.alpha_target >= 1.0 - ALPHA_TOLERANCE
        && (seed.alpha - seed.alpha_target).abs() <= ALPHA_TOLERANCE
}

fn alpha_rests(seed: &SlotView) -> Result<(), FailureReason> {
    match seed.alpha_mode {
        AlphaMode::Hold => Ok(()),
        mode => Err(FailureReason::AlphaBusy { mode }),
    }
}

fn refuse_if(is_refused: bool, reason: FailureReason) -> Result<(), FailureReason> {
    if is_refused { Err(reason) } else { Ok(()) }
}

fn cooldown(seed: &SlotView) -> FailureReason {
    FailureReason::Cooldown {
        stage: seed.stage,
        left: seed.cooldown_left,
    }
}

#[cfg(test)]
mod tests;
