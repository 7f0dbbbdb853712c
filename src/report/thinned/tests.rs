use super::*;

fn thinned<const CAPACITY: usize>(items: u64) -> Vec<u64> {
    let mut series = Thinned::<u64, CAPACITY>::default();
    (0..items).for_each(|item| series.push(item));
    assert_eq!(series.seen(), items);
    series.iter().copied().collect()
}

#[test]
fn what_does_not_fit_is_thinned_evenly() {
    assert_eq!(thinned::<4>(4), [0, 1, 2, 3]);
    assert_eq!(thinned::<4>(5), [0, 2, 4]);
    assert_eq!(thinned::<4>(6), [0, 2, 4, 5]);
    assert_eq!(thinned::<4>(9), [0, 4, 8]);
}

#[test]
fn the_first_and_the_newest_are_always_there_and_the_size_is_bounded() {
    let thinned = [thinned::<2>, thinned::<3>, thinned::<7>, thinned::<50>];
    for items in 1..600 {
        for (capacity, thinned) in [2, 3, 7, 50].into_iter().zip(thinned) {
            let kept = thinned(items);

            assert!(kept.len() <= capacity + 1, "{items} items, {capacity} kept: {kept:?}");
            assert_eq!((kept.first(), kept.last()), (Some(&0), Some(&(items - 1))));
            assert!(kept.is_sorted_by(|a, b| a < b));
        }
    }
}
