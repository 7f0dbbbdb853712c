use super::*;
use crate::actions::fixtures::{empty, report};
use crate::controller::fixtures::{Ground, Scene};
use crate::growth::{LifecycleOp, SeedStage};
use crate::scenario::ScheduleEntry;

fn builtin_named(schedule: BuiltinSchedule) -> Ground {
    let mut ground = Ground::default();
    ground.scenario.policy.schedule.builtin = Some(schedule);
    ground
}

fn listed(entries: &[(u32, ScheduledCommand)]) -> Ground {
    let mut ground = Ground::default();
    ground.scenario.policy.schedule.entries = entries
        .iter()
        .cloned()
        .map(|(step, command)| ScheduleEntry { step, command })
        .collect();
    ground
}

fn advance(slot: &str) -> ScheduledCommand {
    ScheduledCommand::Advance {
        slot: slot.parse().unwrap(),
    }
}

fn complaint(ground: &Ground) -> String {
    ScheduleController::new(&ground.context()).unwrap_err().to_string()
}

#[test]
fn the_hashes_of_the_built_in_schedules_are_pinned() {
    for (name, hash) in [
        (
            BuiltinSchedule::GerminateFirstSlot,
            "e816388d3566fb7fd2a213cd4e44610aecb791e3e3afe498048920f49a03e797",
        ),
        (
            BuiltinSchedule::GrowOneSeed,
            "ec5bbce4686177b486454a3a87b43a45c0724e790028ea66eda9c2078f838f3c",
        ),
    ] {
        let schedule = ScheduleController::new(&builtin_named(name).context()).unwrap();
        assert_eq!(schedule.fingerprint(), Some(hash));
    }
}

#[test]
fn a_command_outside_the_action_space_is_found_before_the_run() {
    let mut ground = builtin_named(BuiltinSchedule::GrowOneSeed);
    ground.scenario.policy.masks.action_space.allowed_ops = Some(vec![LifecycleOp::Wait, LifecycleOp::Germinate]);
    assert_eq!(
        complaint(&ground),
        "`policy.schedule`: step 2 orders ADVANCE, which policy.masks.action_space excludes"
    );
}

#[test]
fn growing_one_seed_is_legal_at_each_of_its_steps() {
    let ground = builtin_named(BuiltinSchedule::GrowOneSeed);
    let mut schedule = ScheduleController::new(&ground.context()).unwrap();
    let mut order = |step, seed| Scene::new(step, vec![seed, None]).decide(&mut schedule);
    assert_eq!(
        order(1, None).command,
        LifecycleCommand::Germinate {
            slot: 0,
            blueprint: 3,
            style: GerminationStyle::SigmoidAdd,
            tempo: Tempo::Standard,
            target: AlphaTarget::Full,
        }
    );
    for (step, stage) in [
        (2, SeedStage::Germinated),
        (12, SeedStage::Training),
        (17, SeedStage::Blending),
    ] {
        let command = order(step, Some(report(0, stage))).command;
        assert_eq!(command, LifecycleCommand::Advance { slot: 0 });
    }
    let mut held = report(0, SeedStage::Holding);
    held.contribution = Some(0.4);
    assert_eq!(
        order(18, Some(held.clone())).command,
        LifecycleCommand::Commit { slot: 0 }
    );
    assert_eq!(order(19, Some(held)).command, LifecycleCommand::Wait);
}

#[test]
fn an_illegal_entry_is_an_error_or_a_wait() {
    let mut ground = listed(&[(5, advance("r0c1"))]);
    let scene = Scene::new(5, empty(3));
    let mut strict = ScheduleController::new(&ground.context()).unwrap();
    assert_eq!(
        scene.try_decide(&mut strict).unwrap_err().to_string(),
        "env 0, episode 0, step 5: the schedule orders ADVANCE, which is not legal: the slot is empty"
    );
    ground.scenario.policy.schedule.wait_on_illegal = true;
    let mut lenient = ScheduleController::new(&ground.context()).unwrap();
    let decision = scene.decide(&mut lenient);
    assert_eq!(decision.command.op(), LifecycleOp::Wait);
    assert_eq!(decision.reason, "scheduled ADVANCE is not legal: the slot is empty");
}

#[test]
fn mistakes_are_found_before_the_run() {
    assert_eq!(
        complaint(&Ground::default()),
        "`policy.schedule`: is empty; list entries or name one of germinate_first_slot, grow_one_seed"
    );
    assert_eq!(
        complaint(&listed(&[(1, advance("r9c9"))])),
        "`policy.schedule.entries[0].command.slot`: slot `r9c9` is not enabled; enabled are r0c0, r0c1, r0c2"
    );
}
