use super::*;
use crate::growth::{AlphaSpeed, AlphaTarget, GerminationStyle, Tempo};

#[test]
fn what_a_scenario_leaves_open_keeps_its_placeholder() {
    let commands = flat_commands(&ActionSpace::default(), 3, [0, 2, 5].into_iter().collect()).unwrap();

    // Wait, then 3 slots with 3 blueprints each, then a prune and a commit for each slot.
    assert_eq!(commands.len(), 1 + 3 * 3 + 3 + 3);
    assert_eq!(commands[0], LifecycleCommand::Wait);
    let last_germination = LifecycleCommand::Germinate {
        slot: 2,
        blueprint: 5,
        style: GerminationStyle::SigmoidAdd,
        tempo: Tempo::Standard,
        target: AlphaTarget::Full,
    };
    assert_eq!(commands[9], last_germination);
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

    let speeds: Vec<_> = commands
        .iter()
        .filter_map(|command| match command {
            LifecycleCommand::Prune { slot, speed, .. } => Some((*slot, *speed)),
            _ => None,
        })
        .collect();
    let [instant, slow] = [AlphaSpeed::Instant, AlphaSpeed::Slow];
    assert_eq!(speeds, [(0, instant), (0, slow), (1, instant), (1, slow)]);
    assert_eq!(commands.len(), 5);
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

    let repeated = commands
        .iter()
        .enumerate()
        .find(|(index, command)| commands[..*index].contains(command));
    assert_eq!(repeated, None);
}
