use super::*;

#[test]
fn episodes_fill_whole_rounds_of_the_first_envs() {
    let few = Episodes::at_least(3, 1, 40, 8);
    assert_eq!((few.rounds.clone(), few.envs, few.count()), (40..41, 3, 3));
    let many = Episodes::at_least(20, 1, 40, 8);
    assert_eq!((many.rounds.clone(), many.envs, many.count()), (40..43, 8, 24));
}
