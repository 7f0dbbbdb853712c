use super::*;
use crate::governor::Alarm;
use crate::growth::{AlphaCurveAction, AlphaMode, AlphaSpeed, AlphaTarget, GerminationStyle, SeedStage, Tempo};
use crate::telemetry::AlarmKind;

const GOOD: ValMetrics = ValMetrics {
    loss: 1.0,
    accuracy_percent: 50.0,
};
const SUSPECT: LossVerdict = LossVerdict::Suspect(Alarm {
    kind: AlarmKind::Divergence,
    loss: 50.0,
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

#[test]
fn under_suspicion_nothing_is_planted_or_committed_but_seeds_can_be_removed() {
    for (command, expected) in [
        (LifecycleCommand::Commit { slot: 0 }, Some("pending_anomaly")),
        (germinate(1), Some("pending_anomaly")),
        (prune(0), None),
        (LifecycleCommand::Advance { slot: 0 }, None),
        (LifecycleCommand::Wait, None),
    ] {
        assert_eq!(veto(&command, &SUSPECT, &GOOD, &[holding(), None], 3), expected);
    }
}

#[test]
fn numbers_that_are_none_forbid_every_change() {
    let no_loss = ValMetrics { loss: f64::NAN, ..GOOD };
    let no_accuracy = ValMetrics {
        accuracy_percent: f64::NAN,
        ..GOOD
    };

    for (val, verdict, command, expected) in [
        (no_loss, SUSPECT, prune(0), Some("val_loss_finite")),
        (no_accuracy, LossVerdict::Healthy, prune(0), Some("val_accuracy_finite")),
        (no_loss, LossVerdict::Healthy, LifecycleCommand::Wait, None),
    ] {
        assert_eq!(veto(&command, &verdict, &val, &[holding()], 3), expected);
    }
}

#[test]
fn a_full_env_takes_no_seed_but_its_seeds_advance() {
    let full = [holding(), holding(), holding(), None];

    let veto = |command| veto(&command, &LossVerdict::Healthy, &GOOD, &full, 3);
    assert_eq!(veto(germinate(3)), Some("active_seed_capacity"));
    assert_eq!(veto(LifecycleCommand::Advance { slot: 0 }), None);
}

#[test]
fn a_slot_must_be_empty_to_be_planted() {
    let cooling = Some(SlotView {
        stage: SeedStage::Embargoed,
        ..holding().unwrap()
    });
    let slots = [holding(), cooling, None];

    let vetoes = [0, 1, 2].map(|slot| veto(&germinate(slot), &LossVerdict::Healthy, &GOOD, &slots, 3));

    assert_eq!(vetoes, [Some("slot_empty"), Some("slot_empty"), None]);
}
