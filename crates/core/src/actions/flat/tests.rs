use super::*;
use crate::actions::fixtures::germination;
use crate::growth::{AlphaCurveAction, AlphaSpeed, GerminationStyle};

#[test]
fn what_a_scenario_leaves_open_keeps_its_placeholder() {
    let commands = flat_commands(&ActionSpace::default(), 3, [0, 2, 5].into_iter().collect()).unwrap();

    // Wait, then 3 slots with 3 blueprints each, then a prune and a commit for each slot.
    assert_eq!(commands.len(), 1 + 3 * 3 + 3 + 3);
    assert_eq!(commands[0], LifecycleCommand::Wait);
    assert_eq!(commands[9], germination(2, 5));
    assert_eq!(commands[15], LifecycleCommand::Commit { slot: 2 });
}

#[test]
fn what_a_scenario_lists_is_enumerated() {
    let space = ActionSpace {
        allowed_ops: Some(vec![LifecycleOp::Wait, LifecycleOp::Prune]),
        alpha_speed: Some(vec![AlphaSpeed::Instant, AlphaSpeed::Slow]),
        ..ActionSpace::default()
    };

    let commands = flat_commands(&space, 2, Choices::NONE).unwrap();

    let prune = |(slot, speed)| LifecycleCommand::Prune {
        slot,
        speed,
        curve: AlphaCurveAction::Linear,
    };
    let [instant, slow] = [AlphaSpeed::Instant, AlphaSpeed::Slow];
    let pruning = [(0, instant), (0, slow), (1, instant), (1, slow)].map(prune);
    assert_eq!(commands, [&[LifecycleCommand::Wait][..], &pruning].concat());
}

#[test]
fn no_command_stands_twice() {
    let everything = ActionSpace {
        allowed_ops: None,
        style: Some(GerminationStyle::ALL.to_vec()),
        alpha_speed: Some(AlphaSpeed::ALL.to_vec()),
        ..ActionSpace::default()
    };

    let commands = flat_commands(&everything, 3, Choices::first_n(4)).unwrap();

    for (index, command) in commands.iter().enumerate() {
        assert!(!commands[..index].contains(command), "{command:?}");
    }
}
