use super::*;

#[test]
fn the_front_is_what_none_beats_in_both() {
    let front = front(vec![(2.0, 50.0), (1.0, 20.0), (2.0, 40.0), (3.0, 45.0), (4.0, 60.0)]);

    assert_eq!(front, [(1.0, 20.0), (2.0, 50.0), (4.0, 60.0)]);
}
