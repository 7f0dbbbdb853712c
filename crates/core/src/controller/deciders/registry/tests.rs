use super::*;
use crate::controller::fixtures::Ground;
use crate::growth::SlotId;
use crate::policy::fixtures::small;
use crate::scenario::{InitialTopology, ScheduleEntry, ScheduledCommand};

#[test]
fn every_builtin_builds_under_its_own_name() {
    let registry = ControllerRegistry::default();
    let mut ground = Ground::default();
    let command = ScheduledCommand::Commit {
        slot: SlotId::new(0, 0),
    };
    ground.scenario.policy.schedule.entries = vec![ScheduleEntry { step: 1, command }];
    ground.scenario.initial_topology = InitialTopology::Seeds(Vec::new());
    ground.scenario.policy.net_cfg = small();
    for name in "actor_critic fragrow heuristic periodic random schedule static wait".split(' ') {
        ground.scenario.policy.controller = name.into();
        assert_eq!(registry.build(&ground.context()).unwrap().name(), name);
    }
}

#[test]
fn an_unknown_name_lists_what_there_is() {
    let ground = Ground::with(|scenario| scenario.policy.controller = "oracle".into());
    let error = ControllerRegistry::default().build(&ground.context()).err().unwrap();
    let why = "no controller is called `oracle`; there are: actor_critic, external, fragrow, heuristic, periodic, \
               random, replay, schedule, static, wait";
    assert_eq!(error.to_string(), why);
}
