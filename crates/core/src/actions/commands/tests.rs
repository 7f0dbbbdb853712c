use std::collections::HashSet;

use super::*;
use crate::actions::relevant;

#[test]
fn a_wait_stores_placeholders() {
    assert_eq!(indices_of(&LifecycleCommand::Wait), [0, 0, 2, 1, 2, 0, 0, 0]);
}

#[test]
fn every_command_survives_the_way_through_its_indices() {
    let mut distinct = HashSet::new();
    let fixed = [3, 8, 4, 3, 3, 4, 5, 6];
    let combinations: usize = fixed.iter().product();
    for mut number in 0..combinations {
        let indices = fixed.map(|size| {
            let index = number % size;
            number /= size;
            index as u8
        });
        let command = command_of(&indices).unwrap();
        let canonical = indices_of(&command);
        assert_eq!(command_of(&canonical).unwrap(), command);
        for head in Head::ALL.into_iter().filter(|&head| relevant(command.op(), head)) {
            assert_eq!(canonical[head as usize], indices[head as usize]);
        }
        distinct.insert(canonical);
    }
    // 8 blueprints here, the unselectable first included: 288 instead of 252 germinations a slot.
    assert_eq!(distinct.len(), 1 + 3 * (514 + 36));
}

#[test]
fn an_index_beyond_its_head_is_an_error() {
    let (head, index) = (Head::Op, 6);
    let refused = command_of(&[0, 0, 2, 1, 2, 0, 0, 6]);
    assert_eq!(refused, Err(PolicyError::NoSuchMember { head, index }));
}
