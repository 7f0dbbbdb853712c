//! What may be ordered: one pure predicate for action masks and for execution, so that the two cannot disagree
//! (spec 03 §3.2, 06 §10.1).
//!
//! It refuses what the stage machine would certainly refuse, never what is merely unwise.

use super::{ALPHA_TOLERANCE, SeedRecord, SeedReport};
use crate::growth::{AlphaMode, FailureReason, GateLevel, LifecycleCommand, LifecycleOp, SeedStage};
use crate::scenario::{AutoForward, LifecycleConfig, MaskConfig};

/// What legality needs to know of a non-empty slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotView {
    pub stage: SeedStage,
    /// Steps since germination.
    pub age: u32,
    pub alpha_mode: AlphaMode,
    pub alpha: f64,
    pub alpha_target: f64,
    pub contribution_known: bool,
    pub cooldown_left: u32,
}

impl From<&SeedRecord> for SlotView {
    fn from(seed: &SeedRecord) -> Self {
        Self {
            stage: seed.stage,
            age: seed.age_epochs,
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
            age: report.age_epochs,
            alpha_mode: report.alpha_mode,
            alpha: report.alpha,
            alpha_target: report.alpha_target,
            contribution_known: report.contribution.is_some(),
            cooldown_left: report.cooldown_left,
        }
    }
}

/// A set of policy slot indices, at most 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotSet(u64);

impl SlotSet {
    pub const CAPACITY: usize = u64::BITS as usize;

    /// The slots `0..count`.
    pub fn first(count: usize) -> Self {
        (0..count).collect()
    }

    pub const fn contains(self, slot: usize) -> bool {
        slot < Self::CAPACITY && self.0 >> slot & 1 == 1
    }
}

impl FromIterator<usize> for SlotSet {
    /// Panics on an index of 64 or more: slot counts are checked when a scenario is loaded.
    fn from_iter<I: IntoIterator<Item = usize>>(slots: I) -> Self {
        Self(slots.into_iter().fold(0, |set, slot| {
            assert!(slot < Self::CAPACITY, "slot index {slot} is beyond {}", Self::CAPACITY);
            set | 1 << slot
        }))
    }
}

/// The rules of an env that bear on what may be ordered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    pub enabled: SlotSet,
    /// Slots in which at least one blueprint may grow.
    pub germinable: SlotSet,
    /// Most live and committed seeds; 0 = unlimited.
    pub max_seeds: u32,
    pub min_prune_age: u32,
    pub auto_forward: AutoForward,
    /// Develop one seed at a time.
    pub sequential_germination: bool,
    /// Also refuse attempts at a gate whose structural preconditions are unmet.
    pub mask_structural_gates: bool,
}

impl Limits {
    /// `max_seeds` is the task's or the scenario's, 0 = unlimited.
    pub fn new(
        config: &LifecycleConfig,
        masks: &MaskConfig,
        enabled: SlotSet,
        germinable: SlotSet,
        max_seeds: u32,
    ) -> Self {
        Self {
            enabled,
            germinable,
            max_seeds,
            min_prune_age: config.min_prune_age,
            auto_forward: config.auto_forward,
            sequential_germination: masks.sequential_germination,
            mask_structural_gates: masks.mask_structural_gates,
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
/// A slot index outside `slots` is not enabled.
pub fn legal(op: LifecycleOp, slot: usize, slots: &[Option<SlotView>], limits: &Limits) -> Result<(), FailureReason> {
    let seed = slots
        .get(slot)
        .filter(|_| limits.enabled.contains(slot))
        .ok_or(FailureReason::SlotDisabled)?;
    match op {
        LifecycleOp::Wait => Ok(()),
        LifecycleOp::Germinate => {
            slot_is_empty(seed.as_ref())?;
            if !limits.germinable.contains(slot) {
                return Err(FailureReason::BlueprintUnavailable);
            }
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

/// The rules across slots: seeds are limited in number, and developed one after the other. The second closes the loop
/// of germinating and pruning for a bonus; seeds that already blend do not block.
fn another_seed_may_grow(slots: &[Option<SlotView>], limits: &Limits) -> Result<(), FailureReason> {
    let seeds = slots.iter().flatten();
    let total = seeds.filter(|seed| seed.stage.is_occupied()).count();
    if limits.max_seeds > 0 && total >= limits.max_seeds as usize {
        return Err(FailureReason::SeedLimit);
    }
    let develops = |(slot, seed): (usize, &Option<SlotView>)| {
        limits.enabled.contains(slot) && seed.is_some_and(|seed| is_developing(seed.stage))
    };
    if limits.sequential_germination && slots.iter().enumerate().any(develops) {
        return Err(FailureReason::DevelopingSeed);
    }
    Ok(())
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
    match (op, seed.stage) {
        (LifecycleOp::Wait, _) => Ok(()),
        (LifecycleOp::Germinate, _) => Err(FailureReason::SlotOccupied),
        (LifecycleOp::SetAlphaTarget, SeedStage::Blending | SeedStage::Holding) => alpha_rests(seed),
        (LifecycleOp::Prune, stage) if stage.is_live() => {
            old_enough(seed, limits.min_prune_age)?;
            alpha_rests(seed)
        }
        (LifecycleOp::Fossilize, SeedStage::Holding) => {
            let hopeless = limits.mask_structural_gates && !seed.contribution_known;
            gate_is_reachable(GateLevel::G5, !hopeless)
        }
        (LifecycleOp::Advance, SeedStage::Germinated) => not_automatic(limits.auto_forward.g1),
        (LifecycleOp::Advance, SeedStage::Training) => not_automatic(limits.auto_forward.g2),
        (LifecycleOp::Advance, SeedStage::Blending) => {
            not_automatic(limits.auto_forward.g3)?;
            let hopeless = limits.mask_structural_gates && !is_fully_blended(seed);
            gate_is_reachable(GateLevel::G3, !hopeless)
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

fn old_enough(seed: &SlotView, min: u32) -> Result<(), FailureReason> {
    if seed.age >= min {
        Ok(())
    } else {
        Err(FailureReason::TooYoung { age: seed.age, min })
    }
}

fn gate_is_reachable(gate: GateLevel, reachable: bool) -> Result<(), FailureReason> {
    if reachable {
        Ok(())
    } else {
        Err(FailureReason::GateFailed { gate })
    }
}

fn not_automatic(automatic: bool) -> Result<(), FailureReason> {
    if automatic {
        Err(FailureReason::AdvanceDisabled)
    } else {
        Ok(())
    }
}

fn cooldown(seed: &SlotView) -> FailureReason {
    FailureReason::Cooldown {
        stage: seed.stage,
        left: seed.cooldown_left,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::*;
    use crate::seed::fixtures::limits;

    fn strict_limits(slots: usize) -> Limits {
        limits(&LifecycleConfig::default(), slots)
    }

    /// An old, resting, measured seed at the alpha of its stage.
    fn at(stage: SeedStage) -> SlotView {
        let alpha = match stage {
            SeedStage::Blending | SeedStage::Holding | SeedStage::Fossilized => 1.0,
            _ => 0.0,
        };
        SlotView {
            stage,
            age: 20,
            alpha_mode: AlphaMode::Hold,
            alpha,
            alpha_target: alpha,
            contribution_known: true,
            cooldown_left: 0,
        }
    }

    /// The ops that a lone slot admits.
    fn ops(slot: Option<SlotView>, limits: &Limits) -> Vec<LifecycleOp> {
        let admits = |op: &LifecycleOp| legal(*op, 0, &[slot], limits).is_ok();
        LifecycleOp::ALL.iter().copied().filter(admits).collect()
    }

    #[test]
    fn each_stage_admits_exactly_its_ops() {
        use LifecycleOp::{Advance, Fossilize, Germinate, Prune, SetAlphaTarget, Wait};
        use SeedStage::*;
        let limits = strict_limits(1);
        assert_eq!(ops(None, &limits), [Wait, Germinate]);
        let table: [(SeedStage, &[LifecycleOp]); 8] = [
            (Germinated, &[Wait, Prune, Advance]),
            (Training, &[Wait, Prune, Advance]),
            (Blending, &[Wait, SetAlphaTarget, Prune, Advance]),
            (Holding, &[Wait, SetAlphaTarget, Prune, Fossilize]),
            (Fossilized, &[Wait]),
            (Pruned, &[Wait]),
            (Embargoed, &[Wait]),
            (Resetting, &[Wait]),
        ];
        for (stage, expected) in table {
            assert_eq!(ops(Some(at(stage)), &limits), expected, "{stage}");
        }
    }

    #[test]
    fn automatic_gates_take_their_advance_away_one_by_one() {
        use SeedStage::{Blending, Germinated, Training};
        let mut limits = strict_limits(1);
        limits.auto_forward.g2 = true;
        let advance = |stage| legal(LifecycleOp::Advance, 0, &[Some(at(stage))], &limits);
        assert_eq!(advance(Germinated), Ok(()));
        assert_eq!(advance(Training), Err(FailureReason::AdvanceDisabled));
        assert_eq!(advance(Blending), Ok(()));
    }

    #[test]
    fn attempts_without_hope_are_hidden_unless_the_masks_are_to_show_them() {
        let unmeasured = SlotView {
            contribution_known: false,
            ..at(SeedStage::Holding)
        };
        let half = SlotView {
            alpha: 0.5,
            alpha_target: 0.5,
            ..at(SeedStage::Blending)
        };
        let mut limits = strict_limits(1);
        let fossilize = |limits: &Limits| legal(LifecycleOp::Fossilize, 0, &[Some(unmeasured)], limits);
        let advance = |limits: &Limits| legal(LifecycleOp::Advance, 0, &[Some(half)], limits);
        assert_eq!(
            fossilize(&limits),
            Err(FailureReason::GateFailed { gate: GateLevel::G5 })
        );
        assert_eq!(advance(&limits), Err(FailureReason::GateFailed { gate: GateLevel::G3 }));
        limits.mask_structural_gates = false;
        assert_eq!((fossilize(&limits), advance(&limits)), (Ok(()), Ok(())));
    }

    #[test]
    fn a_moving_alpha_and_a_young_age_forbid_pruning() {
        let limits = strict_limits(1);
        let prune = |seed| legal(LifecycleOp::Prune, 0, &[Some(seed)], &limits);
        let moving = SlotView {
            alpha_mode: AlphaMode::Up,
            ..at(SeedStage::Blending)
        };
        let busy = FailureReason::AlphaBusy { mode: AlphaMode::Up };
        assert_eq!(prune(moving), Err(busy));
        let young = SlotView {
            age: 4,
            ..at(SeedStage::Training)
        };
        assert_eq!(prune(young), Err(FailureReason::TooYoung { age: 4, min: 5 }));
        assert_eq!(prune(SlotView { age: 5, ..young }), Ok(()));
    }

    #[test]
    fn germination_waits_for_developing_neighbours_but_not_for_blended_ones() {
        use SeedStage::*;
        let mut limits = strict_limits(2);
        let beside = |stage, limits: &Limits| legal(LifecycleOp::Germinate, 1, &[Some(at(stage)), None], limits);
        for stage in [Germinated, Training, Pruned, Embargoed, Resetting] {
            assert_eq!(beside(stage, &limits), Err(FailureReason::DevelopingSeed), "{stage}");
        }
        for stage in [Blending, Holding, Fossilized] {
            assert_eq!(beside(stage, &limits), Ok(()), "{stage}");
        }
        limits.sequential_germination = false;
        assert_eq!(beside(Training, &limits), Ok(()));
    }

    #[test]
    fn a_germination_is_refused_by_name() {
        let mut limits = strict_limits(2);
        let germinate =
            |slot, slots: &[Option<SlotView>], limits: &Limits| legal(LifecycleOp::Germinate, slot, slots, limits);
        let held = Some(at(SeedStage::Holding));
        let cooling = Some(SlotView {
            cooldown_left: 3,
            ..at(SeedStage::Embargoed)
        });
        let cooldown = FailureReason::Cooldown {
            stage: SeedStage::Embargoed,
            left: 3,
        };
        assert_eq!(germinate(0, &[held, None], &limits), Err(FailureReason::SlotOccupied));
        assert_eq!(germinate(0, &[cooling, None], &limits), Err(cooldown));
        limits.max_seeds = 1;
        assert_eq!(germinate(1, &[held, None], &limits), Err(FailureReason::SeedLimit));
        assert_eq!(
            germinate(1, &[cooling, None], &limits),
            Err(FailureReason::DevelopingSeed)
        );
        limits.germinable = SlotSet::first(1);
        assert_eq!(
            germinate(1, &[None, None], &limits),
            Err(FailureReason::BlueprintUnavailable)
        );
        limits.enabled = SlotSet::first(1);
        assert_eq!(germinate(1, &[None, None], &limits), Err(FailureReason::SlotDisabled));
    }

    #[test]
    fn waiting_is_always_a_legal_command() {
        let nothing_enabled = Limits {
            enabled: SlotSet::default(),
            ..strict_limits(1)
        };
        assert_eq!(
            command_legal(&LifecycleCommand::Wait, &[None], &nothing_enabled),
            Ok(())
        );
    }
}
