use super::*;
use crate::actions::choice_of;
use crate::actions::fixtures::{BLUEPRINT_NAMES, commands, germination};
use crate::controller::fixtures::Ground;
use crate::growth::LifecycleOp;

fn recorded(command: &LifecycleCommand, ground: &Ground) -> telemetry::Decision {
    telemetry::Decision {
        op: command.op(),
        slot: command.slot().map(|slot| ground.slots[slot]),
        blocked: None,
        choice: choice_of(command, |index| BLUEPRINT_NAMES[index].into()),
        policy: None,
        allowed: LifecycleOp::ALL.into(),
        reason: None,
        paid: None,
    }
}

#[test]
fn every_command_survives_its_recording() {
    let ground = Ground::default();
    for original in commands(3) {
        let written = serde_json::to_string(&recorded(&original, &ground)).unwrap();
        let read = serde_json::from_str(&written).unwrap();
        assert_eq!(command(&read, &ground.context()), Ok(original));
    }
}

#[test]
fn a_host_without_the_slot_or_the_blueprint_is_distinguished() {
    let wide = recorded(&germination(2, 3), &Ground::default());
    let mut narrow = Ground::default();
    narrow.slots.truncate(2);

    let why = "`policy.replay`: slot `r0c2` is not enabled; enabled are r0c0, r0c1";
    assert_eq!(command(&wide, &narrow.context()).unwrap_err().to_string(), why);
}
