use super::*;
use crate::actions::fixtures::{empty, germination, report};
use crate::controller::fixtures::{Ground, Scene};
use crate::growth::{AlphaTarget, GerminationStyle, SeedStage, Tempo};
use crate::scenario::ScheduleEntry;
use crate::seed::SeedReport;

/// A `norm` in the first slot, and how it is taken to its commit.
fn growing_one_seed() -> Vec<ScheduleEntry> {
    let slot = SlotId::new(0, 0);
    let germinate = ScheduledCommand::Germinate {
        slot,
        blueprint: "norm".into(),
        style: GerminationStyle::SigmoidAdd,
        tempo: Tempo::Standard,
        target: AlphaTarget::Full,
    };
    let advances = [2, 12, 17].map(|step| (step, ScheduledCommand::Advance { slot }));
    let commands = [(1, germinate)].into_iter().chain(advances);
    let commands = commands.chain([(18, ScheduledCommand::Commit { slot })]);
    commands
        .map(|(step, command)| ScheduleEntry { step, command })
        .collect()
}

fn listing(entries: Vec<ScheduleEntry>) -> Ground {
    Ground::with(|scenario| scenario.policy.schedule.entries = entries)
}

/// An advance of this slot in step 5.
fn advancing(slot: &str) -> Ground {
    let slot = slot.parse().unwrap();
    let command = ScheduledCommand::Advance { slot };
    listing(vec![ScheduleEntry { step: 5, command }])
}

fn complaint(ground: &Ground) -> String {
    ScheduleController::new(&ground.context()).unwrap_err().to_string()
}

#[test]
fn the_hashes_of_schedules_are_pinned() {
    let grown = growing_one_seed();
    for (entries, hash) in [
        (
            &grown[..1],
            "e816388d3566fb7fd2a213cd4e44610aecb791e3e3afe498048920f49a03e797",
        ),
        (
            &grown[..],
            "ec5bbce4686177b486454a3a87b43a45c0724e790028ea66eda9c2078f838f3c",
        ),
    ] {
        let schedule = ScheduleController::new(&listing(entries.to_vec()).context()).unwrap();
        assert_eq!(schedule.fingerprint(), Some(hash));
    }
}

#[test]
fn growing_one_seed_is_legal_at_each_of_its_steps() {
    let ground = listing(growing_one_seed());
    let mut schedule = ScheduleController::new(&ground.context()).unwrap();
    let advance = LifecycleCommand::Advance { slot: 0 };
    for (step, stage, expected) in [
        (1, None, germination(0, 3)),
        (2, Some(SeedStage::Germinated), advance),
        (12, Some(SeedStage::Training), advance),
        (17, Some(SeedStage::Blending), advance),
        (18, Some(SeedStage::Holding), LifecycleCommand::Commit { slot: 0 }),
        (19, Some(SeedStage::Holding), LifecycleCommand::Wait),
    ] {
        let seed = stage.map(|stage| SeedReport {
            contribution: Some(0.4),
            ..report(0, stage)
        });
        let decision = Scene::new(step, vec![seed, None]).decide(&mut schedule);
        assert_eq!(decision.command, expected, "step {step}");
    }
}

#[test]
fn an_illegal_entry_is_an_error_or_a_wait() {
    let mut ground = advancing("r0c1");
    let scene = Scene::new(5, empty(3));
    let mut strict = ScheduleController::new(&ground.context()).unwrap();
    let why = "env 0, episode 0, step 5: the schedule orders ADVANCE, which is not legal: the slot is empty";
    assert_eq!(scene.try_decide(&mut strict).unwrap_err().to_string(), why);
    ground.scenario.policy.schedule.wait_on_illegal = true;
    let mut lenient = ScheduleController::new(&ground.context()).unwrap();
    let decision = scene.decide(&mut lenient);
    assert_eq!(decision.command.op(), LifecycleOp::Wait);
    assert_eq!(decision.reason, "scheduled ADVANCE is not legal: the slot is empty");
}

#[test]
fn mistakes_are_found_before_the_run() {
    let why = "`policy.schedule`: is empty; list entries";
    assert_eq!(complaint(&Ground::default()), why);
    let why = "`policy.schedule.entries[0].command.slot`: slot `r9c9` is not enabled; enabled are r0c0, r0c1, r0c2";
    assert_eq!(complaint(&advancing("r9c9")), why);
    let mut ground = listing(growing_one_seed());
    ground.scenario.policy.masks.action_space.allowed_ops = Some(vec![LifecycleOp::Wait, LifecycleOp::Germinate]);
    let why = "`policy.schedule`: step 2 orders ADVANCE, which policy.masks.action_space excludes";
    assert_eq!(complaint(&ground), why);
}
