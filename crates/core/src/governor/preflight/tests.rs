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
    super::veto(&command, verdict, val, slots, 3)
}

#[test]
fn under_suspicion_nothing_is_planted_or_committed_but_seeds_can_be_removed() {
    let slots = [holding(), None];

    let veto = |command| veto(&GOOD, &slots, &SUSPECT, command);

    assert_eq!(veto(LifecycleCommand::Commit { slot: 0 }), Some("pending_anomaly"));
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
fn a_full_env_takes_no_seed_but_its_seeds_advance() {
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
