use super::*;
use crate::growth::LifecycleCommand;

#[test]
fn the_most_frequent_decision_of_a_step_is_ordered_and_of_equals_the_first() {
    let slot = SlotId::new(0, 1);
    let (commit, advance) = (ScheduledCommand::Commit { slot }, ScheduledCommand::Advance { slot });
    let indices = |op| [op, 0, 0, 0, 0, 0, 0, 0];
    let decided = |waits, commits, advances| {
        let counts = [
            (indices(0), (waits, None)),
            (indices(4), (commits, Some(commit.clone()))),
            (indices(5), (advances, Some(advance.clone()))),
        ];
        most_frequent(counts.into())
    };

    assert_eq!(decided(3, 4, 4), Some(commit.clone()));
    assert_eq!(decided(3, 4, 5), Some(advance.clone()));
    assert_eq!(decided(4, 4, 4), None, "it waits");
    assert_eq!(most_frequent(Counts::new()), None, "no decisions");
}

#[test]
fn commands_are_written_by_the_names_of_slots_and_blueprints() {
    let slots = [SlotId::new(0, 0), SlotId::new(1, 2)];
    let written = |command| written(&command, &slots, |index| ["norm", "attention"][index]);

    let commit = ScheduledCommand::Commit { slot: slots[1] };
    assert_eq!(written(LifecycleCommand::Commit { slot: 1 }), Some(commit));
    assert_eq!(written(LifecycleCommand::Wait), None);
    // There is no such slot.
    assert_eq!(written(LifecycleCommand::Commit { slot: 2 }), None);
}

#[test]
fn who_orders_nothing_waits() {
    let mut blind = Blind {
        seed: BigInteger(43),
        hosts: 12,
        schedule: ScheduleConfig::default(),
    };
    assert_eq!(blind.controller(), "wait");

    let slot = SlotId::new(0, 0);
    let command = ScheduledCommand::Commit { slot };
    blind.schedule.entries.push(ScheduleEntry { step: 9, command });

    assert_eq!(blind.controller(), "schedule");
}
