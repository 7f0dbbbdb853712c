//! The life of a seed: the operations a controller orders and the tick at the end of each step.
//!
//! Every function reads a record and returns a [`SeedPlan`]; see `record` for what becomes of it. The rules across slots
//! are `legality`'s and are checked before an operation arrives here; the rules on the seed itself are checked again.

use std::collections::VecDeque;

use super::legality::{SlotView, seed_admits};
use super::{
    ALPHA_TOLERANCE, AccuracyTrack, AlphaController, Change, ContributionTrack, Effect, GateMemory, GateReport,
    GradientTrack, Limits, PruneOrder, RampShape, Retarget, SeedIdentity, SeedPlan, SeedRecord, Transition,
    evaluate_gate, may_follow, next_stage,
};
use crate::growth::{
    AlphaAlgorithm, AlphaCurveAction, AlphaSpeed, AlphaTarget, DEFAULT_STEEPNESS, FailureReason, GateLevel, GateResult,
    GerminationStyle, Initiator, LifecycleCommand, LifecycleOp, PruneReason, SeedStage, Tempo,
};
use crate::scenario::{GateMode, LifecycleConfig, OnCommit};

/// Batches in a row with a non-finite gradient after which a seed is given up.
const MAX_NONFINITE_STREAK: u32 = 3;
/// Ticks for which a slot rests after a prune, so that a loop of germinations and prunes has a cost.
const EMBARGO_STEPS: u32 = 5;
/// Stage changes that a record remembers: more than a life of ordinary length has.
const HISTORY_LEN: usize = 100;

/// Rules that an operation is judged by: the scenario, the env's limits, and the step it is.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Settings of the scenario.
    pub config: &'a LifecycleConfig,
    /// The orders that are allowed.
    pub limits: &'a Limits,
    /// The step of the round, from 1.
    pub step: u32,
}

/// A seed that is to germinate. Its module has been built, so the parameter counts are exact.
#[derive(Clone, Debug, PartialEq)]
pub struct Germination {
    /// The parts that are fixed for the life of the seed.
    pub identity: SeedIdentity,
    /// Elements of the slot's gate, counted if the style's operator is Gate.
    pub gate_params: u64,
    /// The env's validation accuracy now, percent.
    pub accuracy: f64,
}

/// The seed that is to germinate, its slot and its way to blend in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeedOrder {
    /// Index in policy order.
    pub slot: usize,
    /// Index in the registry.
    pub blueprint: usize,
    /// Curve and operator of the first blend.
    pub style: GerminationStyle,
    /// Length of the first blend.
    pub tempo: Tempo,
    /// Amplitude of the first blend.
    pub target: AlphaTarget,
}

/// The plan of a command in its slot, which holds `seed` and whose gate has `gate_params` elements. `germination`: of the seed
/// that is to germinate there.
pub fn plan_command(
    command: &LifecycleCommand,
    seed: Option<&SeedRecord>,
    gate_params: u64,
    germination: impl FnOnce(SeedOrder) -> Result<Germination, FailureReason>,
    rules: &Rules,
) -> Result<SeedPlan, FailureReason> {
    let held = || seed.ok_or(FailureReason::SlotEmpty);
    match *command {
        LifecycleCommand::Wait => Ok(SeedPlan {
            next: seed.cloned(),
            change: Change::default(),
        }),
        LifecycleCommand::Germinate {
            slot,
            blueprint,
            style,
            tempo,
            target,
        } => {
            let order = SeedOrder {
                slot,
                blueprint,
                style,
                tempo,
                target,
            };
            germinate(germination(order)?, rules)
        }
        LifecycleCommand::SetAlphaTarget {
            style,
            target,
            speed,
            curve,
            ..
        } => {
            let order = AlphaOrder {
                style,
                target,
                speed,
                curve,
                gate_params,
            };
            set_alpha_target(held()?, &order, rules)
        }
        LifecycleCommand::Prune { speed, curve, .. } => prune(held()?, speed, curve, rules),
        LifecycleCommand::Commit { .. } => commit(held()?, rules),
        LifecycleCommand::Advance { .. } => advance(held()?, rules),
    }
}

/// Starts a seed in an empty slot.
pub fn germinate(germination: Germination, rules: &Rules) -> Result<SeedPlan, FailureReason> {
    let mut draft = Draft::new(germination, rules)?;
    draft.pass_gate(GateLevel::G0, rules)?;
    draft.germinate(rules);
    Ok(draft.finish())
}

/// Puts a seed into an empty slot that is committed from the start, with fresh weights: it passes
/// through all stages at once, without gates.
pub fn germinate_committed(germination: Germination, rules: &Rules) -> Result<SeedPlan, FailureReason> {
    let mut draft = Draft::new(germination, rules)?;
    draft.germinate(rules);
    for stage in [SeedStage::Training, SeedStage::Blending, SeedStage::Holding] {
        draft.grow_into(stage, rules);
    }
    draft.commit(rules);
    Ok(draft.finish())
}

/// Tries the gate of the next stage and enters it.
pub fn advance(seed: &SeedRecord, rules: &Rules) -> Result<SeedPlan, FailureReason> {
    seed_admits(LifecycleOp::Advance, &SlotView::from(seed), rules.limits)?;
    let (gate, stage) = next_stage(seed.stage).ok_or(FailureReason::WrongStage { stage: seed.stage })?;
    let mut draft = Draft::of(seed);
    draft.pass_gate(gate, rules)?;
    draft.grow_into(stage, rules);
    Ok(draft.finish())
}

/// A new amplitude for a blending or held seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AlphaOrder {
    /// The style. Only its operator counts.
    pub style: GerminationStyle,
    /// Amplitude to reach.
    pub target: AlphaTarget,
    /// Length of the ramp.
    pub speed: AlphaSpeed,
    /// Easing of the ramp.
    pub curve: AlphaCurveAction,
    /// Elements of the slot's gate, counted if the operator becomes Gate.
    pub gate_params: u64,
}

/// Orders a ramp, with another operator where the style says so. A held seed sent below 1 blends again.
pub fn set_alpha_target(seed: &SeedRecord, order: &AlphaOrder, rules: &Rules) -> Result<SeedPlan, FailureReason> {
    seed_admits(LifecycleOp::SetAlphaTarget, &SlotView::from(seed), rules.limits)?;
    let operator = order.style.algorithm();
    let mut draft = Draft::of(seed);
    if seed.stage == SeedStage::Holding && order.target.value() < 1.0 - ALPHA_TOLERANCE {
        draft.enter(SeedStage::Blending, rules);
    }
    draft.ramp(order.target.value(), order.speed, order.curve)?;
    draft.switch_operator(operator, order.gate_params);
    Ok(draft.finish())
}

/// Removes a seed on the controller's order: at once, or, if it has an amplitude and the speed is not instant,
/// by a ramp to 0 that the ticks carry out.
pub fn prune(
    seed: &SeedRecord,
    speed: AlphaSpeed,
    curve: AlphaCurveAction,
    rules: &Rules,
) -> Result<SeedPlan, FailureReason> {
    seed_admits(LifecycleOp::Prune, &SlotView::from(seed), rules.limits)?;
    let order = PruneOrder {
        reason: PruneReason::Policy,
        initiator: Initiator::Policy,
    };
    let mut draft = Draft::of(seed);
    if speed == AlphaSpeed::Instant || seed.alpha.alpha() == 0.0 {
        draft.remove(order, rules);
        return Ok(draft.finish());
    }
    if seed.stage == SeedStage::Holding {
        draft.enter(SeedStage::Blending, rules);
    }
    draft.ramp(0.0, speed, curve)?;
    draft.seed.pending_prune = Some(order);
    Ok(draft.finish())
}

/// Removes a live seed at once, at any age and alpha: for the governor and the engine itself. A pending prune is cut
/// short.
pub fn prune_now(seed: &SeedRecord, order: PruneOrder, rules: &Rules) -> Result<SeedPlan, FailureReason> {
    if !seed.stage.is_live() {
        return Err(FailureReason::WrongStage { stage: seed.stage });
    }
    let mut draft = Draft::of(seed);
    draft.remove(order, rules);
    Ok(draft.finish())
}

/// Commits a held seed for the rest of the episode.
pub fn commit(seed: &SeedRecord, rules: &Rules) -> Result<SeedPlan, FailureReason> {
    seed_admits(LifecycleOp::Commit, &SlotView::from(seed), rules.limits)?;
    let mut draft = Draft::of(seed);
    draft.pass_gate(GateLevel::G5, rules)?;
    draft.commit(rules);
    Ok(draft.finish())
}

/// The mechanical update of a slot at the end of every step, after the operation: at most one change of stage.
pub fn tick(slot: Option<&SeedRecord>, rules: &Rules) -> SeedPlan {
    let Some(seed) = slot else {
        return SeedPlan {
            next: None,
            change: Change::default(),
        };
    };
    let mut draft = Draft::of(seed);
    if let Some(reason) = automatic_prune(seed, rules.config) {
        let initiator = Initiator::Auto;
        draft.remove(PruneOrder { reason, initiator }, rules);
        return draft.finish();
    }
    match seed.stage {
        SeedStage::Germinated | SeedStage::Training => draft.auto_forward(rules),
        SeedStage::Blending => {
            draft.seed.alpha.step();
            match draft.seed.pending_prune {
                Some(order) if draft.seed.alpha.is_holding() => {
                    draft.remove(order, rules);
                }
                Some(_) => {}
                None => draft.auto_forward(rules),
            }
        }
        SeedStage::Pruned | SeedStage::Embargoed | SeedStage::Resetting => {
            return draft.cool_down(rules);
        }
        SeedStage::Holding | SeedStage::Committed | SeedStage::Dormant | SeedStage::Unknown => {}
    }
    draft.finish()
}

/// The reason why the engine itself gives up a seed, if it does.
fn automatic_prune(seed: &SeedRecord, config: &LifecycleConfig) -> Option<PruneReason> {
    let is_held = seed.stage == SeedStage::Holding;
    if seed.stage.is_live() && seed.gradient.nonfinite_streak >= MAX_NONFINITE_STREAK {
        Some(PruneReason::SeedNonfinite)
    } else if is_held && config.max_holding_steps.is_some_and(|max| seed.steps_in_stage > max) {
        Some(PruneReason::HoldingTimeout)
    } else {
        None
    }
}

/// Is the gate of the seed's stage tried in this tick without an order?
fn is_tried_automatically(seed: &SeedRecord, config: &LifecycleConfig) -> bool {
    let gates = &config.gates;
    let is_time = match seed.stage {
        SeedStage::Germinated => true,
        SeedStage::Training => seed.steps_in_stage >= gates.min_training_steps,
        SeedStage::Blending => {
            let has_lasted = gates.mode == GateMode::Permissive || seed.steps_in_stage >= gates.min_blending_steps;
            seed.alpha.is_holding() && has_lasted
        }
        _ => false,
    };
    config.auto_forward && is_time
}

/// A record in the making, and the changes to it so far.
struct Draft {
    seed: SeedRecord,
    change: Change,
}

impl Draft {
    fn of(seed: &SeedRecord) -> Self {
        Self {
            seed: seed.clone(),
            change: Change::default(),
        }
    }

    /// A seed before its germination.
    fn new(germination: Germination, rules: &Rules) -> Result<Self, FailureReason> {
        let Germination {
            identity,
            gate_params,
            accuracy,
        } = germination;
        if identity.seed_params == 0 {
            return Err(FailureReason::NoTrainableParams);
        }
        let algorithm = identity.style.algorithm();
        let gated = algorithm == AlphaAlgorithm::Gate;
        Ok(Self::of(&SeedRecord {
            identity,
            algorithm,
            gate_params: if gated { gate_params } else { 0 },
            stage: SeedStage::Dormant,
            stage_entered_step: rules.step,
            age_steps: 0,
            steps_in_stage: 0,
            cooldown_left: 0,
            history: VecDeque::new(),
            last_gate: None,
            alpha: AlphaController::default(),
            pending_prune: None,
            prune_reason: None,
            auto_pruned: false,
            account: 0.0,
            accuracy: AccuracyTrack {
                initial: accuracy,
                current: accuracy,
                at_stage_start: accuracy,
                at_blending_start: None,
            },
            contribution: ContributionTrack::default(),
            interaction_sum: 0.0,
            gradient: GradientTrack::default(),
        }))
    }

    fn finish(self) -> SeedPlan {
        SeedPlan {
            next: Some(self.seed),
            change: self.change,
        }
    }

    /// The bookkeeping that every change of stage has in common.
    fn enter(&mut self, to: SeedStage, rules: &Rules) {
        let seed = &mut self.seed;
        debug_assert!(may_follow(seed.stage, to), "{} cannot become {to}", seed.stage);
        self.change.transition = Some(Transition {
            from: seed.stage,
            to,
            alpha: seed.alpha.alpha(),
        });
        seed.stage = to;
        seed.steps_in_stage = 0;
        seed.stage_entered_step = rules.step;
        seed.accuracy.at_stage_start = seed.accuracy.current;
        seed.last_gate = None;
        seed.history.push_back((to, rules.step));
        while seed.history.len() > HISTORY_LEN {
            seed.history.pop_front();
        }
    }

    /// Germinates, with its module and, if the operator needs one, its gate.
    fn germinate(&mut self, rules: &Rules) {
        self.enter(SeedStage::Germinated, rules);
        self.change.effects.push(Effect::InsertSeed);
        if self.seed.algorithm == AlphaAlgorithm::Gate {
            self.change.effects.push(Effect::AddGate);
        }
    }

    /// Becomes a fixed part of the network, for the rest of the episode.
    fn commit(&mut self, rules: &Rules) {
        self.enter(SeedStage::Committed, rules);
        let effects: &[Effect] = match rules.config.on_commit {
            OnCommit::ResetMomentum => &[Effect::ResetMomentum, Effect::StopWeightDecay],
            OnCommit::Keep => &[Effect::StopWeightDecay],
            // The optimizer stays; `trains` says that it is never stepped again.
            OnCommit::Freeze => &[],
        };
        self.change.effects.extend_from_slice(effects);
    }

    /// Enters the next growing stage, with what belongs to it.
    fn grow_into(&mut self, stage: SeedStage, rules: &Rules) {
        self.enter(stage, rules);
        let seed = &mut self.seed;
        match stage {
            SeedStage::Training => self.change.effects.push(Effect::CreateOptimizer),
            SeedStage::Blending => {
                let SeedIdentity {
                    style, tempo, target, ..
                } = seed.identity;
                seed.accuracy.at_blending_start = Some(seed.accuracy.current);
                let shape = RampShape::new(style.curve(), DEFAULT_STEEPNESS);
                seed.alpha = AlphaController::rising_to(target.value(), tempo.ticks(), shape);
            }
            SeedStage::Holding => seed.alpha.saturate(),
            _ => {}
        }
    }

    /// Evaluates a gate on request; refuses if it fails, reports it if it passes.
    fn pass_gate(&mut self, level: GateLevel, rules: &Rules) -> Result<(), FailureReason> {
        match self.failure_at(level, rules) {
            None => Ok(()),
            Some(failed) => Err(FailureReason::GateFailed { gate: failed.level }),
        }
    }

    /// The checks of a gate that fails; one that passes is reported.
    fn failure_at(&mut self, level: GateLevel, rules: &Rules) -> Option<GateResult> {
        let result = evaluate_gate(level, &self.seed, &rules.config.gates);
        if !result.passed {
            return Some(result);
        }
        let flipped = self.seed.last_gate.is_some_and(|memory| memory.level == level);
        self.change.gate = Some(GateReport { result, flipped });
        None
    }

    /// Tries the next gate if the scenario leaves it to the engine. A failure that was reported before is not reported again.
    fn auto_forward(&mut self, rules: &Rules) {
        let Some((level, stage)) = next_stage(self.seed.stage) else {
            return;
        };
        if !is_tried_automatically(&self.seed, rules.config) {
            return;
        }
        match self.failure_at(level, rules) {
            None => self.grow_into(stage, rules),
            Some(failed) => self.remember_failure(failed),
        }
    }

    fn remember_failure(&mut self, result: GateResult) {
        let memory = GateMemory {
            level: result.level,
            failed_checks: failed_checks(&result),
        };
        if self.seed.last_gate.replace(memory) != Some(memory) {
            self.change.gate = Some(GateReport { result, flipped: false });
        }
    }

    /// Orders a ramp of alpha from where it rests.
    fn ramp(&mut self, target: f64, speed: AlphaSpeed, curve: AlphaCurveAction) -> Result<(), FailureReason> {
        let seed = &mut self.seed;
        let shape = RampShape::new(curve.curve(), curve.steepness());
        self.change.retarget = Some(Retarget {
            from: seed.alpha.alpha(),
            to: target,
            speed,
        });
        seed.alpha.retarget(target, speed.ticks(), shape)
    }

    /// Switches the blend operator that goes with a ramp just ordered.
    fn switch_operator(&mut self, to: AlphaAlgorithm, gate_params: u64) {
        let from = std::mem::replace(&mut self.seed.algorithm, to);
        if from == to {
            return;
        }
        if to == AlphaAlgorithm::Gate {
            self.seed.gate_params = gate_params;
            self.change.effects.push(Effect::AddGate);
        } else if from == AlphaAlgorithm::Gate {
            self.seed.gate_params = 0;
            self.change.effects.push(Effect::RemoveGate);
        }
    }

    /// Takes the seed out of the slot; its metrics stay readable until the slot is free.
    fn remove(&mut self, order: PruneOrder, rules: &Rules) {
        self.enter(SeedStage::Pruned, rules);
        let seed = &mut self.seed;
        seed.alpha.reset();
        seed.pending_prune = None;
        seed.prune_reason = Some(order.reason);
        seed.auto_pruned = order.reason != PruneReason::Policy;
        self.change.pruned = Some(order);
        self.change.effects.push(Effect::DropSeed);
    }

    /// Moves to Pruned, then Embargoed, then Resetting, then empty; only ticks count.
    fn cool_down(mut self, rules: &Rules) -> SeedPlan {
        self.seed.steps_in_stage += 1;
        match self.seed.stage {
            SeedStage::Pruned => {
                self.enter(SeedStage::Embargoed, rules);
                self.seed.cooldown_left = EMBARGO_STEPS;
                self.finish()
            }
            SeedStage::Embargoed => {
                self.seed.cooldown_left = self.seed.cooldown_left.saturating_sub(1);
                if self.seed.cooldown_left == 0 {
                    self.enter(SeedStage::Resetting, rules);
                }
                self.finish()
            }
            _ => {
                self.enter(SeedStage::Dormant, rules);
                SeedPlan {
                    next: None,
                    change: self.change,
                }
            }
        }
    }
}

/// The failed checks of a gate as a bit set.
fn failed_checks(result: &GateResult) -> u8 {
    result
        .checks
        .iter()
        .enumerate()
        .filter(|(_, check)| !check.passed)
        .fold(0, |set, (index, _)| set | 1 << index)
}

#[cfg(test)]
mod tests;
