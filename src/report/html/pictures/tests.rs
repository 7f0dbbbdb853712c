use super::*;

#[test]
fn the_front_is_what_none_beats_in_both_and_its_volume_the_area_below_it() {
    let (front, volume) = front(&[(2.0, 50.0), (1.0, 20.0), (2.0, 40.0), (3.0, 45.0), (4.0, 60.0)]);

    assert_eq!(front, [(1.0, 20.0), (2.0, 50.0), (4.0, 60.0)]);
    // 20 for 1 to 2, 50 for 2 to 4; the last one adds nothing.
    assert_eq!(volume, 20.0 + 100.0);
}
