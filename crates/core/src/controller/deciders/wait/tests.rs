use super::*;
use crate::actions::fixtures::empty;
use crate::controller::fixtures::{Ground, Scene};

#[test]
fn waits_although_slots_are_free() {
    let scene = Scene::new(1, empty(3));
    let decision = scene.decide(&mut WaitController);
    assert_eq!(decision.command, LifecycleCommand::Wait);
    assert_eq!(decision.indices, [0, 0, 2, 1, 2, 0, 0, 0]);
}

#[test]
fn a_static_topology_has_to_be_there() {
    let mut ground = Ground::default();
    let why =
        "`initial_topology`: is empty, but the static controller needs seeds; controller \"wait\" plays the host alone";
    assert_eq!(StaticController::new(&ground.context()).unwrap_err().to_string(), why);
    ground.scenario.initial_topology = InitialTopology::Seeds(Vec::new());
    assert!(StaticController::new(&ground.context()).is_ok());
}
