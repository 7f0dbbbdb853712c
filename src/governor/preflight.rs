//! The last look before a command changes an env: pure, on what the host knows already (spec 02 §8.9).
//!
//! Masks exclude most of this; the veto is the authority, because a controller may bypass masks.

use super::Verdict;
use crate::env::ValMetrics;
use crate::growth::{LifecycleCommand, LifecycleOp};
use crate::seed::SlotView;

/// What speaks against a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VetoFactor {
    ValLossFinite,
    ValAccuracyFinite,
    PendingAnomaly,
    ActiveSeedCapacity,
    SlotEmpty,
}

impl VetoFactor {
    /// As telemetry and refusals name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ValLossFinite => "val_loss_finite",
            Self::ValAccuracyFinite => "val_accuracy_finite",
            Self::PendingAnomaly => "pending_anomaly",
            Self::ActiveSeedCapacity => "active_seed_capacity",
            Self::SlotEmpty => "slot_empty",
        }
    }
}

/// What the look falls on.
#[derive(Clone, Copy, Debug)]
pub struct Preflight<'a> {
    pub val: &'a ValMetrics,
    /// In policy order; `None` is an empty slot.
    pub slots: &'a [Option<SlotView>],
    /// Most live and committed seeds; 0 = unlimited.
    pub max_seeds: u32,
}

impl Preflight<'_> {
    /// The first factor that speaks against `command`. Pruning, advancing and retargeting stay possible under
    /// suspicion: they are how a controller can help itself.
    pub fn veto(&self, command: &LifecycleCommand, verdict: &Verdict) -> Option<VetoFactor> {
        let op = command.op();
        let is_suspect = matches!(verdict, Verdict::Suspect(_));
        let germinates = op == LifecycleOp::Germinate;
        let commits = op == LifecycleOp::Fossilize;
        let factors = [
            (VetoFactor::ValLossFinite, !self.val.loss.is_finite()),
            (VetoFactor::ValAccuracyFinite, !self.val.accuracy_percent.is_finite()),
            (VetoFactor::PendingAnomaly, is_suspect && (germinates || commits)),
            (VetoFactor::ActiveSeedCapacity, germinates && self.is_full()),
            (VetoFactor::SlotEmpty, germinates && !self.is_empty(command.slot())),
        ];
        let mut against = factors.into_iter().filter(|(_, speaks)| *speaks);
        against
            .next()
            .map(|(factor, _)| factor)
            .filter(|_| op != LifecycleOp::Wait)
    }

    fn is_full(&self) -> bool {
        let seeds = self.slots.iter().flatten().filter(|slot| slot.stage.is_occupied());
        self.max_seeds > 0 && seeds.count() >= self.max_seeds as usize
    }

    fn is_empty(&self, slot: Option<usize>) -> bool {
        let view = slot.and_then(|slot| self.slots.get(slot));
        matches!(view, Some(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::Alarm;
    use crate::growth::{AlphaCurveAction, AlphaMode, AlphaSpeed, AlphaTarget, GerminationStyle, SeedStage, Tempo};
    use crate::telemetry::AlarmKind;

    const GOOD: ValMetrics = ValMetrics {
        loss: 1.0,
        accuracy_percent: 50.0,
    };
    const SUSPECT: Verdict = Verdict::Suspect(Alarm {
        kind: AlarmKind::Divergence,
        loss: 50.0,
        threshold: Some(1.6),
        healthy: Some((1.0, 0.1)),
        consecutive: 1,
    });

    fn germinate(slot: usize) -> LifecycleCommand {
        LifecycleCommand::Germinate {
            slot,
            blueprint: 1,
            style: GerminationStyle::LinearAdd,
            tempo: Tempo::Fast,
            target: AlphaTarget::Full,
        }
    }

    fn prune(slot: usize) -> LifecycleCommand {
        LifecycleCommand::Prune {
            slot,
            speed: AlphaSpeed::Fast,
            curve: AlphaCurveAction::Linear,
        }
    }

    fn holding() -> Option<SlotView> {
        Some(SlotView {
            stage: SeedStage::Holding,
            age: 20,
            alpha_mode: AlphaMode::Hold,
            alpha: 1.0,
            alpha_target: 1.0,
            contribution_known: true,
            cooldown_left: 0,
        })
    }

    fn veto(
        val: &ValMetrics,
        slots: &[Option<SlotView>],
        verdict: &Verdict,
        command: LifecycleCommand,
    ) -> Option<&'static str> {
        let preflight = Preflight {
            val,
            slots,
            max_seeds: 3,
        };
        preflight.veto(&command, verdict).map(VetoFactor::name)
    }

    #[test]
    fn under_suspicion_nothing_is_planted_or_committed_but_seeds_can_be_removed() {
        let slots = [holding(), None];

        let veto = |command| veto(&GOOD, &slots, &SUSPECT, command);

        assert_eq!(veto(LifecycleCommand::Fossilize { slot: 0 }), Some("pending_anomaly"));
        assert_eq!(veto(germinate(1)), Some("pending_anomaly"));
        assert_eq!(veto(prune(0)), None);
        assert_eq!(veto(LifecycleCommand::Advance { slot: 0 }), None);
        assert_eq!(veto(LifecycleCommand::Wait), None);
    }

    #[test]
    fn numbers_that_are_none_forbid_every_change() {
        let no_loss = ValMetrics { loss: f64::NAN, ..GOOD };
        let no_accuracy = ValMetrics {
            accuracy_percent: f64::NAN,
            ..GOOD
        };

        assert_eq!(
            veto(&no_loss, &[holding()], &SUSPECT, prune(0)),
            Some("val_loss_finite")
        );
        assert_eq!(
            veto(&no_accuracy, &[holding()], &Verdict::Healthy, prune(0)),
            Some("val_accuracy_finite")
        );
        assert_eq!(
            veto(&no_loss, &[holding()], &Verdict::Healthy, LifecycleCommand::Wait),
            None
        );
    }

    #[test]
    fn a_full_env_takes_no_seed_but_its_seeds_go_on() {
        let full = [holding(), holding(), holding(), None];

        assert_eq!(
            veto(&GOOD, &full, &Verdict::Healthy, germinate(3)),
            Some("active_seed_capacity")
        );
        assert_eq!(
            veto(&GOOD, &full, &Verdict::Healthy, LifecycleCommand::Advance { slot: 0 }),
            None
        );
    }

    #[test]
    fn a_slot_must_be_empty_to_be_planted() {
        let cooling = Some(SlotView {
            stage: SeedStage::Embargoed,
            ..holding().unwrap()
        });
        let slots = [holding(), cooling, None];

        let veto = |slot| veto(&GOOD, &slots, &Verdict::Healthy, germinate(slot));

        assert_eq!(
            [veto(0), veto(1), veto(2)],
            [Some("slot_empty"), Some("slot_empty"), None]
        );
    }
}
