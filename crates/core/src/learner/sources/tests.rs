use super::*;

#[test]
fn the_share_with_the_largest_returns_is_kept_in_order() {
    let place = |segment, returned| Place {
        set: 0,
        shard: 0,
        segment,
        returned,
    };
    let mut places = vec![place(0, 0.5), place(1, 3.0), place(2, 4.0), place(3, 3.0)];

    // More than half are as good as the best.
    keep_best(&mut places, 0.5);

    let kept: Vec<usize> = places.iter().map(|place| place.segment).collect();
    assert_eq!(kept, [1, 2, 3]);
}
